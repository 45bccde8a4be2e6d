// Strategies that try one point after the other, written as straight code: `const double cost = co_await
// Try(point);`.
#pragma once

#include <coroutine>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "server/tuner/strategies/strategy.h"

namespace fusion {

// `co_await Try(point)` is the cost of a point that satisfies the constraints; a point that was measured
// before gives it at once. The point is passed by reference: GCC 12 destroys temporaries of a co_await twice.
inline const TuningPoint& Try(const TuningPoint& point) { return point; }

class Routine {
 public:
  struct promise_type {
    TuningPoint wanted;
    double cost = 0;
    Routine get_return_object() { return Routine(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
    auto await_transform(const TuningPoint& point) {
      wanted = point;
      struct Awaiter {
        promise_type& promise;
        bool await_ready() { return false; }
        void await_suspend(std::coroutine_handle<>) {}
        double await_resume() { return promise.cost; }
      };
      return Awaiter{*this};
    }
  };

  Routine() = default;
  explicit Routine(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Routine(Routine&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Routine& operator=(Routine&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Routine() {
    if (handle_) handle_.destroy();
  }
  bool begun() const { return static_cast<bool>(handle_); }
  bool done() const { return handle_ && handle_.done(); }
  const TuningPoint& wanted() const { return handle_.promise().wanted; }
  void Resume(double cost) {
    handle_.promise().cost = cost;
    handle_.resume();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// A strategy made of a routine, which must not outlive the knowledge it was begun with.
class RoutineStrategy : public TuningStrategy {
 public:
  std::optional<TuningPoint> Propose(TuningKnowledge& knowledge) final;
  bool finished() const final { return routine_.done(); }

 protected:
  virtual Routine Run(TuningKnowledge& knowledge) = 0;

 private:
  Routine routine_;
};

// A point near these coordinates that satisfies the constraints: along the way to `inside`, which does, or by
// propagation; `inside` where none is found.
TuningPoint FeasiblePoint(const ParameterSpace& space, const std::vector<double>& units,
                          const TuningPoint& inside);

// Points that differ from this one in one parameter, by `step` in unit coordinates or at least one value, in
// both directions; all other values of an enumeration. Those that break constraints are left out; where
// hardly any point satisfies them (ParameterSpace::sparse), points near those.
std::vector<TuningPoint> Neighbours(const ParameterSpace& space, const TuningPoint& point, double step);

// The smallest step in unit coordinates that changes the value; for a real it is 1e-4.
double SmallestStep(const ParameterSpace& space, size_t axis);

}  // namespace fusion
