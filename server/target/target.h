// A kind of machine that kernels are made for. All that differs between kinds stands in a folder for each
// (server/target/cuda, server/target/host) and in its profile; others ask through this interface. A new one
// is a folder, a profile and a line in target.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/target.pb.h"
#include "server/lowering/kernel_ir.h"
#include "server/target/device_description.h"

namespace fusion {

class ExportedCode;

// Code may use this on a device.
struct DeviceFeatures {
  bool asynchronous_copies = false;   // of threads, to shared memory
  bool bulk_copies = false;           // of rows, to shared memory, by an engine of their own
  bool clusters = false;              // blocks that see each other's shared memory
  bool overlapping_launches = false;  // a kernel is brought to the device while the one before it ends
  bool kept_lines = false;            // loads say which lines the last cache shall keep
  bool f64_matrix_units = false;
  double f32_over_f64 = 1;  // peak rates
};

class Target {
 public:
  explicit Target(const v1::TargetProfile& profile) : profile_(profile) {}
  virtual ~Target() = default;

  v1::Target id() const { return profile_.target(); }
  // Returns what is known without asking a machine: architectures, and numbers that predictions go by.
  const v1::TargetProfile& profile() const { return profile_; }

  // Returns whether a block's threads have registers of their own and share memory, and blocks wait for
  // memory beside others of their multiprocessor: a GPU. Else a block is a loop over vector lanes of one
  // processor.
  virtual bool simt() const = 0;
  virtual DeviceFeatures Features(const DeviceDescription& device) const = 0;
  // Returns what a name stands for as an architecture of this target; nothing where it is no name of one.
  // InvalidArgument: an architecture that no code is made for.
  virtual absl::StatusOr<std::optional<ArchChoice>> FindArch(const std::string& arch) const = 0;
  // Returns the names that FindArch knows, for messages.
  virtual std::string ArchsText() const = 0;
  // Returns whether the binary that was measured can be loaded elsewhere, so that an exported folder has it.
  virtual bool exports_binaries() const = 0;

  // Returns the kernel as source. The same kernel gives the same text.
  virtual std::string Print(const ir::Kernel& kernel) const = 0;
  // Returns the suffix of sources: "cu".
  virtual const char* suffix() const = 0;
  virtual const ExportedCode& exported() const = 0;

 private:
  const v1::TargetProfile& profile_;
};

// A longer text is no name of an architecture.
inline constexpr size_t kLongestArch = 64;

// Returns all targets; those that are taken first where any will do come first.
const std::vector<const Target*>& Targets();
// Returns the target that the protocol calls so; for TARGET_AUTO the host.
const Target& TargetOf(v1::Target id);

}  // namespace fusion
