// What hostile native code finds in files: nothing of the user's, nothing of other processes, no place to
// leave anything.
#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/sandbox/child_process.h"
#include "tests/fault/sandbox/hostile_programs.h"

namespace fusion {
namespace {

class FileProbes : public HostileProgramTest {};
INSTANTIATE_TEST_SUITE_P(Sandbox, FileProbes, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Bubblewrap" : "WithoutBubblewrap");
});

TEST_P(FileProbes, NothingOfTheMachineCanBeRead) {
  const char* home = std::getenv("HOME");
  const std::string secret = Path("secret");
  const auto list = [](const std::string& folder) {
    return absl::StrCat("DIR* folder = opendir(\"", folder,
                        "\"); const bool got = folder != nullptr && readdir(folder) != nullptr;\n",
                        "if (folder != nullptr) closedir(folder); return got;");
  };
  ExpectHarmless({
      {"passwords", Reads("/etc/passwd"), true},
      {"shadow_passwords", Reads("/etc/shadow")},
      {"machine_id", Reads("/etc/machine-id")},
      {"host_names", Reads("/etc/hosts")},
      {"secret", Reads(secret), true},
      {"home", home == nullptr ? "return false;" : absl::StrCat("DIR* folder = opendir(\"", home, R"(");
        int entries = 0;
        while (folder != nullptr && readdir(folder) != nullptr) ++entries;
        return entries > 2;)")},
      {"through_own_root", Reads("/proc/self/root/etc/passwd"), true},
      {"through_dots", Reads("/usr/../etc/passwd"), true},
      {"through_the_working_folder", Reads(absl::StrCat("/proc/self/cwd/../../../../../..", secret)), true},
      {"through_a_link",
       absl::StrCat("symlink(\"", secret, "\", \"/tmp/fusion-fault-link\");\n",
                    "const bool got = Reads(\"/tmp/fusion-fault-link\");\n",
                    "unlink(\"/tmp/fusion-fault-link\"); return got;"),
       true},
      {"through_a_hard_link",
       absl::StrCat("const bool made = link(\"", secret, "\", \"", Path("hard"), "\") == 0; unlink(\"",
                    Path("hard"), "\"); return made;"),
       true},
      {"by_handle", R"(char space[256] = {}; file_handle* handle = (file_handle*)space;
        handle->handle_bytes = 128; int mount = 0;
        return Made(name_to_handle_at(AT_FDCWD, "/usr", handle, &mount, 0));)",
       true},
      {"var", list("/var/tmp"), true},
      {"a_listing_of_processes", list("/proc/1")},
  });
}

TEST_P(FileProbes, OtherProcessesAreNotInProc) {
  const std::string parent = absl::StrCat("/proc/", getpid());
  ChildProcess::Options options;  // somebody who was started with the secret
  options.command = {"sleep", "100"};
  absl::StatusOr<std::unique_ptr<ChildProcess>> bystander = ChildProcess::Start(options);
  ASSERT_TRUE(bystander.ok()) << bystander.status();
  ExpectHarmless({
      {"own_environment", R"(for (char** variable = environ; *variable != nullptr; ++variable)
          if (HasSecret(*variable, strlen(*variable))) return true;
        return false;)",
       true},
      {"environment_of_the_parent", Reads(parent + "/environ"), true},
      {"command_of_the_parent", Reads(parent + "/cmdline"), true},
      {"maps_of_the_parent", Reads(parent + "/maps"), true},
      {"memory_of_the_parent",
       absl::StrCat("const int file = open(\"", parent, R"(/mem", O_RDWR); if (file < 0) return false;
        close(file); return true;)"),
       true},
      {"file_of_the_parent", absl::StrCat("return Reads(\"", parent, "/fd/", secret_descriptor_, "\");"),
       true},
      {"folder_of_the_parent",
       absl::StrCat("char text[256]; return readlink(\"", parent, "/cwd\", text, sizeof text) > 0;"), true},
      {"environment_of_any", R"(DIR* processes = opendir("/proc"); if (processes == nullptr) return false;
        bool found = false; static char text[1 << 17];
        while (const dirent* entry = readdir(processes)) {
          char path[300]; snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
          const int file = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
          if (file >= 0) { found |= HasSecret(text, read(file, text, sizeof text)); close(file); }
        }
        closedir(processes); return found;)",
       true},
      {"inherited_descriptors", R"(struct stat info;
        for (int file = 0; file < 4096; ++file)
          if (fstat(file, &info) == 0 && info.st_ino == kSecretInode && info.st_dev == kSecretDevice) return true;
        return false;)",
       true},
      {"descriptors_that_are_files_or_sockets", R"(struct stat info;
        for (int file = 3; file < 4096; ++file) {
          char path[64], target[64] = {}; snprintf(path, sizeof path, "/proc/self/fd/%d", file);
          if (fstat(file, &info) != 0) continue;
          if (S_ISSOCK(info.st_mode) || S_ISDIR(info.st_mode)) return true;
          if (S_ISREG(info.st_mode) && (readlink(path, target, sizeof target - 1) < 0 ||
                                        strncmp(target, "/memfd:", 7) != 0)) return true;
        }
        return false;)",
       true},
      // The page shared with the worker: cut off, it would end whoever reads it.
      {"cutting_off_the_activity_page", "return ftruncate(3, 0) == 0;"},
  });
}

TEST_P(FileProbes, NothingIsLeftBehind) {
  const std::string target = Path("left");
  const auto left = [this] { return Exists("left"); };
  const std::string own = absl::StrCat("/tmp/fusion-fault-left-", getpid());
  const auto in_tmp = [own] { return access(own.c_str(), F_OK) == 0; };
  const std::string shared = absl::StrCat("/dev/shm/fusion-fault-left-", getpid());
  ExpectHarmless({
      {"write",
       absl::StrCat("const bool wrote = Writes(\"", target, "\"); unlink(\"", target, "\"); return wrote;"),
       true, v1::OK, left},
      {"write_to_the_root", Writes("/fusion-fault-left"), false, v1::OK,
       [] { return access("/fusion-fault-left", F_OK) == 0; }},
      {"write_to_the_working_folder", Writes("fusion-fault-left"), false, v1::OK,
       [] { return access("fusion-fault-left", F_OK) == 0; }},
      // In bubblewrap /tmp is the runner's own, so that the write is made there and seen by nobody.
      {"write_to_tmp", absl::StrCat("Writes(\"", own, "\"); return false;"), false, v1::OK, in_tmp},
      {"write_to_shared_memory", absl::StrCat("Writes(\"", shared, "\"); return false;"), false, v1::OK,
       [=] { return access(shared.c_str(), F_OK) == 0; }},
      {"write_to_usr", Writes("/usr/lib/fusion-fault-left")},
      {"write_to_proc", Writes("/proc/sys/kernel/core_pattern")},
      {"write_to_sys", Writes("/sys/kernel/mm/transparent_hugepage/enabled")},
      {"append_to_the_secret", Writes(Path("secret")), true},
      {"cut_off_the_secret", absl::StrCat("return Made(truncate(\"", Path("secret"), "\", 0));"), true},
      {"remove_the_secret", absl::StrCat("return unlink(\"", Path("secret"), "\") == 0;"), false, v1::OK,
       [this] { return !Exists("secret"); }},
      {"open_the_secret_to_all", absl::StrCat("return Made(chmod(\"", Path("secret"), "\", 0777));"), true},
      {"change_the_time_of_the_secret",
       absl::StrCat("return Made(utimensat(AT_FDCWD, \"", Path("secret"), "\", nullptr, 0));"), true},
      {"make_a_folder", absl::StrCat("return mkdir(\"", target, "\", 0777) == 0;"), false, v1::OK, left},
      {"make_a_device", absl::StrCat("return Made(mknod(\"", target, "\", S_IFCHR | 0666, makedev(1, 3)));"),
       false, v1::OK, left},
      {"make_a_pipe", absl::StrCat("return mkfifo(\"", target, "\", 0666) == 0;"), false, v1::OK, left},
      {"fill_the_private_folder", R"(static char block[1 << 20]; long written = 0; char path[64];
        for (int i = 0; i < 12; ++i) {
          snprintf(path, sizeof path, "/tmp/fusion-fault-fill-%d", i);
          const int file = open(path, O_WRONLY | O_CREAT, 0600);
          for (int k = 0; file >= 0 && k < 16; ++k) written += write(file, block, sizeof block) > 0 ? 1 : 0;
          if (file >= 0) close(file);
        }
        for (int i = 0; i < 12; ++i) {
          snprintf(path, sizeof path, "/tmp/fusion-fault-fill-%d", i);
          unlink(path);
        }
        return written > 64;)",
       true},
  });
}

}  // namespace
}  // namespace fusion
