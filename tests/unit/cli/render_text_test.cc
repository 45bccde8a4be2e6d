#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/render.h"
#include "tests/unit/cli/sample_messages.h"

namespace fusion {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RenderTextTest, RankedTable) {
  EXPECT_EQ(ResultText(testing::SampleJob().result(), TextStyle()),
            R"(function1 (elements = 31,744) on Example CPU (host, x86-64-avx512), copies at 20.00 GB/s
floor 200.0 us for 4.000 MB; unfused 600.0 [590.0, 610.0] us
searched 12 fusions, 340 implementations, 30 covers in 125.0 ms; proved optimal under the prediction

rank              time (us)  speed-up  of floor  predicted  kernels  fusions
  1   250.0 [245.0, 252.5]      2.40x      80 %          2        1  {M1 v1}{F}
  2=  252.0 [247.0, 254.5]      2.38x      79 %          2        0  {M1}
  3   150.0 [147.0, 151.5]!     4.00x     133 %          3        0  {M1}

implementations (--make takes a kernel's)
  1  {M1 v1} element T128; {F} element T64
  2  {M1} element T128

=  not distinguishable from rank 1 by these samples; in predicted order
speed-up: the median of the ratios of neighbouring runs, not the ratio of the medians
!  faster than moving the fewest bytes from memory allows: look twice
verified: largest relative error 2.5e-07, allowed 1.0e-05
not ranked: 1 candidate with COMPILE_ERROR (error: no such thing)
not ranked: 1 candidate with TIMEOUT
)");
}

TEST(RenderTextTest, SaysThatTimesAreWarm) {
  v1::JobResult result = testing::SampleJob().result();
  for (v1::CacheState cache : {v1::CACHE_STATE_UNSPECIFIED, v1::COLD}) {
    result.set_cache(cache);
    EXPECT_THAT(ResultText(result, TextStyle()), Not(HasSubstr("warm")));
  }
  result.set_cache(v1::WARM);
  EXPECT_THAT(ResultText(result, TextStyle()), HasSubstr("unfused 600.0 [590.0, 610.0] us; warm times\n"));
}

TEST(RenderTextTest, SaysThatNotFusingIsFaster) {
  v1::JobResult result = testing::SampleJob().result();
  const char* said = "not fusing is faster here";
  EXPECT_THAT(ResultText(result, TextStyle()), Not(HasSubstr(said)));
  for (v1::Candidate& candidate : *result.mutable_candidates()) candidate.set_speedup(0.9);
  EXPECT_THAT(ResultText(result, TextStyle()), HasSubstr(said));
  result.mutable_candidates(1)->set_speedup(1.01);
  EXPECT_THAT(ResultText(result, TextStyle()), Not(HasSubstr(said)));
}

TEST(RenderTextTest, TimesOfASimulatedGpuAreInvented) {
  v1::JobResult result = testing::SampleJob().result();
  EXPECT_THAT(ResultText(result, TextStyle()), Not(HasSubstr("SIMULATED")));
  result.mutable_device()->set_driver_version("simulated");
  EXPECT_THAT(ResultText(result, TextStyle()), HasSubstr("SIMULATED: no kernel ran"));
  EXPECT_THAT(ResultText(result, TextStyle()), Not(HasSubstr("verified: largest relative error")));
}

TEST(RenderTextTest, TenRowsUnlessAll) {
  v1::JobResult result;
  for (int rank = 1; rank <= 13; ++rank) testing::AddCandidate(&result, rank, 1e-3 * rank, 1);
  TextStyle style;
  EXPECT_THAT(ResultText(result, style), HasSubstr("and 3 more; --all shows every one\n"));
  EXPECT_THAT(ResultText(result, style), Not(HasSubstr("13.000 [")));
  style.all = true;
  EXPECT_THAT(ResultText(result, style), Not(HasSubstr("more; --all")));
  EXPECT_THAT(ResultText(result, style), HasSubstr("13.000 ["));
}

TEST(RenderTextTest, ImplementationsAreNotCutToTheWidth) {
  TextStyle style;
  style.width = 40;
  EXPECT_THAT(ResultText(testing::SampleJob().result(), style),
              HasSubstr("\n  1  {M1 v1} element T128; {F} element T64\n"));
}

TEST(RenderTextTest, ColourMarksRankOneAlone) {
  TextStyle style;
  style.color = true;
  const std::string text = ResultText(testing::SampleJob().result(), style);
  EXPECT_THAT(text, HasSubstr("\033[1m  1   250.0"));
  EXPECT_THAT(text, Not(HasSubstr("\033[1m  2=")));
}

TEST(RenderTextTest, NothingMeasured) {
  v1::JobResult result;
  v1::Candidate* candidate = result.add_candidates();
  candidate->set_outcome(v1::FAULT);
  EXPECT_THAT(ResultText(result, TextStyle()), HasSubstr("no candidate could be measured\n"));
  EXPECT_THAT(ResultText(result, TextStyle()), EndsWith("not ranked: 1 candidate with FAULT\n"));
}

TEST(RenderTextTest, Check) {
  v1::CheckResponse response;
  *response.mutable_graph() = testing::SampleJob().graph();
  EXPECT_EQ(CheckText(response), "OK: function1, 5 nodes, elements = 31,744, sha256:feed\n");
  response.mutable_graph()->set_nodes(1);
  response.mutable_graph()->clear_size_values();
  EXPECT_EQ(CheckText(response), "OK: function1, 1 node, sha256:feed\n");
}

TEST(RenderTextTest, FailedJobSaysItsError) {
  v1::Job job;
  job.set_name("jobs/9");
  job.set_state(v1::FAILED);
  job.mutable_graph()->set_name("g");
  job.mutable_error()->set_code(4);
  job.mutable_error()->set_message("too late");
  EXPECT_EQ(JobText(job, TextStyle()), "jobs/9  FAILED  g  \nDEADLINE_EXCEEDED: too late\n");
}

TEST(RenderTextTest, Lists) {
  EXPECT_EQ(JobListText({}, TextStyle()), "no jobs\n");
  EXPECT_EQ(WorkerListText({}, TextStyle()), "no workers\n");
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = testing::SampleJob();
  EXPECT_EQ(JobListText(jobs, TextStyle()),
            "job        state      target  created               took  graph\n"
            "jobs/1a2b  SUCCEEDED  host    2024-05-01T12:00:00Z        function1\n");
  jobs.mutable_jobs(0)->mutable_update_time()->set_seconds(1714564842);
  jobs.mutable_jobs(0)->set_user("ann");
  jobs.mutable_jobs(0)->mutable_best()->set_seconds(0.000381);
  jobs.mutable_jobs(0)->mutable_best()->set_speedup(2.6);
  EXPECT_EQ(
      JobListText(jobs, TextStyle()),
      "job        state      target  created               took     rank 1           owner  graph\n"
      "jobs/1a2b  SUCCEEDED  host    2024-05-01T12:00:00Z  42.00 s  381.0 us, 2.60x  ann    function1\n");
  jobs.mutable_jobs(0)->mutable_best()->set_predicted(true);
  EXPECT_THAT(JobListText(jobs, TextStyle()), ::testing::HasSubstr("  381.0 us predicted  "));
  v1::ListWorkersResponse workers;
  v1::Worker* worker = workers.add_workers();
  worker->set_name("workers/a");
  worker->set_connected(true);
  worker->set_draining(true);
  *worker->add_devices() = testing::SampleJob().result().device();
  EXPECT_THAT(WorkerListText(workers, TextStyle()), HasSubstr("workers/a  draining  0"));
  EXPECT_THAT(WorkerListText(workers, TextStyle()),
              HasSubstr("Example CPU (host, x86-64-avx512), copies at 20.00 GB/s"));
}

TEST(RenderTextTest, JobsSayWhatTheyWaitFor) {
  v1::Job job;
  job.set_name("jobs/1a2b");
  job.set_state(v1::RUNNING);
  EXPECT_THAT(JobText(job, TextStyle()), ::testing::Not(HasSubstr("waits")));
  EXPECT_FALSE(JobJson(job).contains("waits_for"));
  job.set_waits_for("no worker is connected; the job fails in 30 s unless one comes");
  EXPECT_THAT(JobText(job, TextStyle()), HasSubstr("waits: no worker is connected; the job fails in 30 s"));
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = job;
  EXPECT_THAT(JobListText(jobs, TextStyle()), HasSubstr("\n\njobs/1a2b waits: no worker is connected;"));
  EXPECT_EQ(JobJson(job)["waits_for"], job.waits_for());
  EXPECT_EQ(SubmitJson(job, "")["waits_for"], job.waits_for());
}

TEST(RenderTextTest, WorkersSayWhatTheyCannotDo) {
  const std::string text = WorkerListText(testing::SampleWorkers(), TextStyle());
  EXPECT_EQ(
      text,
      "worker           state      tasks  last contact          version  devices\n"
      "workers/mixed    connected  3      2024-05-01T12:00:00Z  0.9.0    GPU A (cuda, sm_90), copies at "
      "2.000 TB/s; taken out: GPU B (cuda, sm_90), copies at 2.000 TB/s\n"
      "workers/builder  connected  0      2024-05-01T12:00:00Z  0.9.0    builds only: cuda, host "
      "x86-64-avx512\n"
      "workers/leaving  draining   0      2024-05-01T12:00:00Z  0.9.0    GPU C (cuda, sm_90), copies at "
      "2.000 TB/s; builds nothing\n"
      "workers/gone     lost       0      2024-05-01T12:00:00Z  0.9.0    GPU D (cuda, sm_90), copies at "
      "2.000 TB/s; builds nothing\n"
      "workers/old      connected  0      2024-05-01T12:00:00Z  -        GPU E (cuda, sm_90), copies at "
      "2.000 TB/s\n"
      "\n"
      "workers/mixed, GPU B (cuda, GPU-1): taken out for 95.00 s: the probe was wrong\n");
}

TEST(RenderTextTest, ReasonsOfDevicesThatAreOutAreNotCutToTheWidth) {
  TextStyle narrow;
  narrow.width = 40;
  v1::ListWorkersResponse workers = testing::SampleWorkers();
  EXPECT_THAT(WorkerListText(workers, narrow), EndsWith(": taken out for 95.00 s: the probe was wrong\n"));
  workers.mutable_workers(0)->clear_problems();
  EXPECT_THAT(WorkerListText(workers, narrow), Not(HasSubstr("taken out")));
}

TEST(RenderTextTest, WorkerWithNothingToOffer) {
  v1::ListWorkersResponse workers;
  testing::AddWorker(&workers, "idle", true);
  EXPECT_THAT(WorkerListText(workers, TextStyle()), HasSubstr("0.9.0    no device, builds nothing\n"));
}

}  // namespace
}  // namespace fusion
