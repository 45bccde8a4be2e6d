// Whole jobs on the host, by a server and a worker in this process: which times rank.
#include <gtest/gtest.h>

#include "tests/integration/service/embedded_fixture.h"

namespace fusion {
namespace {

using WarmRankingTest = EmbeddedTest;

void ExpectEqual(const v1::Statistics& a, const v1::Statistics& b) {
  EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString())
      << a.ShortDebugString() << " and " << b.ShortDebugString();
}

TEST_F(WarmRankingTest, CandidatesStandInTheOrderOfTheTimesAskedFor) {
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse(
      "size n = 40003;\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, y, z;\n"
      "s = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n");
  request.set_target(v1::HOST);
  request.set_candidates(4);
  for (v1::CacheState cache : {v1::CACHE_STATE_UNSPECIFIED, v1::WARM}) {
    SCOPED_TRACE(v1::CacheState_Name(cache));
    request.set_cache(cache);
    absl::StatusOr<v1::Job> job = client_->Submit(request);
    ASSERT_TRUE(job.ok()) << job.status();
    absl::StatusOr<v1::Job> done = client_->WatchJob(job->name(), 0, [](const v1::JobEvent&) {});
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_EQ(done->state(), v1::SUCCEEDED) << done->ShortDebugString();

    const bool warm = cache == v1::WARM;
    const v1::JobResult& result = done->result();
    EXPECT_EQ(result.cache(), warm ? v1::WARM : v1::COLD);
    EXPECT_GT(result.unfused_cold().samples(), 0);
    EXPECT_GT(result.unfused_warm().samples(), 0);
    ExpectEqual(result.unfused(), warm ? result.unfused_warm() : result.unfused_cold());

    ASSERT_GE(result.candidates_size(), 2);
    double last = 0;
    for (const v1::Candidate& candidate : result.candidates()) {
      ASSERT_EQ(candidate.outcome(), v1::OK) << candidate.message();
      EXPECT_GT(candidate.cold().samples(), 0);
      EXPECT_GT(candidate.warm().samples(), 0);
      ExpectEqual(candidate.measured(), warm ? candidate.warm() : candidate.cold());
      EXPECT_GT(candidate.speedup(), 0);
      // Ties of the fastest are in predicted order.
      if (candidate.tie()) continue;
      EXPECT_GE(candidate.measured().median(), last);
      last = candidate.measured().median();
    }
  }
}

}  // namespace
}  // namespace fusion
