#include "client/tuner/thread_state.h"

#include <pthread.h>

#include "client/tuner/process.h"

namespace fusion::tuning {

constinit thread_local ThreadState* ThreadState::current_ = nullptr;

ThreadState& ThreadState::Make() {
  // A key and not a C++ destructor: destructors of other keys may still call the library, and then this one
  // runs again.
  static const pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, EndThread);
    return made;
  }();
  current_ = new ThreadState;
  pthread_setspecific(key, current_);
  return *current_;
}

void ThreadState::EndThread(void* state) {
  auto* thread = static_cast<ThreadState*>(state);
  current_ = nullptr;
  {
    Process& process = Process::Get();
    std::lock_guard lock(process.mutex);
    for (const TunerEntry& entry : thread->tuners)
      if (process.tuner_serials.contains(entry.serial))
        entry.channel->ended.store(true, std::memory_order_release);
  }
  delete thread;
}

}  // namespace fusion::tuning
