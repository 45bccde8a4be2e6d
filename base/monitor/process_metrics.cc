#include "base/monitor/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fusion {
namespace {

// The fields of /proc/self/stat behind the name of the program, which may hold anything: [0] is field 3 of
// proc(5).
std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  std::vector<std::string> fields;
  if (name_end == std::string::npos) return fields;
  std::istringstream rest(text.substr(name_end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

double Field(const std::vector<std::string>& fields, size_t number) {
  return fields.size() > number - 3 ? std::strtod(fields[number - 3].c_str(), nullptr) : 0;
}

// Seconds since 1970 at which the machine started.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("btime ", 0) == 0) return std::strtod(line.c_str() + 6, nullptr);
  return 0;
}

double OpenFiles() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error))
    ++count;
  return count;
}

}  // namespace

void AddProcessMetrics(const std::string& program, const std::string& version, Metrics* metrics) {
  metrics->AddGauge("fusion_build_info", "Always 1; the labels say what runs.", {"program", "version"})
      .With({program, version})
      .Set(1);
  auto& resident = metrics->AddGauge("process_resident_memory_bytes", "Resident memory size in bytes.");
  auto& virtual_size = metrics->AddGauge("process_virtual_memory_bytes", "Virtual memory size in bytes.");
  auto& files = metrics->AddGauge("process_open_fds", "Number of open file descriptors.");
  auto& most_files = metrics->AddGauge("process_max_fds", "Maximum number of open file descriptors.");
  auto& processor =
      metrics->AddGauge("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.");
  auto& start = metrics->AddGauge("process_start_time_seconds",
                                  "Start time of the process since unix epoch in seconds.");
  metrics->OnCollect([&] {
    const std::vector<std::string> fields = StatFields();
    const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    processor->Set((Field(fields, 14) + Field(fields, 15)) / ticks);
    start->Set(BootTime() + Field(fields, 22) / ticks);
    virtual_size->Set(Field(fields, 23));
    resident->Set(Field(fields, 24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
    files->Set(OpenFiles());
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) most_files->Set(static_cast<double>(limit.rlim_cur));
  });
}

}  // namespace fusion
