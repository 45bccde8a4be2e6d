#include "server/optimize/device_figures.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr char kCopyBandwidth[] = "copy_bandwidth", kCopySpread[] = "copy_spread";
constexpr double kSteadySpread = 0.2;

// Processors that a control group leaves share the memory's rate among fewer.
std::string Parameter(const DeviceDescription& device) {
  return absl::StrCat("multiprocessors=", device.multiprocessors());
}

struct Copies {
  double bytes_per_second = 0;  // 0: nothing is remembered
  double spread = 0;
};

absl::StatusOr<Copies> RememberedCopies(const DeviceDescription& device, MeasurementStore& store) {
  FUSION_ASSIGN_OR_RETURN(auto rows, store.DeviceBenchmarks(device.name(), device.driver_version()));
  Copies copies;
  for (const DeviceBenchmarkRecord& row : rows) {
    if (row.parameter != Parameter(device)) continue;
    if (row.quantity == kCopyBandwidth) copies.bytes_per_second = row.value;
    if (row.quantity == kCopySpread) copies.spread = row.value;
  }
  return copies;
}

}  // namespace

bool HasSteadyBandwidth(const DeviceDescription& device) { return device.copy_spread() <= kSteadySpread; }

bool IsBelowFloor(const DeviceDescription& device, double floor_bytes, const v1::Statistics& cold) {
  if (!HasSteadyBandwidth(device) || floor_bytes <= static_cast<double>(device.l2_bytes())) return false;
  return cold.high() * device.copy_bytes_per_second() * (1 + device.copy_spread()) < floor_bytes;
}

absl::StatusOr<DeviceDescription> WithSteadyBandwidth(DeviceDescription device, MeasurementStore& store) {
  if (HasSteadyBandwidth(device)) return device;
  FUSION_ASSIGN_OR_RETURN(auto remembered, RememberedCopies(device, store));
  if (remembered.bytes_per_second > 0 && remembered.spread <= kSteadySpread) {
    device.set_copy_bytes_per_second(remembered.bytes_per_second);
    device.set_copy_spread(remembered.spread);
  }
  return device;
}

absl::Status RememberDevice(const DeviceDescription& device, MeasurementStore& store, Timestamp now) {
  FUSION_ASSIGN_OR_RETURN(auto remembered, RememberedCopies(device, store));
  struct Row {
    const char* quantity;
    double value;
    const char* unit;
  };
  std::vector<Row> rows = {{"launch_overhead", device.launch_seconds(), "seconds"},
                           {"peak_f32", device.peak_flops(), "flops/second"}};
  if (HasSteadyBandwidth(device) || remembered.bytes_per_second <= 0) {
    rows.push_back({kCopyBandwidth, device.copy_bytes_per_second(), "bytes/second"});
    rows.push_back({kCopySpread, device.copy_spread(), "share"});
  }
  for (const Row& row : rows) {
    DeviceBenchmarkRecord record{.device_class = device.name(),
                                 .driver = device.driver_version(),
                                 .quantity = row.quantity,
                                 .parameter = Parameter(device),
                                 .value = row.value,
                                 .unit = row.unit,
                                 .created = now};
    FUSION_RETURN_IF_ERROR(store.PutDeviceBenchmark(record));
  }
  return absl::OkStatus();
}

}  // namespace fusion
