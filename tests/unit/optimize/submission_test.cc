#include "server/optimize/submission.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/rpc/status_details.h"

namespace fusion {
namespace {

template <class Request>
class RequestFieldsTest : public ::testing::Test {};
using Requests = ::testing::Types<v1::SubmitRequest, v1::ExplainRequest>;
TYPED_TEST_SUITE(RequestFieldsTest, Requests);

TYPED_TEST(RequestFieldsTest, KnownCacheStatesAreTaken) {
  for (v1::CacheState cache : {v1::CACHE_STATE_UNSPECIFIED, v1::COLD, v1::WARM}) {
    TypeParam request;
    request.set_cache(cache);
    EXPECT_TRUE(CheckRequestFields(request).ok()) << CheckRequestFields(request);
  }
}

TYPED_TEST(RequestFieldsTest, AnUnknownCacheStateIsAViolationOfItsField) {
  for (int cache : {-1, 3, 1000}) {
    TypeParam request;
    request.set_cache(static_cast<v1::CacheState>(cache));
    const absl::Status status = CheckRequestFields(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << cache << ": " << status;
    ASSERT_EQ(FieldViolations(status).size(), 1u);
    EXPECT_EQ(FieldViolations(status)[0].field(), "cache");
  }
}

TEST(SubmitFieldsTest, PrioritiesAndLimitsHaveBounds) {
  const auto field = [](const std::function<void(v1::SubmitRequest&)>& change) -> std::string {
    v1::SubmitRequest request;
    change(request);
    const std::vector<google::rpc::BadRequest::FieldViolation> violations =
        FieldViolations(CheckRequestFields(request));
    return violations.empty() ? "" : violations[0].field();
  };
  EXPECT_EQ(field([](auto& request) { request.set_priority(100); }), "");
  EXPECT_EQ(field([](auto& request) { request.set_priority(101); }), "priority");
  EXPECT_EQ(field([](auto& request) { request.set_priority(INT32_MIN); }), "priority");
  EXPECT_EQ(field([](auto& request) { request.mutable_limits()->set_queue_seconds(60); }), "");
  EXPECT_EQ(field([](auto& request) { request.mutable_limits()->set_queue_seconds(-1); }),
            "limits.queue_seconds");
  EXPECT_EQ(field([](auto& request) { request.mutable_limits()->set_build_seconds(1e300); }),
            "limits.build_seconds");
  EXPECT_EQ(field([](auto& request) { request.mutable_limits()->set_fusions(-1); }), "limits.fusions");
  EXPECT_EQ(field([](auto& request) { request.mutable_limits()->set_fusions(200'001); }), "limits.fusions");
  EXPECT_EQ(field([](auto& request) { request.mutable_limits()->set_run_seconds(std::nan("")); }),
            "limits.run_seconds");
}

class CheckSubmissionTest : public ::testing::Test {
 protected:
  CheckSubmissionTest() {
    request_.mutable_source()->set_fuse(
        "size n = 8;\nvector[n] x, total, rest;\nf64 vector[n] w, v;\ninput x in (0.5, 2), w = sorted;\n"
        "total = square(x);\nrest = neg(x);\nv = neg(w);\nreturn total, v, rest;\n");
    request_.mutable_source()->set_file_name("f.fuse");
  }
  absl::StatusOr<Submission> Check() { return CheckSubmission(request_, *Catalog::BuiltIn()); }
  v1::SubmitRequest request_;
};

TEST_F(CheckSubmissionTest, TolerancesThatAreAskedForReplaceThoseOfTheGraph) {
  const auto plain = Check();
  ASSERT_TRUE(plain.ok()) << plain.status();
  (*request_.mutable_tolerances())["v"] = 0.25;
  const auto asked = Check();
  ASSERT_TRUE(asked.ok()) << asked.status();
  std::vector<double> expected = TolerancesOf(*plain);
  ASSERT_EQ(expected.size(), 3u);
  expected[1] = 0.25;
  EXPECT_EQ(TolerancesOf(*asked), expected);
}

TEST_F(CheckSubmissionTest, TolerancesThatCannotBeAreToldTogether) {
  for (const auto& [name, value] : std::map<std::string, double>{
           {"totl", 0.1}, {"x", 0.1}, {"total", 0.0}, {"v", std::nan("")}, {"rest", HUGE_VAL}})
    (*request_.mutable_tolerances())[name] = value;
  const absl::Status refused = Check().status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(refused.message(),
            "f.fuse: error: tolerances: that of rest must be a finite number greater than 0, but is inf\n"
            "f.fuse: error: tolerances: that of total must be a finite number greater than 0, but is 0\n"
            "f.fuse: error: tolerances: the graph has no output totl (did you mean total?)\n"
            "f.fuse: error: tolerances: that of v must be a finite number greater than 0, but is nan\n"
            "f.fuse: error: tolerances: the graph has no output x");
}

TEST_F(CheckSubmissionTest, RemarksSayWhatWasAskedFor) {
  (*request_.mutable_tolerances())["v"] = 1e-2;
  const auto asked = Check();
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(RemarksOf(*asked),
            (std::vector<std::string>{"values of inputs: x in (0.5, 2.0), w = sorted(-1.0, 1.0), as asked",
                                      "tolerance of v: 0.01, as asked"}));
}

TEST_F(CheckSubmissionTest, TheSummaryTellsValuesOfInputsApart) {
  const std::string asked = Check()->summary.input_values();
  EXPECT_FALSE(asked.empty());
  (*request_.mutable_source()->mutable_input_values())["x"].set_kind(v1::InputValues::SORTED);
  const std::string other = Check()->summary.input_values();
  EXPECT_NE(other, asked);
  (*request_.mutable_source()->mutable_input_values())["x"].set_kind(v1::InputValues::DEFAULT);
  (*request_.mutable_source()->mutable_input_values())["w"].set_kind(v1::InputValues::DEFAULT);
  EXPECT_EQ(Check()->summary.input_values(), "");
}

TEST(CheckBenchmark, WantsFunctionsOfElements) {
  const auto checked = [](const std::string& text) {
    v1::GraphSource source;
    source.set_fuse(text);
    auto graph = CheckSource(source, *Catalog::BuiltIn());
    EXPECT_TRUE(graph.ok()) << graph.status();
    return CheckBenchmark(*graph->graph);
  };
  EXPECT_TRUE(checked("SCALAR x, y;\ninput x;\ny = square(x);\nreturn y;\n").ok());
  const absl::Status refused = checked("size n = 8;\nvector[n] x, y;\ninput x;\ny = square(x);\nreturn y;\n");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(refused.message()).find("no functions of small matrices"), std::string::npos)
      << refused;
}

}  // namespace
}  // namespace fusion
