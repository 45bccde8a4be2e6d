// CudaBackend's data operations: on the device with our kernels, or fetched and done by the host without
// NVRTC.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/status_macros.h"
#include "library/verification/input_rules.h"
#include "worker/measure/cuda_backend.h"
#include "worker/measure/host_data.h"

namespace fusion {
namespace {

int64_t EntryBytes(v1::DataType type) { return type == v1::F64 ? 8 : 4; }

}  // namespace

absl::Status CudaBackend::LaunchOver(CudaFunction function, int64_t count,
                                     std::initializer_list<const void*> arguments) {
  std::vector<void*> pointers;
  for (const void* argument : arguments) pointers.push_back(const_cast<void*>(argument));
  constexpr int kThreads = 256;
  const int64_t needed = std::max<int64_t>((count + kThreads - 1) / kThreads, 1);
  const int64_t resident = static_cast<int64_t>(Attribute(kMultiprocessorCount)) * 8;
  return driver_.Check(driver_.LaunchKernel(function, static_cast<unsigned int>(std::min(needed, resident)),
                                            1, 1, kThreads, 1, 1, 0, stream_, pointers.data(), nullptr),
                       "a data operation");
}

absl::Status CudaBackend::SetScratch(uint64_t first, uint64_t second) {
  const uint64_t words[2] = {first, second};
  return CopyIn(scratch_, words, sizeof words);
}

absl::Status CudaBackend::GetScratch(uint64_t (*words)[2]) {
  return CopyOut(*words, scratch_, sizeof *words);
}

absl::Status CudaBackend::Fill(DeviceAddress to, v1::DataType type, int64_t count, const InputRule& rule,
                               uint64_t key) {
  if (support_.fill != nullptr) {
    const int code = type;
    const long long entries = count;
    FUSION_RETURN_IF_ERROR(LaunchOver(support_.fill, count, {&to, &code, &entries, &rule, &key}));
    return Synchronize("filling inputs");
  }
  std::vector<char> data(count * EntryBytes(type));
  FillEntries(data.data(), type, count, rule, key);
  return CopyIn(to, data.data(), static_cast<int64_t>(data.size()));
}

absl::Status CudaBackend::Widen(DeviceAddress to_f64, DeviceAddress from, v1::DataType type, int64_t count) {
  if (support_.widen != nullptr) {
    const int code = type;
    const long long entries = count;
    FUSION_RETURN_IF_ERROR(LaunchOver(support_.widen, count, {&to_f64, &from, &code, &entries}));
    return Synchronize("converting inputs");
  }
  FUSION_ASSIGN_OR_RETURN(const std::vector<char> data, Fetch<char>(from, count * EntryBytes(type)));
  std::vector<double> wide(count);
  WidenEntries(wide.data(), data.data(), type, count);
  return CopyIn(to_f64, wide.data(), count * 8);
}

absl::StatusOr<uint64_t> CudaBackend::Hash(DeviceAddress from, int64_t bytes) {
  if (support_.hash != nullptr) {
    const long long words = bytes / 8;
    const int tail = bytes % 8 != 0;
    FUSION_RETURN_IF_ERROR(SetScratch(0, 0));
    FUSION_RETURN_IF_ERROR(LaunchOver(support_.hash, words, {&from, &words, &tail, &scratch_}));
    uint64_t result[2];
    FUSION_RETURN_IF_ERROR(GetScratch(&result));
    return result[0];
  }
  FUSION_ASSIGN_OR_RETURN(const std::vector<char> data, Fetch<char>(from, bytes));
  return HashBytes(data.data(), bytes);
}

absl::StatusOr<ReferenceFigures> CudaBackend::Figures(DeviceAddress reference, v1::DataType type,
                                                      int64_t count) {
  if (support_.largest != nullptr) {
    const int f32 = type == v1::F32;
    const long long entries = count;
    uint64_t result[2];
    FUSION_RETURN_IF_ERROR(SetScratch(0, 0));
    FUSION_RETURN_IF_ERROR(LaunchOver(support_.largest, count, {&reference, &f32, &entries, &scratch_}));
    FUSION_RETURN_IF_ERROR(GetScratch(&result));
    ReferenceFigures figures;
    figures.largest = std::bit_cast<double>(result[0]);
    figures.finite = static_cast<int64_t>(result[1]);
    if (!(figures.largest > 0)) return figures;
    FUSION_RETURN_IF_ERROR(SetScratch(0, 0));
    FUSION_RETURN_IF_ERROR(
        LaunchOver(support_.squares, count, {&reference, &f32, &entries, &figures.largest, &scratch_}));
    FUSION_RETURN_IF_ERROR(GetScratch(&result));
    figures.scale =
        figures.largest * std::sqrt(std::bit_cast<double>(result[0]) / static_cast<double>(figures.finite));
    return figures;
  }
  FUSION_ASSIGN_OR_RETURN(const std::vector<double> data, Fetch<double>(reference, count));
  return FiguresOf(MeasureScale(data.data(), type, count));
}

absl::StatusOr<Comparison> CudaBackend::Compare(DeviceAddress output, v1::DataType type,
                                                DeviceAddress reference, int64_t count, double scale,
                                                DeviceAddress excused) {
  if (support_.compare != nullptr) {
    const int code = type;
    const long long entries = count;
    uint64_t result[2];
    FUSION_RETURN_IF_ERROR(SetScratch(0, ~uint64_t{0}));
    int pass = 0;
    const auto launch = [&] {
      return LaunchOver(support_.compare, count,
                        {&output, &code, &reference, &entries, &scale, &excused, &pass, &scratch_});
    };
    FUSION_RETURN_IF_ERROR(launch());
    FUSION_RETURN_IF_ERROR(GetScratch(&result));
    Comparison comparison{std::bit_cast<double>(result[0]), -1};
    if (result[0] == 0) return comparison;
    pass = 1;
    FUSION_RETURN_IF_ERROR(launch());
    FUSION_RETURN_IF_ERROR(GetScratch(&result));
    comparison.worst_index = static_cast<int64_t>(result[1]);
    return comparison;
  }
  FUSION_ASSIGN_OR_RETURN(const std::vector<char> data, Fetch<char>(output, count * EntryBytes(type)));
  FUSION_ASSIGN_OR_RETURN(const std::vector<double> expected, Fetch<double>(reference, count));
  std::vector<double> excuses;
  if (excused != 0) {
    FUSION_ASSIGN_OR_RETURN(excuses, Fetch<double>(excused, count));
  }
  return CompareEntries(data.data(), type, expected.data(), count, scale,
                        excused == 0 ? nullptr : excuses.data());
}

absl::Status CudaBackend::Perturb(DeviceAddress entries, int64_t count, double most, uint64_t key) {
  if (support_.perturb != nullptr) {
    const long long number = count;
    FUSION_RETURN_IF_ERROR(LaunchOver(support_.perturb, count, {&entries, &number, &most, &key}));
    return Synchronize("perturbing entries");
  }
  FUSION_ASSIGN_OR_RETURN(std::vector<double> data, Fetch<double>(entries, count));
  PerturbEntries(data.data(), count, most, key);
  return CopyIn(entries, data.data(), count * 8);
}

absl::Status CudaBackend::Excuse(DeviceAddress excused, DeviceAddress reference, DeviceAddress other,
                                 v1::DataType type, int64_t count, double factor, bool is_first) {
  if (support_.excuse != nullptr) {
    const int f32 = type == v1::F32, first = is_first;
    const long long entries = count;
    FUSION_RETURN_IF_ERROR(
        LaunchOver(support_.excuse, count, {&excused, &reference, &other, &f32, &entries, &factor, &first}));
    return Synchronize("comparing references");
  }
  std::vector<double> excuses(count);
  if (!is_first) {
    FUSION_ASSIGN_OR_RETURN(excuses, Fetch<double>(excused, count));
  }
  FUSION_ASSIGN_OR_RETURN(const std::vector<double> one, Fetch<double>(reference, count));
  FUSION_ASSIGN_OR_RETURN(const std::vector<double> two, Fetch<double>(other, count));
  ExcuseEntries(excuses.data(), one.data(), two.data(), type, count, factor, is_first);
  return CopyIn(excused, excuses.data(), count * 8);
}

absl::Status CudaBackend::LaunchTable(CudaFunction function, InspectionTable* table, CudaPointer results) {
  constexpr int kThreads = 256;
  // Hashes and comparisons of a few entries a thread: short ranges are over soon, long ones fill the device.
  constexpr long long kEntriesOfThread = 8;
  const long long most = static_cast<long long>(Attribute(kMultiprocessorCount)) * 8;
  int blocks = 0;
  for (int i = 0; i < table->count; ++i) {
    InspectionTable::Entry& entry = table->entries[i];
    const long long needed = (entry.count + kThreads * kEntriesOfThread - 1) / (kThreads * kEntriesOfThread);
    entry.first_block = blocks;
    entry.blocks = static_cast<int>(std::clamp<long long>(needed, 1, most));
    blocks += entry.blocks;
  }
  void* arguments[] = {table, &results};
  return driver_.Check(
      driver_.LaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream_, arguments, nullptr),
      "a data operation");
}

absl::Status CudaBackend::QueueGuards(absl::Span<const MemoryRange> guards) {
  if (guards.empty()) return absl::OkStatus();
  if (support_.guard == nullptr) return ExecutionBackend::WriteGuards(guards);
  for (size_t first = 0; first < guards.size(); first += kInspectionTableEntries) {
    InspectionTable table;
    for (const MemoryRange& guard : guards.subspan(first, kInspectionTableEntries)) {
      InspectionTable::Entry& entry = table.entries[table.count++];
      entry.address = guard.address;
      entry.count = guard.bytes;
    }
    FUSION_RETURN_IF_ERROR(LaunchTable(support_.guard, &table, 0));
  }
  return absl::OkStatus();
}

absl::Status CudaBackend::WriteGuards(absl::Span<const MemoryRange> guards) {
  FUSION_RETURN_IF_ERROR(QueueGuards(guards));
  return Synchronize("writing guards");
}

absl::Status CudaBackend::QueueInspections(absl::Span<const Inspection> inspections) {
  if (inspections.empty() || support_.inspect == nullptr) return absl::OkStatus();
  if (inspections.size() > results_count_) {
    if (results_ != 0) Free(results_);
    results_ = 0;
    results_count_ = 0;
    FUSION_ASSIGN_OR_RETURN(results_, Allocate(static_cast<int64_t>(8 * inspections.size())));
    results_count_ = inspections.size();
  }
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.MemsetD32Async(results_, 0, 2 * inspections.size(), stream_),
                                       "clearing results"));
  for (size_t first = 0; first < inspections.size(); first += kInspectionTableEntries) {
    InspectionTable table;
    for (const Inspection& inspection : inspections.subspan(first, kInspectionTableEntries)) {
      InspectionTable::Entry& entry = table.entries[table.count++];
      const int64_t bytes = inspection.range.bytes;
      entry.address = inspection.range.address;
      entry.kind = static_cast<int>(inspection.kind);
      entry.reference = inspection.reference;
      entry.scale = inspection.scale;
      entry.excused = inspection.excused;
      switch (inspection.kind) {
        case Inspection::Kind::kHash:
          entry.count = bytes / 8;
          entry.type = bytes % 8 != 0;
          break;
        case Inspection::Kind::kGuard:
          entry.count = bytes;
          break;
        case Inspection::Kind::kCompare:
          entry.type = inspection.type;
          entry.count = bytes / EntryBytes(inspection.type);
          break;
      }
    }
    FUSION_RETURN_IF_ERROR(LaunchTable(support_.inspect, &table, results_ + 8 * first));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> CudaBackend::FetchInspected(size_t count) {
  std::vector<uint64_t> found(count);
  FUSION_RETURN_IF_ERROR(CopyOut(found.data(), results_, static_cast<int64_t>(8 * count)));
  return found;
}

absl::StatusOr<std::vector<uint64_t>> CudaBackend::Inspect(absl::Span<const Inspection> inspections) {
  if (support_.inspect == nullptr) return ExecutionBackend::Inspect(inspections);
  FUSION_RETURN_IF_ERROR(QueueInspections(inspections));
  return FetchInspected(inspections.size());
}

absl::Status CudaBackend::Probe() {
  if (support_.fill == nullptr) {
    FUSION_RETURN_IF_ERROR(Delay(1000));
    return Synchronize("the known kernel");
  }
  constexpr int64_t kCount = 1 << 16;
  FUSION_ASSIGN_OR_RETURN(DeviceAddress buffer, Allocate(kCount * 4));
  std::vector<float> entries(kCount), expected(kCount);
  const InputRule rule = KnownRule();
  absl::Status status = Fill(buffer, v1::F32, kCount, rule, 1);
  if (status.ok()) status = CopyOut(entries.data(), buffer, kCount * 4);
  Free(buffer);
  FUSION_RETURN_IF_ERROR(status);
  FillEntries(expected.data(), v1::F32, kCount, rule, 1);
  if (entries != expected) return absl::AbortedError("the known kernel computed wrongly");
  return absl::OkStatus();
}

}  // namespace fusion
