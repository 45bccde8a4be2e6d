#include "client/partition/readable.h"

#include <sys/uio.h>
#include <unistd.h>

namespace fusion {

// The system's copy, as to look first and copy then is not safe where another thread unmaps memory in
// between.
bool CopyReadable(char* to, const char* from, size_t bytes) {
  const pid_t process = getpid();
  while (bytes > 0) {
    const iovec here = {to, bytes};
    const iovec there = {const_cast<char*>(from), bytes};
    // The system copies up to the first page that cannot be read, and at most 2 GiB.
    const ssize_t copied = process_vm_readv(process, &here, 1, &there, 1, 0);
    if (copied <= 0) return false;
    to += copied;
    from += copied;
    bytes -= static_cast<size_t>(copied);
  }
  return true;
}

bool EndsAreReadable(const LoopRanges& ranges) {
  for (uint32_t i = 0; i < ranges.arrays().size(); ++i) {
    const ArrayRange& array = ranges.arrays()[i];
    if (array.all.empty() || array.is_unbounded || ranges.IsTouchedWhole(i)) continue;
    char byte;
    for (const int64_t end : {array.all.first, array.all.last - 1})
      if (!CopyReadable(&byte, array.At(end), 1)) return false;
  }
  return true;
}

}  // namespace fusion
