#include "server/target/exported_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

constexpr size_t kLongest = 64;

bool IsWord(char c) { return absl::ascii_isalnum(c) || c == '_'; }

}  // namespace

absl::Status ExportedNames::Check(absl::string_view name) {
  const bool is_word = !name.empty() && name.size() <= kLongest && absl::ascii_isalpha(name[0]) &&
                       std::all_of(name.begin(), name.end(), IsWord);
  if (!is_word || absl::EndsWith(name, "_") || absl::StrContains(name, "__"))
    return absl::InvalidArgumentError(absl::StrCat(
        "the exported code cannot be called \"", name, "\": a name begins with a letter and has up to ",
        kLongest, " letters, digits and single underscores between them, as in gelu_bias"));
  for (const char* file : {"example", "reference", "verification", "fusion_device"})
    if (name == file)
      return absl::InvalidArgumentError(absl::StrCat("the exported code cannot be called \"", name,
                                                     "\": the folder has another file of this name"));
  return absl::OkStatus();
}

ExportedNames::ExportedNames(absl::string_view name)
    : name_(name.empty() ? kDefault : name), macro_(absl::AsciiStrToUpper(name_)) {}

std::string ExportedNames::In(absl::string_view text) const {
  if (name_ == kDefault) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!IsWord(text[i])) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsWord(text[end])) ++end;
    absl::string_view word = text.substr(i, end - i);
    // The word alone is a file or a target of CMake's; in a sentence it is neither.
    const bool is_file = end + 1 < text.size() && text[end] == '.' && absl::ascii_isalpha(text[end + 1]);
    const bool is_target = (i > 0 && text[i - 1] == '(') || (end < text.size() && text[end] == ')');
    if (word == kDefault && (is_file || is_target)) {
      out += name_;
    } else if (absl::ConsumePrefix(&word, "fused_")) {
      absl::StrAppend(&out, name_, "_", word);
    } else if (absl::ConsumePrefix(&word, "FUSED_")) {
      absl::StrAppend(&out, macro_, "_", word);
    } else {
      absl::StrAppend(&out, word);
    }
    i = end;
  }
  return out;
}

std::string ExportedNames::Kernel(absl::string_view kernel) const {
  absl::ConsumePrefix(&kernel, kDefault);
  return absl::StrCat(name_, kernel);
}

}  // namespace fusion
