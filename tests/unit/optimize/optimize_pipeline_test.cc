// What becomes of a job before it has a device.
#include "server/optimize/optimize_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/example_source.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OptimizePipelineTest : public DispatchTest {
 protected:
  SearchPool searches_{SearchLimits()};
};

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
                                searches_,
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

// It would search without a place.
TEST_F(OptimizePipelineTest, AJobThatIsCancelledWhenItsDeviceHasComeDoesNotSearch) {
  v1::SubmitRequest request;
  *request.mutable_source() = testing::ExampleSource("vadd");
  request.set_target(v1::CUDA);
  CancellationToken token;
  std::vector<std::string> events;
  const PipelineContext context{
      *store_,
      *dispatcher_,
      searches_,
      *Catalog::BuiltIn(),
      NewJob(),
      token,
      [&](const v1::JobEvent& event) { events.push_back(event.ShortDebugString()); },
      "",
      nullptr,
      {},
      [&](bool begins) {
        if (begins)
          Call(Request("w", {}, {CudaDevice("GPU-1")}));
        else
          token.Cancel();
      }};
  const absl::Status status = OptimizePipeline(request, context).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_THAT(events, ElementsAre(HasSubstr("parse"), HasSubstr("choose a device"),
                                  HasSubstr("waiting for one for up to")));
}

// `explain` predicts for a device that is away as for one that is there; without any for a described one.
TEST_F(OptimizePipelineTest, AnExplanationIsForTheDeviceThatWasThereLast) {
  const PipelineContext context{*store_, *dispatcher_,        searches_, *Catalog::BuiltIn(),
                                "",      CancellationToken(), nullptr,   ""};
  v1::ExplainRequest request;
  *request.mutable_source() = testing::ExampleSource("vadd");
  request.set_target(v1::HOST);
  const auto explained = [&] {
    auto response = ExplainPipeline(request, context);
    EXPECT_TRUE(response.ok()) << response.status();
    return *std::move(response);
  };
  EXPECT_THAT(explained().device().name(), HasSubstr("described, not measured"));
  const auto remember = [&](const std::string& name, int64_t seen) {
    v1::DeviceDescription device = HostDevice();
    device.set_name(name);
    device.set_uuid(name);
    ASSERT_TRUE(store_
                    ->UpsertDevice({.uuid = name,
                                    .device_class = name,
                                    .description = device.SerializeAsString(),
                                    .last_seen = Timestamp(std::chrono::microseconds(seen))})
                    .ok());
  };
  remember("newer", 2000);
  remember("older", 1000);
  EXPECT_EQ(explained().device().name(), "newer");
  EXPECT_THAT(explained().search().notes(), ElementsAre(HasSubstr("predicted for one that was: newer")));
  request.set_arch("aarch64");
  EXPECT_THAT(ExplainPipeline(request, context)->device().name(), HasSubstr("described, not measured"));
}

}  // namespace
}  // namespace fusion
