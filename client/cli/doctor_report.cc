#include "client/cli/doctor_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/number_format.h"
#include "client/cli/table.h"

namespace fusion {
namespace {

// Says what keeps candidates and compilers from the rest of the worker's machine.
std::string ConfinedByText(const v1::Confinement& confinement) {
  if (confinement.runner().empty() && confinement.host_code().empty() && confinement.compiler().empty())
    return "unknown";  // a worker of an earlier version
  std::string text = absl::StrCat("runners: ", confinement.runner(), "; host code: ",
                                  confinement.host_code().empty() ? "not offered" : confinement.host_code());
  if (!confinement.compiler().empty()) absl::StrAppend(&text, "; compilers: ", confinement.compiler());
  return text;
}

}  // namespace

bool DoctorReport::usable() const {
  return std::any_of(devices.begin(), devices.end(),
                     [](const Device& device) { return device.problem.empty(); });
}

std::string AddWorkers(const v1::ListWorkersResponse& workers, DoctorReport* report) {
  int connected = 0;
  for (const v1::Worker& worker : workers.workers()) {
    if (!worker.connected()) continue;
    ++connected;
    for (const v1::DeviceDescription& device : worker.devices()) {
      std::string problem = ProblemText(worker, device);
      if (problem.empty() && worker.draining()) problem = "the worker is draining";
      report->devices.push_back({worker.name(), device, std::move(problem)});
    }
  }
  report->workers = workers;
  const int lost = workers.workers_size() - connected;
  return absl::StrCat(Counted(connected, "connected worker"),
                      lost == 0 ? "" : absl::StrCat(", ", FormatCount(lost), " lost"));
}

std::string DoctorText(const DoctorReport& report, const TextStyle& style) {
  Table table;
  for (const char* header : {"part", "found", "detail"}) table.AddColumn(header, Table::Align::kLeft);
  std::string costs;
  for (const Finding& finding : report.findings) {
    const std::string detail = finding.detail.substr(0, finding.detail.find('\n'));
    table.AddRow({finding.name, finding.present ? "yes" : "no", detail});
    if (!finding.present) absl::StrAppend(&costs, "without ", finding.name, ": ", finding.cost, "\n");
  }
  std::string text = table.Print(style.width);
  absl::StrAppend(&text, "\n");
  for (const DoctorReport::Device& device : report.devices)
    absl::StrAppend(&text,
                    device.problem.empty() ? "device: " : "not usable: ", DeviceText(device.description),
                    ", ", FormatBytes(static_cast<double>(device.description.memory_bytes())), " memory, on ",
                    device.worker, device.problem.empty() ? "" : ", ", device.problem, "\n");
  // Workers that are lost are counted in the line of the server; `workers list` has them all.
  for (const v1::Worker& worker : report.workers.workers())
    if (worker.connected())
      absl::StrAppend(&text, "worker: ", worker.name(), ", ", WorkerStateText(worker), ", version ",
                      worker.version().empty() ? "unknown" : worker.version(), ", ", BuildsText(worker),
                      "; confinement: ", ConfinedByText(worker.confinement()), "\n");
  if (!report.usable() && !report.server_is_away)
    absl::StrAppend(&text, report.devices.empty() ? "no device" : "no usable device",
                    ": check and explain work, submit does not\n");
  return text + costs;
}

Json DoctorJson(const DoctorReport& report) {
  Json findings = Json::array(), devices = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"name", finding.name}, {"found", finding.present}, {"detail", finding.detail}});
    if (!finding.present) findings.back()["cost"] = finding.cost;
  }
  for (const DoctorReport::Device& device : report.devices) {
    const v1::DeviceDescription& description = device.description;
    devices.push_back({{"name", description.name()},
                       {"target", TargetName(description.target())},
                       {"arch", description.arch()},
                       {"copy_bytes_per_second", description.copy_bytes_per_second()},
                       {"launch_seconds", description.launch_seconds()},
                       {"peak_flops", description.peak_flops()},
                       {"memory_bytes", description.memory_bytes()},
                       {"worker", device.worker},
                       {"usable", device.problem.empty()},
                       {"problem", device.problem.empty() ? Json() : Json(device.problem)}});
  }
  return {{"schema", "fusion.doctor/1"},
          {"usable", report.usable()},
          {"findings", std::move(findings)},
          {"devices", std::move(devices)},
          {"workers", WorkerListJson(report.workers)["workers"]}};
}

}  // namespace fusion
