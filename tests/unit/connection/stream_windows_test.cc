#include "server/connection/stream_windows.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

namespace fusion {
namespace {

using std::chrono::seconds;
constexpr StreamWindows::Time kBegin{std::chrono::hours(1)};

TEST(StreamWindows, AnAnswerThatFillsTheWindowStallsItsStream) {
  StreamWindows windows;
  windows.Open(1, kBegin);
  windows.Take(1, 60000, kBegin + seconds(1));
  EXPECT_EQ(windows.stalled_since(), std::nullopt);
  windows.Take(1, 5535, kBegin + seconds(2));
  EXPECT_EQ(windows.stalled_since(), kBegin + seconds(2));
  windows.Give(1, 50000, kBegin + seconds(3));  // the connection has none
  EXPECT_EQ(windows.stalled_since(), kBegin + seconds(3));
  windows.Give(0, 50000, kBegin + seconds(4));
  EXPECT_EQ(windows.stalled_since(), std::nullopt);
}

TEST(StreamWindows, AConnectionWithoutRoomStallsWhateverIsOpenedOnIt) {
  StreamWindows windows;
  windows.Open(1, kBegin);
  windows.Take(1, 65535, kBegin);
  windows.Close(1);
  EXPECT_EQ(windows.stalled_since(), std::nullopt);
  windows.Open(3, kBegin + seconds(1));
  EXPECT_EQ(windows.stalled_since(), kBegin + seconds(1));
}

TEST(StreamWindows, OneSlowReaderIsNotMany) {
  StreamWindows windows;
  windows.Give(0, 10'000'000, kBegin);
  for (uint32_t stream = 1; stream < 60; stream += 2) {
    windows.Open(stream, kBegin);
    windows.Take(stream, 65535, kBegin);
    EXPECT_TRUE(windows.stalled_since().has_value());
    EXPECT_EQ(windows.ManyStalled(), windows.size() >= StreamWindows::kManyWithoutRoom) << stream;
  }
  windows.SetInitial(200'000, kBegin);
  EXPECT_FALSE(windows.ManyStalled());
  windows.Take(1, 10'000'000, kBegin);
  EXPECT_TRUE(windows.ManyStalled()) << "of the connection nothing is left";
}

TEST(StreamWindows, AFewBytesAreNoRoom) {
  StreamWindows windows;
  windows.SetInitial(0, kBegin);
  EXPECT_TRUE(windows.BornStalled());
  windows.Open(1, kBegin);
  for (int i = 0; i < 20; ++i) windows.Give(1, 1, kBegin + seconds(i));
  EXPECT_EQ(windows.stalled_since(), kBegin);
  windows.SetInitial(65535, kBegin + seconds(30));
  EXPECT_FALSE(windows.BornStalled());
  EXPECT_EQ(windows.stalled_since(), std::nullopt);
}

TEST(StreamWindows, StreamsThatAreNotOpenHaveNoWindow) {
  StreamWindows windows;
  windows.Take(7, 70000, kBegin);
  windows.Give(7, 70000, kBegin);
  windows.Give(0, 70000, kBegin);
  windows.Close(7);
  windows.Open(7, kBegin);
  EXPECT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows.stalled_since(), std::nullopt);
}

// The same by looking through all streams each time.
TEST(StreamWindows, CountsAsALookAtAllWould) {
  std::mt19937 dice(3);
  StreamWindows windows;
  int64_t initial = 65535, of_connection = 65535;
  std::map<uint32_t, int64_t> given;
  for (int step = 0; step < 100000; ++step) {
    const auto stream = static_cast<uint32_t>(dice() % 12 * 2 + 1);
    const auto bytes = static_cast<uint32_t>(dice() % 40000);
    switch (dice() % 8) {
      case 0:
        windows.SetInitial(bytes, kBegin);
        initial = bytes;
        break;
      case 1:
        windows.Close(stream);
        given.erase(stream);
        break;
      case 2:
      case 3:
        windows.Open(stream, kBegin);
        given.try_emplace(stream, 0);
        break;
      case 4:
      case 5:
        windows.Take(stream, bytes, kBegin);
        of_connection -= bytes;
        if (given.contains(stream)) given[stream] -= bytes;
        break;
      case 6:
        windows.Give(stream, bytes, kBegin);
        if (given.contains(stream)) given[stream] += bytes;
        break;
      default:
        windows.Give(0, bytes * 2, kBegin);
        of_connection += bytes * 2;
    }
    bool stalled = false;
    for (const auto& [open, more] : given)
      stalled |= std::min(initial + more, of_connection) < StreamWindows::kNoRoom;
    ASSERT_EQ(windows.stalled_since().has_value(), stalled) << step;
    ASSERT_EQ(windows.size(), given.size());
  }
}

}  // namespace
}  // namespace fusion
