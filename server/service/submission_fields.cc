#include "server/service/submission_fields.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fusion {

std::string KnownSubmissionFields() {
  const google::protobuf::Descriptor& fields = *v1::SubmitRequest::descriptor();
  int highest = 0;
  for (int i = 0; i < fields.field_count(); ++i) highest = std::max(highest, fields.field(i)->number());
  return absl::StrCat(highest);
}

std::vector<std::string> UnknownSubmissionFields(const v1::SubmitRequest& request, absl::string_view known) {
  int highest = 0;
  if (!absl::SimpleAtoi(known, &highest)) highest = kFieldsOfEarlierServers;
  std::vector<const google::protobuf::FieldDescriptor*> set;
  request.GetReflection()->ListFields(request, &set);
  std::vector<std::string> unknown;
  for (const google::protobuf::FieldDescriptor* field : set)
    if (field->number() > highest) unknown.emplace_back(field->name());
  // Of a message that servers without the header know.
  if (highest == kFieldsOfEarlierServers && request.limits().fusions() != 0)
    unknown.emplace_back("limits.fusions");
  return unknown;
}

}  // namespace fusion
