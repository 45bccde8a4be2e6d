#include "db/store/log_check.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr size_t kHeaderBytes = 32, kFrameHeaderBytes = 24;
constexpr uint32_t kMagic = 0x377f0682;  // or one more, where checksums are of big-endian words
constexpr uint32_t kLeastPage = 512, kMostPage = 65536;

using Checksum = std::array<uint32_t, 2>;

uint32_t BigEndian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}
uint32_t LittleEndian(const unsigned char* bytes) {
  return uint32_t{bytes[3]} << 24 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[1]} << 8 | bytes[0];
}

// The checksum of what has the checksum `sum` with so many bytes, a multiple of 8, behind it.
Checksum Add(Checksum sum, bool big_endian, const unsigned char* bytes, size_t count) {
  const auto word = big_endian ? BigEndian : LittleEndian;
  for (size_t i = 0; i < count; i += 8) {
    sum[0] += word(bytes + i) + sum[1];
    sum[1] += word(bytes + i + 4) + sum[0];
  }
  return sum;
}
Checksum Stored(const unsigned char* bytes) { return {BigEndian(bytes), BigEndian(bytes + 4)}; }

absl::Status Damaged(const std::string& log, const std::string& what) {
  return absl::DataLossError(
      absl::StrCat("store ", log, ": the write-ahead log is damaged: ", what, "; restore a backup"));
}

}  // namespace

absl::Status CheckLog(const std::string& path) {
  const std::string log = path + "-wal";
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(log, error);
  if (error || bytes <= kHeaderBytes + kFrameHeaderBytes) return absl::OkStatus();
  std::ifstream file(log, std::ios::binary);
  std::array<unsigned char, kHeaderBytes> header;
  if (!file.read(reinterpret_cast<char*>(header.data()), kHeaderBytes))
    return absl::InternalError(absl::StrCat("store ", log, ": cannot be read"));
  const uint32_t magic = BigEndian(header.data()), page_bytes = BigEndian(header.data() + 8);
  const bool big_endian = magic & 1;
  Checksum sum = Add({0, 0}, big_endian, header.data(), kHeaderBytes - 8);
  // The header is on the disk before the first frame is written.
  if ((magic & ~uint32_t{1}) != kMagic || page_bytes < kLeastPage || page_bytes > kMostPage ||
      (page_bytes & (page_bytes - 1)) != 0 || sum != Stored(header.data() + kHeaderBytes - 8))
    return Damaged(log, "its header is not whole");

  std::vector<unsigned char> frame(kFrameHeaderBytes + page_bytes);
  bool whole = true;  // as far as SQLite reads
  int64_t number = 0, first_damaged = 0;
  int commits = 0;  // that follow each other from the first damaged frame on
  while (file.read(reinterpret_cast<char*>(frame.data()), static_cast<std::streamsize>(frame.size()))) {
    ++number;
    const bool of_this_log = std::memcmp(frame.data() + 8, header.data() + 16, 8) == 0;
    const bool commits_here = BigEndian(frame.data() + 4) != 0;
    const Checksum stored = Stored(frame.data() + 16);
    sum =
        Add(Add(sum, big_endian, frame.data(), 8), big_endian, frame.data() + kFrameHeaderBytes, page_bytes);
    const bool follows = of_this_log && sum == stored;
    sum = stored;  // of a damaged frame too: those behind it were made to follow what it was
    if (whole && follows) continue;
    if (whole) first_damaged = number;
    // Frames that earlier logs or undone transactions left there follow no valid frame.
    commits = (follows ? commits : 0) + (of_this_log && commits_here ? 1 : 0);
    whole = false;
    if (commits == 2)
      return Damaged(log, absl::StrCat("frame ", first_damaged,
                                       " is not whole, and changes that were made "
                                       "safe after it would be lost"));
  }
  return absl::OkStatus();
}

}  // namespace fusion
