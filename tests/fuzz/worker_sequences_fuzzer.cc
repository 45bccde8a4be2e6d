// Any bytes as what workers say one after the other (worker_sequences.h).
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/fuzz/worker_sequences.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kInputsOfStore = 1000;  // what ended stays in it
  static std::unique_ptr<fusion::WorkerSequences> farm;
  static int inputs = 0;
  if (inputs++ % kInputsOfStore == 0) {
    farm.reset();
    farm = std::make_unique<fusion::WorkerSequences>();
  }
  farm->Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
