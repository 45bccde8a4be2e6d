// Decides what may use the processor. The host is both the machine that builds and a device that is timed: a
// compiler that runs beside a timing on the host would be measured with it. So timings on the host run alone;
// builds, and timings on GPUs, run beside each other.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace fusion {

// Neither side starves: a waiting timing keeps new work out until the running work is done, and work that
// waited while a timing ran goes before the next timing. Thread safe.
class HostGate {
 public:
  // The gate is held while the pass lives.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)), alone_(other.alone_) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->Leave(alone_);
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class HostGate;
    Pass(HostGate* gate, bool alone) : gate_(gate), alone_(alone) {}
    HostGate* gate_ = nullptr;
    bool alone_ = false;
  };

  // Admits builds and GPU timings. Waits; the pass converts to false when stopped before its turn.
  Pass EnterShared(std::stop_token stop);
  // Admits a timing on the host.
  Pass EnterAlone(std::stop_token stop);

 private:
  void Leave(bool alone);
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int shared_ = 0;  // guarded by mutex_, as all below
  int waiting_shared_ = 0;
  int admitted_ = 0;  // of those, how many go before the next timing
  int waiting_alone_ = 0;
  bool alone_ = false;
};

}  // namespace fusion
