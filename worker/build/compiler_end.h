// Whose doing it was that a compiler ended without code: its source's, or this machine's.
#pragma once

#include <signal.h>

#include <string>

#include "absl/strings/string_view.h"
#include "worker/build/child_process.h"

namespace fusion {

// The signals that end a compiler by what its source asks for: at the limits of a build, of memory, without
// which compilers abort, of processor time and of the size of a file. All others may be the machine's doing:
// the kernel ends what takes memory from others, an operator kills, memory is broken. A source at which the
// compiler crashes looks the same.
inline constexpr int kSignalsOfTheSource[] = {SIGABRT, SIGXCPU, SIGXFSZ};

// What the machine did to a compiler that failed, in one line; "" when nothing shows that it was not the
// source's fault. `log` is what the compiler, a driver like those of GCC and Clang, wrote in English: it
// starts programs, and only it knows how these ended. A source can write the same into its errors, and is
// then tried again in vain.
std::string MachineFault(const ExitStatus& status, absl::string_view log);

}  // namespace fusion
