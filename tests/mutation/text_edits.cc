#include "tests/mutation/text_edits.h"

#include <algorithm>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/codegen/source.h"

namespace fusion::testing {
namespace {

using Range = std::pair<size_t, size_t>;

// The place of the bracket that closes the one at `open`.
size_t Closing(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}')
      if (--depth == 0) return i;
  }
  return std::string::npos;
}

// The parts of text[begin, end) between separators that stand in no brackets.
std::vector<Range> Parts(const std::string& text, size_t begin, size_t end, char separator) {
  std::vector<Range> parts;
  int depth = 0;
  size_t from = begin;
  for (size_t i = begin; i < end; ++i) {
    if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == ']' || text[i] == '}') --depth;
    if (depth == 0 && text[i] == separator) {
      parts.emplace_back(from, i);
      from = i + 1;
    }
  }
  parts.emplace_back(from, end);
  for (Range& part : parts)
    while (part.first < part.second && text[part.first] == ' ') ++part.first;
  return parts;
}

std::string Of(const std::string& text, Range range) {
  return text.substr(range.first, range.second - range.first);
}

class Edits {
 public:
  Edits(const std::string& line, v1::Target target, bool is_routine)
      : line_(line), cuda_(target == v1::CUDA), is_routine_(is_routine) {}

  std::vector<TextEdit> Find() {
    Loops();
    Conditions();
    Choices();
    Ranges();
    Extents();
    Distances();
    Beginnings();
    if (cuda_) Waits();
    Groups();
    return std::move(edits_);
  }

 private:
  void Add(MutationKind kind, Range range, std::string with) {
    edits_.push_back({kind, range.first, range.second - range.first, std::move(with)});
  }
  void Insert(MutationKind kind, size_t at, std::string text) { Add(kind, {at, at}, std::move(text)); }
  // A bound, one less and one more.
  void OffByOne(Range range) {
    const std::string bound = Of(line_, range);
    Add(MutationKind::kBound, range, absl::StrCat("((", bound, ") - 1)"));
    // Arrays in registers have as many entries as loops with literal bounds have steps.
    const bool literal = std::all_of(bound.begin(), bound.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!literal) Add(MutationKind::kBound, range, absl::StrCat("((", bound, ") + 1)"));
  }

  void Loops() {
    for (size_t at = line_.find("for ("); at != std::string::npos; at = line_.find("for (", at + 1)) {
      const std::optional<ForHeader> header = ForHeaderOf(line_, at);
      if (!header) continue;
      if (const size_t less = line_.find(" < ", header->condition.first); less < header->condition.second)
        OffByOne({less + 3, header->condition.second});
      const Range first = Parts(line_, header->begin.first, header->begin.second, ',').front();
      if (const size_t equals = line_.find(" = ", first.first); equals < first.second)
        Add(MutationKind::kBound, {equals + 3, first.second},
            absl::StrCat("(", Of(line_, {equals + 3, first.second}), ") + 1"));
      for (const Range& step : Parts(line_, header->step.first, header->step.second, ',')) {
        const std::string text = Of(line_, step);
        if (absl::StartsWith(text, "++")) {
          Add(MutationKind::kStride, step, absl::StrCat(text.substr(2), " += 2"));
        } else if (const size_t by = line_.find(" += ", step.first); by < step.second) {
          const Range distance{by + 4, step.second};
          Add(MutationKind::kStride, distance, absl::StrCat("(", Of(line_, distance), ") + 1"));
          Add(MutationKind::kStride, distance, absl::StrCat("2 * (", Of(line_, distance), ")"));
        }
      }
    }
  }

  void Conditions() {
    for (size_t at = line_.find("if ("); at != std::string::npos; at = line_.find("if (", at + 1)) {
      const size_t close = Closing(line_, at + 3);
      if (close == std::string::npos) continue;
      const Range condition{at + 4, close};
      if (absl::StartsWith(line_.substr(close), ") continue")) continue;
      Add(MutationKind::kGuard, condition, "true");
      for (size_t less = line_.find(" < ", condition.first); less < condition.second;
           less = line_.find(" < ", less + 1)) {
        Add(MutationKind::kBound, {less, less + 3}, " <= ");
        Add(MutationKind::kBound, {less, less + 3}, " + 1 < ");
      }
    }
  }

  // "x < n ? a : b", which is a guard unless it is the smaller of two.
  void Choices() {
    static const std::regex kChoice(R"(= (\w+ < \w+) \? )");
    for (std::sregex_iterator it(line_.begin(), line_.end(), kChoice), end; it != end; ++it) {
      const size_t at = it->position(1);
      Add(MutationKind::kGuard, {at, at + it->length(1)}, "true");
      Insert(MutationKind::kBound, at + it->length(1), " - 1");
    }
  }

  // Functions that do nothing beyond a limit.
  void Ranges() {
    struct Function {
      const char* name;
      size_t limit, count;  // position of the limit, and how many arguments it takes
      bool has_whole;       // the last but one says that it needs no guard
    };
    static constexpr Function kFunctions[] = {{"fu_load", 3, 5, true},
                                              {"fu_load_kept", 3, 5, true},
                                              {"fu_store", 3, 5, true},
                                              {"fu_store_once", 3, 5, true},
                                              {"fu_stage", 3, 5, true},
                                              {"fu_atomic_add", 3, 5, false},
                                              {"fu_elements_in", 2, 4, false},
                                              {"fu_elements_out", 2, 4, false},
                                              {"fu_load_exchanged", 3, 6, false},
                                              {"fu_store_exchanged", 3, 6, false}};
    for (const Function& function : kFunctions) {
      const std::string name = absl::StrCat(function.name, "<");
      for (size_t at = line_.find(name); at != std::string::npos; at = line_.find(name, at + 1)) {
        const size_t open = line_.find('(', at);
        if (open == std::string::npos) continue;
        const size_t close = Closing(line_, open);
        if (close == std::string::npos) continue;
        const std::vector<Range> arguments = Parts(line_, open + 1, close, ',');
        if (arguments.size() < function.count) continue;
        OffByOne(arguments[function.limit]);
        if (!function.has_whole) continue;
        if (arguments.size() == function.count)
          Insert(MutationKind::kGuard, close, ", true");
        else
          Add(MutationKind::kGuard, arguments[function.count], "true");
      }
    }
  }

  // Definitions of how much there is.
  void Extents() {
    static const std::regex kExtent(
        R"(^\s*const (?:fu_index|int|fu_tile) (?:extent|count|steps|active|tiles|row_parts|present) = ([^,;]*);)");
    std::smatch match;
    if (std::regex_search(line_, match, kExtent))
      OffByOne({size_t(match.position(1)), size_t(match.position(1) + match.length(1))});
  }

  // "x * distance" in an index.
  void Distances() {
    static const std::regex kDistance(R"( \* (\w+)(?![\w.:<*]))");
    for (std::sregex_iterator it(line_.begin(), line_.end(), kDistance), end; it != end; ++it) {
      const size_t at = it->position(1), length = it->length(1);
      const std::string factor = (*it)[1];
      // Products in routines are of data, unless they stand in an index.
      const auto before = line_.begin() + static_cast<ptrdiff_t>(at);
      const bool is_index = std::count(line_.begin(), before, '[') > std::count(line_.begin(), before, ']');
      if ((is_routine_ && !is_index) || factor == "FUSION_RESTRICT" || factor == "sizeof" ||
          factor == "const" ||
          (at + length < line_.size() && (line_[at + length] == '(' || line_[at + length] == '[')))
        continue;
      Add(MutationKind::kStride, {at, at + length}, absl::StrCat("(", factor, " + 1)"));
      Add(MutationKind::kStride, {at, at + length}, absl::StrCat("(", factor, " - 1)"));
    }
  }

  void Beginnings() {
    static const std::regex kIdentity(R"((fu_(sum|maximum|minimum|arg_max|\w+)<(\w+)>)::identity\(\))");
    for (std::sregex_iterator it(line_.begin(), line_.end(), kIdentity), end; it != end; ++it) {
      const std::string monoid = (*it)[1], name = (*it)[2], type = (*it)[3];
      for (const char* value : {"1", "-1", "0"}) {
        if (name == "sum" && std::string(value) == "0") continue;
        Add(MutationKind::kInitial, {size_t(it->position(0)), size_t(it->position(0) + it->length(0))},
            absl::StrCat(monoid, "::lift(", type, "(", value, "), 0)"));
      }
    }
    if (!is_routine_) return;
    static const std::regex kSum(R"(\b(?:T )?(?:sum|total|result|det|trace)(?:\[[^\]]*\])* = ([^;{]*);)");
    static const std::regex kEmpty(R"(\b(?:sum|total)(?:\[[^\]]*\])* = \{(\}))");
    std::smatch match;
    if (std::regex_search(line_, match, kSum)) {
      const Range value{size_t(match.position(1)), size_t(match.position(1) + match.length(1))};
      for (const char* other : {"1", "-1"})
        Add(MutationKind::kInitial, value, absl::StrCat("T(", other, ") + (", Of(line_, value), ")"));
    }
    if (std::regex_search(line_, match, kEmpty)) Insert(MutationKind::kInitial, match.position(1), "1");
  }

  void Waits() {
    static const std::regex kWait(R"(fu_copy_wait<(\d+)>\(\);)");
    std::smatch match;
    if (std::regex_search(line_, match, kWait)) {
      const Range all{size_t(match.position(0)), size_t(match.position(0) + match.length(0))};
      Add(MutationKind::kBarrier, all, "");
      for (const int more : {1, 2})
        Add(MutationKind::kBarrier, all, absl::StrCat("fu_copy_wait<", std::stoi(match[1]) + more, ">();"));
    }
    for (const char* name : {"fu_window_wait(", "fu_warp_barrier(", "fu_window_init_end("}) {
      const size_t at = line_.find(name);
      if (at == std::string::npos) continue;
      const size_t close = Closing(line_, line_.find('(', at));
      if (close != std::string::npos) Add(MutationKind::kBarrier, {at, close + 1}, "(void)0");
    }
  }

  // Parts of groups that are combined: without one of them.
  void Groups() {
    static const std::regex kLoop(
        R"(for \((?:fu_index|int) (\w+) = [^;]*; \1 < (partials\w*|groups\w*|row_parts|\d+)[^;]*; [^)]*\) )");
    for (std::sregex_iterator it(line_.begin(), line_.end(), kLoop), end; it != end; ++it) {
      const std::string name = (*it)[1], count = (*it)[2];
      if (count[0] <= '9' && name != "slice") continue;
      if (line_.find('{', it->position(0)) != std::string::npos) continue;
      const size_t at = it->position(0) + it->length(0);
      for (const std::string& lost : {std::string("0"), std::string("1"), count + " - 1"})
        Insert(MutationKind::kLane, at, absl::StrCat("if (", name, " != ", lost, ") "));
    }
    static const std::regex kPart(R"(= group < (\w+) \? )");
    std::smatch match;
    if (std::regex_search(line_, match, kPart))
      for (const std::string& lost : {std::string("0"), std::string("1"), match[1].str() + " - 1"})
        Insert(MutationKind::kLane, match.position(0) + 2, absl::StrCat("group != ", lost, " && "));
    if (const size_t at = line_.find("fu_atomic_add<"); at != std::string::npos && !is_routine_)
      for (const char* lost : {"0", "1", "groups - 1"})
        Insert(MutationKind::kLane, at, absl::StrCat("if (group != ", lost, ") "));
  }

  const std::string& line_;
  const bool cuda_, is_routine_;
  std::vector<TextEdit> edits_;
};

}  // namespace

std::string Edited(const std::string& text, const TextEdit& edit) {
  return std::string(text).replace(edit.begin, edit.length, edit.with);
}

std::vector<TextEdit> EditsOf(const std::string& line, v1::Target target, bool is_routine) {
  return Edits(line, target, is_routine).Find();
}

std::optional<ForHeader> ForHeaderOf(const std::string& text, size_t from) {
  const size_t at = text.find("for (", from);
  if (at == std::string::npos) return std::nullopt;
  const size_t close = Closing(text, at + 4);
  if (close == std::string::npos) return std::nullopt;
  const std::vector<Range> parts = Parts(text, at + 5, close, ';');
  if (parts.size() != 3) return std::nullopt;
  return ForHeader{parts[0], parts[1], parts[2], close};
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

std::string ReplaceNumber(std::string text, const std::string& before, const std::string& after,
                          size_t number) {
  size_t at = text.find(before);
  for (size_t i = 0; i < number && at != std::string::npos; ++i) at = text.find(before, at + before.size());
  if (at != std::string::npos) text.replace(at, before.size(), after);
  return text;
}

std::string JoinSections(std::string text, size_t number) {
  static const std::regex kBetween(
      R"(\n  \}\n  \}\n  \{\n  const fu_index groups = ([^;]*);\n  #pragma omp[^\n]*\n  for \([^\n]*\{\n)");
  std::sregex_iterator between(text.begin(), text.end(), kBetween);
  for (size_t i = 0; i < number && between != std::sregex_iterator(); ++i) ++between;
  if (between == std::sregex_iterator()) return text;
  const size_t at = between->position(0), length = between->length(0);
  const std::string groups = absl::StrCat("const fu_index groups = ", (*between)[1].str(), ";");
  if (text.rfind("const fu_index groups = ", at) != text.rfind(groups, at)) return text;
  text.replace(at, length, "\n  {\n");
  const size_t end = text.rfind("}\n");
  return text.insert(end, "  }\n");
}

std::string FunctionText(const std::string& runtime, const std::string& name) {
  const std::regex head(absl::StrCat("template <[^\\n]*>\\nFUSION_FN [^\\n]*\\b", name, "\\("));
  std::sregex_iterator found(runtime.begin(), runtime.end(), head), none;
  if (found == none) return "";
  const size_t begin = found->position(0);
  const size_t end = runtime.find("\n}\n", begin);
  return end == std::string::npos ? "" : runtime.substr(begin, end + 3 - begin);
}

}  // namespace fusion::testing
