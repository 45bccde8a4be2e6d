#include "client/partition/tuner_start.h"

#include <dlfcn.h>

#include <utility>

#include "client/partition/own_threads.h"

namespace fusion {
namespace {

constexpr char kLibrary[] = "libfusion_partition_tuner.so";

// The one whose tuner comes from the library. The process ends it.
std::atomic<TunerStart*> g_loaded{nullptr};

void EndLoaded() {
  if (TunerStart* const loaded = g_loaded) loaded->End();
}

// Returns the folder of the file that this function is in, with its slash; "" where that is not known.
std::string OwnFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string file = info.dli_fname;
  return file.substr(0, file.rfind('/') + 1);
}

}  // namespace

TunerStart::~TunerStart() {
  TunerStart* self = this;
  g_loaded.compare_exchange_strong(self, nullptr);
  // In a child the tuner's threads are missing, for which its end would wait.
  if (start_.IsLost()) tuner_.release();  // NOLINT
}

void TunerStart::Begin() {
  if (make_ != nullptr) return start_.Begin(make_);
  g_loaded = this;
  AtEnd(EndLoaded);
  LoaderMutex();
  start_.Begin([this] { return Load(); });
}

std::unique_ptr<LoopTuner> TunerStart::Load() {
  std::unique_ptr<LoopTuner> tuner;
  const std::string folder = OwnFolder();
  std::string reason = "the folder of this library is not known";
  MakeLoopTuner* make = nullptr;
  if (!folder.empty()) {
    std::lock_guard<std::mutex> no_forks(LoaderMutex());
    void* const library = dlopen((folder + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) make = reinterpret_cast<MakeLoopTuner*>(dlsym(library, "fusion_partition_tuner"));
    reason = make == nullptr ? dlerror() : "";
  }
  if (make != nullptr) {
    const char* why = nullptr;
    tuner.reset(make(kLoopTunerVersion, nullptr, &why));
    if (why != nullptr) reason = why;
    AfterLoading();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  reason_ = std::move(reason);
  return tuner;
}

LoopTuner* TunerStart::Collect() {
  if (tuner_ == nullptr) {
    tuner_ = start_.Take();
    ready_ = tuner_.get();
  }
  return tuner_.get();
}

LoopTuner* TunerStart::Get() {
  if (start_.IsLost()) return nullptr;
  if (LoopTuner* const ready = ready_) return ready;
  std::lock_guard<std::mutex> lock(mutex_);
  return Collect();
}

std::string TunerStart::Reason() {
  if (start_.IsLost()) return "";
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

void TunerStart::End() {
  if (start_.IsLost()) return;
  start_.End();
  std::lock_guard<std::mutex> lock(mutex_);
  if (LoopTuner* const tuner = Collect()) tuner->Finish();
}

}  // namespace fusion
