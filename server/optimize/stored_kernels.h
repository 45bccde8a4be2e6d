// Measured kernels are read from the store: rows that cannot be right are not used.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "db/store/measurement_store.h"
#include "server/model/kernel_memory.h"

namespace fusion {

// Returns the row as predictions use it; without a predicted time where that was of another version of the
// model. NotFound: the row has names of kernels of another version, and counts as forgotten. DataLoss, with
// the reason: it cannot be read, lacks features, or a number in it is not possible.
absl::StatusOr<RememberedKernel> CheckedKernelTime(const KernelTimeRecord& row);

// Thread safe.
class StoredKernels final : public KernelMemory {
 public:
  // `families` are those that have rows. The store outlives this.
  StoredKernels(MeasurementStore& store, KernelTimesKey key, const std::vector<std::string>& families)
      : store_(store), key_(std::move(key)), families_(families.begin(), families.end()) {}

  std::vector<RememberedKernel> Find(const std::string& family) const override;
  std::vector<std::string> Families() const override { return {families_.begin(), families_.end()}; }

  // Tells people how many of the rows that were looked at so far were refused, and why the first one; empty:
  // none.
  std::string RefusedNote() const;

 private:
  MeasurementStore& store_;
  const KernelTimesKey key_;
  const std::set<std::string> families_;
  mutable std::mutex mutex_;
  // Guarded by mutex_: family, sizes and variant of each refused row, and the reason of the first.
  mutable std::set<std::tuple<std::string, std::string, std::string>> refused_;
  mutable std::string first_reason_;
};

// Returns StoredKernels::RefusedNote of the memory; empty where it is of another class.
std::string RefusedNote(const KernelMemory* memory);

}  // namespace fusion
