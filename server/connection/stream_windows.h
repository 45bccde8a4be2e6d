// The open streams of an HTTP/2 connection, and how much of an answer the client has room for: the windows of
// its flow control (RFC 7540, 5.2 and 6.9).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace fusion {

// Of what the server sends. Not thread safe.
class StreamWindows {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Less room than this, in bytes, is none: an answer's end waits for the client to take something.
  static constexpr int64_t kNoRoom = 1024;
  // As many streams without room are no accident of one slow reader.
  static constexpr size_t kManyWithoutRoom = 20;

  void Open(uint32_t stream, Time now);
  void Close(uint32_t stream);
  bool IsOpen(uint32_t stream) const { return given_.contains(stream); }
  size_t size() const { return given_.size(); }

  // The client's SETTINGS_INITIAL_WINDOW_SIZE, for open streams too: looks at each, unless it is what it was.
  void SetInitial(uint32_t bytes, Time now);
  // The client's WINDOW_UPDATE; stream 0: of the connection.
  void Give(uint32_t stream, uint32_t bytes, Time now);
  // The server's DATA.
  void Take(uint32_t stream, uint32_t bytes, Time now);

  // Whether a new stream would have no room for its answer.
  bool BornStalled() const { return initial_ < kNoRoom; }
  // Whether what has no room is more than a stream or a few: the connection, or many of them.
  bool ManyStalled() const { return without_room_ >= kManyWithoutRoom || ConnectionStalled(); }
  // Since when there have been streams without room, and the client has given none; none: there are not.
  std::optional<Time> stalled_since() const { return stalled_since_; }

 private:
  bool HasRoom(int64_t given) const { return initial_ + given >= kNoRoom; }
  bool ConnectionStalled() const { return !given_.empty() && of_connection_ < kNoRoom; }
  bool Stalled() const { return without_room_ > 0 || ConnectionStalled(); }
  // Changes what a stream was given.
  void Change(uint32_t stream, int64_t bytes);
  // `given`: the client has given room.
  void Note(bool given, Time now);

  int64_t initial_ = 65535, of_connection_ = 65535;
  std::unordered_map<uint32_t, int64_t> given_;  // beyond the initial one, less what the server has sent
  size_t without_room_ = 0;                      // streams, by their own windows
  std::optional<Time> stalled_since_;
};

}  // namespace fusion
