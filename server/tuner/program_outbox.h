// Messages that wait to be sent to one program.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "fusion/v1/tuner.pb.h"

namespace fusion {

// Thread safe. The outbox is bounded, however slowly the program reads and whatever it says again: only the
// newest answer and choice of a section and the newest acknowledgement count, and proposals are limited by
// what the program wants.
class ProgramOutbox {
 public:
  // `wake` is called, from any thread and without a lock held, when there is something after there was
  // nothing. It must not block.
  explicit ProgramOutbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void AddWelcome(uint64_t last_sequence);
  void AddDeclared(v1::Declared declared);
  // Merges the choice with one of the section that still waits: proposals of one generation are added up.
  void AddChoice(v1::TuningChoice choice);
  // Adds up the runs of one section and keeps the newest reason. The refusal goes out before acknowledgements
  // that come later.
  void AddRefused(uint32_t section, const absl::Status& why, uint64_t runs);
  void AddAcknowledged(uint64_t sequence);
  // The stream is to end with this status, before anything else is sent.
  void End(absl::Status status);

  // The next message in the order above; none: wake will be called.
  std::optional<v1::TuneResponse> Next();
  // Returns the status that End has set.
  std::optional<absl::Status> ended() const;

 private:
  void Wake(std::unique_lock<std::mutex> lock);

  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  // mutex_ guards these fields.
  bool awake_ = false;  // wake was called, and Next has not said that there is nothing
  std::optional<uint64_t> welcome_;
  std::deque<v1::Declared> declared_;
  std::map<uint32_t, v1::ReportRefused> refused_;  // by section
  std::optional<uint64_t> acknowledged_;
  std::map<uint32_t, v1::TuningChoice> choices_;
  std::deque<uint32_t> choice_order_;
  std::optional<absl::Status> ended_;
};

}  // namespace fusion
