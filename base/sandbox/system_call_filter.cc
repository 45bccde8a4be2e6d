#include "base/sandbox/system_call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>

namespace fusion {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "system_call_filter.cc: name the architecture as the kernel does (linux/audit.h)"
#endif

// mseal (Linux 6.10), the last one that was looked at. The numbers of x32, which have bit 30 set, are above.
constexpr uint32_t kNewestKnown = 462;

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kDeny = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kMissing = SECCOMP_RET_ERRNO | ENOSYS;
constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;

// System calls that some architecture or older header does not have are left out there; those of 424 and
// later have one number everywhere.
enum : uint32_t {
  kPidfdSendSignal = 424,
  kIoUringSetup,
  kIoUringEnter,
  kIoUringRegister,
  kOpenTree,
  kMoveMount,
  kFsopen,
  kFsconfig,
  kFsmount,
  kFspick,
  kPidfdOpen,
  kClone3,
  kPidfdGetfd = 438,
  kProcessMadvise = 440,
  kMountSetattr = 442,
  kQuotactlFd,
  kMemfdSecret = 447,
  kProcessMrelease,
  kFchmodat2 = 452,
};

constexpr uint32_t kEndsProcess[] = {
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
};

constexpr uint32_t kNeverAllowed[] = {
    // Other processes.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_tkill,
    SYS_setpriority,
    SYS_sched_setparam,
    SYS_sched_setscheduler,
    SYS_sched_setattr,
    SYS_ioprio_set,
    SYS_migrate_pages,
    SYS_move_pages,
    kPidfdOpen,
    kPidfdGetfd,
    kPidfdSendSignal,
    kProcessMadvise,
    kProcessMrelease,
    // Mounts, namespaces, roots.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    kOpenTree,
    kMoveMount,
    kFsopen,
    kFsconfig,
    kFsmount,
    kFspick,
    kMountSetattr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_quotactl,
    kQuotactlFd,
    SYS_acct,
    SYS_fanotify_init,
    // The kernel: programs in it, counters, rings, keys, its log, clocks and names.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    kIoUringSetup,
    kIoUringEnter,
    kIoUringRegister,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_lookup_dcookie,
    SYS_nfsservctl,
    SYS_seccomp,
    kMemfdSecret,
    // Users and rights.
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    SYS_mknodat,
#ifdef SYS_mknod
    SYS_mknod,
    SYS_uselib,
#endif
    // Memory and messages that outlive the process, or that others see.
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semop,
    SYS_semctl,
    SYS_semtimedop,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_mq_open,
    SYS_mq_unlink,
};

// Landlock does not see what these calls change: names, modes and times of files. Compilers need the calls.
constexpr uint32_t kNotForRunners[] = {
    SYS_execve,      SYS_execveat,     SYS_truncate,     SYS_fchmod,   SYS_fchmodat,  kFchmodat2,
    SYS_fchown,      SYS_fchownat,     SYS_utimensat,    SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_setsid,   SYS_setpgid,   SYS_inotify_init1,
#ifdef SYS_fork
    SYS_fork,        SYS_vfork,        SYS_chmod,        SYS_chown,    SYS_lchown,    SYS_utime,
    SYS_utimes,      SYS_futimesat,    SYS_inotify_init,
#endif
};

class Assembler {
 public:
  explicit Assembler(FilterProgram* program) : program_(program) {}

  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void Return(uint32_t action) { Add(BPF_RET | BPF_K, action); }
  // The two instructions behind are skipped unless the condition holds.
  void IfNumber(uint32_t number, uint32_t action) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    Return(action);
  }
  template <size_t N>
  void All(const uint32_t (&numbers)[N], uint32_t action) {
    for (uint32_t number : numbers) IfNumber(number, action);
  }
  // Judges a call by the low half of an argument: `equal` when (argument & mask) is one of `values`, else
  // `other`. All that are judged are of 32 bits.
  void ByArgument(uint32_t number, int argument, uint32_t mask, std::initializer_list<uint32_t> values,
                  uint32_t equal, uint32_t other) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, static_cast<uint8_t>(3 + 2 * values.size()));
    Load(offsetof(seccomp_data, args) + 8 * argument);
    Add(BPF_ALU | BPF_AND | BPF_K, mask);
    for (uint32_t value : values) IfNumber(value, equal);
    Return(other);
  }

 private:
  void Add(int code, uint32_t value, uint8_t if_true = 0, uint8_t if_false = 0) {
    program_->push_back({static_cast<uint16_t>(code), if_true, if_false, value});
  }
  FilterProgram* const program_;
};

}  // namespace

FilterProgram MakeSystemCallFilter(SandboxKind kind, int own_process) {
  constexpr uint32_t kAllBits = 0xFFFFFFFF;
  const uint32_t self = static_cast<uint32_t>(own_process);
  const bool compiler = kind == SandboxKind::kHostCompiler;
  FilterProgram program;
  Assembler filter(&program);
  filter.Load(offsetof(seccomp_data, arch));
  program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kArchitecture});
  filter.Return(kKill);
  filter.Load(offsetof(seccomp_data, nr));
  program.push_back({BPF_JMP | BPF_JGT | BPF_K, 0, 1, kNewestKnown});
  filter.Return(kMissing);

  filter.IfNumber(kClone3, kMissing);
  filter.All(kEndsProcess, kKill);
  filter.All(kNeverAllowed, kDeny);
  // Threads are clones with CLONE_THREAD; namespaces are made with clone too.
  constexpr uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  if (compiler) {
    filter.ByArgument(SYS_clone, 0, kNamespaces, {0}, kAllow, kDeny);
  } else {
    filter.All(kNotForRunners, kDeny);
    filter.ByArgument(SYS_clone, 0, kNamespaces | CLONE_THREAD, {CLONE_THREAD}, kAllow, kDeny);
    for (uint32_t number : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo})
      filter.ByArgument(number, 0, kAllBits, {self}, kAllow, kDeny);
    // The parent's death ends this process.
    filter.ByArgument(SYS_prctl, 0, kAllBits,
                      {PR_SET_PDEATHSIG, PR_SET_PTRACER, PR_SET_MM, PR_SET_SECCOMP, PR_SET_DUMPABLE}, kDeny,
                      kAllow);
  }
  filter.ByArgument(SYS_prlimit64, 0, kAllBits, {0, self}, kAllow, kDeny);
  if (kind == SandboxKind::kDeviceCode) {
    filter.ByArgument(SYS_socket, 0, kAllBits, {AF_UNIX}, kAllow, kDeny);
    filter.ByArgument(SYS_socketpair, 0, kAllBits, {AF_UNIX}, kAllow, kDeny);
  } else {
    filter.IfNumber(SYS_socket, kDeny);
    filter.IfNumber(SYS_socketpair, kDeny);
  }
  // Shared memory without a file is outside the limit of memory.
  if (kind == SandboxKind::kHostCode)
    filter.ByArgument(SYS_mmap, 3, MAP_SHARED | MAP_ANONYMOUS, {MAP_SHARED | MAP_ANONYMOUS}, kDeny, kAllow);
  // Putting characters into a terminal's input.
  filter.ByArgument(SYS_ioctl, 1, kAllBits,
                    {0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */, 0x5423 /* TIOCSETD */}, kDeny, kAllow);
  filter.ByArgument(SYS_personality, 0, kAllBits, {0, 0xFFFFFFFF}, kAllow, kDeny);
  filter.Return(kAllow);
  return program;
}

int InstallFilter(const FilterProgram& program) {
  sock_fprog filter{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  return result == 0 ? 0 : result > 0 ? EAGAIN : errno;
}

}  // namespace fusion
