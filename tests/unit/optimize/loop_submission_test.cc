#include "server/optimize/loop_submission.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

std::shared_ptr<const LoopSubmission> SubmittedLoops(const std::string& text, int size) {
  v1::SubmitRequest request;
  request.mutable_source()->set_loops(text);
  (*request.mutable_source()->mutable_size_values())["n"] = size;
  absl::StatusOr<std::shared_ptr<const LoopSubmission>> submission = CheckLoopSubmission(request);
  EXPECT_TRUE(submission.ok()) << submission.status();
  return submission.ok() ? *submission : nullptr;
}

// Each diagonal is a launch, of which a job may have 16,384.
TEST(LoopSubmissionTest, SerialNestsStayInOrderWhereAnotherWouldTakeTooManyLaunches) {
  const std::string text =
      "int n;\nfloat a[n][n];\n#pragma fusion parametric\n"
      "for (int i = 1; i < n; i++)\n  for (int j = 1; j < n; j++) a[i][j] = a[i-1][j] + a[i][j-1];\n";
  const auto small = SubmittedLoops(text, 8000), large = SubmittedLoops(text, 9000);
  ASSERT_TRUE(small != nullptr && large != nullptr);
  EXPECT_TRUE(small->mapped.rearranged);
  EXPECT_TRUE(small->turned_reference.rearranged);
  EXPECT_FALSE(small->reference.rearranged);
  EXPECT_FALSE(large->mapped.rearranged);
  EXPECT_FALSE(large->turned_reference.rearranged);
}

}  // namespace
}  // namespace fusion
