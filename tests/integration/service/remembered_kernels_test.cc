// Whole jobs on the host: what was measured is remembered, also across a restart and in other graphs.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/model/residual.h"
#include "tests/integration/service/embedded_fixture.h"

namespace fusion {
namespace {

// Of n entries.
std::string GraphSource(int n) {
  return absl::StrCat("size n = ", n,
                      ";\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, y, z;\n"
                      "s = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n");
}
// The same under other names, and more.
std::string LargerSource(int n) {
  return absl::StrCat("size k = ", n,
                      ";\nvector[k] u, v, w, t, q, p;\nscalar c;\ninput c, u, v, w;\n"
                      "t = axpy(c, u, v);\nq = vadd(t, w);\np = vmul(u, u);\nreturn q, p;\n");
}

// On a busy machine times scatter, or change from one process to the next: then another job measures at
// another size, of which no such times are stored.
constexpr int kAttempts = 8;
constexpr double kSureDeviation = 0.045;  // the memory of kernels knows those of 0.05 and of other processes

bool IsRemembered(const v1::ExplainResponse& response) {
  return response.text().find(" measured;") != std::string::npos;
}

class RememberedKernelsTest : public EmbeddedTest {
 protected:
  // `remembered`: asks again until a kernel is, for some seconds: a worker says what its compiler is after it
  // has said that it is there.
  v1::ExplainResponse Explain(const std::string& graph, v1::CacheState cache, bool remembered) {
    v1::ExplainRequest request;
    request.mutable_source()->set_fuse(graph);
    request.set_target(v1::HOST);
    request.set_candidates(100);
    request.set_cache(cache);
    if (absl::StrContains(graph, "vmul")) {  // the kernel that the other graph has, by itself
      v1::FusionHints::Group* together = request.mutable_hints()->add_together();
      together->add_values("t");
      together->add_values("q");
      v1::FusionHints::Group* apart = request.mutable_hints()->add_apart();
      apart->add_values("q");
      apart->add_values("p");
    }
    // Until the worker of this process has said what device it has.
    v1::ExplainResponse last;
    for (int attempt = 0; attempt < 100; ++attempt) {
      auto response = client_->Explain(request);
      EXPECT_TRUE(response.ok()) << response.status();
      if (!response.ok()) break;
      last = *response;
      const bool connected = last.text().find("no such device is connected") == std::string::npos;
      if (connected && (!remembered || IsRemembered(last))) return last;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << (remembered ? "nothing is remembered: " : "no device: ") << last.text();
    return last;
  }

  // Of candidates that are one kernel (those of several share what they took), by their descriptions; empty:
  // times scattered.
  std::map<std::string, double> Measure(int n) {
    v1::SubmitRequest request;
    request.mutable_source()->set_fuse(GraphSource(n));
    request.set_target(v1::HOST);
    request.set_candidates(4);
    request.set_measure_all(true);
    std::map<std::string, double> measured;
    MeasureInto(request, &measured);
    return measured;
  }

  // The kernels that are not predicted by what was measured, within 5 %; empty: all are. What was measured is
  // believed to 5 % (another process may be as much faster or slower), so where the device is described anew,
  // or the machine changes its speed, a prediction may lie beyond.
  std::string WrongPredictions(int n, const std::map<std::string, double>& measured) {
    std::string wrong;
    size_t found = 0;
    const v1::ExplainResponse again = Explain(GraphSource(n), v1::COLD, true);
    for (const v1::Candidate& candidate : again.candidates()) {
      const auto it = measured.find(candidate.description());
      if (it == measured.end()) continue;
      ++found;
      const double ratio = candidate.predicted_seconds() / it->second;
      if (std::abs(ratio - 1) > 0.05) absl::StrAppend(&wrong, candidate.description(), ": ", ratio, "; ");
    }
    if (found != measured.size()) absl::StrAppend(&wrong, found, " of ", measured.size(), " kernels");
    return wrong;
  }

 private:
  void MeasureInto(const v1::SubmitRequest& request, std::map<std::string, double>* measured) {
    absl::StatusOr<v1::Job> job = client_->Submit(request);
    ASSERT_TRUE(job.ok()) << job.status();
    absl::StatusOr<v1::Job> done = client_->WatchJob(job->name(), 0, [](const v1::JobEvent&) {});
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_EQ(done->state(), v1::SUCCEEDED) << done->ShortDebugString();
    bool sure = true;
    for (const v1::Candidate& candidate : done->result().candidates()) {
      if (candidate.outcome() != v1::OK || candidate.fusions_size() != 1) continue;
      const v1::Statistics& time = candidate.measured();
      (*measured)[candidate.description()] = time.median();
      sure &= IntervalDeviation(time.low(), time.high()) <= kSureDeviation;
    }
    EXPECT_FALSE(measured->empty());
    if (!sure) measured->clear();
  }
};

TEST_F(RememberedKernelsTest, PredictTheSameKernelsByTheirMeasuredTimes) {
  int n = 40003;
  EXPECT_FALSE(IsRemembered(Explain(GraphSource(n), v1::COLD, false)));
  std::string wrong = "times scattered in all jobs";
  for (int attempt = 0; attempt < kAttempts && !wrong.empty(); ++attempt) {
    n += 1000;
    const std::map<std::string, double> measured = Measure(n);
    ASSERT_FALSE(HasFatalFailure());
    if (measured.empty()) continue;
    wrong = WrongPredictions(n, measured);
    if (!wrong.empty()) continue;
    client_.reset();
    Open();
    wrong = WrongPredictions(n, measured);
    if (!wrong.empty()) wrong += " after a restart";
  }
  EXPECT_EQ(wrong, "") << "in the last of " << kAttempts << " attempts";
  Explain(LargerSource(n), v1::COLD, true);
  // Warm times are others.
  EXPECT_FALSE(IsRemembered(Explain(GraphSource(n), v1::WARM, false)));
}

TEST_F(RememberedKernelsTest, SizesOfZeroSayNothingOfOthers) {
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse(GraphSource(0));
  request.set_target(v1::HOST);
  request.set_candidates(1);
  absl::StatusOr<v1::Job> job = client_->Submit(request);
  ASSERT_TRUE(job.ok()) << job.status();
  absl::StatusOr<v1::Job> done = client_->WatchJob(job->name(), 0, [](const v1::JobEvent&) {});
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_EQ(done->state(), v1::SUCCEEDED) << done->ShortDebugString();
  EXPECT_EQ(Explain(GraphSource(40003), v1::COLD, false).text().find("predictions learned"),
            std::string::npos);
}

}  // namespace
}  // namespace fusion
