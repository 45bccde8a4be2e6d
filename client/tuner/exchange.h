// The conversation with the server over one stream after another: which process this is, what it tunes, what
// was measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "client/tuner/outbox.h"
#include "client/tuner/tune_link.h"

namespace fusion::tuning {

// A time in nanoseconds that never comes.
inline constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

struct ExchangeOptions {
  TuneDialer dial;
  std::string server;  // "the server at host:port"
  // Any thread calls it when Step has something to do.
  std::function<void()> wake;
  // Tells a person a line.
  std::function<void(const std::string&)> notice;
  // Takes Declared, ReportRefused and TuningChoice.
  std::function<void(const v1::TuneResponse&)> answer;
};

// The background thread alone uses it. Batches of the outbox are sent in order and again on a new stream,
// until they are acknowledged.
class Exchange {
 public:
  Exchange(ExchangeOptions options, Outbox& outbox);
  ~Exchange();

  // Declares the section on this stream and on all later ones.
  void Declare(const v1::DeclareSection& section);
  // Takes what has come, connects, writes; never waits. The time is that of NowNanoseconds().
  void Step(uint64_t now);
  // Ends the stream, if there is one.
  void Close();
  // Returns when Step has something to do although nothing comes.
  uint64_t next_step() const;

  // The server has said welcome, and batches may be sealed.
  bool ready() const { return ready_; }
  // A stream could not be had since the last that was ready.
  bool unreachable() const { return unreachable_; }
  uint64_t connections() const { return connections_; }
  // The server stored, and refused, so many of the runs that were sent.
  uint64_t acknowledged_runs() const { return acknowledged_runs_; }
  uint64_t refused_runs() const { return refused_runs_; }
  // The time from sending a batch until it is stored.
  uint64_t round_trip_nanoseconds() const { return round_trip_nanoseconds_; }
  // The text of the newest failure; "" when there was none.
  const std::string& failure() const { return failure_; }

 private:
  class Inbox;
  void Connect(uint64_t now);
  void Disconnected(const absl::Status& status, uint64_t now);
  void Receive(const v1::TuneResponse& response, uint64_t now);
  void Write(uint64_t now);
  void Acknowledge(uint64_t sequence);

  const ExchangeOptions options_;
  Outbox& outbox_;
  std::string process_;  // of Hello
  std::vector<v1::DeclareSection> sections_;

  std::unique_ptr<Inbox> inbox_;    // outlives the link
  std::unique_ptr<TuneLink> link_;  // null: between streams
  std::deque<v1::TuneRequest> control_;
  bool writing_ = false;
  bool ready_ = false;
  bool unreachable_ = false;
  bool told_ = false;  // that the server cannot be reached
  uint64_t connections_ = 0;
  uint64_t connect_at_ = 0;     // no link: when the next one is tried
  uint64_t welcome_until_ = 0;  // a link that is not ready: when it is given up
  uint64_t delay_nanoseconds_;
  std::string failure_;
  std::minstd_rand random_;

  uint64_t acknowledged_runs_ = 0;
  uint64_t refused_runs_ = 0;
  uint64_t refused_waiting_ = 0;  // of these, in batches that are not acknowledged yet
  uint64_t timed_sequence_ = 0;   // 0: none
  uint64_t timed_since_ = 0;
  uint64_t round_trip_nanoseconds_ = 1'000'000;
};

}  // namespace fusion::tuning
