// The CUDA code of every example builds for every known architecture: what the search finds legal for a
// device of that architecture, NVRTC compiles for it. Needs no GPU.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/codegen/code_library.h"
#include "server/optimize/plans.h"
#include "server/search/implementation_choice.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/any_parameters.h"
#include "tests/integration/export/examples.h"
#include "worker/build/nvrtc_builder.h"

namespace fusion::testing {
namespace {

// Implementations whose kernels are made of other parts of the code generator and of the device runtime.
std::string KindOf(const FusionImplementation& implementation) {
  const AnyParameters parameters = ParametersOf(implementation);
  std::string kind =
      absl::StrCat(implementation.skeleton->name(), "/", static_cast<int>(parameters.load_path), "/",
                   parameters.stages > 0, parameters.chunks > 0, parameters.blocks_per_multiprocessor > 0,
                   parameters.cluster_blocks > 1, parameters.l2_percent > 0);
  for (const FusionImplementation& sweep : SweepsOf(implementation))
    absl::StrAppend(&kind, " ", KindOf(sweep));
  return kind;
}

// The members of the best predicted cover, and of every kind that the search found an implementation of the
// largest fusion.
std::vector<const FusionImplementation*> Representatives(const Plans& plans) {
  std::set<const FusionImplementation*> chosen;
  for (int member : plans.covers.covers.front().columns) chosen.insert(&plans.space.implementations[member]);
  std::map<std::string, const FusionImplementation*> of_kind;
  for (const FusionImplementation& implementation : plans.space.implementations) {
    const FusionImplementation*& largest = of_kind[KindOf(implementation)];
    if (largest == nullptr || implementation.order.size() > largest->order.size()) largest = &implementation;
  }
  for (const auto& [kind, implementation] : of_kind) chosen.insert(implementation);
  return {chosen.begin(), chosen.end()};
}

class ArchitectureTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ArchitectureTest, CodeBuildsForEachArchitecture) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = NvrtcBuilder::Create();
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  auto submission =
      CheckExample(GetParam(), GetParam() == "clusters" ? "tests/integration/export/testdata" : "examples");
  ASSERT_TRUE(submission.ok()) << submission.status();
  for (const auto& architecture : TargetOf(v1::CUDA).profile().architectures()) {
    const std::string& arch = architecture.device().arch();
    const DeviceDescription device = DescribedDevice(v1::CUDA, arch);
    // Runs back to back over more data than any cache holds: all that there is for others is there for them
    // too.
    auto plans = PlanCovers(*submission, CostModel(device, 1e12), 1, false);
    ASSERT_TRUE(plans.ok()) << arch << plans.status();
    CodeLibrary library(*submission->graph, submission->sizes, device);
    for (const FusionImplementation* implementation : Representatives(*plans)) {
      auto unit = library.Add(*implementation, false);
      ASSERT_TRUE(unit.ok()) << arch << unit.status();
      for (const KernelLaunch& launch : (*unit)->code.launches)
        EXPECT_LE(SharedBytes(launch.shared, submission->sizes), device.shared_bytes_per_block())
            << arch << " " << Describe(*submission->graph, *implementation);
    }
    ASSERT_FALSE(library.units().empty()) << arch;
    for (const auto& unit : library.units()) {
      ASSERT_EQ(unit->build.arch(), arch);
      const BuildOutput output = (*builder)->Build(unit->build, {});
      EXPECT_EQ(output.result.outcome(), v1::OK) << arch << "\n" << output.result.log();
      EXPECT_EQ(output.binary.substr(1, 3), "ELF") << arch;
    }
  }
}

// Compilers take long for what is unrolled: a reference does each element by one thread.
TEST(Reference, OfTheLargestElementsBuildsSoon) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = NvrtcBuilder::Create();
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  auto submission = CheckExample("large_elements", "tests/integration/export/testdata");
  ASSERT_TRUE(submission.ok()) << submission.status();
  const DeviceDescription device = DescribedDevice(v1::CUDA, "sm_90");
  const CostModel model(device);
  CodeLibrary library(*submission->graph, submission->sizes, device);
  auto unit = library.Add(
      ReferenceImplementation(*submission->graph, submission->graph->nodes()[0].id, submission->sizes, model),
      true);
  ASSERT_TRUE(unit.ok()) << unit.status();
  v1::BuildTask task = (*unit)->build;
  task.set_deadline_seconds(60);
  const BuildOutput output = (*builder)->Build(task, {});
  EXPECT_EQ(output.result.outcome(), v1::OK) << output.result.log();
}

INSTANTIATE_TEST_SUITE_P(Examples, ArchitectureTest, ::testing::ValuesIn(ExampleNames()), ExampleTestName);
INSTANTIATE_TEST_SUITE_P(TestData, ArchitectureTest, ::testing::Values("clusters"), ExampleTestName);

}  // namespace
}  // namespace fusion::testing
