// Any bytes as calls of the methods of a server (service_calls.h).
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/fuzz/service_calls.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kInputsOfStore = 1000;  // what ended stays in it
  static std::unique_ptr<fusion::ServiceCalls> farm;
  static int inputs = 0;
  if (inputs++ % kInputsOfStore == 0) {
    farm.reset();
    farm = std::make_unique<fusion::ServiceCalls>();
  }
  farm->Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
