#include "server/jobs/model_report.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/rpc/status_conversion.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kMilli = 1e-3;

// Milliseconds. low, high: of the interval; 0: not known.
struct Times {
  double predicted, measured, low = 0, high = 0;
};

v1::JobResult Result(const std::string& graph, const std::string& device, v1::CacheState cache) {
  v1::JobResult result;
  result.mutable_graph()->set_name(graph);
  result.mutable_device()->set_name(device);
  result.set_cache(cache);
  return result;
}

v1::Candidate* AddCandidate(v1::JobResult* result, int predicted_rank, const Times& times) {
  v1::Candidate* candidate = result->add_candidates();
  candidate->set_outcome(v1::OK);
  candidate->set_predicted_rank(predicted_rank);
  candidate->set_predicted_seconds(times.predicted * kMilli);
  candidate->mutable_measured()->set_median(times.measured * kMilli);
  candidate->mutable_measured()->set_low(times.low * kMilli);
  candidate->mutable_measured()->set_high(times.high * kMilli);
  candidate->set_key("key " + std::to_string(result->candidates_size()));
  return candidate;
}

class ModelReportTest : public StoreTest {
 protected:
  // The id of a job that succeeded with these bytes as its result.
  std::string Succeeded(const std::string& result) {
    const std::string job = NewJob();
    JobUpdate running, done;
    running.state = JobState::kRunning;
    EXPECT_TRUE(store_->UpdateJob(job, running, At(2)).ok());
    done.state = JobState::kSucceeded;
    done.result = result;
    EXPECT_TRUE(store_->UpdateJob(job, done, At(3)).ok());
    return job;
  }
  std::string Succeeded(const v1::JobResult& result) { return Succeeded(result.SerializeAsString()); }
  // One candidate that is predicted exactly.
  std::string SucceededOn(const std::string& graph, const std::string& device, v1::CacheState cache) {
    v1::JobResult result = Result(graph, device, cache);
    AddCandidate(&result, 1, {1, 1});
    return Succeeded(result);
  }

  absl::StatusOr<v1::ReportModelResponse> Report(const v1::ReportModelRequest& request = {}) {
    return ReportModel(request, *store_, Principal{}, CancellationToken());
  }
  // The names of the graphs reported on.
  std::vector<std::string> Graphs(const v1::ReportModelRequest& request = {}) {
    absl::StatusOr<v1::ReportModelResponse> report = Report(request);
    EXPECT_TRUE(report.ok()) << report.status();
    std::vector<std::string> names;
    if (report.ok())
      for (const v1::GraphAccuracy& graph : report->graphs()) names.push_back(graph.graph());
    return names;
  }
  std::string Error(const v1::ReportModelRequest& request, absl::StatusCode code) {
    const absl::Status status = Report(request).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
};

TEST_F(ModelReportTest, FiguresOfEveryGraphAndOfAll) {
  v1::JobResult cold = Result("bicgk", "GPU", v1::COLD);
  (*cold.mutable_graph()->mutable_size_values())["n"] = 5001;
  (*cold.mutable_graph()->mutable_size_values())["m"] = 4093;
  // In measured order, as jobs are stored. The interval of the second reaches into that of the fastest.
  AddCandidate(&cold, 2, {2, 1.6, 1.55, 1.65});
  AddCandidate(&cold, 1, {1, 2, 1.6, 2.1});
  AddCandidate(&cold, 3, {3, 3, 2.9, 3.1});
  AddCandidate(&cold, 4, {4, 5, 4.9, 5.1});
  v1::JobResult warm = Result("add", "GPU", v1::WARM);
  AddCandidate(&warm, 2, {2, 1});
  AddCandidate(&warm, 1, {2, 4});
  const std::string first = Succeeded(cold), second = Succeeded(warm);

  absl::StatusOr<v1::ReportModelResponse> report = Report();
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->graphs_size(), 2);

  const v1::GraphAccuracy& newest = report->graphs(0);
  EXPECT_EQ(newest.job(), second);
  EXPECT_EQ(newest.graph(), "add");
  EXPECT_EQ(newest.sizes(), "");
  EXPECT_EQ(newest.cache(), v1::WARM);
  EXPECT_EQ(newest.candidates(), 2);
  EXPECT_DOUBLE_EQ(newest.median_absolute_error(), 0.75);  // of 1/2 and 1
  EXPECT_NEAR(newest.bias(), 1, 1e-12);
  EXPECT_FALSE(newest.has_kendall_tau());  // predicted times are equal
  EXPECT_THAT(newest.fastest_positions(), ElementsAre(2, 1));
  EXPECT_EQ(newest.best_position(), 2);
  EXPECT_EQ(newest.best_position_with_ties(), 2);
  EXPECT_DOUBLE_EQ(newest.regret().first(), 3);
  EXPECT_EQ(newest.regret().first_3(), 0);

  const v1::GraphAccuracy& oldest = report->graphs(1);
  EXPECT_EQ(oldest.job(), first);
  EXPECT_EQ(oldest.graph(), "bicgk");
  EXPECT_EQ(oldest.sizes(), "m=4093,n=5001");
  EXPECT_EQ(oldest.device(), "GPU");
  EXPECT_EQ(oldest.cache(), v1::COLD);
  EXPECT_EQ(oldest.candidates(), 4);
  EXPECT_NEAR(oldest.median_absolute_error(), 0.225, 1e-12);  // of 0, 1/5, 1/4 and 1/2
  EXPECT_NEAR(oldest.bias(), std::sqrt(0.8), 1e-12);          // of 0.5, 0.8, 1 and 1.25
  EXPECT_NEAR(oldest.kendall_tau(), 4.0 / 6, 1e-12);          // one pair of six is the other way round
  EXPECT_THAT(oldest.fastest_positions(), ElementsAre(2, 1, 3, 4));
  EXPECT_EQ(oldest.best_position(), 2);
  EXPECT_EQ(oldest.best_position_with_ties(), 1);
  EXPECT_NEAR(oldest.regret().first(), 0.25, 1e-12);
  EXPECT_EQ(oldest.regret().first_3(), 0);
  EXPECT_EQ(oldest.regret().first_5(), 0);

  EXPECT_EQ(report->candidates(), 6);
  EXPECT_NEAR(report->median_absolute_error(), 0.375, 1e-12);  // of 0, 1/5, 1/4, 1/2, 1/2 and 1
  EXPECT_NEAR(report->median_kendall_tau(), 4.0 / 6, 1e-12);
  EXPECT_NEAR(report->mean_kendall_tau(), 4.0 / 6, 1e-12);
  EXPECT_NEAR(report->least_kendall_tau(), 4.0 / 6, 1e-12);
  EXPECT_EQ(report->best_in_first_5(), 1);
  EXPECT_EQ(report->best_in_first_5_with_ties(), 1);
  EXPECT_EQ(report->first_3_within_2_percent(), 1);
  EXPECT_NEAR(report->median_regret().first(), 1.625, 1e-12);
  EXPECT_EQ(report->median_regret().first_5(), 0);
  EXPECT_DOUBLE_EQ(report->largest_regret().first(), 3);
  EXPECT_EQ(report->largest_regret().first_3(), 0);
  EXPECT_EQ(report->measured_plot(), "");
  EXPECT_EQ(report->convergence_plot(), "");
}

TEST_F(ModelReportTest, OnlyCandidatesThatWerePredictedAndMeasuredCount) {
  v1::JobResult result = Result("add", "GPU", v1::COLD);
  AddCandidate(&result, 1, {1, 1})->set_outcome(v1::WRONG_RESULT);
  AddCandidate(&result, 2, {0, 1});
  AddCandidate(&result, 3, {-1, 1});
  AddCandidate(&result, 4, {1, 0});
  AddCandidate(&result, 5, {std::nan(""), 1});
  AddCandidate(&result, 6, {1, std::numeric_limits<double>::infinity()});
  AddCandidate(&result, 7, {1, 1})->clear_measured();
  Succeeded(result);
  Succeeded(v1::JobResult());
  EXPECT_THAT(Error({}, absl::StatusCode::kNotFound), HasSubstr("run fusion-client submit first"));

  result.mutable_graph()->set_name("with two");
  AddCandidate(&result, 8, {3, 2});
  AddCandidate(&result, 9, {6, 3});
  Succeeded(result);
  // A job that ended otherwise has no predictions, whatever it stored.
  const std::string failed = NewJob();
  JobUpdate update;
  update.state = JobState::kFailed;
  update.result = result.SerializeAsString();
  ASSERT_TRUE(store_->UpdateJob(failed, update, At(2)).ok());
  NewJob();

  absl::StatusOr<v1::ReportModelResponse> report = Report();
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->graphs_size(), 1);
  EXPECT_EQ(report->graphs(0).graph(), "with two");
  EXPECT_EQ(report->candidates(), 2);
  EXPECT_EQ(report->graphs(0).best_position(), 1);
  EXPECT_NEAR(report->median_absolute_error(), 0.75, 1e-12);
}

TEST_F(ModelReportTest, DeviceAndTimesAreFilters) {
  SucceededOn("a", "GPU", v1::COLD);
  SucceededOn("b", "GPU", v1::WARM);
  SucceededOn("c", "CPU", v1::CACHE_STATE_UNSPECIFIED);  // stored before there was a choice
  SucceededOn("d", "CPU 2", v1::WARM);
  v1::ReportModelRequest request;
  EXPECT_THAT(Graphs(request), ElementsAre("d", "c", "b", "a"));
  request.set_cache(v1::COLD);
  EXPECT_THAT(Graphs(request), ElementsAre("c", "a"));
  request.set_cache(v1::WARM);
  EXPECT_THAT(Graphs(request), ElementsAre("d", "b"));
  request.set_device("GPU");
  EXPECT_THAT(Graphs(request), ElementsAre("b"));
  request.clear_cache();
  EXPECT_THAT(Graphs(request), ElementsAre("b", "a"));
  request.set_device("CPU");
  EXPECT_THAT(Graphs(request), ElementsAre("c"));
  EXPECT_EQ(Report(request)->graphs(0).cache(), v1::COLD);

  request.set_device("TPU");
  EXPECT_THAT(
      Error(request, absl::StatusCode::kNotFound),
      AllOf(HasSubstr("on device TPU; there are jobs on CPU (cold), CPU 2 (warm), GPU (cold), GPU (warm): "),
            HasSubstr("run fusion-client submit")));
  request.set_device("CPU");
  request.set_cache(v1::WARM);
  EXPECT_THAT(Error(request, absl::StatusCode::kNotFound),
              HasSubstr("on device CPU ranked by warm times; there"));
}

TEST_F(ModelReportTest, AtMostSoManyOfThoseThatMatchTheNewest) {
  for (const char* graph : {"a", "b", "c"}) SucceededOn(graph, "GPU", v1::COLD);
  Succeeded(v1::JobResult());
  SucceededOn("d", "CPU", v1::COLD);
  v1::ReportModelRequest request;
  request.set_jobs(2);
  EXPECT_THAT(Graphs(request), ElementsAre("d", "c"));
  request.set_device("GPU");
  EXPECT_THAT(Graphs(request), ElementsAre("c", "b"));
  request.set_jobs(3);
  EXPECT_THAT(Graphs(request), ElementsAre("c", "b", "a"));
}

TEST_F(ModelReportTest, ReadsEveryPageOfJobs) {
  SucceededOn("oldest", "GPU", v1::COLD);
  for (int i = 0; i < 101; ++i) NewJob();
  SucceededOn("newest", "GPU", v1::COLD);
  EXPECT_THAT(Graphs(), ElementsAre("newest", "oldest"));
}

TEST_F(ModelReportTest, LimitsOutOfRangeAreInvalid) {
  v1::ReportModelRequest request;
  for (int jobs : {-1, 10001}) {
    request.set_jobs(jobs);
    const absl::Status status = Report(request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    ASSERT_EQ(FieldViolations(status).size(), 1u);
    EXPECT_EQ(FieldViolations(status)[0].field(), "jobs");
  }
  for (int jobs : {0, 1, 10000}) {
    request.set_jobs(jobs);
    Error(request, absl::StatusCode::kNotFound);
  }
  request.set_cache(static_cast<v1::CacheState>(7));
  EXPECT_THAT(Error(request, absl::StatusCode::kInvalidArgument), HasSubstr("COLD or WARM"));
}

TEST_F(ModelReportTest, WithoutJobsItSaysWhatToDo) {
  EXPECT_EQ(Error({}, absl::StatusCode::kNotFound),
            "no job that SUCCEEDED has candidates with a predicted and a measured time; run fusion-client "
            "submit first");
  v1::ReportModelRequest request;
  request.set_device("GPU");
  request.set_cache(v1::COLD);
  EXPECT_EQ(Error(request, absl::StatusCode::kNotFound),
            "no job that SUCCEEDED has candidates with a predicted and a measured time on device GPU ranked "
            "by cold times; "
            "run fusion-client submit first");
}

TEST_F(ModelReportTest, ResultsThatCannotBeReadAreLeftOut) {
  Succeeded("\xff\xff no message");
  EXPECT_THAT(Error({}, absl::StatusCode::kNotFound), HasSubstr("; 1 stored result cannot be read; run"));
  SucceededOn("sound", "GPU", v1::COLD);
  // Even when the part that was read has candidates.
  v1::JobResult damaged = Result("damaged", "GPU", v1::COLD);
  AddCandidate(&damaged, 1, {1, 1});
  Succeeded(damaged.SerializeAsString() + "\xff");
  EXPECT_THAT(Graphs(), ElementsAre("sound"));
}

TEST_F(ModelReportTest, AnIntervalIsWidenedToItsMedian) {
  v1::JobResult result = Result("add", "GPU", v1::COLD);
  AddCandidate(&result, 3, {3, 1, 1.2, 1.3});     // above its median: from 1 to 1.3
  AddCandidate(&result, 1, {1, 1.25, 0, 0});      // not known: the median alone
  AddCandidate(&result, 2, {2, 1.35, 1.0, 1.1});  // below its median: from 1 to 1.35
  AddCandidate(&result, 4, {4, 9, std::nan(""), 0});
  Succeeded(result);
  absl::StatusOr<v1::ReportModelResponse> report = Report();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->candidates(), 4);
  EXPECT_EQ(report->graphs(0).best_position(), 3);
  EXPECT_EQ(report->graphs(0).best_position_with_ties(), 1);

  result.mutable_candidates(0)->mutable_measured()->set_high(0);
  Succeeded(result);
  EXPECT_EQ(Report()->graphs(0).best_position_with_ties(), 2);  // of those that reach down to 1
}

TEST_F(ModelReportTest, RanksThatGiveNoOrderGiveWayToPredictedTimes) {
  // In measured order; predicted order by time is the reverse, by rank the fastest is second.
  auto fastest_positions = [&](const std::vector<int>& ranks) {
    v1::JobResult result = Result("add", "GPU", v1::COLD);
    const Times times[] = {{3, 1}, {2, 2}, {1, 3}};
    for (int i = 0; i < 3; ++i) AddCandidate(&result, ranks[i], times[i]);
    Succeeded(result);
    const v1::GraphAccuracy graph = Report()->graphs(0);
    return std::vector<int>(graph.fastest_positions().begin(), graph.fastest_positions().end());
  };
  EXPECT_THAT(fastest_positions({2, 1, 3}), ElementsAre(2, 1, 3));
  EXPECT_THAT(fastest_positions({20, 4, 31}), ElementsAre(2, 1, 3));
  EXPECT_THAT(fastest_positions({2, 1, 2}), ElementsAre(3, 2, 1));
  EXPECT_THAT(fastest_positions({2, 1, 0}), ElementsAre(3, 2, 1));
  EXPECT_THAT(fastest_positions({-2, 1, 3}), ElementsAre(3, 2, 1));
}

TEST_F(ModelReportTest, EqualPredictedTimesAreNotOrderedByMeasuredOnes) {
  v1::JobResult result = Result("add", "GPU", v1::COLD);
  AddCandidate(&result, 0, {1, 1})->set_key("b");
  AddCandidate(&result, 0, {1, 2})->set_key("a");
  Succeeded(result);
  EXPECT_EQ(Report()->graphs(0).best_position(), 2);
}

TEST_F(ModelReportTest, PlotsShowTheNewestGraphsThatTheyCanName) {
  SucceededOn("old graph", "GPU", v1::COLD);
  for (int i = 0; i < kPlottedJobs; ++i) SucceededOn("new graph", "GPU", v1::COLD);
  v1::ReportModelRequest request;
  request.set_plots(true);
  absl::StatusOr<v1::ReportModelResponse> report = Report(request);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->graphs_size(), kPlottedJobs + 1);
  EXPECT_THAT(report->measured_plot(),
              AllOf(StartsWith("<svg"), HasSubstr("Predicted against measured"), HasSubstr("28 graphs"),
                    HasSubstr("new graph"), Not(HasSubstr("old graph"))));
  EXPECT_THAT(report->convergence_plot(),
              AllOf(StartsWith("<svg"), HasSubstr("Best so far"), HasSubstr("28 graphs"),
                    HasSubstr("new graph"), Not(HasSubstr("old graph"))));
  request.set_jobs(3);
  EXPECT_THAT(Report(request)->measured_plot(), HasSubstr("3 graphs"));
}

TEST_F(ModelReportTest, EndsWhenItIsCancelled) {
  SucceededOn("a", "GPU", v1::COLD);
  CancellationToken token;
  token.Cancel();
  EXPECT_TRUE(absl::IsCancelled(ReportModel({}, *store_, Principal{}, token).status()));
}

}  // namespace
}  // namespace fusion
