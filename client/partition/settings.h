// The environment variables of partitioned programs, FUSION_PARTITION and those that begin so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fusion {

enum class PartitionMode {
  kOff,     // programs run as if they were compiled without partitioning
  kHost,    // threads
  kDevice,  // threads and the device
  kAuto,    // one thread or several, by what was measured
  kCheck,   // as kDevice; the results are compared with those of the sequential loop
};

enum class PartitionDeviceKind { kCuda, kSimulated };

struct SimulatedDeviceSettings {
  int64_t memory_bytes = INT64_MAX;
  int64_t fault = 0;  // this run fails, counted from 1; 0: none does
};

struct PartitionSettings {
  PartitionMode mode = PartitionMode::kAuto;
  PartitionDeviceKind device = PartitionDeviceKind::kCuda;
  SimulatedDeviceSettings simulated;
  bool report = false;
  std::optional<double> split;  // the device's share of the iterations
  int chunks = 1;
  int threads = 1;               // the calling one included
  bool tuner = true;             // in kAuto the online tuner looks for better splits
  double least_work = 100000;    // instructions
  double earned_seconds = 0.05;  // in kAuto no threads are made before loops have run so long
  // It takes so long to begin a device, rather less than that: in kAuto threads have to save it first.
  double device_seconds = 0.4;
  double tuner_seconds = 0.1;  // the same of the tuner
  std::string learned_path;    // of what earlier runs have learned; "": nowhere
};

// Reads the variables with `read`, which returns null for those that are not set. Appends a line to
// `complaints` for each value that is not understood: its default is taken, but for the mode, which is then
// off.
PartitionSettings ReadPartitionSettings(const char* (*read)(const char*),
                                        std::vector<std::string>& complaints);

}  // namespace fusion
