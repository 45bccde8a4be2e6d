#include "client/cli/target_option.h"

#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/rpc/status_conversion.h"
#include "base/similar_name.h"
#include "client/cli/option_checks.h"

namespace fusion {

namespace {

// "A,B,C"; may be repeated.
void AddGroupOption(CLI::App* command, const std::string& name, const std::string& help,
                    std::function<v1::FusionHints::Group*()> add) {
  command
      ->add_option_function<std::vector<std::string>>(
          name,
          [add](const std::vector<std::string>& groups) {
            for (const std::string& group : groups) {
              v1::FusionHints::Group* to = add();
              for (absl::string_view value : absl::StrSplit(group, ','))
                to->add_values(std::string(absl::StripAsciiWhitespace(value)));
            }
          },
          help)
      ->type_name("A,B")
      ->allow_extra_args(false);
}

}  // namespace

void AddTargetOption(CLI::App* command, v1::Target* target) {
  static const auto* const targets = [] {
    auto* named = new std::map<std::string, v1::Target>();
    for (int number = 0; v1::Target_IsValid(number); ++number)
      named->emplace(TargetName(static_cast<v1::Target>(number)), static_cast<v1::Target>(number));
    return named;
  }();
  command
      ->add_option_function<std::string>(
          "--target", [target](const std::string& name) { *target = targets->at(name); },
          "auto (a GPU when there is one), cuda or host")
      ->check(CLI::IsMember(targets))
      ->default_str("auto");
}

void AddDeviceOption(CLI::App* command, std::string* device) {
  command
      ->add_option("--device", *device,
                   "Kind of device, by its name or a part of it that no other kind has, as H100; `workers "
                   "list` shows them (default: the fastest of the target and architecture)")
      ->check(NotEmpty());
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
  command
      ->add_option(
          "--max-fusions", options->most_fusions,
          "Fusible sets of nodes that the search looks at, where there are more of them (default: 10000 in "
          "graphs of up to 64 nodes, else 4000); more take longer, and leave a smaller gap")
      ->check(CLI::Range(int64_t{1}, int64_t{200'000}));
  AddGroupOption(command, "--together",
                 "Only candidates in which one kernel computes these values; may be repeated",
                 [options] { return options->hints.add_together(); });
  AddGroupOption(command, "--apart",
                 "Only candidates in which no kernel computes two of these values; may be repeated",
                 [options] { return options->hints.add_apart(); });
  command
      ->add_option_function<std::vector<std::string>>(
          "--make",
          [options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
              for (std::string* part : {&parts.first, &parts.second}) absl::StripAsciiWhitespace(part);
              if (parts.first.empty() || parts.second.empty())
                throw CLI::ValidationError("--make", absl::StrCat("must be A=TEXT, not ", Shown(text)));
              v1::FusionHints::Implementation* implementation = options->hints.add_implementations();
              implementation->set_value(parts.first);
              implementation->set_text(parts.second);
            }
          },
          "Only candidates in which the description of the kernel that computes A has the words of TEXT, in "
          "their order, as \"row_panel T512 V4\"; may be repeated")
      ->type_name("A=TEXT")
      ->allow_extra_args(false);
}

ExitCode ReportWithSource(const Invocation& invocation, const absl::Status& status, const SourceFile& file) {
  if (FieldViolations(status).empty() || !absl::StrContains(status.message(), ": error: "))
    return invocation.Report(status);
  std::cerr << WithSourceLines(status.message(), file.name, file.text);
  if (invocation.json) std::cout << JsonText(ErrorJson(status));
  return ExitCodeOf(status);
}

}  // namespace fusion
