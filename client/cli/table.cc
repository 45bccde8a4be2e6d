#include "client/cli/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

bool StartsCodePoint(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

int Width(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), StartsCodePoint));
}

// The first `width` code points.
std::string Prefix(const std::string& text, int width) {
  size_t end = 0;
  for (int count = 0; end < text.size(); ++end) {
    if (StartsCodePoint(text[end]) && count++ == width) break;
  }
  return text.substr(0, end);
}

}  // namespace

void Table::AddColumn(std::string header, Align align) { columns_.push_back({std::move(header), align}); }

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Print(int maximum_width) const {
  std::vector<int> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = Width(columns_[c].header);
    for (const auto& row : rows_) width = std::max(width, Width(row[c]));
    widths.push_back(width);
  }
  constexpr int kLeastCell = 10;
  int width = 0;
  for (int each : widths) width += each + 2;
  const bool cut = columns_.empty() || (columns_.back().align == Align::kLeft &&
                                        width - widths.back() - 2 + kLeastCell <= maximum_width);
  if (maximum_width > 3 && width - 2 > maximum_width && !cut) return PrintRecords(maximum_width);
  std::string result;
  auto print_line = [&](auto&& cell) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string& text = cell(c);
      const std::string padding(widths[c] - Width(text), ' ');
      line += columns_[c].align == Align::kRight ? padding + text : text + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (maximum_width > 3 && Width(line) > maximum_width) line = Prefix(line, maximum_width - 3) + "...";
    result += line + "\n";
  };
  print_line([&](size_t c) -> const std::string& { return columns_[c].header; });
  for (const auto& row : rows_) print_line([&](size_t c) -> const std::string& { return row[c]; });
  return result;
}

std::string Table::PrintRecords(int maximum_width) const {
  std::string result;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = c == 0 ? row[0] : absl::StrCat(columns_[c].header, " ", row[c]);
      if (row[c].find_first_not_of(' ') == std::string::npos) continue;
      if (!line.empty() && Width(line) + 2 + Width(cell) > maximum_width) {
        absl::StrAppend(&result, line, "\n");
        line = " ";
      }
      absl::StrAppend(&line, line.empty() ? "" : line == " " ? " " : "  ", cell);
    }
    absl::StrAppend(&result, line, "\n");
  }
  return result;
}

}  // namespace fusion
