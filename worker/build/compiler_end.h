// Tells whether a compiler's source or this machine made it end without code.
#pragma once

#include <signal.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "base/sandbox/child_process.h"

namespace fusion {

// The signals that end a compiler by what its source asks for: at the limits of a build, of memory, without
// which compilers abort (the machine's doing where it has less than that: MachineFault), of processor time
// and of the size of a file. All others may be the machine's doing: the kernel ends what takes memory from
// others, an operator kills, memory is broken. A source at which the compiler crashes looks the same.
inline constexpr int kSignalsOfTheSource[] = {SIGABRT, SIGXCPU, SIGXFSZ};

// Returns what the machine did to a compiler that failed, in one line; "" when nothing shows that it was not
// the source's fault. `log` is what the compiler, a driver like those of GCC and Clang, wrote in English: it
// starts programs, and only it knows how these ended. A source can write the same into its errors, and is
// then tried again in vain.
// lacks_memory: this machine does not let a process have what a build may have (MachineLacksMemory). A
// compiler that gets no more memory is then ended by the machine, and not at the limit, which is the source's
// doing.
std::string MachineFault(const ExitStatus& status, absl::string_view log, bool lacks_memory = false);

// Returns whether the line of a compiler, or of its linker, says that it got no more memory.
bool SaysOutOfMemory(absl::string_view line);

// Bytes that this machine lets one process have, as the kernel decides it (proc(5), overcommit_memory).
// Negative: any amount.
struct MemoryOffer {
  int64_t process_bytes = -1;  // limits that this process was started with: RLIMIT_AS, RLIMIT_DATA
  int64_t machine_bytes = -1;  // what there is, or what is not promised to others where promises are kept
};
// Returns machine_bytes by the texts of /proc/meminfo and of /proc/sys/vm/overcommit_memory.
int64_t BytesToBeHad(absl::string_view meminfo, absl::string_view overcommit);
MemoryOffer MemoryOfThisMachine();
// Returns whether a build, which may have so many bytes (0: any), cannot have them here.
bool MachineLacksMemory(uint64_t build_bytes, const MemoryOffer& offer);

}  // namespace fusion
