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

TEST(TableTest, CutsTheLastColumnAtTheWidth) {
  Table table;
  table.AddColumn("count", Table::Align::kRight);
  table.AddColumn("name", Table::Align::kLeft);
  table.AddRow({"1", "a name that is long"});
  EXPECT_EQ(table.Print(17),
            "count  name\n"
            "    1  a name ...\n");
}

TEST(TableTest, KeepsAllColumnsWhereThereIsNoRoomForThem) {
  Table table = TwoColumns();
  table.AddColumn("kind", Table::Align::kLeft);
  table.AddRow({"a name that is long", "1", "of a kind"});
  table.AddRow({"b", "", "c"});
  EXPECT_EQ(table.Print(20),
            "a name that is long\n"
            "  count 1\n"
            "  kind of a kind\n"
            "b  kind c\n");
}

}  // namespace
}  // namespace fusion
