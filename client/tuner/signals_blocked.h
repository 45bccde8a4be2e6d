// Threads of the library take no signals.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace fusion::tuning {

// While one lives its thread has all signals blocked, and so have threads that are made meanwhile, for good:
// signals are for the program's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace fusion::tuning
