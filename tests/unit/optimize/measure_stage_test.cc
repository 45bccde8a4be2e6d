// Which candidates run again when they have failed, on which device, and what is said of them. Workers are
// played.
#include "server/optimize/measure_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "absl/strings/str_join.h"
#include "db/store/sqlite_database.h"
#include "server/metrics/server_metrics.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class ConfirmTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    // Programs without launches: nothing is run here.
    set_.add_unfused();
    set_.add_candidates();
  }
  void TearDown() override {
    StopWorkers();
    DispatchTest::TearDown();
  }
  void StopWorkers() {
    stop_ = true;
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    stop_ = false;
  }
  // A worker that times on the devices, where a program has the outcome that `outcome` gives for its name and
  // company.
  using OutcomeOf = std::function<v1::Outcome(const std::string& name, int programs_of_task)>;
  void StartWorkerOf(const std::vector<v1::DeviceDescription>& devices, OutcomeOf outcome) {
    const std::string name = "worker of " + devices.front().uuid();
    Call(Request(name, {}, devices));
    workers_.emplace_back([this, name, devices, outcome = std::move(outcome)] {
      const auto report_of = [&](const v1::Assignment& assignment) {
        return Answer(assignment, [&](const std::string& program) {
          return outcome(program, assignment.time().programs_size());
        });
      };
      Work(Request(name, {}, devices), report_of, stop_);
    });
  }
  void StartWorker(const v1::DeviceDescription& device, OutcomeOf outcome) {
    StartWorkerOf({device}, std::move(outcome));
  }
  // The same, where programs have the outcomes in turn, and then the last one again.
  void StartWorker(const v1::DeviceDescription& device, std::vector<v1::Outcome> outcomes) {
    // Known to the dispatcher before the job looks for it.
    Call(Request("worker of " + device.uuid(), {}, {device}));
    workers_.emplace_back([this, device, outcomes = std::move(outcomes)] {
      size_t next = 0;
      const auto report_of = [&](const v1::Assignment& assignment) {
        return Answer(assignment,
                      [&](const std::string&) { return outcomes[std::min(next++, outcomes.size() - 1)]; });
      };
      Work(Request("worker of " + device.uuid(), {}, {device}), report_of, stop_);
    });
  }
  // A worker that builds the binary, and fails at timings while the store is without it. Meanwhile a second
  // passes with each of its calls, so that it is given them again.
  void StartWorkerThatNeeds(const std::string& binary, const std::string& digest) {
    Call(Request("builder", {}, {device_}));
    workers_.emplace_back([this, binary, digest] {
      v1::SynchronizeRequest request = Request("builder", {}, {device_});
      request.set_wait_seconds(0.02);
      while (!stop_) {
        const v1::SynchronizeResponse response = Call(request);
        request.clear_tasks();
        const bool there = *store_->HasBlob(digest);
        if (!there) clock_.Advance(std::chrono::seconds(1));
        for (const v1::Assignment& assignment : response.assignments()) {
          if (assignment.has_build()) {
            *request.add_tasks() = Built(assignment, v1::OK, Upload(binary));
          } else if (there) {
            *request.add_tasks() = Answer(assignment, [](const std::string&) { return v1::OK; });
          } else {
            *request.add_tasks() = Failed(assignment, "there is no blob " + digest);
          }
        }
      }
    });
  }
  // The job has built it; its programs need it, though they launch nothing here.
  void HasBuilt(const std::string& key, const std::string& digest) {
    v1::BuildTask& build = (*set_.mutable_builds())[key];
    build = HostBuild(key);
    build.set_target(v1::CUDA);
    build.set_arch("sm_90");
    (*built_.mutable_binaries())[key] = digest;
  }
  // Times so many candidates in one round; their outcomes.
  std::vector<v1::Outcome> TimeTogether(int count) {
    while (set_.candidates_size() < count) set_.add_candidates();
    std::vector<int> round(count);
    std::iota(round.begin(), round.end(), 0);
    const std::string job = NewJob();
    const PipelineContext context{*store_, *dispatcher_,        searches_, nullptr,
                                  job,     CancellationToken(), nullptr,   ""};
    v1::JobResult result;
    const auto timer = MakeCandidateTimer(device_, false, built_, context, &set_, &result);
    const absl::Status timed = timer->TimeRound(round);
    EXPECT_TRUE(timed.ok()) << timed;
    std::vector<v1::Outcome> outcomes;
    for (const v1::PlannedCandidate& planned : set_.candidates())
      outcomes.push_back(planned.description().outcome());
    return outcomes;
  }
  std::unique_ptr<CandidateTimer> Timer(const PipelineContext& context) {
    return MakeCandidateTimer(device_, false, built_, context, &set_, &result_);
  }
  v1::Candidate TimeOnce() {
    const std::string job = NewJob();
    const PipelineContext context{*store_, *dispatcher_, searches_, nullptr, job, CancellationToken(),
                                  nullptr, "",           &metrics_};
    const auto timer = Timer(context);
    const absl::Status timed = timer->TimeRound({0});
    EXPECT_TRUE(timed.ok()) << timed;
    return set_.candidates(0).description();
  }
  std::vector<std::string> Ran(const std::string& device) {
    std::lock_guard lock(mutex_);
    return ran_[device];
  }

  const v1::DeviceDescription device_ = CudaDevice("GPU-1");
  std::function<void(v1::TimeResult*)> add_lies_;  // what a worker does to its answers
  SearchPool searches_{SearchLimits()};
  v1::CandidateSet set_;
  v1::JobResult result_;  // of TimeOnce
  ServerMetrics metrics_;

 private:
  static void SetTimes(v1::ProgramMeasurement* measurement) {
    for (v1::Statistics* times : {measurement->mutable_cold(), measurement->mutable_warm()}) {
      times->set_median(2e-6);
      times->set_low(1.9e-6);
      times->set_high(2.1e-6);
      times->set_samples(7);
    }
  }
  v1::TaskReport Answer(const v1::Assignment& assignment,
                        const std::function<v1::Outcome(const std::string& name)>& outcome_of) {
    v1::TaskReport report;
    report.set_task(assignment.task());
    report.set_fence(assignment.fence());
    v1::TimeResult* result = report.mutable_time();
    result->mutable_unfused()->set_outcome(v1::OK);
    SetTimes(result->mutable_unfused());
    std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const v1::Program& program : assignment.time().programs()) {
      v1::ProgramMeasurement* measurement = result->add_programs();
      measurement->set_name(program.name());
      measurement->set_outcome(outcome_of(program.name()));
      if (measurement->outcome() == v1::OK) {
        SetTimes(measurement);
      } else {
        measurement->set_message("illegal address");
      }
      names.push_back(program.name());
    }
    if (add_lies_) add_lies_(result);
    ran_[assignment.time().device_uuid()].push_back(absl::StrJoin(names, " + "));
    return report;
  }

  v1::BuiltCode built_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>>
      ran_;  // names of the programs of each task, by device; guarded by mutex_
};

TEST_F(ConfirmTest, ACandidateThatSucceedsIsNotRunAgain) {
  StartWorker(device_, {v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::OK);
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1"));
}

TEST_F(ConfirmTest, AWrongResultIsNoFaultAndNotRunAgain) {
  StartWorker(device_, {v1::WRONG_RESULT, v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::WRONG_RESULT);
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1"));
}

TEST_F(ConfirmTest, WithOneDeviceAFaultIsConfirmedThere) {
  StartWorker(device_, {v1::FAULT});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::FAULT);
  EXPECT_THAT(candidate.message(), HasSubstr("illegal address; the second time"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1", "candidate 1, again"));
}

TEST_F(ConfirmTest, ACandidateThatFailsOnceHasAnotherChance) {
  StartWorker(device_, {v1::TIMEOUT, v1::OK});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::OK);
  EXPECT_THAT(candidate.message(), HasSubstr("failed before, not the second time: illegal address"));
}

TEST_F(ConfirmTest, AFaultOnTwoDevicesIsTheCandidates) {
  StartWorker(device_, {v1::FAULT, v1::OK});
  StartWorker(CudaDevice("GPU-2"), {v1::FAULT});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::FAULT);
  EXPECT_THAT(candidate.message(), HasSubstr("again on another H200: illegal address"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1"));
  EXPECT_THAT(Ran("GPU-2"), ElementsAre("candidate 1, elsewhere"));
}

TEST_F(ConfirmTest, WhatSucceedsElsewhereIsDecidedByTheDeviceOfTheJob) {
  StartWorker(device_, {v1::FAULT});
  StartWorker(CudaDevice("GPU-2"), {v1::OK});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::FAULT);
  EXPECT_THAT(candidate.message(), HasSubstr("the second time"));
  EXPECT_THAT(candidate.message(), Not(HasSubstr("another H200")));
  EXPECT_THAT(Ran("GPU-2"), ElementsAre("candidate 1, elsewhere"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1", "candidate 1, again"));
}

TEST_F(ConfirmTest, AnotherWorkerIsAskedWhereThereIsOne) {
  const auto fails = [](const std::string&, int) { return v1::FAULT; };
  StartWorkerOf({device_, CudaDevice("GPU-2")}, fails);
  StartWorkerOf({CudaDevice("GPU-3")}, fails);
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::FAULT);
  EXPECT_THAT(candidate.message(), HasSubstr("again on another H200: illegal address"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1"));
  EXPECT_THAT(Ran("GPU-2"), ElementsAre()) << "what ails its machine ails this one too";
  EXPECT_THAT(Ran("GPU-3"), ElementsAre("candidate 1, elsewhere"));
}

TEST_F(ConfirmTest, WithoutAnotherWorkerAnotherDeviceOfTheSameOneConfirms) {
  const auto fails = [](const std::string&, int) { return v1::FAULT; };
  StartWorkerOf({device_, CudaDevice("GPU-2")}, fails);
  StartWorkerOf({CudaDevice("GPU-3", "sm_80")}, fails);
  EXPECT_EQ(TimeOnce().outcome(), v1::FAULT);
  EXPECT_THAT(Ran("GPU-2"), ElementsAre("candidate 1, elsewhere"));
  EXPECT_THAT(Ran("GPU-3"), ElementsAre());
}

TEST_F(ConfirmTest, ADeviceOfAnotherKindConfirmsNothing) {
  StartWorker(device_, {v1::FAULT});
  StartWorker(CudaDevice("GPU-2", "sm_80"), {v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::FAULT);
  EXPECT_THAT(Ran("GPU-2"), ElementsAre());
}

TEST_F(ConfirmTest, ABinaryThatTheStoreHasLostIsBuiltAgain) {
  const std::string digest = Upload("binary of k");
  HasBuilt("k", digest);
  ASSERT_TRUE(store_->PutBuild({"k", "OK", digest, "", 1, clock_.Now()}).ok());
  {
    auto database =
        Database::Open(folder_ + "/fusion.db", Database::Mode::kReadWrite, std::chrono::seconds(5));
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Execute("UPDATE blobs SET data = x'00'").ok());
  }
  ASSERT_TRUE(absl::IsDataLoss(store_->GetBlob(digest).status()));  // as a worker reads it
  StartWorkerThatNeeds("binary of k", digest);
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::OK) << candidate.message();
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1, rebuilt"));
  EXPECT_EQ(*store_->GetBlob(digest), "binary of k");
}

TEST_F(ConfirmTest, WhatIsBuiltAgainAsSomethingElseIsOfNoUseToTheJob) {
  HasBuilt("k", "sha256:lost");
  StartWorkerThatNeeds("another binary", "sha256:lost");
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::WORKER_LOST);
  EXPECT_THAT(candidate.message(), HasSubstr("there is no blob sha256:lost"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre());
}

using TogetherTest = ConfirmTest;

TEST_F(TogetherTest, FourCandidatesAtMostShareATiming) {
  StartWorker(device_, {v1::OK});
  EXPECT_THAT(TimeTogether(9), Each(v1::OK));
  EXPECT_THAT(Ran("GPU-1"), UnorderedElementsAre("candidate 1 + candidate 2 + candidate 3",
                                                 "candidate 4 + candidate 5 + candidate 6",
                                                 "candidate 7 + candidate 8 + candidate 9"));
}

TEST_F(TogetherTest, OneBadCandidateIsBelievedAndTheOthersAreNotRunAgain) {
  StartWorker(device_,
              [](const std::string& name, int) { return name == "candidate 2" ? v1::WRONG_RESULT : v1::OK; });
  EXPECT_THAT(TimeTogether(4), ElementsAre(v1::OK, v1::WRONG_RESULT, v1::OK, v1::OK));
  EXPECT_THAT(Ran("GPU-1"), SizeIs(1));
}

TEST_F(TogetherTest, WhatAnotherBadCandidateMayHaveSpoiltIsRunAlone) {
  // The second writes into what belongs to the third, which is right where it runs alone.
  StartWorker(device_, [](const std::string& name, int programs) {
    return name.starts_with("candidate 2") || (name == "candidate 3" && programs > 1) ? v1::WRONG_RESULT
                                                                                      : v1::OK;
  });
  EXPECT_THAT(TimeTogether(4), ElementsAre(v1::OK, v1::WRONG_RESULT, v1::OK, v1::OK));
  EXPECT_THAT(Ran("GPU-1"), UnorderedElementsAre("candidate 1 + candidate 2 + candidate 3 + candidate 4",
                                                 "candidate 2, alone", "candidate 3, alone"));
}

TEST_F(TogetherTest, AFaultTakesNobodyAlong) {
  StartWorker(device_, [](const std::string& name, int) {
    return name.starts_with("candidate 1") ? v1::FAULT : v1::OK;
  });
  EXPECT_THAT(TimeTogether(3), ElementsAre(v1::FAULT, v1::OK, v1::OK));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1 + candidate 2 + candidate 3", "candidate 1, again"));
}

TEST_F(TogetherTest, OneThatLosesItsWorkerIsFoundByRunningEachAlone) {
  StartWorker(device_, [](const std::string& name, int programs) {
    return programs > 1 || name.starts_with("candidate 3") ? v1::WORKER_LOST : v1::OK;
  });
  EXPECT_THAT(TimeTogether(4), ElementsAre(v1::OK, v1::OK, v1::WORKER_LOST, v1::OK));
}

// What a worker says of a program that is steady or not; the fastest sample of one that is not is as short.
void SetSteady(bool steady, double seconds, v1::ProgramMeasurement* measurement) {
  measurement->set_steady(steady);
  v1::Statistics* times = measurement->mutable_cold();
  times->set_quick(seconds);
  times->set_low(0.95 * seconds);
  times->set_median(steady ? seconds : 3 * seconds);
  times->set_high(steady ? 1.05 * seconds : 9 * seconds);
}

class FinalRaceTest : public ConfirmTest {
 protected:
  // Two candidates in a round and the final race, where those are steady of which `steady` says so by the
  // name of their program and whether it is the final race.
  // All take `slower` times as long from the second timing on.
  void Race(std::function<bool(const std::string& name, int timing)> steady, double slower = 1) {
    int timings = 0;
    add_lies_ = [&](v1::TimeResult* result) {
      const double factor = timings > 0 ? slower : 1;
      SetSteady(steady("unfused", timings), 5e-6 * factor, result->mutable_unfused());
      for (v1::ProgramMeasurement& measurement : *result->mutable_programs())
        SetSteady(steady(measurement.name(), timings), 2e-6 * factor, &measurement);
      ++timings;
    };
    StartWorker(device_, {v1::OK});
    set_.add_candidates();
    const std::string job = NewJob();
    const PipelineContext context{*store_, *dispatcher_,        searches_, nullptr,
                                  job,     CancellationToken(), nullptr,   ""};
    const auto timer = Timer(context);
    ASSERT_TRUE(timer->TimeRound({0, 1}).ok());
    const absl::Status finished = timer->Finish();
    ASSERT_TRUE(finished.ok()) << finished;
    StopWorkers();
  }
};

TEST_F(FinalRaceTest, SteadyTimesAreBelieved) {
  Race([](const std::string&, int) { return true; });
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1 + candidate 2", "candidate 1 + candidate 2"));
  EXPECT_TRUE(set_.candidates(0).description().steady());
}

TEST_F(FinalRaceTest, WhereTheyDoNotTellTheFastestItIsRepeatedTwice) {
  Race([](const std::string& name, int) { return !name.starts_with("candidate 2"); });
  // The second may be the faster one as far as its fastest samples tell.
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1 + candidate 2", "candidate 2 + candidate 1",
                                        "candidate 2, repeat 1 + candidate 1, repeat 1",
                                        "candidate 2, repeat 2 + candidate 1, repeat 2"));
  EXPECT_TRUE(set_.candidates(0).description().steady());
  EXPECT_FALSE(set_.candidates(1).description().steady());
}

TEST_F(FinalRaceTest, ItEndsWhenTheyDo) {
  Race([](const std::string&, int timing) { return timing >= 2; });
  EXPECT_THAT(Ran("GPU-1"), SizeIs(3));
  EXPECT_EQ(set_.candidates(0).description().measured().median(), 2e-6);
}

TEST_F(FinalRaceTest, ATimeThatIsSteadyButManyTimesAnEarlierOneIsOfABusyMachine) {
  Race([](const std::string&, int) { return true; }, /*slower=*/80);
  EXPECT_EQ(set_.candidates(0).description().measured().median(), 2e-6);
  EXPECT_EQ(result_.unfused().median(), 5e-6);
}

TEST_F(FinalRaceTest, ASteadyTimeIsNotReplacedByOneThatIsNot) {
  Race([](const std::string&, int timing) { return timing == 0; });
  EXPECT_THAT(Ran("GPU-1"), SizeIs(2)) << "the times of the round tell";
  EXPECT_EQ(set_.candidates(0).description().measured().median(), 2e-6);
  EXPECT_EQ(result_.unfused().median(), 5e-6);
}

using LyingWorkerTest = ConfirmTest;

TEST_F(LyingWorkerTest, ProgramsThatItWasNotGivenAreNotThere) {
  set_.add_unfused();
  add_lies_ = [](v1::TimeResult* result) {
    for (int i = 0; i < 100; ++i) {
      v1::ProgramMeasurement* measurement = result->add_programs();
      measurement->set_outcome(v1::OK);
      measurement->mutable_cold()->set_median(1e-9 / (i + 1));
    }
  };
  StartWorker(device_, {v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::OK);
}

TEST_F(LyingWorkerTest, TimesThatAreNoneAreItsFault) {
  for (const double wrong :
       {std::numeric_limits<double>::quiet_NaN(), -1.0, std::numeric_limits<double>::infinity()}) {
    add_lies_ = [wrong](v1::TimeResult* result) {
      result->mutable_programs(0)->mutable_cold()->set_median(wrong);
    };
    StartWorker(CudaDevice("GPU-1"), {v1::OK});
    const v1::Candidate candidate = TimeOnce();
    EXPECT_EQ(candidate.outcome(), v1::WORKER_LOST) << wrong;
    EXPECT_EQ(candidate.message(), "the worker reported times that are none");
    EXPECT_FALSE(candidate.has_cold());
    StopWorkers();
    *set_.mutable_candidates(0) = {};
  }
}

TEST_F(LyingWorkerTest, SuccessWithoutTheTimesThatRankIsItsFault) {
  const std::vector<std::function<void(v1::ProgramMeasurement*)>> lies = {
      [](v1::ProgramMeasurement* measurement) { measurement->clear_cold(); },
      [](v1::ProgramMeasurement* measurement) { measurement->mutable_cold()->set_median(0); },
      [](v1::ProgramMeasurement* measurement) { measurement->mutable_cold()->set_samples(0); },
      [](v1::ProgramMeasurement* measurement) { measurement->mutable_cold()->set_samples(-1); }};
  for (size_t i = 0; i < lies.size(); ++i) {
    add_lies_ = [&](v1::TimeResult* result) { lies[i](result->mutable_programs(0)); };
    StartWorker(device_, {v1::OK});
    const v1::Candidate candidate = TimeOnce();
    EXPECT_EQ(candidate.outcome(), v1::WORKER_LOST) << i;
    EXPECT_EQ(candidate.message(), "the worker reported success without a time of it");
    EXPECT_FALSE(candidate.has_measured());
    StopWorkers();
    *set_.mutable_candidates(0) = {};
  }
  EXPECT_EQ(metrics_.refused_measurements->value(), 4);
}

TEST_F(LyingWorkerTest, SuccessOfTheUnfusedCoverWithoutATimeIsNone) {
  add_lies_ = [](v1::TimeResult* result) { result->mutable_unfused()->clear_cold(); };
  StartWorker(device_, {v1::OK});
  TimeOnce();
  EXPECT_FALSE(result_.has_unfused());
  EXPECT_EQ(metrics_.refused_measurements->value(), 1);
}

TEST_F(LyingWorkerTest, WhereWarmTimesRankItIsThoseThatMustBeThere) {
  result_.set_cache(v1::WARM);
  add_lies_ = [](v1::TimeResult* result) { result->mutable_programs(0)->clear_warm(); };
  StartWorker(device_, {v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::WORKER_LOST);
  StopWorkers();
  *set_.mutable_candidates(0) = {};
  result_.set_cache(v1::COLD);
  StartWorker(device_, {v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::OK);
}

TEST_F(LyingWorkerTest, ATimeOfOtherCodeIsNone) {
  add_lies_ = [](v1::TimeResult* result) { result->mutable_programs(0)->add_binaries("sha256:of another"); };
  StartWorker(device_, {v1::OK});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::WORKER_LOST);
  EXPECT_EQ(candidate.message(), "the worker reported that other code ran than that of the program");
  EXPECT_FALSE(candidate.has_measured());
  EXPECT_EQ(metrics_.refused_measurements->value(), 1);
}

TEST_F(LyingWorkerTest, AWrongResultOfOtherCodeIsNotTheCandidates) {
  add_lies_ = [](v1::TimeResult* result) { result->mutable_programs(0)->add_binaries("sha256:of another"); };
  StartWorker(device_, {v1::WRONG_RESULT});
  EXPECT_EQ(TimeOnce().outcome(), v1::WORKER_LOST);
}

TEST_F(LyingWorkerTest, SoAreOutcomesThatThereAreNot) {
  StartWorker(device_, {static_cast<v1::Outcome>(999)});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::WORKER_LOST);
  EXPECT_EQ(candidate.message(), "the worker reported an outcome 999, which there is not");
}

}  // namespace
}  // namespace fusion
