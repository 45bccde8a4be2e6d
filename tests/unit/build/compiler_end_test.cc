#include "worker/build/compiler_end.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <string>

namespace fusion {
namespace {

using ::testing::HasSubstr;

std::string FaultIn(const std::string& line, int code = 1) {
  // As drivers say it: among other lines.
  return MachineFault(ExitStatus{.code = code},
                      "fused.cc: In function 'f':\n" + line + "\nPlease report it.\n");
}

TEST(MachineFaultTest, AKilledCompilerSaysNothingOfItsSource) {
  EXPECT_THAT(MachineFault(ExitStatus{.signal = SIGKILL}, ""), HasSubstr("killed by signal 9"));
  EXPECT_NE(MachineFault(ExitStatus{.signal = SIGSEGV}, "error: x"), "");
  // What drivers of GCC 12 and of clang 14 wrote.
  for (const char* line :
       {"g++: fatal error: Killed signal terminated program cc1plus",
        "g++: fatal error: Terminated signal terminated program cc1plus",
        "g++: internal compiler error: Segmentation fault signal terminated program cc1plus",
        "fused.cc:3:30: internal compiler error: Segmentation fault",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
        "collect2: fatal error: ld terminated with signal 11 [Segmentation fault], core dumped",
        "clang: error: unable to execute command: Killed",
        "clang: error: unable to execute command: Segmentation fault (core dumped)"})
    EXPECT_THAT(FaultIn(line), HasSubstr(line));
}

TEST(MachineFaultTest, NorDoesACompilerOfWhichAPartIsMissingOrADiskWithoutRoom) {
  for (const char* line :
       {"g++: fatal error: cannot execute ‘cc1plus’: execvp: No such file or directory",
        "g++: error trying to exec 'cc1plus': execvp: No such file or directory",
        "collect2: fatal error: cannot find ‘ld’", "bwrap: execvp /usr/bin/g++: No such file or directory",
        "clang: error: unable to execute command: Executable \"ld\" doesn't exist!",
        "fused.cc:1:18: fatal error: error closing /tmp/x/cc2Qwdck.s: No space left on device",
        "fatal error: error in backend: IO failure on output stream: No space left on device",
        "/usr/bin/ld: final link failed: Input/output error"})
    EXPECT_THAT(FaultIn(line), HasSubstr(line));
}

TEST(MachineFaultTest, TheLimitsOfABuildAreItsSourcesDoing) {
  for (int signal : {SIGABRT, SIGXCPU, SIGXFSZ})
    EXPECT_EQ(MachineFault(ExitStatus{.signal = signal}, ""), "");
  for (const char* line :
       {"virtual memory exhausted: Cannot allocate memory",
        "cc1plus: out of memory allocating 2147483664 bytes after a total of 610304 bytes",
        "as: out of memory allocating 46000000001 bytes after a total of 135168 bytes",
        "g++: internal compiler error: File size limit exceeded signal terminated program as",
        "g++: internal compiler error: CPU time limit exceeded signal terminated program cc1plus",
        "collect2: fatal error: ld terminated with signal 25 [File size limit exceeded]",
        "fused.cc:3:30: internal compiler error: Aborted", "clang: error: unable to execute command: Aborted",
        "clang: error: unable to execute command: File size limit exceeded (core dumped)"})
    EXPECT_EQ(FaultIn(line), "") << line;
}

TEST(MachineFaultTest, WantOfMemoryIsTheMachinesWhereItHasLessThanABuildMayHave) {
  EXPECT_THAT(MachineFault(ExitStatus{.signal = SIGABRT}, "", true), HasSubstr("killed by signal 6"));
  EXPECT_EQ(MachineFault(ExitStatus{.signal = SIGXCPU}, "", true), "");
  for (const char* line : {"virtual memory exhausted: Cannot allocate memory",
                           "cc1plus: out of memory allocating 2147483664 bytes after a total of 610304 bytes",
                           "terminate called after throwing an instance of 'std::bad_alloc'",
                           "LLVM ERROR: out of memory", "/usr/bin/ld: final link failed: memory exhausted"}) {
    EXPECT_THAT(MachineFault(ExitStatus{.code = 1}, line, true), HasSubstr(line));
    EXPECT_EQ(MachineFault(ExitStatus{.code = 1}, line, false), "") << "at the limit of a build";
  }
  EXPECT_EQ(MachineFault(ExitStatus{.code = 1}, "fused.cc:1:9: error: 'x' was not declared", true), "");
}

TEST(MachineMemoryTest, IsWhatTheKernelGivesOut) {
  constexpr char kMeminfo[] =
      "MemTotal:        1000 kB\nMemFree:  10 kB\nSwapTotal:   500 kB\nCommitLimit:   1200 kB\n"
      "Committed_AS:   900 kB\n";
  EXPECT_EQ(BytesToBeHad(kMeminfo, "0\n"), 1500 * 1024);
  EXPECT_EQ(BytesToBeHad(kMeminfo, "1\n"), -1);
  EXPECT_EQ(BytesToBeHad(kMeminfo, "2\n"), 300 * 1024);
  EXPECT_EQ(BytesToBeHad("CommitLimit: 1 kB\nCommitted_AS: 9 kB\n", "2"), 0);
  EXPECT_EQ(BytesToBeHad("", ""), -1);
}

TEST(MachineMemoryTest, IsLackingWhereABuildMayHaveMore) {
  EXPECT_FALSE(MachineLacksMemory(2000, {}));
  EXPECT_FALSE(MachineLacksMemory(2000, {.process_bytes = 2000, .machine_bytes = 5000}));
  EXPECT_TRUE(MachineLacksMemory(2000, {.process_bytes = 1999}));
  EXPECT_TRUE(MachineLacksMemory(2000, {.process_bytes = 3000, .machine_bytes = 10}));
  EXPECT_TRUE(MachineLacksMemory(0, {.process_bytes = 3000})) << "without a limit of its own";
  EXPECT_FALSE(MachineLacksMemory(0, {}));
}

TEST(MachineFaultTest, SoIsWhatACompilerThatWorksSays) {
  for (const char* line : {"fused.cc:1:9: error: 'undeclared' was not declared in this scope",
                           "fused.cc:1:10: fatal error: missing.h: No such file or directory",
                           "fused.cc:9:1: internal compiler error: in expand_expr_real_1, at expr.cc:10082",
                           "collect2: error: ld returned 1 exit status", ""})
    EXPECT_EQ(FaultIn(line), "") << line;
}

TEST(MachineFaultTest, OneLineIsToldOfIt) {
  const std::string fault =
      FaultIn("fused.cc:1:1: fatal error: " + std::string(5000, 'x') + "No space left on device");
  EXPECT_LT(fault.size(), 400u);
  EXPECT_EQ(fault.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace fusion
