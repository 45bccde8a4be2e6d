// What is built of a candidate.
#include "server/optimize/build_stage.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/optimize/code_stage.h"
#include "server/optimize/plans.h"
#include "server/target/target.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

// What is measured and what is taken away are launched alike: kernels of sm_90 and later wait themselves for
// those before them.
TEST(BuiltProgram, IsLaunchedProgrammaticallyWhereTheKernelsWait) {
  auto submission = CheckSource(testing::ExampleSource("axpydot"), *Catalog::BuiltIn());
  ASSERT_TRUE(submission.ok()) << submission.status();
  for (const auto& [arch, programmatic] :
       {std::pair{"sm_80", false}, {"sm_90", true}, {"sm_120", true}, {"", false}}) {
    const DeviceDescription device = *arch ? DescribedDevice(v1::CUDA, arch) : DescribedDevice(v1::HOST);
    const CostModel model(device);
    auto plans = PlanCovers(*submission, model, 2, false);
    ASSERT_TRUE(plans.ok()) << plans.status();
    auto code = GenerateCode(*submission, model, *plans);
    ASSERT_TRUE(code.ok()) << code.status();
    v1::BuiltCode built;
    for (const auto& [key, build] : code->set.builds())
      (*built.mutable_binaries())[key] = "sha256:" + build.arch();
    const v1::Program program = BuiltProgram(code->set.candidates(0).program(), built);
    ASSERT_GT(program.launches_size(), 0);
    for (const v1::Launch& launch : program.launches()) {
      EXPECT_EQ(launch.programmatic(), programmatic) << arch;
      EXPECT_EQ(launch.binary(), "sha256:" + device.arch());
    }
    for (const CodeUnit* unit : code->units[0])
      for (const KernelLaunch& launch : unit->code.launches)
        EXPECT_TRUE(!*arch ||
                    TargetOf(v1::CUDA).Print(launch.kernel).find("  fu_launch_begin<") != std::string::npos)
            << arch;
  }
}

}  // namespace
}  // namespace fusion
