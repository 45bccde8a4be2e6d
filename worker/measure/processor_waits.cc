#include "worker/measure/processor_waits.h"

#include <fstream>
#include <system_error>

namespace fusion {

double ProcessorWaitSeconds(const std::filesystem::path& root) {
  double waited = 0;  // nanoseconds
  std::error_code unreadable;
  for (const auto& thread : std::filesystem::directory_iterator(root / "proc/self/task", unreadable)) {
    std::ifstream file(thread.path() / "schedstat");
    double ran = 0, waits = 0;
    if (file >> ran >> waits) waited += waits;
  }
  return waited / 1e9;
}

}  // namespace fusion
