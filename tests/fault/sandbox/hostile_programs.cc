#include "tests/fault/sandbox/hostile_programs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/fault/long_form.h"
#include "worker/build/host_builder.h"
#include "worker/measure/host_backend.h"

namespace fusion {
namespace {

constexpr int64_t kEntries = 1000;

std::string KernelText(const std::string& name, const std::string& type, const std::string& entry) {
  return absl::StrCat("extern \"C\" void kernel_", name, "(long long, void* const* a) {\n  ", type,
                      " *x = *(", type, "**)a[0], *y = *(", type, "**)a[1], *z = *(", type,
                      "**)a[2];\n  long long n = *(long long*)a[3];\n#pragma omp parallel for\n",
                      "  for (long long i = 0; i < n; ++i) z[i] = ", entry, ";\n}\n");
}

void SetBuffer(int id, const char* name, v1::Buffer* buffer) {
  buffer->set_id(id);
  buffer->set_name(name);
  buffer->set_count(kEntries);
  buffer->set_data_type(v1::F32);
}

}  // namespace

void HostileProgramTest::SetUp() {
  const MachineOffer& offer = MachineOffer::Get();
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCode;
  policy.use_bubblewrap = in_bubblewrap();
  if (in_bubblewrap() && offer.bubblewrap.empty()) GTEST_SKIP() << "SKIP: " << offer.bubblewrap_missing;
  if (std::string why_not; !ConfinesHostCode(policy, offer, &why_not)) GTEST_SKIP() << "SKIP: " << why_not;
  // Not in /tmp: bubblewrap's private one would hide it from probes that are meant to see a denial.
  folder_ = "/var/tmp/fusion-fault-XXXXXX";
  ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  std::ofstream(Path("secret")) << kSecret;
  setenv("FUSION_FAULT_SECRET", kSecret, 1);
  secret_descriptor_ = open(Path("secret").c_str(), O_RDWR);
  ASSERT_GE(secret_descriptor_, 0);
  runner_ = std::make_unique<RunnerProcess>("", policy);

  v1::Session* session = task_.mutable_session();
  session->set_key("z = x + y");
  SetBuffer(0, "x", session->add_inputs());
  SetBuffer(1, "y", session->add_inputs());
  SetBuffer(2, "z", session->add_outputs());
  session->add_tolerances(1e-6);
  session->set_seed(7);
  task_.set_device_uuid(HostUuid());
  v1::MeasurementMethod* method = task_.mutable_method();
  method->set_minimum_samples(2);
  method->set_maximum_samples(2);
  method->set_seconds_limit(0.5);
  method->set_run_deadline_seconds(4);
  method->set_cold_alone(true);
}

void HostileProgramTest::TearDown() {
  runner_.reset();
  if (secret_descriptor_ >= 0) close(secret_descriptor_);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

bool HostileProgramTest::Exists(const std::string& name) const {
  struct stat info {};
  return lstat(Path(name).c_str(), &info) == 0;
}

std::string HostileProgramTest::Reads(const std::string& path) {
  return absl::StrCat("return Reads(\"", path, "\");");
}

std::string HostileProgramTest::Writes(const std::string& path) {
  return absl::StrCat("return Writes(\"", path, "\");");
}

std::string HostileProgramTest::Prelude() const {
  struct stat secret {};
  fstat(secret_descriptor_, &secret);
  return absl::StrCat(R"(
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <initializer_list>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
extern char** environ;
namespace {
const char kSecretStart[] = "fusion-fault-", kSecretEnd[] = "secret-5e1f";  // not in one piece: not found here
constexpr int kParent = )",
                      getpid(), ";\nconstexpr unsigned long long kSecretInode = ", secret.st_ino,
                      "ull, kSecretDevice = ", secret.st_dev, R"(ull;
// Whether a call was made that should have been refused: by the filter, or by who guards files.
bool Made(long result) {
  return result >= 0 || (errno != EPERM && errno != EACCES && errno != ENOSYS && errno != ENOENT && errno != EROFS);
}
bool HasSecret(const char* data, long size) {
  char secret[64];
  snprintf(secret, sizeof secret, "%s%s", kSecretStart, kSecretEnd);
  return size > 0 && memmem(data, size, secret, strlen(secret)) != nullptr;
}
bool Reads(const char* path) {
  const int file = open(path, O_RDONLY);
  char byte;
  const bool got = file >= 0 && read(file, &byte, 1) > 0;
  if (file >= 0) close(file);
  return got;
}
bool Writes(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  const bool wrote = file >= 0 && write(file, "harm", 4) == 4;
  if (file >= 0) close(file);
  return wrote;
}
}  // namespace
)");
}

bool HostileProgramTest::HarmsUnconfined(const std::string& probe) const {
  const pid_t child = fork();
  if (child == 0) {
    void* library = dlopen(Path("control.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    using Try = bool (*)();
    const Try attempt = library == nullptr
                            ? nullptr
                            : reinterpret_cast<Try>(dlsym(library, absl::StrCat("Try_", probe).c_str()));
    _exit(attempt == nullptr ? 2 : attempt() ? 1 : 0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

v1::Program HostileProgramTest::ProgramOf(const std::string& kernel) const {
  v1::Program program;
  program.set_name(kernel);
  v1::Launch* launch = program.add_launches();
  launch->set_binary(digest_);
  launch->set_kernel(absl::StrCat("kernel_", kernel));
  launch->set_grid(1);
  launch->set_threads(32);
  for (int id = 0; id < 3; ++id) launch->add_arguments()->set_buffer(id);
  launch->add_arguments()->set_integer(kEntries);
  return program;
}

void HostileProgramTest::ExpectHarmless(const std::vector<Probe>& probes) {
  std::string source = Prelude();
  for (const Probe& probe : probes)
    absl::StrAppend(&source, "extern \"C\" bool Try_", probe.name, "() {\n", probe.body, "\n}\n");
  absl::StrAppend(&source, KernelText("reference", "double", "x[i] + y[i]"),
                  KernelText("honest", "float", "x[i] + y[i]"),
                  KernelText("honest_too", "float", "y[i] + x[i]"));
  for (const Probe& probe : probes)
    absl::StrAppend(&source, "extern \"C\" void kernel_", probe.name,
                    "(long long grid, void* const* a) {\n  static const bool harm = Try_", probe.name,
                    "();\n  kernel_honest(grid, a);\n  if (harm) **(float**)a[2] += 1000;\n}\n");
  absl::StatusOr<std::unique_ptr<Builder>> builder = HostBuilder::Create();
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  v1::BuildTask build;
  build.set_target(v1::HOST);
  build.set_arch(HostArch());
  build.set_source(source);
  build.add_options("-w");
  const BuildOutput output = (*builder)->Build(build, {});
  ASSERT_EQ(output.result.outcome(), v1::OK) << output.result.log();
  digest_ = output.result.binary();
  binary_ = output.binary;
  *task_.mutable_session()->mutable_reference() = ProgramOf("reference");
  std::ofstream(Path("control.so"), std::ios::binary) << binary_;

  int denied = 0;
  for (const Probe& probe : probes) {
    SCOPED_TRACE(absl::StrCat("probe ", probe.name));
    if (probe.harms_unconfined) {
      EXPECT_TRUE(HarmsUnconfined(probe.name)) << "the probe does not even work without a sandbox";
    }
    task_.clear_programs();
    for (const std::string& kernel : {std::string("honest"), probe.name, std::string("honest_too")})
      *task_.add_programs() = ProgramOf(kernel);
    const absl::StatusOr<v1::TimeResult> result = ExecuteTimeTask(
        *runner_, task_, [&](const std::string&) -> absl::StatusOr<std::string> { return binary_; });
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->programs_size(), 3);
    if (!probe.spoils_neighbours) {
      EXPECT_EQ(result->programs(0).outcome(), v1::OK) << result->programs(0).message();
      EXPECT_EQ(result->programs(2).outcome(), v1::OK) << result->programs(2).message();
    }
    EXPECT_EQ(v1::Outcome_Name(result->programs(1).outcome()), v1::Outcome_Name(probe.outcome))
        << result->programs(1).message();
    const bool harmed = probe.harm_outside && probe.harm_outside();
    EXPECT_FALSE(harmed);
    denied += !harmed && result->programs(1).outcome() == probe.outcome ? 1 : 0;
  }
  TellFigure("probes", static_cast<double>(probes.size()));
  TellFigure("probes not denied", static_cast<double>(probes.size()) - denied);
  task_.clear_programs();
  *task_.add_programs() = ProgramOf("honest");
  const absl::StatusOr<v1::TimeResult> last = ExecuteTimeTask(
      *runner_, task_, [&](const std::string&) -> absl::StatusOr<std::string> { return binary_; });
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->programs(0).outcome(), v1::OK) << last->programs(0).message();
}

}  // namespace fusion
