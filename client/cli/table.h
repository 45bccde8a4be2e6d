// Text in aligned columns.
#pragma once

#include <string>
#include <vector>

namespace fusion {

// Rows of cells, printed with two spaces between columns and none at line ends. Width is counted in code
// points. Not thread safe.
class Table {
 public:
  enum class Align { kLeft, kRight };
  void AddColumn(std::string header, Align align);
  // Missing cells are empty; there are at most as many as columns.
  void AddRow(std::vector<std::string> cells);
  // A header line, then a line per row. `maximum_width` > 0 is that of a terminal: the last column is cut
  // there and ends with "...", if it is of text and has room for some; otherwise each row is written as its
  // cells behind their headers, in as many lines as they take.
  std::string Print(int maximum_width = 0) const;

 private:
  std::string PrintRecords(int maximum_width) const;

  struct Column {
    std::string header;
    Align align;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fusion
