#include "tests/fault/malformed/mutation.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <utility>
#include <vector>

namespace fusion {
namespace {

using google::protobuf::FieldDescriptor;

constexpr int kMostDepth = 6;

// Words with the space behind them, so that joining them gives the text back.
std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> words;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    const auto is_name = [&](size_t at) {
      return std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_';
    };
    if (is_name(i))
      while (end < text.size() && is_name(end)) ++end;
    while (end < text.size() && text[end] == ' ') ++end;
    words.push_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

}  // namespace

int64_t Mutation::Integer() {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kEdges[] = {0,
                                1,
                                -1,
                                2,
                                31,
                                1024,
                                1025,
                                -1000,
                                1 << 20,
                                2147483647,
                                -2147483648LL,
                                4294967296LL,
                                3037000500LL,
                                kMost,
                                kMost - 1,
                                kLeast};
  return OneIn(8) ? static_cast<int64_t>(random_()) : kEdges[Below(std::size(kEdges))];
}

double Mutation::Number() {
  using Limits = std::numeric_limits<double>;
  constexpr double kEdges[] = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               0.5,
                               1e9,
                               1e18,
                               1e300,
                               -1e300,
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::denorm_min(),
                               Limits::max()};
  return OneIn(6) ? Limits::quiet_NaN() : kEdges[Below(std::size(kEdges))];
}

std::string Mutation::Text(bool utf8) {
  static const char* const kTexts[] = {"",
                                       "x",
                                       "y",
                                       "n",
                                       "vadd",
                                       "gemv",
                                       "mmul<3>",
                                       "mmul<999999999>",
                                       "mmul33",
                                       "sm_90",
                                       "host",
                                       "../../etc/passwd",
                                       "jobs/",
                                       "jobs/00000000000000000000000000000000",
                                       "tasks/ffffffff",
                                       "workers/w",
                                       "tokens/x",
                                       "sha256:",
                                       "; DROP TABLE jobs; --",
                                       "' OR 1=1",
                                       "%s%n%d",
                                       "\n",
                                       " ",
                                       "\xC3\xA4\xF0\x9F\x98\x80",
                                       "-o",
                                       "--help",
                                       "1",
                                       "return",
                                       "99999999999999999999999999"};
  if (!utf8 && OneIn(4)) return std::string("\xff\xc0\x80\xed\xa0\x80", 6);
  switch (Below(12)) {
    case 0:
      return std::string(static_cast<size_t>(1) << Below(17), 'a');
    case 1:
      return std::string("a\0b", 3);
    case 2:
      return std::string("sha256:") + std::string(64, "0af"[Below(3)]);
    default:
      return kTexts[Below(std::size(kTexts))];
  }
}

std::string Mutation::Bytes(std::string bytes) {
  for (int changes = 1 + Below(6); changes > 0; --changes) {
    if (bytes.empty()) bytes = Text(false);
    if (bytes.empty()) continue;
    const size_t at = random_() % bytes.size(),
                 length = 1 + random_() % std::min<size_t>(bytes.size() - at, 16);
    switch (Below(6)) {
      case 0:
        bytes.erase(at, length);
        break;
      case 1:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 2:
        bytes[at] = static_cast<char>(random_());
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes[at] = '\xff';
        break;
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
    }
  }
  return bytes;
}

std::string Mutation::Words(const std::string& text) {
  std::vector<std::string> words = Split(text);
  for (int changes = 1 + Below(4); changes > 0 && !words.empty(); --changes) {
    const size_t at = random_() % words.size(), other = random_() % words.size();
    const auto place = words.begin() + static_cast<std::ptrdiff_t>(at);
    switch (Below(9)) {
      case 0:
        words.resize(at);
        break;
      case 1:
        words.erase(place);
        break;
      case 2:
        words.insert(place, std::string(words[other]));
        break;
      case 3:
        std::swap(words[at], words[other]);
        break;
      case 4:
        words[at] = std::to_string(Integer());
        break;
      case 5:
        words[at] = Text(false);
        break;
      case 6:
        words[at] = std::string(static_cast<size_t>(1) << Below(17), "([{,;<"[Below(6)]);
        break;
      case 7:
        words[at] = Bytes(words[at]);
        break;
      default: {
        const auto begin = words.begin() + static_cast<std::ptrdiff_t>(other);
        const std::vector<std::string> piece(
            begin, begin + static_cast<std::ptrdiff_t>(std::min<size_t>(words.size() - other, 12)));
        words.insert(place, piece.begin(), piece.end());
      }
    }
  }
  std::string changed;
  for (const std::string& word : words) changed += word;
  return OneIn(6) ? Bytes(std::move(changed)) : changed;
}

void Mutation::SetField(google::protobuf::Message* message, const FieldDescriptor* field, bool add) {
  const auto* reflection = message->GetReflection();
  const auto set = [&](auto setter, auto adder, auto value) {
    if (add) {
      (reflection->*adder)(message, field, value);
    } else {
      (reflection->*setter)(message, field, value);
    }
  };
  using R = google::protobuf::Reflection;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return set(&R::SetInt32, &R::AddInt32, static_cast<int32_t>(Integer()));
    case FieldDescriptor::CPPTYPE_INT64:
      return set(&R::SetInt64, &R::AddInt64, Integer());
    case FieldDescriptor::CPPTYPE_UINT32:
      return set(&R::SetUInt32, &R::AddUInt32, static_cast<uint32_t>(Integer()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return set(&R::SetUInt64, &R::AddUInt64, static_cast<uint64_t>(Integer()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return set(&R::SetDouble, &R::AddDouble, Number());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return set(&R::SetFloat, &R::AddFloat, static_cast<float>(Number()));
    case FieldDescriptor::CPPTYPE_BOOL:
      return set(&R::SetBool, &R::AddBool, OneIn(2));
    case FieldDescriptor::CPPTYPE_ENUM:
      return set(&R::SetEnumValue, &R::AddEnumValue,
                 OneIn(2) ? Below(6) : static_cast<int>(static_cast<int32_t>(Integer())));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = Text(field->type() != FieldDescriptor::TYPE_BYTES && !OneIn(20));
      if (add) return reflection->AddString(message, field, text);
      return reflection->SetString(message, field, text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
}

void Mutation::Fields(google::protobuf::Message* message, int depth) {
  const auto* reflection = message->GetReflection();
  const auto* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (OneIn(40)) reflection->ClearField(message, field);
    if (field->is_repeated()) {
      const int size = reflection->FieldSize(*message, field);
      if (is_message && size > 0 && depth < kMostDepth && OneIn(2))
        Fields(reflection->MutableRepeatedMessage(message, field, Below(size)), depth + 1);
      if (!field->is_map() && size > 1 && OneIn(10))
        reflection->SwapElements(message, field, Below(size), Below(size));
      if (size > 0 && OneIn(20)) reflection->RemoveLast(message, field);
      if (!OneIn(10)) continue;
      for (int more = OneIn(40) ? 3000 : 1 + Below(3); more > 0; --more) {
        if (!is_message) {
          SetField(message, field, true);
          continue;
        }
        google::protobuf::Message* added = reflection->AddMessage(message, field);
        if (size > 0 && !field->is_map() && OneIn(2))
          added->CopyFrom(reflection->GetRepeatedMessage(*message, field, Below(size)));
        else if (depth < kMostDepth && more < 4)
          Fields(added, depth + 1);
      }
    } else if (is_message) {
      if (depth < kMostDepth && (reflection->HasField(*message, field) ? OneIn(2) : OneIn(12)))
        Fields(reflection->MutableMessage(message, field), depth + 1);
    } else if (OneIn(8)) {
      SetField(message, field, false);
    }
  }
}

}  // namespace fusion
