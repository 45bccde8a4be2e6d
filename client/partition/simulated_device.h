// A device for tests and for machines without one: the calling thread runs the loops, on memory apart.
#pragma once

#include <map>
#include <memory>

#include "client/partition/device.h"
#include "client/partition/settings.h"

namespace fusion {

// Bytes that nobody uploaded are 0xA5, and what lies around an allocation cannot be touched: a range that is
// too small gives wrong results or a fault.
class SimulatedDevice : public PartitionDevice {
 public:
  explicit SimulatedDevice(const SimulatedDeviceSettings& settings) : settings_(settings) {}
  ~SimulatedDevice() override;

  bool IsLost() const override { return false; }
  bool CanRun(const fusion_partition_site&) override { return true; }
  uint64_t Allocate(size_t bytes) override;
  void Free(uint64_t address) override;
  char* Staging(size_t bytes) override;
  Copied Upload(uint64_t to, const void* from, size_t bytes, const HostCopies& host, bool has_gaps) override;
  bool Download(void* to, uint64_t from, size_t bytes) override;
  bool CopyWithin(uint64_t to, uint64_t from, size_t bytes) override;
  bool Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
           const int64_t* facts, BlockShape block) override;
  bool Finish() override { return true; }

 private:
  struct Block {
    void* mapping;
    size_t mapped_bytes, bytes;
  };

  const SimulatedDeviceSettings settings_;
  std::map<uint64_t, Block> blocks_;  // by address
  int64_t used_bytes_ = 0;
  int64_t runs_ = 0;
  std::unique_ptr<char[]> staging_;
};

}  // namespace fusion
