#include "client/cli/doctor_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/number_format.h"
#include "client/cli/table.h"

namespace fusion {

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
    absl::StrAppend(&text, "device: ", DeviceText(device.description), ", ",
                    FormatBytes(static_cast<double>(device.description.memory_bytes())), " memory, on ",
                    device.worker, "\n");
  if (report.devices.empty() && !report.server_is_away)
    absl::StrAppend(&text, "no device: check and explain work, submit does not\n");
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
                       {"worker", device.worker}});
  }
  return {{"schema", "fusion.doctor/1"},
          {"usable", report.usable()},
          {"findings", std::move(findings)},
          {"devices", std::move(devices)}};
}

}  // namespace fusion
