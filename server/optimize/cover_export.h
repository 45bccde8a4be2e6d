// Makes the exported folder of one cover from its fusion implementations.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"
#include "fusion/v1/device.pb.h"
#include "server/lowering/fusion_code.h"
#include "server/optimize/submission.h"
#include "server/plan/plan.h"
#include "server/target/device_description.h"

namespace fusion {

// Exports covers of one graph. What all folders share is made once. Not thread safe.
class CoverExporter {
 public:
  // The submission must outlive the exporter.
  static absl::StatusOr<CoverExporter> Create(const Submission& submission);

  // Returns sources for the device's target, and how to build them for its architecture; an example that
  // verifies them and runs at the submission's sizes unless told otherwise, and graph.fuse, or graph.json
  // where the graph has inline functions. `fusions` is the cover in schedule order; `description` and
  // `verified`, which says how results were verified, are the comment at the top.
  absl::StatusOr<v1::Artifact> Export(const DeviceDescription& device,
                                      const std::vector<const FusionImplementation*>& fusions,
                                      const std::string& description, const std::string& verified = "") const;

 private:
  explicit CoverExporter(const Submission& submission) : submission_(&submission) {}

  const Submission* submission_;
  // The graph's unfused code in f64, which runs on the host, whatever the target is.
  std::vector<FusionCode> reference_;
};

}  // namespace fusion
