#include "worker/measure/time_remainder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace fusion {
namespace {

using ::testing::UnorderedElementsAre;

TEST(TimeRemainder, ARunnerGetsTheValuesOfInputsThatComeFromFilesOnce) {
  v1::TimeTask task;
  task.mutable_session()->mutable_reference()->add_launches()->set_binary("reference");
  for (const char* blob : {"file", "file", "another"}) {
    v1::InputValues* values = task.mutable_session()->add_inputs()->mutable_values();
    values->set_kind(v1::InputValues::FILE);
    values->set_blob(blob);
  }
  task.mutable_session()->add_inputs()->mutable_values()->set_kind(v1::InputValues::SORTED);
  task.mutable_session()->add_inputs();
  task.add_programs()->add_launches()->set_binary("candidate");
  v1::TimeResult result;
  const TimeRemainder remainder(task, &result);
  const auto request = remainder.Request(
      [](const std::string& digest) -> absl::StatusOr<std::string> { return "bytes of " + digest; }, 0);
  ASSERT_TRUE(request.ok()) << request.status();
  std::vector<std::string> digests;
  for (const v1::RunnerBinary& binary : request->time().binaries()) {
    digests.push_back(binary.digest());
    EXPECT_EQ(binary.content(), "bytes of " + binary.digest());
  }
  EXPECT_THAT(digests, UnorderedElementsAre("reference", "candidate", "file", "another"));
  EXPECT_EQ(request->time().task().session().inputs(0).values().blob(), "file");
  const auto missing = remainder.Request(
      [](const std::string& digest) -> absl::StatusOr<std::string> {
        if (digest == "file") return absl::NotFoundError("it is gone");
        return digest;
      },
      0);
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
}

}  // namespace
}  // namespace fusion
