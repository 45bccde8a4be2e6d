#include "client/partition/host_copies.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "client/partition/readable.h"

namespace fusion {
namespace {

constexpr size_t kPart = size_t{128} << 10;  // bytes, less than a cache of one thread

// Calls each(offset, bytes) for all of them.
template <class Each>
void InByteParts(const HostCopies& copies, size_t bytes, const Each& each) {
  if (bytes <= 2 * kPart) return each(size_t{0}, bytes);
  copies.InParts(static_cast<int64_t>((bytes + kPart - 1) / kPart), [&](int64_t first, int64_t last) {
    const size_t begin = static_cast<size_t>(first) * kPart;
    each(begin, std::min(bytes, static_cast<size_t>(last) * kPart) - begin);
  });
}

}  // namespace

void HostCopies::Copy(char* to, const char* from, size_t bytes) const {
  InByteParts(*this, bytes,
              [=](size_t offset, size_t part) { std::memcpy(to + offset, from + offset, part); });
}

bool HostCopies::CopyReadable(char* to, const char* from, size_t bytes) const {
  std::atomic<bool> is_there{true};
  InByteParts(*this, bytes, [&, to, from](size_t offset, size_t part) {
    if (!fusion::CopyReadable(to + offset, from + offset, part)) is_there = false;
  });
  return is_there;
}

}  // namespace fusion
