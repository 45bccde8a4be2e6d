// Messages over a pipe: four bytes of length, little endian, then the serialized message.
#pragma once

#include <chrono>
#include <functional>

#include "absl/status/status.h"
#include "google/protobuf/message_lite.h"

namespace fusion {

// Larger messages are refused: a corrupt length must not become an allocation.
inline constexpr uint32_t kMaximumPipeMessageBytes = 1u << 30;

// Both block. Cancelled: the other end is closed. DataLoss: not a message. `keep_waiting`, if given, is
// called about every 20 ms while nothing arrives or leaves; an error from it is returned.
using KeepWaiting = std::function<absl::Status()>;
absl::Status WriteMessage(int descriptor, const google::protobuf::MessageLite& message,
                          const KeepWaiting& keep_waiting = nullptr);
absl::Status ReadMessage(int descriptor, google::protobuf::MessageLite* message,
                         const KeepWaiting& keep_waiting = nullptr);

}  // namespace fusion
