// The online tuner of loops: found beside this library and made by a thread, as it brings a server with it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "client/partition/background_start.h"
#include "client/partition/loop_tuner.h"

namespace fusion {

class TunerStart {
 public:
  using Make = BackgroundStart<LoopTuner>::Make;

  // null: libfusion_partition_tuner.so, from the folder that this library is in, makes the tuner. Where that
  // file is missing there is none.
  explicit TunerStart(Make make = nullptr) : make_(std::move(make)) {}
  TunerStart(const TunerStart&) = delete;
  TunerStart& operator=(const TunerStart&) = delete;
  ~TunerStart();

  // One thread at a time calls these. Begin does nothing but the first time.
  void Begin();
  // Returns the tuner, null before it is there, where it cannot be had, and in a child of the process. It is
  // owned by this object.
  LoopTuner* Get();

  // Returns "" or why there is no tuner. Any thread may call it.
  std::string Reason();
  // The process ends: waits for a tuner that is about to begin, though not for ever, and finishes it. Any
  // thread may call it; the tuner may be in use.
  void End();

 private:
  std::unique_ptr<LoopTuner> Load();
  LoopTuner* Collect();  // mutex_ is held

  const Make make_;
  BackgroundStart<LoopTuner> start_;
  std::atomic<LoopTuner*> ready_{nullptr};
  std::mutex mutex_;
  // mutex_ guards these fields.
  std::unique_ptr<LoopTuner> tuner_;
  std::string reason_;
};

}  // namespace fusion
