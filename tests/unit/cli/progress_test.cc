#include "client/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace fusion {
namespace {

v1::JobEvent Building(int done, int total) {
  v1::JobEvent event;
  event.mutable_build()->set_done(done);
  event.mutable_build()->set_total(total);
  event.mutable_build()->set_reused(2);
  return event;
}

v1::JobEvent Timing(int done, double best) {
  v1::JobEvent event;
  event.mutable_timing()->set_done(done);
  event.mutable_timing()->set_total(30);
  event.mutable_timing()->set_best_seconds(best);
  event.mutable_timing()->set_best_speedup(2.6);
  return event;
}

TEST(ProgressTest, Texts) {
  v1::JobEvent search;
  search.mutable_search();
  EXPECT_EQ(ProgressText(search), "searching");
  EXPECT_EQ(ProgressText(Building(3, 30)), "building 3 of 30 (2 reused, 0 failed)");
  EXPECT_EQ(ProgressText(Timing(1, 0)), "timing 1 of 30");
  EXPECT_EQ(ProgressText(Timing(4, 0.000381)), "timing 4 of 30, best so far 381.0 us, 2.60x");
  v1::JobEvent finished;
  finished.mutable_finished();
  EXPECT_EQ(ProgressText(finished), "");
}

TEST(ProgressTest, OffATerminalStagesAreLinesWithoutControlCharacters) {
  std::ostringstream out;
  ProgressPrinter printer(out, /*terminal=*/false, 80);
  printer.Show(Building(0, 3));
  printer.Show(Building(1, 3));  // too soon after the first
  printer.Show(Building(3, 3));
  printer.Show(Timing(1, 0));
  printer.Clear();
  EXPECT_EQ(out.str(),
            "building 0 of 3 (2 reused, 0 failed)\n"
            "building 3 of 3 (2 reused, 0 failed)\n"
            "timing 1 of 30\n");
}

TEST(ProgressTest, OnATerminalOneLineIsWrittenOver) {
  std::ostringstream out;
  ProgressPrinter printer(out, /*terminal=*/true, 12);
  printer.Show(Building(0, 3));
  printer.Clear();
  EXPECT_EQ(out.str(), "\r\033[Kbuilding 0 \r\033[K");
}

}  // namespace
}  // namespace fusion
