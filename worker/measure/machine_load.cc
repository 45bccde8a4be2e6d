#include "worker/measure/machine_load.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace fusion {
namespace {

// The mean of the numbers that `read` gives for as many processors as it has some for; 0: none.
template <class Read>
double Mean(Read read) {
  double sum = 0, number = 0;
  int count = 0;
  while (read(count, &number)) {
    sum += number;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

double ProcessorMhz(const std::filesystem::path& root) {
  const std::filesystem::path processors = root / "sys/devices/system/cpu";
  const double khz = Mean([&](int i, double* number) {
    std::ifstream file(processors / ("cpu" + std::to_string(i)) / "cpufreq/scaling_cur_freq");
    return static_cast<bool>(file >> *number);
  });
  if (khz > 0) return khz / 1e3;
  std::ifstream file(root / "proc/cpuinfo");
  return Mean([&](int, double* number) {
    for (std::string line; std::getline(file, line);)
      if (line.rfind("cpu MHz", 0) == 0)
        return static_cast<bool>(std::istringstream(line.substr(line.find(':') + 1)) >> *number);
    return false;
  });
}

}  // namespace

MachineLoad::MachineLoad(std::filesystem::path root) : root_(std::move(root)), begin_(Now()) {}

// proc_stat(5): "cpu", the sum of "cpu0", "cpu1" ..., has user, nice, system, idle, iowait, irq, softirq and
// steal; what guests take is in user.
MachineLoad::Moment MachineLoad::Now() const {
  Moment moment;
  std::ifstream file(root_ / "proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "procs_running") words >> moment.running;
    if (name == "cpu") {
      double ticks = 0;
      for (int i = 0; i < 8 && words >> ticks; ++i) {
        moment.ticks += ticks;
        if (i == 7) moment.stolen_ticks = ticks;
      }
    } else if (name.rfind("cpu", 0) == 0) {
      ++moment.processors;
    }
  }
  return moment;
}

void MachineLoad::Describe(v1::MeasurementConditions* conditions) const {
  conditions->set_processor_mhz(ProcessorMhz(root_));
  const Moment now = Now();
  if (now.processors == 0) return;
  const double running = std::max(0, begin_.running - 1) + std::max(0, now.running - 1);
  conditions->set_load(running / 2 / now.processors);
  const double ticks = now.ticks - begin_.ticks;
  if (ticks > 0)
    conditions->set_stolen_share(std::clamp((now.stolen_ticks - begin_.stolen_ticks) / ticks, 0.0, 1.0));
}

}  // namespace fusion
