// Tells a blocking call that its result is no longer wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace fusion {

// A flag that goes up once. Copies share the flag. Thread safe.
class CancellationToken {
 public:
  CancellationToken();

  void Cancel();
  bool cancelled() const;

  // Ends the registration of a callback. After the destructor the callback does not run.
  class Registration {
   public:
    Registration(Registration&& other) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration();

   private:
    friend class CancellationToken;
    struct Entry;
    explicit Registration(std::unique_ptr<Entry> entry);
    std::unique_ptr<Entry> entry_;
  };
  // Calls wake() once, from the thread that cancels, or at once if that has happened. wake must be quick and
  // must not use the token.
  [[nodiscard]] Registration OnCancel(std::function<void()> wake) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fusion
