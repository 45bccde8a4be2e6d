#include "server/loops/cases.h"

#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/c_source.h"
#include "client/cli/invocation.h"
#include "client/cli/render.h"
#include "client/cli/source_file.h"
#include "client/cli/target_option.h"

namespace fusion {
namespace {

std::string StrategiesText(const KernelCase& one) {
  return absl::StrJoin(one.strategies, " ",
                       [](std::string* out, Strategy strategy) { out->append(StrategyName(strategy)); });
}

std::string KernelText(const CaseDiscussion& discussion, const KernelCase& one) {
  std::string text =
      one.cached ? absl::StrCat("cache(", absl::StrJoin(discussion.cached, ", "), ")") : "no cache";
  if (!discussion.granularity.empty())
    absl::StrAppend(&text, one.granular ? absl::StrCat(", ", discussion.granularity, " entries a thread")
                                        : ", one entry a thread");
  return text;
}

ExitCode Cases(const Invocation& invocation, const std::string& path) {
  absl::StatusOr<std::string> text = ReadC(path);
  if (!text.ok()) return invocation.Report(text.status());
  const auto discussions = DiscussCases(*text, path);
  if (!discussions.ok()) {
    const SourceFile file{.name = path, .source = {}, .text = *std::move(text)};
    return ReportWithSource(invocation, discussions.status(), file);
  }
  Json list = Json::array();
  for (const CaseDiscussion& discussion : *discussions) {
    if (!invocation.json) std::cout << discussion.kernel << "\n";
    Json cases = Json::array();
    int number = 0;
    for (const KernelCase& one : discussion.cases) {
      const std::string constraints = ConstraintsText(one, discussion.parameters);
      ++number;
      if (!invocation.json)
        std::cout << "  " << number << "  " << constraints << "\n     " << StrategiesText(one) << "  "
                  << KernelText(discussion, one) << "\n";
      cases.push_back({{"constraints", constraints},
                       {"strategies", StrategiesText(one)},
                       {"cached", one.cached},
                       {"granular", one.granular}});
    }
    list.push_back({{"kernel", discussion.kernel},
                    {"granularity", discussion.granularity},
                    {"arrays", discussion.cached},
                    {"words", discussion.granular_words.ToString(discussion.parameters)},
                    {"cases", std::move(cases)}});
  }
  if (invocation.json) {
    std::cout << JsonText({{"schema", "fusion.cases/1"}, {"kernels", std::move(list)}});
  } else {
    std::cout << "\nZ_B: words of four bytes that a block may share; R_B: registers that a thread may have\n"
                 "(1) accept the registers, (2) common subexpressions, (3a) keep the granularity, (3b) "
                 "reduce it to 1,\n"
                 "(4a) cache, (4b) refuse caching\n";
  }
  return kDone;
}

}  // namespace

void AddCasesCommand(CLI::App* app, Invocation* invocation) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand(
      "cases", "Discuss kernels of loops in C: one for each case of parameters and machines");
  command->add_option("FILE", *path, "Loops: .c")->required();
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Cases(*invocation, *path); }; });
}

}  // namespace fusion
