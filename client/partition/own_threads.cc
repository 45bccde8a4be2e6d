#include "client/partition/own_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

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

namespace {

std::atomic<void (*)()> g_ends[4];

void RunEnds() {
  for (const auto& end : g_ends)
    if (void (*const function)() = end) function();
}

// exit() ends objects of the calling thread before all others, also before those of libraries that another
// thread loads at this moment. Where it is not the main thread that calls it, this is too late for what is in
// the making. A main thread that ends before others ends what is made here, without which they go on.
struct EndOfMainThread {
  ~EndOfMainThread() {
    if (is_main) RunEnds();
  }
  bool is_main = false;
};
thread_local EndOfMainThread t_end_of_main_thread;

[[gnu::constructor]] void WatchMainThread() { t_end_of_main_thread.is_main = gettid() == getpid(); }

}  // namespace

void AtEnd(void (*end)()) {
  for (auto& place : g_ends) {
    void (*known)() = nullptr;
    if (place == end || place.compare_exchange_strong(known, end)) break;
  }
  AfterLoading();
}

// The function that is registered last is called first.
void AfterLoading() { std::atexit(RunEnds); }

std::mutex& LoaderMutex() {
  static std::mutex* const mutex = [] {
    pthread_atfork([] { LoaderMutex().lock(); }, [] { LoaderMutex().unlock(); },
                   [] { LoaderMutex().unlock(); });
    return new std::mutex;
  }();
  return *mutex;
}

}  // namespace fusion
