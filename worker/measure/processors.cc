#include "worker/measure/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace fusion {
namespace {

std::string Text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::optional<double> Number(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !(number > 0)) return std::nullopt;  // "max", -1: none
  return number;
}

// Version 2: cpu.max, "QUOTA PERIOD" in microseconds. Version 1: a file for each.
std::optional<double> QuotaOf(const std::filesystem::path& folder) {
  std::optional<double> quota, period;
  const std::string maximum = Text(folder / "cpu.max");
  const std::vector<absl::string_view> words =
      absl::StrSplit(maximum, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (words.size() == 2) {
    quota = Number(words[0]);
    period = Number(words[1]);
  } else {
    quota = Number(Text(folder / "cpu.cfs_quota_us"));
    period = Number(Text(folder / "cpu.cfs_period_us"));
  }
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

}  // namespace

std::optional<double> ProcessorQuota(absl::string_view groups, const std::filesystem::path& root) {
  std::optional<double> least;
  for (absl::string_view line : absl::StrSplit(groups, '\n', absl::SkipEmpty())) {
    // HIERARCHY:CONTROLLERS:PATH; the second version has no controllers.
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    std::vector<std::filesystem::path> mounts;
    if (parts[1].empty()) mounts = {root, root / "unified"};
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end())
      mounts = {root / "cpu", root / "cpu,cpuacct"};
    for (const std::filesystem::path& mount : mounts) {
      for (std::filesystem::path group = std::string(parts[2]);; group = group.parent_path()) {
        if (const std::optional<double> quota = QuotaOf(mount / group.relative_path()))
          least = std::min(least.value_or(*quota), *quota);
        if (!group.has_relative_path()) break;
      }
    }
  }
  return least;
}

int AvailableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int processors = sched_getaffinity(0, sizeof set, &set) == 0
                       ? CPU_COUNT(&set)
                       : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const std::optional<double> quota = ProcessorQuota(Text("/proc/self/cgroup"), "/sys/fs/cgroup"))
    processors = std::min(processors, static_cast<int>(std::ceil(*quota)));
  return std::max(processors, 1);
}

}  // namespace fusion
