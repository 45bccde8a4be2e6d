#include "server/optimize/stored_kernels.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "fusion/v1/model.pb.h"

namespace fusion {
namespace {

// No kernel is faster or slower, seconds; and nothing that was measured is less sure.
constexpr double kLeastSeconds = 1e-10, kMostSeconds = 3600, kMostDeviation = 10;

bool IsKernelTime(double seconds) { return seconds >= kLeastSeconds && seconds <= kMostSeconds; }

}  // namespace

absl::StatusOr<RememberedKernel> CheckedKernelTime(const KernelTimeRecord& row) {
  v1::KernelTime time;
  if (!time.ParseFromString(row.content)) return absl::DataLossError("it cannot be read");
  if (time.version() != kKernelTimeVersion) return absl::NotFoundError("it is of another version");
  if (!IsKernelTime(time.seconds()))
    return absl::DataLossError(absl::StrCat("its time is ", time.seconds(), " s"));
  if (!(time.deviation() >= 0 && time.deviation() <= kMostDeviation))
    return absl::DataLossError(absl::StrCat("the deviation of its time is ", time.deviation()));
  if (time.measurements() < 1)
    return absl::DataLossError(absl::StrCat("it was measured ", time.measurements(), " times"));
  if (time.model_version() <= 0) return absl::DataLossError("it says nothing of the model");
  RememberedKernel kernel{.sizes = row.sizes,
                          .variant = row.variant,
                          .seconds = time.seconds(),
                          .deviation = time.deviation(),
                          .jobs = time.jobs(),
                          .learned_micros = time.learned_micros()};
  // It was measured all the same.
  if (time.model_version() != kCostModelVersion) return kernel;
  if (!IsKernelTime(time.predicted_seconds()))
    return absl::DataLossError(absl::StrCat("its predicted time is ", time.predicted_seconds(), " s"));
  if (time.features_size() != kResidualFeatures)
    return absl::DataLossError(
        absl::StrCat("it has ", time.features_size(), " features instead of ", kResidualFeatures));
  if (!std::all_of(time.features().begin(), time.features().end(),
                   [](double feature) { return std::isfinite(feature); }))
    return absl::DataLossError("a feature is not a finite number");
  kernel.predicted_seconds = time.predicted_seconds();
  std::copy(time.features().begin(), time.features().end(), kernel.features.begin());
  return kernel;
}

std::vector<RememberedKernel> StoredKernels::Find(const std::string& family) const {
  std::vector<RememberedKernel> kernels;
  if (!families_.contains(family)) return kernels;
  // The rows of the sizes in question may be the oldest ones.
  auto rows = store_.KernelTimes(key_, family, 4 * kMostRelatives);
  if (!rows.ok()) {
    spdlog::warn("measured times of kernels cannot be read, predictions do without: {}",
                 rows.status().ToString());
    return kernels;
  }
  for (const KernelTimeRecord& row : *rows) {
    absl::StatusOr<RememberedKernel> kernel = CheckedKernelTime(row);
    if (kernel.ok()) {
      kernels.push_back(*std::move(kernel));
    } else if (!absl::IsNotFound(kernel.status())) {
      const std::lock_guard lock(mutex_);
      if (!refused_.emplace(row.family, row.sizes, row.variant).second) continue;
      spdlog::warn("the stored time of a kernel is refused ({} {} {}): {}", row.family, row.sizes,
                   row.variant, std::string(kernel.status().message()));
      if (refused_.size() == 1) first_reason_ = absl::StrCat(row.variant, ": ", kernel.status().message());
    }
  }
  return kernels;
}

std::string StoredKernels::RefusedNote() const {
  const std::lock_guard lock(mutex_);
  if (refused_.empty()) return "";
  return absl::StrCat("stored times of kernels: ", refused_.size(), " refused (", first_reason_,
                      "); `fusion-client model reset --device \"", key_.device_class, "\"` forgets them");
}

std::string RefusedNote(const KernelMemory* memory) {
  const auto* stored = dynamic_cast<const StoredKernels*>(memory);
  return stored == nullptr ? "" : stored->RefusedNote();
}

}  // namespace fusion
