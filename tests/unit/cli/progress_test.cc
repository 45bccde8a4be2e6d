#include "client/cli/progress.h"

#include <gtest/gtest.h>

#include <chrono>
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

// A clock that stands, but for what a test adds.
struct Seconds {
  std::chrono::steady_clock::time_point time;
  ProgressPrinter::Clock clock() {
    return [this] { return time; };
  }
};

TEST(ProgressTest, Texts) {
  v1::JobEvent search;
  search.mutable_search();
  EXPECT_EQ(ProgressText(search), "searching");
  EXPECT_EQ(ProgressText(Building(3, 30)), "building 3 of 30 (2 reused, 0 failed)");
  EXPECT_EQ(ProgressText(Timing(1, 0)), "timing 1 of 30");
  EXPECT_EQ(ProgressText(Timing(4, 0.000381)), "timing 4 of 30, best so far 381.0 us, 2.60x");
  v1::JobEvent stage;
  stage.set_stage("measure the finalists");
  EXPECT_EQ(ProgressText(stage), "timing the fastest again, on all kinds of data");
  stage.set_stage("parse");
  EXPECT_EQ(ProgressText(stage), "");
  v1::JobEvent finished;
  finished.mutable_finished();
  EXPECT_EQ(ProgressText(finished), "");
}

TEST(ProgressTest, OffATerminalStagesAreLinesWithoutControlCharacters) {
  std::ostringstream out;
  Seconds now;
  ProgressPrinter printer(out, /*terminal=*/false, 80, now.clock());
  printer.Show(Building(0, 3));
  now.time += std::chrono::seconds(4);
  printer.Show(Building(1, 3));  // too soon after the first
  now.time += std::chrono::seconds(62);
  printer.Show(Building(3, 3));
  printer.Show(Timing(1, 0));
  printer.Clear();
  EXPECT_EQ(out.str(),
            "[0:00] building 0 of 3 (2 reused, 0 failed)\n"
            "[1:06] building 3 of 3 (2 reused, 0 failed)\n"
            "[1:06] timing 1 of 30\n");
}

TEST(ProgressTest, SaysHowLongACountedStageMayTake) {
  std::ostringstream out;
  Seconds now;
  ProgressPrinter printer(out, /*terminal=*/false, 80, now.clock());
  printer.Show(Building(2, 10));  // two were there before
  now.time += std::chrono::seconds(10);
  printer.Show(Building(4, 10));
  EXPECT_EQ(out.str(),
            "[0:00] building 2 of 10 (2 reused, 0 failed)\n"
            "[0:10] building 4 of 10 (2 reused, 0 failed), about 30 s left\n");
}

TEST(ProgressTest, OnATerminalOneLineIsWrittenOver) {
  std::ostringstream out;
  Seconds now;
  ProgressPrinter printer(out, /*terminal=*/true, 19, now.clock());
  printer.Show(Building(0, 3));
  now.time += std::chrono::seconds(1);
  printer.Tick();
  printer.Clear();
  printer.Tick();  // there is nothing to write again
  EXPECT_EQ(out.str(), "\r\033[K[0:00] building 0 \r\033[K[0:01] building 0 \r\033[K");
}

}  // namespace
}  // namespace fusion
