// The thread that keeps choices fresh and carries reports away.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "client/tuner/exchange.h"
#include "client/tuner/outbox.h"
#include "client/tuner/section.h"

namespace fusion::tuning {

class Background {
 public:
  // The tuner outlives it.
  Background(Tuner& tuner, TuneDialer dial, const std::string& server);
  ~Background();

  void Start();
  // Ends the stream and the thread.
  void Stop();

  // Any thread calls this when sections were declared or a flush is asked for.
  void Wake() { sem_post(&wakings_); }
  // A thread calls this when it has pushed a sample. The background thread is woken only where it does not
  // look by itself soon, so a program that reports all the time pays for no system call.
  void WakeIfAsleep() {
    if (asleep_.load(std::memory_order_seq_cst) && asleep_.exchange(false)) Wake();
  }

  uint64_t acknowledged() const { return acknowledged_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  uint64_t connections() const { return connections_.load(std::memory_order_relaxed); }
  bool connected() const { return connected_.load(std::memory_order_relaxed); }
  bool unreachable() const { return unreachable_.load(std::memory_order_relaxed); }

 private:
  struct Proposal {
    uint64_t generation = 0;
    std::vector<double> point;
  };
  // A section as the background thread sees it.
  struct Traffic {
    Section* section = nullptr;
    bool refused = false;
    bool told_refused = false;                           // that reports are refused
    bool chosen = false;                                 // a choice has come
    std::unordered_map<uint64_t, Proposal> outstanding;  // by number: not reported yet
    std::deque<uint64_t> waiting;                        // of these, for room in the section's queue
    uint32_t wanted = 0;                                 // the newest demand
    // These count since window_start.
    uint64_t window_start = 0;
    uint64_t window_runs = 0;
    std::set<const Channel*> window_threads;
  };

  void Loop();
  void Publish();
  void MeetNewSections(uint64_t now);
  void Meet(Section& section, uint64_t now);
  bool Drain(uint64_t now);
  void Take(const Channel& channel, const Sample& sample);
  void RetireEndedThreads();
  void Answer(const v1::TuneResponse& response);
  void Declared(Traffic& traffic, const v1::Declared& declared);
  void Refused(Traffic& traffic, const v1::ReportRefused& refused);
  void Choose(Traffic& traffic, const v1::TuningChoice& choice);
  void Offer(Traffic& traffic);
  void Return(Traffic& traffic, uint64_t proposal);
  void UpdateDemand(Traffic& traffic, uint64_t now);
  // Returns when what is collected may be sent; kNever: nothing is collected.
  uint64_t SealTime(uint64_t now) const;
  void Sleep(bool drained, uint64_t now);

  Tuner& tuner_;
  sem_t wakings_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> acknowledged_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> connections_{0};
  std::atomic<bool> connected_{false};
  std::atomic<bool> unreachable_{false};

  // The background thread alone uses these fields.
  std::vector<Channel*> channels_;
  std::vector<std::unique_ptr<Traffic>> traffic_;  // by Section::id - 1
  size_t traffic_known_ = 0;                       // sections met
  uint64_t discarded_ = 0;                         // runs of refused sections
  Outbox outbox_;
  bool seal_now_ = false;  // a flush is under way
  uint64_t last_seal_ = 0;
  uint64_t rest_ = 0;  // before the next look at threads that report all the time
  Exchange exchange_;

  std::thread thread_;
};

}  // namespace fusion::tuning
