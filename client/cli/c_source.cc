#include "client/cli/c_source.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/temporary_directory.h"

extern char** environ;

namespace fusion {
namespace {

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
  return text;
}

// Says whether a line needs a preprocessor: pragmas, names of numbers and headers of the system do not.
bool WantsPreprocessor(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return false;
  line = absl::StripLeadingAsciiWhitespace(line);
  if (absl::StartsWith(line, "pragma")) return false;
  if (absl::ConsumePrefix(&line, "include"))
    return !absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "<");
  if (!absl::ConsumePrefix(&line, "define")) return true;
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  int64_t number = 0;
  return words.size() != 2 || !absl::SimpleAtoi(words[1], &number);
}

}  // namespace

bool IsCFile(absl::string_view path) { return absl::EndsWith(path, ".c") || absl::EndsWith(path, ".h"); }

std::string LinesOfFile(absl::string_view preprocessed, absl::string_view path) {
  std::string text;
  int64_t written = 0, number = 0;  // lines
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(preprocessed, '\n')) {
    absl::string_view marker = line;
    if (absl::ConsumePrefix(&marker, "# ")) {
      const size_t quote = marker.find('"'), end = marker.rfind('"');
      if (quote != absl::string_view::npos && end > quote &&
          absl::SimpleAtoi(marker.substr(0, quote), &number)) {
        inside = marker.substr(quote + 1, end - quote - 1) == path;
        continue;
      }
    }
    // The compiler goes back to a line when it has put something in.
    if (inside && number > written) {
      text.append(number - written - 1, '\n');
      absl::StrAppend(&text, line, "\n");
      written = number;
    } else if (inside && number == written && !absl::StripAsciiWhitespace(line).empty()) {
      text.insert(text.size() - 1, absl::StrCat(" ", line));
    }
    ++number;
  }
  return text;
}

absl::StatusOr<std::string> ReadC(const std::string& path) {
  FUSION_ASSIGN_OR_RETURN(std::string text, ReadAll(path));
  bool wanted = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) wanted |= WantsPreprocessor(line);
  if (!wanted) return text;
  FUSION_ASSIGN_OR_RETURN(const auto folder, TemporaryDirectory::Create());
  const std::string output = absl::StrCat(folder->path(), "/text"),
                    messages = absl::StrCat(folder->path(), "/messages");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  // The path is none of its options.
  const std::string named = absl::StartsWith(path, "-") ? absl::StrCat("./", path) : path;
  const char* const arguments[] = {"cc", "-E", "-fopenmp", "-x", "c", named.c_str(), nullptr};
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, "cc", &actions, nullptr, const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": has macros, and cc, which would replace them, cannot be run: ", std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0)
    return absl::InvalidArgumentError(
        absl::StripTrailingAsciiWhitespace(ReadAll(messages).value_or("cc failed")));
  FUSION_ASSIGN_OR_RETURN(const std::string preprocessed, ReadAll(output));
  return LinesOfFile(preprocessed, named);
}

absl::StatusOr<SourceFile> ReadLoops(const std::string& path, const std::vector<std::string>& sizes) {
  SourceFile file;
  file.name = path;
  FUSION_ASSIGN_OR_RETURN(file.text, ReadC(path));
  file.source.set_file_name(path);
  file.source.set_loops(file.text);
  FUSION_RETURN_IF_ERROR(AddSizes(sizes, &file.source));
  return file;
}

}  // namespace fusion
