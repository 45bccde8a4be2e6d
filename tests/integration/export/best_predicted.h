// Exported folders of covers that were not measured, and what compiles and runs them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/artifact_folder.h"
#include "server/optimize/cover_export.h"
#include "server/optimize/plans.h"
#include "tests/integration/exported_folder_build.h"

namespace fusion::testing {

// Writes the folder of the best predicted cover at the sizes of the submission, for the described device of
// the target.
inline void WriteBestPredicted(const Submission& submission, v1::Target target, const std::string& folder) {
  const CostModel model(DescribedDevice(target));
  auto plans = PlanCovers(submission, model, 1, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  std::vector<const FusionImplementation*> fusions;
  for (int member : plans->covers.covers.front().columns)
    fusions.push_back(&plans->space.implementations[member]);
  auto exporter = CoverExporter::Create(submission);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  auto artifact = exporter->Export(DescribedDevice(target), fusions, "best predicted");
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  const absl::Status written = WriteArtifact(*artifact, "", folder, false);
  ASSERT_TRUE(written.ok()) << written;
}

// Returns "" where there is none.
inline std::string FindNvcc() {
  for (const char* nvcc : {"nvcc", "/usr/local/cuda/bin/nvcc"})
    if (RunCommand(absl::StrCat(nvcc, " --version")).exit_code == 0) return nvcc;
  return "";
}

// Returns whether this machine has a GPU that runs code for sm_80 or sm_90, or what is translated from the
// latter.
inline bool HasGpu() {
  const CommandResult query = RunCommand("nvidia-smi --query-gpu=compute_cap --format=csv,noheader");
  return query.exit_code == 0 && std::atof(query.output.c_str()) >= 8;
}

}  // namespace fusion::testing
