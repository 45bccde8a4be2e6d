// Predicts stored measurements of loops anew, without a GPU: how much longer than the fastest case the one
// takes that the model of this program predicts to be first.
//
//   loops_replay FILE [--device FILE] [--details]
//
// FILE: of `loops.py --cases-output`. Exit status: 0 done, 1 a file cannot be used, 2 bad usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/cli/c_source.h"
#include "server/model/cost_model.h"
#include "server/optimize/case_finder.h"
#include "server/optimize/loop_submission.h"
#include "tests/folders.h"

namespace fusion::replay {
namespace {

struct ReplayedCase {
  std::string description;
  double measured = 0;   // seconds
  double predicted = 0;  // by the model of this program
  int then = 0;          // its rank as it was predicted when it was measured
};

// How many times as long as the fastest case others take.
struct Regret {
  double first = 1, best_of_first_3 = 1, then = 1;
};

absl::StatusOr<nlohmann::json> ReadJson(const std::string& path, const std::string& schema) {
  std::ifstream file(path);
  nlohmann::json document = nlohmann::json::parse(file, nullptr, false);
  if (document.is_discarded() || !document.is_object() || document.value("schema", "") != schema)
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no ", schema));
  return document;
}

absl::StatusOr<DeviceDescription> ReadDevice(const std::string& path) {
  FUSION_ASSIGN_OR_RETURN(const nlohmann::json document, ReadJson(path, "fusion.measured_candidates/1"));
  DeviceDescription device;
  std::string bytes;
  if (!absl::Base64Unescape(document.value("device", ""), &bytes) || !device.ParseFromString(bytes))
    return absl::InvalidArgumentError(absl::StrCat(path, ": describes no device"));
  return device;
}

// Cases that cannot be predicted any more are left out.
absl::StatusOr<std::vector<ReplayedCase>> Predict(const nlohmann::json& row, const CostModel& model) {
  std::vector<std::string> sizes;
  for (const auto& [name, value] : row.at("sizes").items())
    sizes.push_back(absl::StrCat(name, "=", value.get<int64_t>()));
  FUSION_ASSIGN_OR_RETURN(const SourceFile file,
                          ReadLoops(absl::StrCat(testing::SourceFolder(), "/examples/loops/",
                                                 row.at("name").get<std::string>(), ".c"),
                                    sizes));
  v1::SubmitRequest request;
  *request.mutable_source() = file.source;
  FUSION_ASSIGN_OR_RETURN(const std::shared_ptr<const LoopSubmission> submission,
                          CheckLoopSubmission(request));
  CaseFinder finder(*submission, submission->mapped, submission->parameters, model.device());
  std::vector<ReplayedCase> cases;
  for (const nlohmann::json& one : row.at("cases")) {
    const IntegerValues point = one.at("parameters").get<IntegerValues>();
    if (cases.empty()) FUSION_RETURN_IF_ERROR(finder.Sample(submission->sizes, point));
    const std::optional<LoopCase> predicted = finder.Predict(point, one.at("cached").get<bool>(), model);
    if (!predicted) continue;
    cases.push_back({.description = one.at("description"),
                     .measured = one.at("median"),
                     .predicted = predicted->predicted_seconds,
                     .then = one.at("predicted_rank")});
  }
  return cases;
}

Regret RegretOf(const std::vector<ReplayedCase>& cases) {
  const auto measured = [](const ReplayedCase& a, const ReplayedCase& b) { return a.measured < b.measured; };
  std::vector<ReplayedCase> order = cases;
  const double fastest = std::min_element(order.begin(), order.end(), measured)->measured;
  Regret regret;
  // The plain case had the rank 1 whatever was predicted of it.
  std::stable_sort(order.begin(), order.end(),
                   [](const ReplayedCase& a, const ReplayedCase& b) { return a.then < b.then; });
  regret.then = order[order.size() > 1 && order[0].then == 1 ? 1 : 0].measured / fastest;
  std::stable_sort(order.begin(), order.end(),
                   [](const ReplayedCase& a, const ReplayedCase& b) { return a.predicted < b.predicted; });
  regret.first = order[0].measured / fastest;
  const auto third = order.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(order.size(), 3));
  regret.best_of_first_3 = std::min_element(order.begin(), third, measured)->measured / fastest;
  return regret;
}

absl::Status Replay(const std::string& path, const std::string& device_path, bool details) {
  FUSION_ASSIGN_OR_RETURN(const nlohmann::json document, ReadJson(path, "fusion.measured_loops/1"));
  FUSION_ASSIGN_OR_RETURN(const DeviceDescription device, ReadDevice(device_path));
  const CostModel model(device);
  std::printf("%-16s %-26s %5s  %5s  %7s  %5s\n", "loops", "sizes", "cases", "first", "first 3", "then");
  Regret logarithms{0, 0, 0}, worst;
  int rows = 0;
  for (const nlohmann::json& row : document.at("rows")) {
    FUSION_ASSIGN_OR_RETURN(std::vector<ReplayedCase> cases, Predict(row, model));
    if (cases.empty()) continue;
    const Regret regret = RegretOf(cases);
    ++rows;
    for (const auto part : {&Regret::first, &Regret::best_of_first_3, &Regret::then}) {
      logarithms.*part += std::log(regret.*part);
      worst.*part = std::max(worst.*part, regret.*part);
    }
    std::printf("%-16s %-26s %5zu  %5.2f  %7.2f  %5.2f\n", row.at("name").get<std::string>().c_str(),
                absl::StrJoin(row.at("sizes").get<IntegerValues>(), " ", absl::PairFormatter("=")).c_str(),
                cases.size(), regret.first, regret.best_of_first_3, regret.then);
    if (!details) continue;
    std::stable_sort(cases.begin(), cases.end(),
                     [](const ReplayedCase& a, const ReplayedCase& b) { return a.predicted < b.predicted; });
    for (const ReplayedCase& one : cases)
      std::printf("    %10.1f us measured  %10.1f predicted  %3d then  %s\n", one.measured * 1e6,
                  one.predicted * 1e6, one.then, one.description.c_str());
  }
  if (rows == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": has no cases"));
  const auto mean = [&](double sum) { return std::exp(sum / rows); };
  std::printf("%-49s  %5.2f  %7.2f  %5.2f\n", "geometric mean", mean(logarithms.first),
              mean(logarithms.best_of_first_3), mean(logarithms.then));
  std::printf("%-49s  %5.2f  %7.2f  %5.2f\n", "worst", worst.first, worst.best_of_first_3, worst.then);
  return absl::OkStatus();
}

int Run(int argc, char** argv) {
  CLI::App app("Predicts stored measurements of loops anew");
  std::string file, device = testing::SourceFolder() + "/tests/bench/results/candidates/h200-1.json";
  bool details = false;
  app.add_option("file", file, "Measured cases")->required();
  app.add_option("--device", device, "Measured candidates of graphs, whose device is taken")
      ->capture_default_str();
  app.add_flag("--details", details, "A line for each case");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  absl::Status status;
  try {
    status = Replay(file, device, details);
  } catch (const nlohmann::json::exception& error) {
    status = absl::InvalidArgumentError(absl::StrCat(file, ": ", error.what()));
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace fusion::replay

int main(int argc, char** argv) { return fusion::replay::Run(argc, argv); }
