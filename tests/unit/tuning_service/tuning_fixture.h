// A registry over a store in a folder of its own, and programs that connect to it without a wire.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/store/store.h"
#include "server/tuner/tuning_registry.h"

namespace fusion {

inline constexpr char kTile[] =
    "parameters { name: 'tile' integer { lower: 1 upper: 64 step: 1 } default_value: 8 }";

inline v1::SectionDeclaration SectionOf(const std::string& text, const std::string& device = "cpu",
                                        int64_t n = 1000) {
  v1::SectionDeclaration declaration;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &declaration)) << text;
  declaration.set_program("program");
  declaration.set_section("section");
  declaration.set_device_class(device);
  v1::ContextSize* size = declaration.add_context();
  size->set_name("n");
  size->set_value(n);
  return declaration;
}

// One connection, and what it was told.
class TestProgram {
 public:
  TestProgram(TuningRegistry& registry, const std::string& process)
      : registry_(registry), told_(std::make_shared<Told>()) {
    auto outbox = std::make_shared<ProgramOutbox>([told = told_] {
      std::lock_guard lock(told->mutex);
      told->woken = true;
      told->changed.notify_all();
    });
    outbox_ = outbox;
    v1::Hello hello;
    hello.set_process(process);
    absl::StatusOr<std::shared_ptr<TuningProgram>> program = registry.Connect(hello, outbox);
    EXPECT_TRUE(program.ok()) << program.status();
    if (program.ok()) program_ = *std::move(program);
    last_sequence = Expect(&v1::TuneResponse::has_welcome).welcome().last_sequence();
    sequence = last_sequence;
  }
  ~TestProgram() { Disconnect(); }
  void Disconnect() {
    if (program_) registry_.Disconnect(*program_);
    program_.reset();
  }
  // Acts as if the connection broke and nobody noticed.
  void Abandon() { program_.reset(); }

  v1::Declared Declare(const v1::SectionDeclaration& declaration, uint32_t handle = 1) {
    v1::DeclareSection declare;
    declare.set_section(handle);
    *declare.mutable_declaration() = declaration;
    const absl::Status status = registry_.Declare(*program_, declare);
    EXPECT_TRUE(status.ok()) << status;
    const v1::Declared declared = Expect(&v1::TuneResponse::has_declared).declared();
    EXPECT_EQ(declared.section(), handle);
    return declared;
  }

  static v1::TuningReport Run(std::vector<double> values, double value, uint64_t proposal = 0,
                              uint32_t handle = 1) {
    v1::TuningReport report;
    report.set_section(handle);
    report.set_proposal(proposal);
    report.mutable_configuration()->mutable_values()->Add(values.begin(), values.end());
    report.set_count(1);
    report.set_mean(value);
    report.set_minimum(value);
    return report;
  }
  static v1::TuningReport Run(const v1::TuningProposal& proposal, double value, uint32_t handle = 1) {
    const auto& values = proposal.configuration().values();
    return Run(std::vector<double>(values.begin(), values.end()), value, proposal.id(), handle);
  }

  TuningProgram& program() { return *program_; }
  absl::Status Send(const v1::ReportBatch& batch) { return registry_.Report(*program_, batch); }
  // Sends the reports as the next batch.
  absl::Status Report(const std::vector<v1::TuningReport>& reports, int wanted = -1, uint32_t handle = 1) {
    v1::ReportBatch batch;
    batch.set_sequence(++sequence);
    for (const v1::TuningReport& report : reports) *batch.add_reports() = report;
    reported += reports.size();
    if (wanted >= 0) {
      v1::ProposalDemand* demand = batch.add_demands();
      demand->set_section(handle);
      demand->set_wanted(static_cast<uint32_t>(wanted));
    }
    return Send(batch);
  }

  // Returns the next message of this kind; others stay. The test fails after a while.
  v1::TuneResponse Expect(bool (v1::TuneResponse::*kind)() const) {
    return Expect([kind](const v1::TuneResponse& response) { return (response.*kind)(); });
  }
  v1::TuneResponse Expect(const std::function<bool(const v1::TuneResponse&)>& is) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      while (std::optional<v1::TuneResponse> next = outbox_->Next()) received_.push_back(*std::move(next));
      for (auto response = received_.begin(); response != received_.end(); ++response) {
        if (!is(*response)) continue;
        v1::TuneResponse found = *std::move(response);
        received_.erase(response);
        return found;
      }
      std::unique_lock lock(told_->mutex);
      if (!told_->changed.wait_until(lock, deadline, [&] { return std::exchange(told_->woken, false); })) {
        ADD_FAILURE() << "the message did not come";
        return {};
      }
    }
  }
  v1::TuningChoice ExpectChoice() { return Expect(&v1::TuneResponse::has_choice).choice(); }
  std::vector<v1::TuningProposal> ExpectProposals(size_t count) {
    std::vector<v1::TuningProposal> proposals;
    while (proposals.size() < count && !::testing::Test::HasFailure()) {
      const v1::TuningChoice choice = ExpectChoice();
      proposals.insert(proposals.end(), choice.proposals().begin(), choice.proposals().end());
    }
    return proposals;
  }
  void ExpectAcknowledged(uint64_t to) {
    Expect([to](const v1::TuneResponse& response) {
      return response.has_acknowledged() && response.acknowledged().sequence() >= to;
    });
  }
  // Returns the messages that wait, without waiting.
  std::vector<v1::TuneResponse> Received() {
    while (std::optional<v1::TuneResponse> next = outbox_->Next()) received_.push_back(*std::move(next));
    return {received_.begin(), received_.end()};
  }
  std::optional<absl::Status> ended() const { return outbox_->ended(); }

  uint64_t last_sequence = 0;
  uint64_t sequence = 0;
  uint64_t reported = 0;  // by Report

 private:
  struct Told {
    std::mutex mutex;
    std::condition_variable changed;
    bool woken = false;  // guarded by mutex
  };
  TuningRegistry& registry_;
  std::shared_ptr<Told> told_;
  std::shared_ptr<ProgramOutbox> outbox_;
  std::shared_ptr<TuningProgram> program_;
  std::deque<v1::TuneResponse> received_;
};

class TuningTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fusion_tuning_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    Start();
  }
  void TearDown() override {
    Stop();
    std::filesystem::remove_all(folder_);
  }
  void Start() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(folder_ + "/fusion.db", store_options_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    pool_ = std::make_unique<boost::asio::thread_pool>(2);
    registry_ = std::make_unique<TuningRegistry>(*store_, *pool_, options_, nullptr,
                                                 [this](const std::string& tuning) {
                                                   std::lock_guard lock(changed_mutex_);
                                                   changed_.insert(tuning);
                                                 });
  }
  void Stop() {
    if (registry_) registry_->Stop();
    if (pool_) pool_->join();
    registry_.reset();
    pool_.reset();
    store_.reset();
  }
  void Restart() {
    Stop();
    Start();
  }
  // 1 at tile = 40, more elsewhere.
  static double Valley(double tile) { return 1 + std::abs(tile - 40) / 20; }
  // Runs proposals until so many have been run, or the search has converged.
  void Tune(TestProgram& program, int runs, const std::function<double(double)>& value, uint32_t handle = 1) {
    ASSERT_TRUE(program.Report({}, 4, handle).ok());
    std::vector<v1::TuningProposal> proposals;
    for (int run = 0; run < runs && !HasFatalFailure();) {
      const v1::TuneResponse response = program.Expect([&](const v1::TuneResponse& next) {
        return next.has_choice() && next.choice().section() == handle &&
               (next.choice().proposals_size() > 0 || next.choice().phase() == v1::CONVERGED);
      });
      if (response.choice().proposals_size() == 0) break;
      std::vector<v1::TuningReport> reports;
      for (const v1::TuningProposal& proposal : response.choice().proposals())
        reports.push_back(TestProgram::Run(proposal, value(proposal.configuration().values(0)), handle));
      run += static_cast<int>(reports.size());
      ASSERT_TRUE(program.Report(reports, 4, handle).ok());
    }
    program.ExpectAcknowledged(program.sequence);
  }

  std::string folder_;
  TunerOptions options_;
  StoreOptions store_options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<boost::asio::thread_pool> pool_;
  std::mutex changed_mutex_;
  std::set<std::string> changed_;  // guarded by changed_mutex_
  std::unique_ptr<TuningRegistry> registry_;
};

}  // namespace fusion
