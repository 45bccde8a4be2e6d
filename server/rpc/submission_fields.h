// Tells which fields of a submission, or of a question for an explanation, a server knows. A server says
// nothing of fields that it does not know, so it says with its answer which it knows.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fusion/v1/optimizer.pb.h"

namespace fusion {

// Initial metadata of the answer to Submit: the highest number of a field of SubmitRequest that the server
// knows, in decimal. Servers before this header know fields up to kFieldsOfEarlierServers.
inline constexpr char kSubmissionFieldsHeader[] = "fusion-submission-fields";
inline constexpr int kFieldsOfEarlierServers = 13;

// These are the same for Explain and ExplainRequest.
inline constexpr char kExplanationFieldsHeader[] = "fusion-explanation-fields";
inline constexpr int kExplanationFieldsOfEarlierServers = 9;

// Returns what this program says of itself.
std::string KnownSubmissionFields();

// Returns the names of the fields that are set in the request and that a server does not know, in the order
// of their numbers. `known`: what its answer has under the header; "", or no number: nothing.
std::vector<std::string> UnknownSubmissionFields(const v1::SubmitRequest& request, absl::string_view known);

std::string KnownExplanationFields();
std::vector<std::string> UnknownExplanationFields(const v1::ExplainRequest& request, absl::string_view known);

}  // namespace fusion
