// The filter is run by an interpreter of BPF here, for all system calls at once, before any kernel does.
#include "base/sandbox/system_call_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/sandbox/privileges.h"

namespace fusion {
namespace {

constexpr int kOwn = 4711;
#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64, kOther = AUDIT_ARCH_I386;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64, kOther = AUDIT_ARCH_ARM;
#endif
constexpr uint32_t kDenied = SECCOMP_RET_ERRNO | EPERM, kMissing = SECCOMP_RET_ERRNO | ENOSYS;

uint32_t Interpret(const FilterProgram& program, const seccomp_data& data) {
  uint32_t accumulator = 0;
  for (size_t i = 0; i < program.size(); ++i) {
    const sock_filter& step = program[i];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + step.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= step.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        i += accumulator == step.k ? step.jt : step.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        i += accumulator > step.k ? step.jt : step.jf;
        break;
      case BPF_RET | BPF_K:
        return step.k;
      default:
        ADD_FAILURE() << "instruction " << i << " of code " << step.code;
        return 0;
    }
  }
  ADD_FAILURE() << "it ends without an answer";
  return 0;
}

uint32_t Judge(SandboxKind kind, uint32_t number, std::initializer_list<uint64_t> arguments = {},
               uint32_t architecture = kArchitecture) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = architecture;
  int i = 0;
  for (uint64_t argument : arguments) data.args[i++] = argument;
  return Interpret(MakeSystemCallFilter(kind, kOwn), data);
}

constexpr SandboxKind kRunners[] = {SandboxKind::kHostCode, SandboxKind::kDeviceCode,
                                    SandboxKind::kDeviceCompiler};
constexpr SandboxKind kAll[] = {SandboxKind::kHostCode, SandboxKind::kDeviceCode,
                                SandboxKind::kDeviceCompiler, SandboxKind::kHostCompiler};

TEST(SystemCallFilterTest, AnswersEveryNumberOfEveryKind) {
  for (SandboxKind kind : kAll) {
    const FilterProgram program = MakeSystemCallFilter(kind, kOwn);
    EXPECT_LT(program.size(), 4096u);
    for (int number = 0; number < 1024; ++number) {
      seccomp_data data{};
      data.nr = number;
      data.arch = kArchitecture;
      const uint32_t answer = Interpret(program, data);
      EXPECT_TRUE(answer == SECCOMP_RET_ALLOW || answer == kDenied || answer == kMissing ||
                  answer == SECCOMP_RET_KILL_PROCESS)
          << number;
    }
  }
}

TEST(SystemCallFilterTest, OtherArchitecturesAndUnknownCallsDoNotPass) {
  for (SandboxKind kind : kAll) {
    EXPECT_EQ(Judge(kind, SYS_read, {}, kOther), SECCOMP_RET_KILL_PROCESS);
    EXPECT_EQ(Judge(kind, 463), kMissing);
    EXPECT_EQ(Judge(kind, 0x40000000 | SYS_read), kMissing);  // x32
    EXPECT_EQ(Judge(kind, SYS_read), SECCOMP_RET_ALLOW);
    EXPECT_EQ(Judge(kind, SYS_futex), SECCOMP_RET_ALLOW);
    EXPECT_EQ(Judge(kind, SYS_reboot), SECCOMP_RET_KILL_PROCESS);
    EXPECT_EQ(Judge(kind, SYS_finit_module), SECCOMP_RET_KILL_PROCESS);
    EXPECT_EQ(Judge(kind, 435 /* clone3 */), kMissing);
    for (uint32_t number :
         {SYS_ptrace, SYS_process_vm_readv, SYS_mount, SYS_unshare, SYS_setns, SYS_bpf, SYS_perf_event_open,
          SYS_keyctl, SYS_userfaultfd, SYS_chroot, SYS_setuid, SYS_mknodat})
      EXPECT_EQ(Judge(kind, number), kDenied) << number;
    EXPECT_EQ(Judge(kind, 425 /* io_uring_setup */), kDenied);
    EXPECT_EQ(Judge(kind, 438 /* pidfd_getfd */), kDenied);
  }
}

TEST(SystemCallFilterTest, RunnersHaveThreadsButNoProcesses) {
  constexpr uint64_t kThread =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  for (SandboxKind kind : kRunners) {
    EXPECT_EQ(Judge(kind, SYS_clone, {kThread}), SECCOMP_RET_ALLOW);
    EXPECT_EQ(Judge(kind, SYS_clone, {SIGCHLD}), kDenied);
    EXPECT_EQ(Judge(kind, SYS_clone, {kThread | CLONE_NEWUSER}), kDenied);
    EXPECT_EQ(Judge(kind, SYS_execve), kDenied);
    EXPECT_EQ(Judge(kind, SYS_execveat), kDenied);
    EXPECT_EQ(Judge(kind, SYS_kill, {kOwn, 9}), SECCOMP_RET_ALLOW);
    EXPECT_EQ(Judge(kind, SYS_kill, {1, 9}), kDenied);
    EXPECT_EQ(Judge(kind, SYS_kill, {static_cast<uint64_t>(-1), 9}), kDenied);
    EXPECT_EQ(Judge(kind, SYS_tgkill, {kOwn, kOwn + 1, 6}), SECCOMP_RET_ALLOW);
    EXPECT_EQ(Judge(kind, SYS_tgkill, {kOwn + 1, kOwn + 1, 6}), kDenied);
    EXPECT_EQ(Judge(kind, SYS_prlimit64, {1, 7}), kDenied);
  }
  EXPECT_EQ(Judge(SandboxKind::kHostCompiler, SYS_execve), SECCOMP_RET_ALLOW);
  EXPECT_EQ(Judge(SandboxKind::kHostCompiler, SYS_clone, {SIGCHLD | CLONE_VM | CLONE_VFORK}),
            SECCOMP_RET_ALLOW);
  EXPECT_EQ(Judge(SandboxKind::kHostCompiler, SYS_clone, {SIGCHLD | CLONE_NEWNS}), kDenied);
}

TEST(SystemCallFilterTest, SocketsAreForTheDriverAndLocal) {
  for (SandboxKind kind : kAll) {
    for (int domain : {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, 38, 40})
      EXPECT_EQ(Judge(kind, SYS_socket, {static_cast<uint64_t>(domain)}), kDenied);
    EXPECT_EQ(Judge(kind, SYS_socket, {AF_UNIX}),
              kind == SandboxKind::kDeviceCode ? SECCOMP_RET_ALLOW : kDenied);
  }
}

TEST(SystemCallFilterTest, SharedMemoryWithoutAFileIsNotForHostCode) {
  const auto map = [](SandboxKind kind, int flags) {
    return Judge(kind, SYS_mmap, {0, 4096, PROT_READ, static_cast<uint64_t>(flags)});
  };
  EXPECT_EQ(map(SandboxKind::kHostCode, MAP_SHARED | MAP_ANONYMOUS), kDenied);
  EXPECT_EQ(map(SandboxKind::kHostCode, MAP_PRIVATE | MAP_ANONYMOUS), SECCOMP_RET_ALLOW);
  EXPECT_EQ(map(SandboxKind::kHostCode, MAP_SHARED), SECCOMP_RET_ALLOW);
  EXPECT_EQ(map(SandboxKind::kDeviceCode, MAP_SHARED | MAP_ANONYMOUS), SECCOMP_RET_ALLOW);
}

TEST(SystemCallFilterTest, TheKernelTakesIt) {
  for (SandboxKind kind : kAll) {
    const pid_t child = fork();
    if (child == 0) {
      if (DropPrivileges() != 0 || InstallFilter(MakeSystemCallFilter(kind, getpid())) != 0) _exit(2);
      _exit(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM && getppid() > 0 ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << SandboxKindName(kind);
  }
}

}  // namespace
}  // namespace fusion
