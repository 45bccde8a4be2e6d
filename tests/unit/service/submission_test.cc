#include "server/service/submission.h"

#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <functional>

#include "server/service/status_conversion.h"

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
