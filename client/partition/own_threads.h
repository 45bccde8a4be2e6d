// Signals and forks, for threads that the library makes beside the program's own.
#pragma once

#include <signal.h>

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

}  // namespace fusion
