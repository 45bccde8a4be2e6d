#include "worker/build/compiler_end.h"

#include <string.h>

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fusion {
namespace {

bool IsOfTheSource(int signal) {
  return std::find(std::begin(kSignalsOfTheSource), std::end(kSignalsOfTheSource), signal) !=
         std::end(kSignalsOfTheSource);
}

// Those that compilers catch, to ask for a report of the error before they end.
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

// Errors of disks, and programs that a driver does not find: part of a compiler is not installed.
constexpr absl::string_view kFaults[] = {"No space left on device",      "Disk quota exceeded",
                                         "Input/output error",           "Read-only file system",
                                         "fatal error: cannot execute ", "error trying to exec ",
                                         "fatal error: cannot find "};

// Whether the text begins with a signal of these, as programs call them in English.
template <size_t N>
bool NamesOneOf(absl::string_view text, const int (&signals)[N]) {
  return std::any_of(std::begin(signals), std::end(signals),
                     [&](int signal) { return absl::StartsWith(text, strsignal(signal)); });
}

// What stands behind the last of it; none.
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

bool SaysMachineFault(absl::string_view line) {
  return absl::StartsWith(line, "bwrap: ") || DriverOfGccSaysSo(line) || LinkerOfGccSaysSo(line) ||
         DriverOfClangSaysSo(line) || CompilerCrashed(line) ||
         std::any_of(std::begin(kFaults), std::end(kFaults),
                     [&](absl::string_view fault) { return absl::StrContains(line, fault); });
}

}  // namespace

std::string MachineFault(const ExitStatus& status, absl::string_view log) {
  if (status.signal != 0)
    return IsOfTheSource(status.signal) ? "" : absl::StrCat("the compiler was ", status.ToString());
  constexpr size_t kMost = 300;
  for (const absl::string_view line : absl::StrSplit(log, '\n'))
    if (SaysMachineFault(line))
      return absl::StrCat("the compiler failed: ", absl::StripAsciiWhitespace(line.substr(0, kMost)));
  return "";
}

}  // namespace fusion
