#include "client/cli/source_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "client/cli/number_format.h"
#include "server/parse/graph_json.h"

namespace fusion {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

absl::StatusOr<std::string> ReadBytes(const std::string& path, const std::string& shown) {
  std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file)
    return absl::InvalidArgumentError(absl::StrCat(shown, ": cannot be read: ", std::strerror(errno)));
  struct stat information {};
  if (fstat(fileno(file.get()), &information) == 0 && S_ISDIR(information.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(shown, ": is a folder; name a .fuse, .json or .pb file"));
  std::string bytes;
  char buffer[1 << 16];
  size_t size;
  while ((size = std::fread(buffer, 1, sizeof(buffer), file.get())) > 0) {
    bytes.append(buffer, size);
    if (bytes.size() > kMaximumSourceBytes)
      return absl::InvalidArgumentError(
          absl::StrCat(shown, ": is larger than the limit of ", kMaximumSourceBytes >> 20, " MiB"));
  }
  if (std::ferror(file.get()))
    return absl::InvalidArgumentError(absl::StrCat(shown, ": cannot be read: ", std::strerror(errno)));
  return bytes;
}

absl::Status NotUtf8(const std::string& shown, const BadByte& bad) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s:%d:%d: error: byte 0x%02x is not UTF-8; save the file as UTF-8", shown,
                      bad.position.line, bad.position.column, bad.byte));
}

// Bytes of the character at the start of `text`.
size_t CharacterBytes(absl::string_view text) {
  size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
  return size;
}

// The line with the given number (from 1), without its end.
absl::string_view LineOf(absl::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    size_t end = text.find('\n');
    if (end == absl::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  absl::string_view result = text.substr(0, text.find('\n'));
  if (absl::EndsWith(result, "\r")) result.remove_suffix(1);
  return result;
}

// "  text of the line\n      ^\n", at most `kShown` characters of it around the column.
std::string Excerpt(absl::string_view line, int column) {
  constexpr int kBefore = 60, kShown = 100;
  const int first = column > kBefore ? column - kBefore : 1;
  std::string shown, caret;
  int position = 1;
  for (size_t offset = 0; offset < line.size() && position < first + kShown; ++position) {
    const size_t size = CharacterBytes(line.substr(offset));
    if (position >= first) {
      const bool control = size == 1 && static_cast<unsigned char>(line[offset]) < ' ';
      if (control)
        shown += line[offset] == '\t' ? '\t' : '?';
      else
        shown.append(line.data() + offset, size);
      if (position < column) caret += line[offset] == '\t' ? '\t' : ' ';
    }
    offset += size;
  }
  for (; position < column && position < first + kShown; ++position) caret += ' ';
  return absl::StrCat("  ", shown, "\n  ", caret, "^\n");
}

}  // namespace

absl::Status AddSizes(const std::vector<std::string>& sizes, v1::GraphSource* source) {
  for (const std::string& size : sizes) {
    const size_t equals = size.find('=');
    if (equals == std::string::npos || equals == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("--size ", size, ": must be NAME=VALUE, such as n=1000000"));
    const std::string name = size.substr(0, equals), number = size.substr(equals + 1);
    const std::optional<int64_t> value = ParseCount(number);
    if (!value)
      return absl::InvalidArgumentError(
          absl::StrCat("--size ", size, ": \"", number,
                       "\" is no whole number that fits 64 bits, such as 1000003, 1e6 or 64k"));
    if (FindBadByte(name)) return absl::InvalidArgumentError("--size: the name is not UTF-8");
    if (!source->mutable_size_values()->insert({name, *value}).second)
      return absl::InvalidArgumentError(absl::StrCat("--size ", size, ": ", name, " is given twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SourceFile> ReadSource(const std::string& path, const std::vector<std::string>& sizes) {
  const std::string shown = path == "-" ? "<stdin>" : path;
  if (FindBadByte(shown)) return absl::InvalidArgumentError("the name of the file is not UTF-8");
  FUSION_ASSIGN_OR_RETURN(std::string bytes, ReadBytes(path, shown));
  SourceFile file;
  file.name = shown;
  file.source.set_file_name(shown);
  FUSION_RETURN_IF_ERROR(AddSizes(sizes, &file.source));
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".pb") {
    if (!file.source.mutable_graph()->ParseFromString(bytes))
      return absl::InvalidArgumentError(absl::StrCat(shown, ": is no serialised fusion.v1.Graph"));
    return file;
  }
  if (std::optional<BadByte> bad = FindBadByte(bytes)) return NotUtf8(shown, *bad);
  if (extension == ".json") {
    file.text = bytes;
    FUSION_RETURN_IF_ERROR(ReadGraphJson(file.text, shown, file.source.mutable_graph()));
    return file;
  }
  file.text = bytes;
  file.source.set_fuse(std::move(bytes));
  return file;
}

std::string WithSourceLines(absl::string_view message, absl::string_view file_name, absl::string_view text) {
  std::string result;
  while (!message.empty()) {
    const size_t end = message.find('\n');
    const absl::string_view line = message.substr(0, end);
    message.remove_prefix(end == absl::string_view::npos ? message.size() : end + 1);
    absl::StrAppend(&result, line, "\n");
    absl::string_view rest = line;
    if (text.empty() || !absl::ConsumePrefix(&rest, file_name) || !absl::ConsumePrefix(&rest, ":")) continue;
    const size_t first = rest.find(':');
    const size_t second = first == absl::string_view::npos ? first : rest.find(':', first + 1);
    int line_number, column;
    if (second == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, first), &line_number) ||
        !absl::SimpleAtoi(rest.substr(first + 1, second - first - 1), &column) || line_number < 1 ||
        column < 1)
      continue;
    const absl::string_view source_line = LineOf(text, line_number);
    if (!source_line.empty()) result += Excerpt(source_line, column);
  }
  return result;
}

}  // namespace fusion
