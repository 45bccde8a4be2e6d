#include "worker/measure/activity.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ActivityPage>> ActivityPage::Map(int descriptor) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return absl::InternalError(absl::StrCat("activity page: ", std::strerror(errno)));
  return std::unique_ptr<ActivityPage>(new ActivityPage(descriptor, static_cast<Shared*>(memory)));
}

absl::StatusOr<std::unique_ptr<ActivityPage>> ActivityPage::Create() {
  const int descriptor = memfd_create("fusion-activity", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return absl::InternalError(absl::StrCat("memfd_create: ", std::strerror(errno)));
  // Sealed, for it is shared with code that nobody has vetted: cut off, it would end whoever reads it
  // (SIGBUS).
  if (ftruncate(descriptor, sizeof(Shared)) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    close(descriptor);
    return absl::InternalError(absl::StrCat("activity page: ", std::strerror(errno)));
  }
  absl::StatusOr<std::unique_ptr<ActivityPage>> page = Map(descriptor);
  if (!page.ok()) close(descriptor);
  if (page.ok()) (*page)->Set(Activity::kIdle);
  return page;
}

absl::StatusOr<std::unique_ptr<ActivityPage>> ActivityPage::Open(int descriptor) { return Map(descriptor); }

ActivityPage::~ActivityPage() {
  munmap(shared_, sizeof(Shared));
  close(descriptor_);
}

void ActivityPage::Set(Activity activity, int32_t program) {
  // The time first: a reader between the two sees the old activity as just begun, never a new one as long
  // running.
  shared_->began_nanoseconds.store(Now(), std::memory_order_release);
  shared_->what.store(static_cast<int64_t>(program) << 32 | static_cast<uint32_t>(activity),
                      std::memory_order_release);
}

ActivityState ActivityPage::Get() const {
  ActivityState state;
  const int64_t what = shared_->what.load(std::memory_order_acquire);
  state.activity = static_cast<Activity>(what & 0xFFFFFFFF);
  state.program = static_cast<int32_t>(what >> 32);
  state.seconds =
      static_cast<double>(Now() - shared_->began_nanoseconds.load(std::memory_order_acquire)) * 1e-9;
  return state;
}

}  // namespace fusion
