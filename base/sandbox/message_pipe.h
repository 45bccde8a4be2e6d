// Messages over a pipe: four bytes of length, little endian, then the serialized message.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "google/protobuf/message_lite.h"

namespace fusion {

inline constexpr uint32_t kMaximumPipeMessageBytes = 1u << 30;

// Both block. Cancelled: the other end is closed. DataLoss: not a message, or one of more than `most_bytes`.
// Memory is taken as bytes arrive, not as their length is announced. `keep_waiting`, if given, is called
// about every 20 ms while nothing arrives or leaves, and after each part of a message; an error from it is
// returned. For that a descriptor to write to has to be O_NONBLOCK, as that of a ChildProcess is.
using KeepWaiting = std::function<absl::Status()>;
absl::Status WriteMessage(int descriptor, const google::protobuf::MessageLite& message,
                          const KeepWaiting& keep_waiting = nullptr);
absl::Status ReadMessage(int descriptor, google::protobuf::MessageLite* message,
                         const KeepWaiting& keep_waiting = nullptr,
                         uint32_t most_bytes = kMaximumPipeMessageBytes);

}  // namespace fusion
