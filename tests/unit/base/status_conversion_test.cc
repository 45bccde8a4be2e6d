#include "base/rpc/status_conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status ManyErrors(int count) {
  google::rpc::BadRequest bad_request;
  std::string message;
  for (int i = 1; i <= count; ++i) {
    auto* violation = bad_request.add_field_violations();
    violation->set_field(absl::StrCat("f.fuse:", i, ":1"));
    violation->set_description("unknown function");
    absl::StrAppend(&message, i > 1 ? "\n" : "", "f.fuse:", i, ":1: error: unknown function");
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kBadRequestTypeUrl, absl::Cord(bad_request.SerializeAsString()));
  return status;
}

TEST(StatusConversionTest, RoundTripKeepsCodeMessageAndDetails) {
  const absl::Status status = InvalidField("candidates", "must be positive");
  const grpc::Status wire = ToGrpcStatus(status);
  EXPECT_EQ(wire.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(wire.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), std::string(kBadRequestTypeUrl));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(FromGrpcStatus(wire), status);
}

TEST(StatusConversionTest, OkAndStatusesWithoutDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
  const absl::Status status = absl::NotFoundError("no such job");
  EXPECT_TRUE(ToGrpcStatus(status).error_details().empty());
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
}

TEST(StatusConversionTest, LongErrorsAreCutToWhatTheCallerAccepts) {
  const grpc::Status wire = ToGrpcStatus(ManyErrors(1000), kDefaultErrorBytes);
  EXPECT_LE(wire.error_message().size(), kDefaultErrorBytes / 2 + 60);
  EXPECT_LE(wire.error_details().size(), kDefaultErrorBytes / 2 + 100);
  EXPECT_THAT(wire.error_message(), StartsWith("f.fuse:1:1: error"));
  EXPECT_THAT(wire.error_message(), HasSubstr("\n(the message is cut: "));
  const auto violations = FieldViolations(FromGrpcStatus(wire));
  ASSERT_GT(violations.size(), 10u);
  EXPECT_LT(violations.size(), 1000u);
  EXPECT_EQ(violations[0].field(), "f.fuse:1:1");

  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(ManyErrors(1000), kMaximumErrorBytes)), ManyErrors(1000));
}

TEST(StatusConversionTest, RetryLaterSaysWhenAlsoOverTheWireAndFromTheStore) {
  for (const double seconds : {0.25, 1.0, 5.0, 61.5}) {
    const absl::Status status = RetryLater("the server is full", std::chrono::duration<double>(seconds));
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(status.message(), "the server is full");
    EXPECT_DOUBLE_EQ(RetrySeconds(status), seconds);
    EXPECT_DOUBLE_EQ(RetrySeconds(FromGrpcStatus(ToGrpcStatus(status))), seconds);
    EXPECT_DOUBLE_EQ(RetrySeconds(FromRpcStatus(ToRpcStatus(status))), seconds);
  }
  EXPECT_GT(RetrySeconds(RetryLater("x", std::chrono::seconds(0))), 0) << "it is a RetryInfo all the same";
}

TEST(StatusConversionTest, OtherStatusesSayNoTimeToTryAgain) {
  EXPECT_EQ(RetrySeconds(absl::ResourceExhaustedError("the disk is full")), 0);
  absl::Status damaged = absl::ResourceExhaustedError("x");
  damaged.SetPayload(kRetryInfoTypeUrl, absl::Cord("\xff\xff"));
  EXPECT_EQ(RetrySeconds(damaged), 0);
}

TEST(StatusConversionTest, StoredStatusKeepsEverything) {
  EXPECT_EQ(FromRpcStatus(ToRpcStatus(ManyErrors(1000))), ManyErrors(1000));
  EXPECT_TRUE(FromRpcStatus(ToRpcStatus(absl::OkStatus())).ok());
}

TEST(StatusConversionTest, CutsBetweenCharacters) {
  std::string text;
  while (text.size() < 2 * kDefaultErrorBytes) text += "\xE2\x82\xAC";  // the euro sign
  const std::string message = ToGrpcStatus(absl::InternalError(text)).error_message();
  EXPECT_EQ(message.find("\n(the message") % 3, 0u);
}

TEST(StatusConversionTest, NoViolationsWithoutPayload) {
  EXPECT_TRUE(FieldViolations(absl::InvalidArgumentError("x")).empty());
}

}  // namespace
}  // namespace fusion
