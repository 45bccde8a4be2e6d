#include "client/cli/target_option.h"

#include <iostream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "server/service/status_conversion.h"

namespace fusion {

void AddTargetOption(CLI::App* command, v1::Target* target) {
  static const std::map<std::string, v1::Target> kTargets = {
      {"auto", v1::TARGET_AUTO}, {"cuda", v1::CUDA}, {"host", v1::HOST}};
  command
      ->add_option_function<std::string>(
          "--target", [target](const std::string& name) { *target = kTargets.at(name); },
          "auto (a GPU when there is one), cuda or host")
      ->check(CLI::IsMember({"auto", "cuda", "host"}))
      ->default_str("auto");
}

void AddRankingOptions(CLI::App* command, RankingOptions* options) {
  command
      ->add_option_function<std::string>(
          "--cache",
          [options](const std::string& state) { options->cache = state == "warm" ? v1::WARM : v1::COLD; },
          "Rank by times with cold caches, or warm: runs back to back, on a GPU in one CUDA graph")
      ->check(CLI::IsMember({"cold", "warm"}))
      ->default_str("cold");
  command->add_flag("--deterministic", options->deterministic,
                    "Only candidates that give the same bits on every run: no sums by atomic additions");
}

ExitCode ReportWithSource(const Invocation& invocation, const absl::Status& status, const SourceFile& file) {
  if (FieldViolations(status).empty() || !absl::StrContains(status.message(), ": error: "))
    return invocation.Report(status);
  std::cerr << WithSourceLines(status.message(), file.name, file.text);
  if (invocation.json) std::cout << JsonText(ErrorJson(status));
  return ExitCodeOf(status);
}

}  // namespace fusion
