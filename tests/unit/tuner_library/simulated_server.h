// A server of tests in the same process, without a network: what it is sent can be read, and it says what it
// is told.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/tuner/tune_link.h"

namespace fusion::testing {

// Thread safe. Unless told otherwise it answers Hello with Welcome, declarations with Declared and `choice`,
// and batches with Acknowledged; each batch counts once.
class SimulatedServer {
 public:
  tuning::TuneDialer Dialer() {
    return [this](tuning::LinkEvents& events) { return std::make_unique<Link>(*this, events); };
  }

  // Refuses connections and breaks the one there is.
  void SetDown(bool down) {
    std::unique_lock lock(mutex_);
    down_ = down;
    if (!down || events_ == nullptr) return;
    tuning::LinkEvents* events = events_;
    open_ = false;
    events->Closed(absl::UnavailableError("killed"));
  }
  void SetAcknowledging(bool acknowledging) {
    std::lock_guard lock(mutex_);
    acknowledging_ = acknowledging;
  }
  // Sets what follows Declared; section is filled in. None: nothing follows.
  void SetChoice(std::function<v1::TuningChoice(const v1::DeclareSection&)> choice) {
    std::lock_guard lock(mutex_);
    choice_ = std::move(choice);
  }
  void SetDeclared(std::function<v1::Declared(const v1::DeclareSection&)> declared) {
    std::lock_guard lock(mutex_);
    declared_ = std::move(declared);
  }
  // Sets what is called for every report of a batch that was not there before, with the lock held: it may use
  // SendLocked.
  void SetOnReport(std::function<void(const v1::TuningReport&)> on_report) {
    std::lock_guard lock(mutex_);
    on_report_ = std::move(on_report);
  }
  void Send(const v1::TuneResponse& response) {
    std::lock_guard lock(mutex_);
    SendLocked(response);
  }
  void SendLocked(const v1::TuneResponse& response) {
    if (open_) events_->Received(response);
  }

  // These return what was received so far.
  std::vector<v1::TuningReport> Reports() {
    std::lock_guard lock(mutex_);
    return reports_;
  }
  std::vector<v1::TuneRequest> Requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  uint64_t Runs() {
    std::lock_guard lock(mutex_);
    uint64_t runs = 0;
    for (const v1::TuningReport& report : reports_) runs += report.count() + report.failures();
    return runs;
  }
  // Waits until `holds` is true; returns false after thirty seconds.
  bool WaitFor(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    std::unique_lock lock(mutex_);
    while (std::chrono::steady_clock::now() < deadline) {
      lock.unlock();
      if (holds()) return true;
      lock.lock();
      changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    return false;
  }

 private:
  class Link : public tuning::TuneLink {
   public:
    Link(SimulatedServer& server, tuning::LinkEvents& events) : server_(server) {
      std::lock_guard lock(server_.mutex_);
      server_.events_ = &events;
      server_.open_ = !server_.down_;
      if (server_.down_) events.Closed(absl::UnavailableError("connection refused"));
    }
    ~Link() override {
      std::lock_guard lock(server_.mutex_);
      server_.events_ = nullptr;
      server_.open_ = false;
    }
    void Write(const v1::TuneRequest& request) override {
      std::lock_guard lock(server_.mutex_);
      if (!server_.open_) return;
      server_.Take(request);
      server_.events_->Written();
    }

   private:
    SimulatedServer& server_;
  };

  void Take(const v1::TuneRequest& request) {
    requests_.push_back(request);
    v1::TuneResponse response;
    if (request.has_hello()) {
      process_ = request.hello().process();
      response.mutable_welcome()->set_last_sequence(last_sequences_[process_]);
      events_->Received(response);
    } else if (request.has_declare()) {
      if (declared_) *response.mutable_declared() = declared_(request.declare());
      response.mutable_declared()->set_section(request.declare().section());
      events_->Received(response);
      if (response.declared().status().code() == 0 && choice_) {
        *response.mutable_choice() = choice_(request.declare());
        response.mutable_choice()->set_section(request.declare().section());
        events_->Received(response);
      }
    } else if (request.reports().sequence() > last_sequences_[process_]) {
      last_sequences_[process_] = request.reports().sequence();
      for (const v1::TuningReport& report : request.reports().reports()) {
        reports_.push_back(report);
        if (on_report_) on_report_(report);
      }
    }
    if (request.has_reports() && acknowledging_) {
      response.mutable_acknowledged()->set_sequence(last_sequences_[process_]);
      events_->Received(response);
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // These are guarded by mutex_.
  tuning::LinkEvents* events_ = nullptr;
  bool open_ = false;
  bool down_ = false;
  bool acknowledging_ = true;
  std::string process_;
  std::map<std::string, uint64_t> last_sequences_;  // by process
  std::function<v1::TuningChoice(const v1::DeclareSection&)> choice_;
  std::function<v1::Declared(const v1::DeclareSection&)> declared_;
  std::function<void(const v1::TuningReport&)> on_report_;
  std::vector<v1::TuningReport> reports_;
  std::vector<v1::TuneRequest> requests_;
};

// A choice with these values.
inline v1::TuningChoice ChoiceOf(const std::vector<double>& best, double expected, v1::TuningPhase phase,
                                 double share = 0.02, uint64_t generation = 1) {
  v1::TuningChoice choice;
  choice.set_generation(generation);
  choice.mutable_best()->mutable_values()->Assign(best.begin(), best.end());
  choice.set_expected_value(expected);
  choice.set_phase(phase);
  choice.set_exploration_share(share);
  return choice;
}

inline void AddProposal(v1::TuningChoice& choice, uint64_t id, const std::vector<double>& values) {
  v1::TuningProposal& proposal = *choice.add_proposals();
  proposal.set_id(id);
  proposal.mutable_configuration()->mutable_values()->Assign(values.begin(), values.end());
}

}  // namespace fusion::testing
