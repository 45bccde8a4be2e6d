#include "client/tuner/process.h"

#include <pthread.h>

#include "client/tuner/tuner.h"

namespace fusion::tuning {

Process& Process::Get() {
  static Process* const process = new Process;
  return *process;
}

Process::Process() { pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild); }

size_t Process::TakeSlot(uint64_t section_serial) {
  for (size_t slot = 0; slot < section_serials.size(); ++slot)
    if (section_serials[slot] == 0) {
      section_serials[slot] = section_serial;
      return slot;
    }
  section_serials.push_back(section_serial);
  return section_serials.size() - 1;
}

// All mutexes that a child may want are held by the forking thread, so that none is locked for ever there.
void Process::BeforeFork() {
  Process& process = Get();
  process.mutex.lock();
  for (Tuner* tuner : process.tuners) tuner->mutex().lock();
}

void Process::AfterForkInParent() {
  Process& process = Get();
  for (Tuner* tuner : process.tuners) tuner->mutex().unlock();
  process.mutex.unlock();
}

void Process::AfterForkInChild() {
  Process& process = Get();
  for (Tuner* tuner : process.tuners) {
    tuner->Forked();
    tuner->mutex().unlock();
  }
  if (!process.tuners.empty()) process.forked_ = true;
  process.mutex.unlock();
}

}  // namespace fusion::tuning
