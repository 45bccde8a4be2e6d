// What hostile native code can do to processes, the network and the kernel.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/fault/sandbox/hostile_programs.h"

namespace fusion {
namespace {

class ProcessProbes : public HostileProgramTest {};
INSTANTIATE_TEST_SUITE_P(Sandbox, ProcessProbes, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Bubblewrap" : "WithoutBubblewrap");
});

TEST_P(ProcessProbes, NoOtherProcessIsTouched) {
  static char secret_in_memory[64];
  std::strcpy(secret_in_memory, kSecret);
  const std::string read_memory =
      absl::StrCat(R"(char text[64] = {}; iovec here{text, sizeof text};
        iovec there{(void*))",
                   reinterpret_cast<uintptr_t>(secret_in_memory), R"(ul, sizeof text};)");
  ExpectHarmless({
      {"attach_to_the_parent", "return Made(ptrace(PTRACE_SEIZE, kParent, 0, 0));"},
      {"be_traced", "return Made(ptrace(PTRACE_TRACEME, 0, 0, 0));", true},
      {"memory_of_the_parent", read_memory + "return process_vm_readv(kParent, &here, 1, &there, 1, 0) > 0;"},
      {"memory_of_itself_by_that_call",
       "char from[8] = {}, to[8]; iovec here{to, 8}, there{from, 8}; "
       "return Made(process_vm_readv(getpid(), &here, 1, &there, 1, 0));",
       true},
      {"write_memory_of_the_parent",
       read_memory + "return process_vm_writev(kParent, &here, 1, &there, 1, 0) > 0;"},
      {"signal_the_parent", "return Made(kill(kParent, 0));", true},
      {"signal_the_group", "return Made(kill(0, 0));", true},
      {"signal_everybody", "return Made(kill(-1, 0));"},
      {"signal_the_first_process", "return Made(kill(1, 0));"},
      {"signal_a_thread_of_the_parent", "return Made(syscall(SYS_tgkill, kParent, kParent, 0));", true},
      {"open_the_parent", "return Made(syscall(SYS_pidfd_open, kParent, 0));", true},
      {"outlive_the_parent", "return Made(prctl(PR_SET_PDEATHSIG, 0));", true},
      {"priority_of_the_parent", "return Made(setpriority(PRIO_PROCESS, kParent, 0));", true},
      {"limits_of_the_parent",
       "rlimit old; return Made(syscall(SYS_prlimit64, kParent, RLIMIT_NOFILE, nullptr, &old));", true},
      {"fork",
       "const int child = fork(); if (child == 0) _exit(0); if (child > 0) waitpid(child, nullptr, 0); "
       "return child > 0;",
       true},
      {"fork_again_and_again", R"(int children = 0;
        for (int i = 0; i < 200; ++i) {
          const int child = fork();
          if (child == 0) _exit(0);
          if (child > 0) { ++children; waitpid(child, nullptr, 0); }
        }
        return children > 0;)",
       true},
      {"fork_by_number",
       "const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); if (child == 0) _exit(0); "
       "if (child > 0) waitpid(child, nullptr, 0); return Made(child);",
       true},
      {"fork_by_clone3", R"(struct { unsigned long long v[11]; } arguments = {}; arguments.v[4] = SIGCHLD;
        const long child = syscall(SYS_clone3, &arguments, sizeof arguments); if (child == 0) _exit(0);
        if (child > 0) waitpid(child, nullptr, 0); return Made(child);)",
       true},
      {"start_a_shell",
       absl::StrCat("system(\"echo harm > ", Path("shell"), "\"); return access(\"", Path("shell"),
                    "\", F_OK) == 0 && unlink(\"", Path("shell"), "\") == 0;"),
       true, v1::OK, [this] { return Exists("shell"); }},
      {"start_a_program",
       R"(char program[] = "/bin/true"; char* arguments[] = {program, nullptr}; pid_t child = 0;
        const int error = posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ);
        if (error == 0) waitpid(child, nullptr, 0); return error == 0;)",
       true},
      {"become_a_program", "execl(\"/bin/true\", \"true\", (char*)nullptr); return Made(-1);"},
      {"become_a_file_in_memory",
       "const int file = memfd_create(\"x\", 0); char* none[] = {nullptr}; "
       "return Made(syscall(SYS_execveat, file, \"\", none, environ, AT_EMPTY_PATH));",
       true},
      {"shared_memory_of_the_system",
       "const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); if (id >= 0) shmctl(id, IPC_RMID, "
       "nullptr); "
       "return Made(id);",
       true},
      {"message_queue_of_the_system",
       "const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600); if (id >= 0) msgctl(id, IPC_RMID, nullptr); "
       "return Made(id);",
       true},
  });
}

// Listens where a candidate may try to connect to.
class Listener {
 public:
  Listener(int domain, const sockaddr* address, socklen_t size)
      : socket_(socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    listening_ = socket_ >= 0 && bind(socket_, address, size) == 0 && listen(socket_, 64) == 0;
  }
  ~Listener() {
    if (socket_ >= 0) close(socket_);
  }
  bool listening() const { return listening_; }
  int port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    return getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? ntohs(address.sin_port)
                                                                                   : 0;
  }

 private:
  const int socket_;
  bool listening_ = false;
};

TEST_P(ProcessProbes, NoNetwork) {
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Listener internet(AF_INET, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback);
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("fusion-fault-", getpid());
  std::memcpy(local.sun_path + 1, name.data(), name.size());
  const socklen_t local_size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const Listener abstract(AF_UNIX, reinterpret_cast<sockaddr*>(&local), local_size);
  ASSERT_TRUE(internet.listening());
  ASSERT_TRUE(abstract.listening());
  const auto opens = [](const std::string& domain, const std::string& type) {
    return absl::StrCat("const int s = socket(", domain, ", ", type,
                        ", 0); if (s >= 0) close(s); return Made(s);");
  };
  ExpectHarmless({
      {"connect",
       absl::StrCat(R"(const int s = socket(AF_INET, SOCK_STREAM, 0); sockaddr_in address{};
        address.sin_family = AF_INET; address.sin_port = htons()",
                    internet.port(), R"();
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const bool connected = connect(s, (sockaddr*)&address, sizeof address) == 0; close(s); return connected;)"),
       true},
      {"connect_to_an_abstract_name",
       absl::StrCat(R"(const int s = socket(AF_UNIX, SOCK_STREAM, 0); sockaddr_un address{};
        address.sun_family = AF_UNIX; memcpy(address.sun_path + 1, ")",
                    name, "\", ", name.size(), R"();
        const bool connected = connect(s, (sockaddr*)&address, )",
                    local_size, R"() == 0; close(s); return connected;)"),
       true},
      {"ask_a_name_server", R"(const int s = socket(AF_INET, SOCK_DGRAM, 0); sockaddr_in address{};
        address.sin_family = AF_INET; address.sin_port = htons(53); address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const bool sent = sendto(s, "?", 1, 0, (sockaddr*)&address, sizeof address) == 1; close(s); return sent;)",
       true},
      {"internet_socket", opens("AF_INET", "SOCK_STREAM"), true},
      {"datagram_socket", opens("AF_INET", "SOCK_DGRAM"), true},
      {"internet_6_socket", opens("AF_INET6", "SOCK_STREAM")},
      {"raw_socket", opens("AF_INET", "SOCK_RAW")},
      {"packet_socket", opens("AF_PACKET", "SOCK_RAW")},
      {"local_socket", opens("AF_UNIX", "SOCK_STREAM"), true},
      {"netlink_socket", opens("AF_NETLINK", "SOCK_RAW"), true},
      {"socket_of_algorithms", opens("AF_ALG", "SOCK_SEQPACKET")},
      {"socket_of_virtual_machines", opens("40 /* AF_VSOCK */", "SOCK_STREAM")},
      {"pair_of_sockets", "int ends[2]; return Made(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));", true},
  });
}

TEST_P(ProcessProbes, TheKernelIsOutOfReach) {
  ExpectHarmless({
    {"mount", absl::StrCat("return Made(mount(\"none\", \"", folder_, "\", \"tmpfs\", 0, nullptr));")},
        {"unmount", absl::StrCat("return Made(umount2(\"", folder_, "\", 0));")},
        {"new_mount_interface", "return Made(syscall(SYS_fsopen, \"tmpfs\", 0));"},
        {"new_user_namespace", "return Made(unshare(CLONE_NEWUSER));"},
        {"new_namespaces_by_clone",
         "const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); if (child == 0) "
         "_exit(0); "
         "return Made(child);"},
        {"enter_a_namespace", "return Made(setns(0, 0));"},
        {"change_the_root", "return Made(chroot(\"/usr\"));"}, {"become_root", "return Made(setuid(0));"},
        {"become_somebody", "return Made(setresuid(65534, 65534, 65534));"},
        {"leave_the_groups", "return Made(setgroups(0, nullptr));"},
        {"capabilities", R"(unsigned header[2] = {0x20080522, 0}, data[6] = {}; data[0] = data[3] = ~0u;
        return Made(syscall(SYS_capset, header, data));)"},
        {"programs_in_the_kernel", R"(union bpf_attr attributes; memset(&attributes, 0, sizeof attributes);
        attributes.map_type = BPF_MAP_TYPE_ARRAY; attributes.key_size = 4; attributes.value_size = 4;
        attributes.max_entries = 1; return Made(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));)"},
        {"performance_counters", R"(perf_event_attr attributes = {}; attributes.size = sizeof attributes;
        attributes.type = PERF_TYPE_SOFTWARE; attributes.config = PERF_COUNT_SW_CPU_CLOCK;
        return Made(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));)"},
        {"rings",
         "char parameters[256] = {}; return Made(syscall(425 /* io_uring_setup */, 4, parameters));"},
        {"page_faults", "return Made(syscall(SYS_userfaultfd, O_CLOEXEC));"},
        {"keys", "return Made(syscall(SYS_keyctl, 0, -3, 1));"},
        {"more_keys", "return Made(syscall(SYS_add_key, \"user\", \"fusion\", \"x\", 1, -3));"},
        {"clock",
         "timespec now; clock_gettime(CLOCK_REALTIME, &now); return Made(clock_settime(CLOCK_REALTIME, "
         "&now));"},
        {"host_name",
         "char name[256]; gethostname(name, sizeof name); return Made(sethostname(name, strlen(name)));"},
        {"kernel_log", "char text[64]; return Made(syscall(SYS_syslog, 3, text, sizeof text));"},
        {"terminal_input",
         "for (int file : {0, 1, 2}) { char c = 'x'; if (ioctl(file, TIOCSTI, &c) == 0 || errno != EPERM) "
         "return true; } return false;",
         true},
        {"address_layout", "return Made(syscall(SYS_personality, 0x0040000));", true},
        {"another_filter", "return Made(syscall(SYS_seccomp, 2, 0, nullptr));", true},
        {"call_that_is_newer_than_the_filter", "return syscall(100000) != -1 || errno != ENOSYS;"},
        {"kernel_module", "syscall(SYS_init_module, nullptr, 0, \"\"); return true;", false, v1::FAULT},
        {"another_kernel", "syscall(SYS_kexec_load, 0, 0, nullptr, ~0ul); return true;", false, v1::FAULT},
        {"restart_the_machine", "syscall(SYS_reboot, 0, 0, 0, nullptr); return true;", false, v1::FAULT},
#if defined(__x86_64__)
        {"ports", "syscall(SYS_iopl, 0); return true;", false, v1::FAULT},
        // The 32-bit way into the kernel, with other numbers: getpid.
        {"calls_of_32_bits",
         "long result = 20; asm volatile(\"int $0x80\" : \"+a\"(result) : : \"memory\"); return true;", false,
         v1::FAULT},
#endif
  });
}

TEST_P(ProcessProbes, OtherGpusAreOutOfReach) {
  if (access("/dev/nvidia0", F_OK) != 0)
    GTEST_SKIP() << "SKIP: no GPU here whose device node could be opened";
  ExpectHarmless({
      {"first_gpu", "const int file = open(\"/dev/nvidia0\", O_RDWR); return file >= 0;"},
      {"control_node", "const int file = open(\"/dev/nvidiactl\", O_RDWR); return file >= 0;"},
  });
}

}  // namespace
}  // namespace fusion
