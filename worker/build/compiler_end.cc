#include "worker/build/compiler_end.h"

#include <string.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

bool IsOfTheSource(int signal) {
  return std::find(std::begin(kSignalsOfTheSource), std::end(kSignalsOfTheSource), signal) !=
         std::end(kSignalsOfTheSource);
}

// Compilers catch these signals, to ask for a report of the error before they end.
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

// Errors of disks, and programs that a driver does not find: part of a compiler is not installed.
constexpr absl::string_view kFaults[] = {"No space left on device",      "Disk quota exceeded",
                                         "Input/output error",           "Read-only file system",
                                         "fatal error: cannot execute ", "error trying to exec ",
                                         "fatal error: cannot find "};

// Returns whether the text begins with one of these signals, as programs call them in English.
template <size_t N>
bool NamesOneOf(absl::string_view text, const int (&signals)[N]) {
  return std::any_of(std::begin(signals), std::end(signals),
                     [&](int signal) { return absl::StartsWith(text, strsignal(signal)); });
}

// Returns what stands behind the last `text` in the line, or nothing.
std::optional<absl::string_view> Behind(absl::string_view line, absl::string_view text) {
  const size_t found = line.rfind(text);
  if (found == absl::string_view::npos) return std::nullopt;
  return line.substr(found + text.size());
}

// "g++: fatal error: Killed signal terminated program cc1plus"
bool DriverOfGccSaysSo(absl::string_view line) {
  const size_t end = line.find(" signal terminated program ");
  if (end == absl::string_view::npos) return false;
  return !NamesOneOf(Behind(line.substr(0, end), ": ").value_or(""), kSignalsOfTheSource);
}

// "collect2: fatal error: ld terminated with signal 9 [Killed]"
bool LinkerOfGccSaysSo(absl::string_view line) {
  const std::optional<absl::string_view> rest = Behind(line, " terminated with signal ");
  int signal = 0;
  return rest.has_value() && absl::SimpleAtoi(rest->substr(0, rest->find(' ')), &signal) &&
         !IsOfTheSource(signal);
}

// "clang: error: unable to execute command: Killed", or why it could not start it
bool DriverOfClangSaysSo(absl::string_view line) {
  const std::optional<absl::string_view> rest = Behind(line, ": error: unable to execute command: ");
  return rest.has_value() && !NamesOneOf(*rest, kSignalsOfTheSource);
}

// "fused.cc:3:30: internal compiler error: Segmentation fault"; others are found by a compiler that works
bool CompilerCrashed(absl::string_view line) {
  const std::optional<absl::string_view> rest = Behind(line, ": internal compiler error: ");
  return rest.has_value() && NamesOneOf(*rest, kCrashes);
}

// Compilers, assemblers, linkers and the C++ library say this when an allocation fails.
constexpr absl::string_view kOutOfMemory[] = {"out of memory",          "Out of memory",
                                              "memory exhausted",       "std::bad_alloc",
                                              "Cannot allocate memory", "Memory allocation failure",
                                              "insufficient memory"};

std::string ReadText(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The figure of a line of /proc/meminfo, in bytes; 0: there is none.
int64_t Figure(absl::string_view meminfo, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (!absl::ConsumePrefix(&line, name) || !absl::ConsumePrefix(&line, ":")) continue;
    int64_t kibibytes = 0;
    absl::ConsumeSuffix(&line, " kB");
    if (absl::SimpleAtoi(line, &kibibytes)) return kibibytes * 1024;
  }
  return 0;
}

bool SaysMachineFault(absl::string_view line) {
  return absl::StartsWith(line, "bwrap: ") || DriverOfGccSaysSo(line) || LinkerOfGccSaysSo(line) ||
         DriverOfClangSaysSo(line) || CompilerCrashed(line) ||
         std::any_of(std::begin(kFaults), std::end(kFaults),
                     [&](absl::string_view fault) { return absl::StrContains(line, fault); });
}

}  // namespace

bool SaysOutOfMemory(absl::string_view line) {
  return std::any_of(std::begin(kOutOfMemory), std::end(kOutOfMemory),
                     [&](absl::string_view text) { return absl::StrContains(line, text); });
}

int64_t BytesToBeHad(absl::string_view meminfo, absl::string_view overcommit) {
  overcommit = absl::StripAsciiWhitespace(overcommit);
  if (overcommit == "1") return -1;
  if (overcommit == "2")
    return std::max<int64_t>(0, Figure(meminfo, "CommitLimit") - Figure(meminfo, "Committed_AS"));
  const int64_t all = Figure(meminfo, "MemTotal") + Figure(meminfo, "SwapTotal");
  return all > 0 ? all : -1;
}

MemoryOffer MemoryOfThisMachine() {
  MemoryOffer offer;
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    const auto bytes = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
    offer.process_bytes = offer.process_bytes < 0 ? bytes : std::min(offer.process_bytes, bytes);
  }
  offer.machine_bytes = BytesToBeHad(ReadText("/proc/meminfo"), ReadText("/proc/sys/vm/overcommit_memory"));
  return offer;
}

bool MachineLacksMemory(uint64_t build_bytes, const MemoryOffer& offer) {
  const auto lacks = [&](int64_t offered) {
    return offered >= 0 && (build_bytes == 0 || static_cast<uint64_t>(offered) < build_bytes);
  };
  return lacks(offer.process_bytes) || lacks(offer.machine_bytes);
}

std::string MachineFault(const ExitStatus& status, absl::string_view log, bool lacks_memory) {
  if (status.signal != 0) {
    if (status.signal == SIGABRT && lacks_memory)
      return absl::StrCat("the compiler was ", status.ToString(), ", on a machine without memory for it");
    return IsOfTheSource(status.signal) ? "" : absl::StrCat("the compiler was ", status.ToString());
  }
  constexpr size_t kMost = 300;
  for (const absl::string_view line : absl::StrSplit(log, '\n'))
    if (SaysMachineFault(line) || (lacks_memory && SaysOutOfMemory(line)))
      return absl::StrCat("the compiler failed: ", absl::StripAsciiWhitespace(line.substr(0, kMost)));
  return "";
}

}  // namespace fusion
