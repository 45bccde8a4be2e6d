#include "client/cli/table.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

Table TwoColumns() {
  Table table;
  table.AddColumn("name", Table::Align::kLeft);
  table.AddColumn("count", Table::Align::kRight);
  return table;
}

TEST(TableTest, AlignsColumnsAndTrimsLineEnds) {
  Table table = TwoColumns();
  table.AddRow({"a", "1"});
  table.AddRow({"longer", "1000000"});
  table.AddRow({"missing"});
  EXPECT_EQ(table.Print(),
            "name       count\n"
            "a              1\n"
            "longer   1000000\n"
            "missing\n");
}

TEST(TableTest, CountsCodePointsNotBytes) {
  Table table = TwoColumns();
  table.AddRow({"\xC3\xA4\xC3\xB6", "1"});  // two letters with diaeresis
  table.AddRow({"ab", "2"});
  EXPECT_EQ(table.Print(),
            "name  count\n"
            "\xC3\xA4\xC3\xB6        1\n"
            "ab        2\n");
}

TEST(TableTest, CutsLinesAtTheWidth) {
  Table table = TwoColumns();
  table.AddRow({"a name that is long", "1"});
  EXPECT_EQ(table.Print(12),
            "name     ...\n"
            "a name th...\n");
}

}  // namespace
}  // namespace fusion
