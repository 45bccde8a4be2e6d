// What becomes of a job before it has a device.
#include "server/service/optimize_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/example_source.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OptimizePipelineTest : public DispatchTest {};

TEST_F(OptimizePipelineTest, AJobWaitsForADeviceAsLongAsItSays) {
  v1::SubmitRequest request;
  *request.mutable_source() = testing::ExampleSource("vadd");
  request.set_target(v1::CUDA);
  v1::JobLimits limits;
  limits.set_queue_seconds(0.05);
  std::vector<bool> waits;
  std::vector<std::string> notes;
  const PipelineContext context{*store_,
                                *dispatcher_,
                                *Catalog::BuiltIn(),
                                NewJob(),
                                CancellationToken(),
                                [&](const v1::JobEvent& event) {
                                  if (event.has_note()) notes.push_back(event.note());
                                },
                                "",
                                nullptr,
                                limits,
                                [&](bool begins) { waits.push_back(begins); }};
  const absl::Status status = OptimizePipeline(request, context).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no worker with a cuda device is connected"));
  EXPECT_THAT(waits, ElementsAre(true, false));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("waiting for one for up to")));
}

}  // namespace
}  // namespace fusion
