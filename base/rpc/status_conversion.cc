#include "base/rpc/status_conversion.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace fusion {
namespace {

std::string CutAtLineEnd(absl::string_view text, size_t maximum) {
  if (text.size() <= maximum) return std::string(text);
  absl::string_view kept = text.substr(0, maximum);
  size_t line_end = kept.rfind('\n');
  if (line_end != absl::string_view::npos && line_end > 0) {
    kept = kept.substr(0, line_end);
  } else {
    // Not inside a UTF-8 sequence.
    while (!kept.empty() && (static_cast<unsigned char>(text[kept.size()]) & 0xC0) == 0x80)
      kept.remove_suffix(1);
  }
  return absl::StrCat(kept, "\n(the message is cut: ", text.size() - kept.size(), " more bytes)");
}

void CutDetails(google::rpc::Status* status, size_t maximum) {
  for (google::protobuf::Any& detail : *status->mutable_details()) {
    google::rpc::BadRequest bad_request;
    if (detail.value().size() <= maximum) continue;
    if (detail.type_url() != kBadRequestTypeUrl || !bad_request.ParseFromString(detail.value())) continue;
    size_t bytes = 0;
    int kept = 0;
    while (kept < bad_request.field_violations_size()) {
      bytes += bad_request.field_violations(kept).ByteSizeLong() + 8;
      if (kept > 0 && bytes > maximum) break;
      ++kept;
    }
    bad_request.mutable_field_violations()->DeleteSubrange(kept, bad_request.field_violations_size() - kept);
    detail.set_value(bad_request.SerializeAsString());
  }
}

}  // namespace

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

grpc::Status ToGrpcStatus(const absl::Status& status, size_t error_bytes) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status rpc = ToRpcStatus(status);
  rpc.set_message(CutAtLineEnd(status.message(), error_bytes / 2));
  CutDetails(&rpc, error_bytes / 2);
  std::string message = rpc.message();
  std::string details;
  if (rpc.details_size() > 0) {
    rpc.clear_message();  // stands in the gRPC status already
    details = rpc.SerializeAsString();
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, details);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status rpc;
  if (!status.error_details().empty() && rpc.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : rpc.details())
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
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
