// Frames of HTTP/2, as tests write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fusion {

enum FrameType : uint8_t {
  kData,
  kHeaders,
  kPriority,
  kReset,
  kSettings,
  kPush,
  kPing,
  kGoAway,
  kWindow,
  kContinuation
};
inline constexpr uint8_t kEndStream = 1, kEndHeaders = 4, kPadded = 8, kWithPriority = 0x20;

inline std::string Frame(FrameType type, uint8_t flags, uint32_t stream, const std::string& payload = "") {
  const auto byte = [](size_t value) { return static_cast<char>(value & 0xFF); };
  std::string frame = {
      byte(payload.size() >> 16), byte(payload.size() >> 8), byte(payload.size()), byte(type),  byte(flags),
      byte(stream >> 24),         byte(stream >> 16),        byte(stream >> 8),    byte(stream)};
  return frame + payload;
}

}  // namespace fusion
