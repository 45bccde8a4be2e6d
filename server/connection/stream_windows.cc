#include "server/connection/stream_windows.h"

#include <algorithm>

namespace fusion {

void StreamWindows::Open(uint32_t stream, Time now) {
  if (given_.try_emplace(stream, 0).second && !HasRoom(0)) ++without_room_;
  Note(false, now);
}

void StreamWindows::Close(uint32_t stream) {
  const auto entry = given_.find(stream);
  if (entry == given_.end()) return;
  if (!HasRoom(entry->second)) --without_room_;
  given_.erase(entry);
  if (!Stalled()) stalled_since_.reset();
}

void StreamWindows::SetInitial(uint32_t bytes, Time now) {
  if (initial_ == bytes) return;
  const bool more = bytes >= initial_ + kNoRoom;
  initial_ = bytes;
  without_room_ = static_cast<size_t>(std::count_if(
      given_.begin(), given_.end(), [this](const auto& stream) { return !HasRoom(stream.second); }));
  Note(more, now);
}

void StreamWindows::Give(uint32_t stream, uint32_t bytes, Time now) {
  if (stream == 0)
    of_connection_ += bytes;
  else
    Change(stream, bytes);
  Note(bytes >= kNoRoom, now);
}

void StreamWindows::Take(uint32_t stream, uint32_t bytes, Time now) {
  of_connection_ -= bytes;
  Change(stream, -int64_t{bytes});
  Note(false, now);
}

void StreamWindows::Change(uint32_t stream, int64_t bytes) {
  const auto entry = given_.find(stream);
  if (entry == given_.end()) return;
  const bool had = HasRoom(entry->second);
  entry->second += bytes;
  const bool has = HasRoom(entry->second);
  if (had && !has) ++without_room_;
  if (!had && has) --without_room_;
}

void StreamWindows::Note(bool given, Time now) {
  if (!Stalled())
    stalled_since_.reset();
  else if (given || !stalled_since_)
    stalled_since_ = now;
}

}  // namespace fusion
