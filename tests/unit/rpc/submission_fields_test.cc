// What a server says that it knows of a submission, and what a client finds missing.
#include "server/rpc/submission_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SubmissionFields, OfAnEarlierServerThatSaysNothing) {
  v1::SubmitRequest request;
  request.set_candidates(5);
  request.mutable_limits()->set_queue_seconds(60);
  EXPECT_THAT(UnknownSubmissionFields(request, ""), IsEmpty());
  request.set_device("H100");
  EXPECT_THAT(UnknownSubmissionFields(request, ""), ElementsAre("device"));
  request.mutable_limits()->set_fusions(500);
  EXPECT_THAT(UnknownSubmissionFields(request, "no number"), ElementsAre("device", "limits.fusions"));
}

TEST(SubmissionFields, OfAServerLikeThisAllAreKnown) {
  v1::SubmitRequest request;
  request.set_device("H100");
  request.mutable_limits()->set_fusions(500);
  EXPECT_THAT(UnknownSubmissionFields(request, KnownSubmissionFields()), IsEmpty());
}

TEST(SubmissionFields, ServersBeforeValuesOfInputsDoNotKnowThemInTheSource) {
  v1::SubmitRequest request;
  (*request.mutable_source()->mutable_input_values())["x"].set_kind(v1::InputValues::FILE);
  request.set_device("H100");
  EXPECT_THAT(UnknownSubmissionFields(request, ""), ElementsAre("source.input_values", "device"));
  EXPECT_THAT(UnknownSubmissionFields(request, "14"), ElementsAre("source.input_values"));
  EXPECT_THAT(UnknownSubmissionFields(request, KnownSubmissionFields()), IsEmpty());
  request.Clear();
  (*request.mutable_source()->mutable_graph()->mutable_input_values())["x"].set_kind(v1::InputValues::SORTED);
  EXPECT_THAT(UnknownSubmissionFields(request, "14"), ElementsAre("source.input_values"));
}

TEST(SubmissionFields, ServersBeforeResultsInTheMemoryOfInputsDoNotKnowThem) {
  v1::SubmitRequest request;
  (*request.mutable_source()->mutable_graph()->mutable_in_place())["y"] = "x";
  EXPECT_THAT(UnknownSubmissionFields(request, "16"), ElementsAre("source.graph.in_place"));
  EXPECT_THAT(UnknownSubmissionFields(request, KnownSubmissionFields()), IsEmpty());
}

TEST(ExplanationFields, OfAnEarlierServerAndOfOneLikeThis) {
  v1::ExplainRequest request;
  request.set_candidates(5);
  request.mutable_hints();
  EXPECT_THAT(UnknownExplanationFields(request, ""), IsEmpty());
  request.mutable_limits()->set_fusions(500);
  EXPECT_THAT(UnknownExplanationFields(request, ""), ElementsAre("limits"));
  EXPECT_THAT(UnknownExplanationFields(request, KnownExplanationFields()), IsEmpty());
}

}  // namespace
}  // namespace fusion
