// Chooses what a target does by what libFuzzer makes: a byte for each choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace fusion {

// Gives zeros behind the end.
class ScriptReader {
 public:
  explicit ScriptReader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool Done() const { return at_ >= bytes_.size(); }
  uint8_t Byte() { return Done() ? 0 : static_cast<uint8_t>(bytes_[at_++]); }
  // 0 to count - 1; count is at most 256.
  int Below(int count) { return Byte() % count; }
  // Returns at most so many bytes.
  std::string Bytes(size_t count) {
    if (Done()) return "";
    const std::string taken = bytes_.substr(at_, count);
    at_ += taken.size();
    return taken;
  }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

}  // namespace fusion
