#include "client/partition/own_threads.h"

#include <pthread.h>

#include <atomic>

namespace fusion {
namespace {

std::atomic<int> g_forks{0};

}  // namespace

int ForksUntilNow() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++g_forks; });
  (void)registered;
  return g_forks;
}

SignalsForOthers::SignalsForOthers() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before_);
}

SignalsForOthers::~SignalsForOthers() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace fusion
