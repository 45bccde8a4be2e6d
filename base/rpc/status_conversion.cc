#include "base/rpc/status_conversion.h"

#include <algorithm>

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

}  // namespace fusion
