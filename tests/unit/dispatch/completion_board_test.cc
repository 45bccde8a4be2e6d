#include "server/dispatch/completion_board.h"

#include <gmock/gmock.h>

#include <thread>

namespace fusion {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CompletionBoardTest, TellsEachWatchItsKeysInOrder) {
  CompletionBoard board;
  auto ab = board.Open({"a", "b", "a"});
  auto b = board.Open({"b"});
  board.Ended("b");
  board.Ended("c");
  board.Ended("a");
  EXPECT_THAT(ab->Wait(milliseconds(0)), ElementsAre("b", "a"));
  EXPECT_THAT(b->Wait(milliseconds(0)), ElementsAre("b"));
  EXPECT_THAT(b->Wait(milliseconds(0)), IsEmpty());
}

TEST(CompletionBoardTest, AWaitingThreadWakes) {
  CompletionBoard board;
  auto watch = board.Open({"a"});
  std::thread other([&] { board.Ended("a"); });
  EXPECT_THAT(watch->Wait(milliseconds(60000)), ElementsAre("a"));
  other.join();
}

TEST(CompletionBoardTest, InterruptionsWakeEvenWhenTheyComeFirst) {
  CompletionBoard board;
  auto watch = board.Open({"a"});
  watch->Interrupt();
  EXPECT_THAT(watch->Wait(milliseconds(60000)), IsEmpty());
  board.InterruptAll();
  EXPECT_THAT(watch->Wait(milliseconds(60000)), IsEmpty());
}

TEST(CompletionBoardTest, AWatchThatIsGoneIsHarmless) {
  CompletionBoard board;
  board.Open({"a"}).reset();
  board.Ended("a");
  auto watch = board.Open({"a"});
  EXPECT_THAT(watch->Wait(milliseconds(0)), IsEmpty()) << "only what ends from now on";
}

}  // namespace
}  // namespace fusion
