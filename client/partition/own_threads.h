// Signals and forks, for threads that the library makes beside the program's own.
#pragma once

#include <signal.h>

#include <mutex>

namespace fusion {

// Returns how often this process, its parent and so on were forked since this was first called in one of
// them.
int ForksUntilNow();

// Threads that are made while it lives take no signals, which are for the program's own threads. A fault of
// a loop is the exception: where it is blocked the system ends the process and does not call the program's
// handler.
class SignalsForOthers {
 public:
  SignalsForOthers();
  ~SignalsForOthers();
  SignalsForOthers(const SignalsForOthers&) = delete;
  SignalsForOthers& operator=(const SignalsForOthers&) = delete;

 private:
  sigset_t before_;
};

// `end` is called when the process ends, before anything else of it does: before libraries end, also those
// that a thread loads at this moment. It may be called several times, by any thread. At most four functions.
void AtEnd(void (*end)());
// A thread has loaded a library, which ends when the process does, or before.
void AfterLoading();

// Held while a library is loaded: in a child that is forked meanwhile the loader would be locked for ever.
std::mutex& LoaderMutex();

}  // namespace fusion
