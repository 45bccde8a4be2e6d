#include "server/rpc/submission_fields.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

std::string HighestField(const google::protobuf::Descriptor& fields) {
  int highest = 0;
  for (int i = 0; i < fields.field_count(); ++i) highest = std::max(highest, fields.field(i)->number());
  return absl::StrCat(highest);
}

int HighestKnown(absl::string_view known, int of_earlier_servers) {
  int highest = 0;
  return absl::SimpleAtoi(known, &highest) ? highest : of_earlier_servers;
}

// Names the set fields with numbers above `highest`.
std::vector<std::string> FieldsAbove(const google::protobuf::Message& request, int highest) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  request.GetReflection()->ListFields(request, &set);
  std::vector<std::string> above;
  for (const google::protobuf::FieldDescriptor* field : set)
    if (field->number() > highest) above.emplace_back(field->name());
  return above;
}

}  // namespace

std::string KnownSubmissionFields() { return HighestField(*v1::SubmitRequest::descriptor()); }

std::vector<std::string> UnknownSubmissionFields(const v1::SubmitRequest& request, absl::string_view known) {
  const int highest = HighestKnown(known, kFieldsOfEarlierServers);
  std::vector<std::string> unknown = FieldsAbove(request, highest);
  // Parts of messages that servers of earlier versions know.
  constexpr int kWithInputValues = 15, kWithInPlace = 18;
  if (highest < kWithInputValues &&
      (!request.source().input_values().empty() || !request.source().graph().input_values().empty()))
    unknown.insert(unknown.begin(), "source.input_values");
  if (highest < kWithInPlace && !request.source().graph().in_place().empty())
    unknown.insert(unknown.begin(), "source.graph.in_place");
  if (highest == kFieldsOfEarlierServers && request.limits().fusions() != 0)
    unknown.emplace_back("limits.fusions");
  return unknown;
}

std::string KnownExplanationFields() { return HighestField(*v1::ExplainRequest::descriptor()); }

std::vector<std::string> UnknownExplanationFields(const v1::ExplainRequest& request,
                                                  absl::string_view known) {
  return FieldsAbove(request, HighestKnown(known, kExplanationFieldsOfEarlierServers));
}

}  // namespace fusion
