#include "base/rpc/status_details.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace fusion {

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status result;
  result.set_code(static_cast<int>(status.code()));
  result.set_message(std::string(status.message()));
  status.ForEachPayload([&](auto type_url, const absl::Cord& payload) {
    google::protobuf::Any* detail = result.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(payload));
  });
  return result;
}

absl::Status FromRpcStatus(const google::rpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code()), status.message());
  for (const google::protobuf::Any& detail : status.details())
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return result;
}

std::vector<google::rpc::BadRequest::FieldViolation> FieldViolations(const absl::Status& status) {
  std::vector<google::rpc::BadRequest::FieldViolation> result;
  auto payload = status.GetPayload(kBadRequestTypeUrl);
  google::rpc::BadRequest bad_request;
  if (payload && bad_request.ParseFromString(std::string(*payload)))
    result.assign(bad_request.field_violations().begin(), bad_request.field_violations().end());
  return result;
}

absl::Status RetryLater(absl::string_view message, std::chrono::duration<double> delay) {
  google::rpc::RetryInfo info;
  const auto nanos = std::max<int64_t>(std::llround(delay.count() * 1e9), 1);
  info.mutable_retry_delay()->set_seconds(nanos / 1'000'000'000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  absl::Status status = absl::ResourceExhaustedError(message);
  status.SetPayload(kRetryInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

double RetrySeconds(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryInfoTypeUrl);
  google::rpc::RetryInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) return 0;
  return static_cast<double>(info.retry_delay().seconds()) + info.retry_delay().nanos() * 1e-9;
}

absl::Status InvalidField(absl::string_view field, absl::string_view description) {
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(description));
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", description));
  status.SetPayload(kBadRequestTypeUrl, absl::Cord(bad_request.SerializeAsString()));
  return status;
}

}  // namespace fusion
