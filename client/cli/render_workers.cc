// Workers as text: their list, and what it and doctor say of each.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/number_format.h"
#include "client/cli/render.h"
#include "client/cli/table.h"

namespace fusion {

std::string WorkerStateText(const v1::Worker& worker) {
  return !worker.connected() ? "lost" : worker.draining() ? "draining" : "connected";
}

std::string ProblemText(const v1::Worker& worker, const v1::DeviceDescription& device) {
  for (const v1::DeviceProblem& problem : worker.problems()) {
    if (problem.device_uuid() != device.uuid()) continue;
    const std::string reason = problem.reason().substr(0, problem.reason().find('\n'));
    return absl::StrCat("taken out",
                        problem.seconds() > 0 ? absl::StrCat(" for ", FormatSeconds(problem.seconds())) : "",
                        ": ", reason.empty() ? "the worker does not say why" : reason);
  }
  return "";
}

bool BuildsNothing(const v1::Worker& worker) {
  return worker.builds().empty() && (!worker.version().empty() || worker.devices().empty());
}

std::string BuildsText(const v1::Worker& worker) {
  if (BuildsNothing(worker)) return worker.devices().empty() ? "no device, builds nothing" : "builds nothing";
  if (worker.builds().empty()) return "builds for its devices";
  const auto append = [](std::string* out, const v1::BuildCapability& build) {
    absl::StrAppend(out, TargetName(build.target()), build.arch().empty() ? "" : " ", build.arch());
  };
  return absl::StrCat(worker.devices().empty() ? "builds only: " : "builds ",
                      absl::StrJoin(worker.builds(), ", ", append));
}

std::string WorkerListText(const v1::ListWorkersResponse& response, const TextStyle& style) {
  if (response.workers().empty()) return "no workers\n";
  Table table;
  for (const char* header : {"worker", "state", "tasks", "last contact", "version", "devices"})
    table.AddColumn(header, Table::Align::kLeft);
  std::string problems;  // below the table, where reasons are not cut to the width
  for (const v1::Worker& worker : response.workers()) {
    std::vector<std::string> devices;
    for (const v1::DeviceDescription& device : worker.devices()) {
      const std::string problem = ProblemText(worker, device);
      devices.push_back(absl::StrCat(problem.empty() ? "" : "taken out: ", DeviceText(device)));
      if (!problem.empty())
        absl::StrAppend(&problems, worker.name(), ", ", device.name(), " (", TargetName(device.target()),
                        ", ", device.uuid(), "): ", problem, "\n");
    }
    // Most have devices and build for them, which needs no words.
    if (worker.devices().empty() || BuildsNothing(worker)) devices.push_back(BuildsText(worker));
    table.AddRow({worker.name(), WorkerStateText(worker), absl::StrCat(worker.running_tasks()),
                  TimeText(worker.last_contact()), worker.version().empty() ? "-" : worker.version(),
                  absl::StrJoin(devices, "; ")});
  }
  return absl::StrCat(table.Print(style.width), problems.empty() ? "" : "\n", problems);
}

}  // namespace fusion
