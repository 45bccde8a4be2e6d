#include "client/partition/report.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "client/partition/stable_hash.h"

namespace fusion {
namespace {

struct ReasonName {
  PartitionReason reason;
  const char* name;
  bool always;  // shown even where it is 0
};

constexpr ReasonName kReasonNames[] = {
    {PartitionReason::kConditions, "conditions", true},
    {PartitionReason::kOverlap, "overlap", true},
    {PartitionReason::kBusy, "busy", true},
    {PartitionReason::kUnreadable, "unreadable", true},
    {PartitionReason::kDeviceMemory, "memory", false},
    {PartitionReason::kFault, "fault", false},
    {PartitionReason::kUnbounded, "unbounded", false},
    {PartitionReason::kNoKernel, "no kernel", false},
    {PartitionReason::kRanges, "ranges", false},
    {PartitionReason::kRounding, "rounding", false},
    {PartitionReason::kForked, "forked", false},
    {PartitionReason::kNoMemory, "host memory", false},
    {PartitionReason::kWrong, "wrong results", false},
};

std::string PlaceOf(const fusion_partition_site& site) {
  return std::string(site.file) + ":" + std::to_string(site.line) + ":" + std::to_string(site.column);
}

uint64_t ShapeOf(const fusion_partition_site& site) {
  StableHash hash;
  for (const uint32_t number : {site.context_bytes, site.arrays, site.has_columns})
    hash.Add(&number, sizeof(number));
  hash.Add(site.access, site.accesses * sizeof(*site.access));
  hash.Add(site.pointer, site.pointers * sizeof(*site.pointer));
  hash.Add(site.pair, site.pairs * sizeof(*site.pair));
  return hash.hash();
}

}  // namespace

LoopRecord::LoopRecord(const fusion_partition_site& site)
    : key{PlaceOf(site), site.function}, shape(ShapeOf(site)), is_nest(site.body == nullptr) {}

std::string LoopRecord::Line() const {
  char numbers[160];
  const double share = iterations > 0 ? 100 * device_iterations / iterations : 0;
  std::snprintf(numbers, sizeof(numbers),
                ": calls %lld, split %.0f%% device, host threads %d, seconds %.6f; refused: ",
                static_cast<long long>(calls.load()), share, threads.load(), seconds.load());
  if (is_nest)
    std::snprintf(numbers, sizeof(numbers),
                  ": reordered %lld; refused: ", static_cast<long long>(reordered.load()));
  std::string line = key.place + " " + key.function + numbers;
  bool first = true;
  for (const ReasonName& known : kReasonNames) {
    const int64_t count = reasons[static_cast<size_t>(known.reason)];
    if (count == 0 && !known.always) continue;
    if (!first) line += ", ";
    first = false;
    line += std::string(known.name) + " " + std::to_string(count);
  }
  return line + "\n";
}

LoopRecords::~LoopRecords() {
  for (LoopRecord* record = newest_; record != nullptr;) delete std::exchange(record, record->next);
}

LoopRecord* LoopRecords::Of(fusion_partition_site* site) {
  std::atomic_ref<void*> state(site->state);
  void* known = state.load(std::memory_order_acquire);
  if (known != nullptr) return static_cast<LoopRecord*>(known);
  try {
    auto record = std::make_unique<LoopRecord>(*site);
    // Another thread may have been faster.
    if (!state.compare_exchange_strong(known, record.get())) return static_cast<LoopRecord*>(known);
    record->next = newest_.load();
    while (!newest_.compare_exchange_weak(record->next, record.get())) continue;
    return record.release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::string LoopRecords::Report() const {
  std::vector<const LoopRecord*> records;
  for (const LoopRecord* record = newest_; record != nullptr; record = record->next)
    records.push_back(record);
  std::string report;
  for (size_t i = records.size(); i > 0; --i) report += records[i - 1]->Line();
  return report;
}

}  // namespace fusion
