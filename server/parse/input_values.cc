#include "server/parse/input_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "server/parse/number.h"

namespace fusion {
namespace {

using Values = v1::InputValues;

enum class Numbers { kNone, kTwo, kTwoOrNone };
enum class Fits { kAll, kRows, kSquare };

struct Kind {
  absl::string_view word;  // of the language; "": it has none
  Values::Kind kind;
  Numbers numbers = Numbers::kNone;
  double lower = 0, upper = 0;  // without numbers
  Fits fits = Fits::kAll;
};

// Kinds that are written behind an equals sign come first, in the order in which people are told of them.
// Several words may mean the same kind, with other bounds; the protobuf form finds the last of these.
constexpr std::array<Kind, 12> kKinds = {{
    {"spd", Values::POSITIVE_DEFINITE, Numbers::kNone, 0, 0, Fits::kSquare},
    {"probabilities", Values::PROBABILITIES, Numbers::kNone, 0, 0, Fits::kRows},
    {"integers", Values::INTEGERS, Numbers::kTwo},
    {"sorted", Values::SORTED, Numbers::kTwoOrNone, -1, 1, Fits::kRows},
    {"one_hot", Values::ONE_HOT, Numbers::kNone, 0, 0, Fits::kRows},
    {"unit_rows", Values::UNIT_ROWS, Numbers::kNone, 0, 0, Fits::kRows},
    {"positive", Values::UNIFORM, Numbers::kNone, 0.25, 1.25},
    {"negative", Values::UNIFORM, Numbers::kNone, -1.25, -0.25},
    {"signed", Values::UNIFORM, Numbers::kNone, -1, 1},
    {kRangeWord, Values::UNIFORM, Numbers::kTwo},
    {"", Values::FILE},
    {"", Values::DEFAULT},
}};

const Kind* FindKind(const ValuesSyntax& written) {
  const Kind* found = nullptr;
  for (const Kind& kind : kKinds) {
    if (written.enumerated) {
      if (Values::Kind_Name(kind.kind) == written.word) found = &kind;
    } else if (kind.word == written.word && (kind.word == kRangeWord) == written.range) {
      return &kind;
    }
  }
  return found;
}

std::string UnknownKindMessage(absl::string_view word, bool may_suggest) {
  std::vector<absl::string_view> words;
  std::string all;
  for (const Kind& kind : kKinds) {
    if (kind.word.empty() || kind.word == kRangeWord) continue;
    words.push_back(kind.word);
    absl::StrAppend(&all, kind.word, kind.numbers == Numbers::kTwo ? "(0, 9)" : "", ", ");
  }
  const std::string similar = may_suggest ? SimilarName(word, words) : "";
  return absl::StrCat(
      "unknown kind of values ", Shown(word),
      similar.empty() ? absl::StrCat("; there are ", all, "and ranges: x in (0.5, 2)") : DidYouMean(similar));
}

// "f32", "f64"
const char* NameOf(DataType type) { return type == v1::F64 ? "f64" : "f32"; }

class Check {
 public:
  Check(const ValuesSyntax& written, absl::string_view name, const Type* type, ErrorList* errors)
      : written_(written), name_(name), type_(type), errors_(errors), errors_before_(errors->count()) {}

  std::optional<Values> Run() {
    const Kind* kind = FindKind(written_);
    if (kind == nullptr) {
      Fail(written_.location, UnknownKindMessage(written_.word, errors_->MaySuggest()));
      return std::nullopt;
    }
    Values values;
    values.set_kind(kind->kind);
    values.set_lower(kind->lower);
    values.set_upper(kind->upper);
    values.set_blob(std::string(written_.blob));
    CheckBlob(*kind);
    if (CheckCount(*kind) && written_.numbers.size() == 2) {
      // No sign of a zero.
      values.set_lower(written_.numbers[0].value + 0.0);
      values.set_upper(written_.numbers[1].value + 0.0);
      if (kind->kind == Values::INTEGERS) {
        CheckIntegers();
      } else {
        CheckRange();
      }
    }
    CheckType(*kind);
    if (errors_->count() > errors_before_) return std::nullopt;
    return values;
  }

 private:
  void Fail(const Location& location, absl::string_view message) {
    errors_->Add(location, written_.enumerated ? absl::StrCat("input_values of ", Shown(name_), ": ", message)
                                               : std::string(message));
  }
  void FailNumber(size_t number, absl::string_view message) {
    Fail(written_.numbers[number].location, message);
  }

  void CheckBlob(const Kind& kind) {
    const bool file = kind.kind == Values::FILE;
    if (!file && !written_.blob.empty()) Fail(written_.location, "blob is given, but the kind is not FILE");
    constexpr absl::string_view kPrefix = "sha256:";
    if (!file) return;
    const absl::string_view digits = written_.blob.substr(std::min(kPrefix.size(), written_.blob.size()));
    if (!absl::StartsWith(written_.blob, kPrefix) || digits.size() != 64 ||
        digits.find_first_not_of("0123456789abcdef") != absl::string_view::npos)
      Fail(written_.location,
           "blob must be a digest, sha256: and 64 hexadecimal digits, as UploadInput gives it");
  }

  bool CheckCount(const Kind& kind) {
    const size_t count = written_.numbers.size();
    if (count == 0 && kind.numbers != Numbers::kTwo) return true;
    if (count == 2 && kind.numbers != Numbers::kNone) return true;
    const std::string word = Shown(written_.word);
    switch (kind.numbers) {
      case Numbers::kNone:
        Fail(written_.location, absl::StrCat(word, " takes no numbers"));
        break;
      case Numbers::kTwo:
        Fail(written_.location, written_.range
                                    ? "a range has two bounds, as in x in (0.5, 2)"
                                    : absl::StrCat(word, " takes two numbers, as in ", word, "(0, 9)"));
        break;
      case Numbers::kTwoOrNone:
        Fail(written_.location,
             absl::StrCat(word, " takes two numbers, as in ", word, "(0, 1), or none at all"));
        break;
    }
    return false;
  }

  // Checks that the numbers are finite and not too large for the type.
  bool CheckNumbers() {
    const size_t before = errors_->count();
    const double largest = type_ != nullptr && type_->data_type == v1::F32
                               ? std::numeric_limits<float>::max()
                               : std::numeric_limits<double>::max();
    for (size_t i = 0; i < written_.numbers.size(); ++i) {
      if (std::fabs(written_.numbers[i].value) <= largest) continue;
      FailNumber(i, type_ != nullptr && std::isfinite(written_.numbers[i].value)
                        ? "this number is too large for f32; the largest is 3.4e38"
                        : "a bound must be a finite number");
    }
    return errors_->count() == static_cast<int>(before);
  }

  void CheckRange() {
    if (!CheckNumbers()) return;
    const double lower = written_.numbers[0].value, upper = written_.numbers[1].value;
    const std::string bounds = absl::StrCat(LiteralText(lower), " and ", LiteralText(upper));
    if (!(lower < upper))
      return FailNumber(
          0, absl::StrCat("the lower bound must be less than the upper one, but they are ", bounds));
    if (type_ == nullptr) return;
    const bool f32 = type_->data_type == v1::F32;
    const bool between =
        f32 ? std::nextafter(static_cast<float>(lower), static_cast<float>(upper)) < static_cast<float>(upper)
            : std::nextafter(lower, upper) < upper;
    if (!between)
      return FailNumber(0, absl::StrCat("no ", NameOf(type_->data_type), " lies between ", bounds));
    if (!std::isfinite(upper - lower))
      FailNumber(0, "the bounds are further apart than the largest f64, 1.8e308");
  }

  void CheckIntegers() {
    if (!CheckNumbers()) return;
    const double most = type_ != nullptr && type_->data_type == v1::F32 ? 0x1p24 : 0x1p53;
    const int before = errors_->count();
    for (size_t i = 0; i < 2; ++i) {
      const double value = written_.numbers[i].value;
      if (value != std::floor(value)) {
        FailNumber(i, absl::StrCat(LiteralText(value), " is no whole number"));
      } else if (std::fabs(value) > most) {
        FailNumber(i, absl::StrCat("beyond ", static_cast<int64_t>(most), " not all whole numbers are ",
                                   NameOf(type_ == nullptr ? v1::F64 : type_->data_type), " numbers"));
      }
    }
    if (errors_->count() == before && written_.numbers[0].value > written_.numbers[1].value)
      FailNumber(0, "the first number must not be greater than the second");
  }

  void CheckType(const Kind& kind) {
    if (type_ == nullptr || kind.fits == Fits::kAll) return;
    // The shape of the variable, or of each of its elements.
    const bool element = type_->mapped;
    const size_t extents = element ? type_->element_shape.size() : type_->extents.size();
    const std::string word = Shown(written_.word);
    const std::string is = absl::StrCat("; ", Shown(name_), " is ", type_->ToString());
    if (kind.fits == Fits::kRows && extents == 0)
      return Fail(written_.location,
                  absl::StrCat(word, " takes rows: vectors or matrices, or lists of them", is));
    if (kind.fits != Fits::kSquare) return;
    const bool square = extents == 2 && (element ? type_->element_shape[0] == type_->element_shape[1]
                                                 : type_->extents[0] == type_->extents[1]);
    if (!square)
      Fail(written_.location, absl::StrCat(word, " takes square matrices: matrix[n,n] or MATRIX3x3", is));
  }

  const ValuesSyntax& written_;
  const absl::string_view name_;
  const Type* const type_;
  ErrorList* const errors_;
  const int errors_before_;
};

std::string BoundsText(const Values& values) {
  return absl::StrCat("(", LiteralText(values.lower()), ", ", LiteralText(values.upper()), ")");
}

}  // namespace

std::optional<v1::InputValues> CheckInputValues(const ValuesSyntax& written, absl::string_view name,
                                                const Type* type, ErrorList* errors) {
  return Check(written, name, type, errors).Run();
}

void AddInputValues(const google::protobuf::Map<std::string, v1::InputValues>& values, bool files,
                    SyntaxTree* tree, ErrorList* errors) {
  if (values.empty()) return;
  std::map<absl::string_view, int> positions;
  std::vector<absl::string_view> names;
  for (const NameSyntax& input : tree->inputs) {
    positions.try_emplace(input.text, static_cast<int>(names.size()));
    names.push_back(input.text);
  }
  std::map<absl::string_view, const Values*> sorted;
  for (const auto& [name, asked] : values) sorted.emplace(name, &asked);
  for (const auto& [name, asked] : sorted) {
    const auto found = positions.find(name);
    if (found == positions.end()) {
      if (tree->unclear.contains(name)) continue;
      const std::string similar = errors->MaySuggest() ? SimilarName(name, names) : "";
      errors->Add(Location{},
                  absl::StrCat("input_values: the graph has no input ", Shown(name), DidYouMean(similar)));
      continue;
    }
    ValuesSyntax written;
    written.input = found->second;
    written.location = tree->inputs[found->second].location;
    written.enumerated = true;
    if (!Values::Kind_IsValid(asked->kind()) || (asked->kind() == Values::FILE && !files)) {
      errors->Add(written.location,
                  absl::StrCat("input_values of ", Shown(name), ": ",
                               asked->kind() == Values::FILE
                                   ? "a graph names no FILE; what is submitted with it does"
                                   : absl::StrCat("unknown kind ", static_cast<int>(asked->kind()))));
      continue;
    }
    written.word = Values::Kind_Name(asked->kind());
    written.blob = asked->blob();
    if (asked->lower() != 0 || asked->upper() != 0 || asked->kind() == Values::UNIFORM ||
        asked->kind() == Values::INTEGERS)
      written.numbers = {{asked->lower(), written.location}, {asked->upper(), written.location}};
    tree->values.push_back(std::move(written));
  }
}

std::string InputValuesText(const v1::InputValues& values) {
  switch (values.kind()) {
    case Values::UNIFORM:
      return absl::StrCat(" ", kRangeWord, " ", BoundsText(values));
    case Values::INTEGERS:
      return absl::StrCat(" = integers(", static_cast<int64_t>(values.lower()), ", ",
                          static_cast<int64_t>(values.upper()), ")");
    case Values::SORTED:
      return absl::StrCat(" = sorted", BoundsText(values));
    default:
      for (const Kind& kind : kKinds)
        if (kind.kind == values.kind() && !kind.word.empty()) return absl::StrCat(" = ", kind.word);
      return "";
  }
}

}  // namespace fusion
