#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/invocation.h"
#include "client/cli/option_checks.h"
#include "client/cli/plot_files.h"
#include "client/cli/render_tune.h"
#include "client/cli/tuning_plots.h"
#include "client/cli/write_file.h"

namespace fusion {
namespace {

// At most `limit`, of one program ("": of all).
absl::StatusOr<v1::ListTuningsResponse> ReadTunings(Client& client, const std::string& program, int limit) {
  v1::ListTuningsResponse all;
  while (all.tunings_size() < limit) {
    FUSION_ASSIGN_OR_RETURN(
        v1::ListTuningsResponse page,
        client.ListTunings(program, std::min(limit - all.tunings_size(), 1000), all.next_page_token()));
    all.set_next_page_token(page.next_page_token());
    all.mutable_tunings()->MergeFrom(page.tunings());
    if (all.next_page_token().empty()) break;
  }
  return all;
}

// "tunings/ID", "ID", or "PROGRAM/SECTION" when there is one tuning of it.
absl::StatusOr<std::string> TuningName(Client& client, const std::string& given) {
  constexpr int kMostLooked = 100'000;
  if (absl::StartsWith(given, "tunings/")) return given;
  if (!absl::StrContains(given, '/')) return absl::StrCat("tunings/", given);
  FUSION_ASSIGN_OR_RETURN(v1::ListTuningsResponse all, ReadTunings(client, "", kMostLooked));
  std::vector<const v1::Tuning*> found;
  for (const v1::Tuning& tuning : all.tunings())
    if (SectionText(tuning.declaration()) == given) found.push_back(&tuning);
  if (found.size() == 1) return found[0]->name();
  if (found.empty())
    return absl::NotFoundError(
        absl::StrCat("there is no tuning of ", given, "; see fusion-client tune list"));
  std::string message = absl::StrCat("there are ", found.size(), " tunings of ", given, "; name one:");
  for (const v1::Tuning* tuning : found) {
    const std::string context = ContextText(tuning->declaration());
    absl::StrAppend(&message, "\n  ", tuning->name(), "  ", context, context.empty() ? "" : "  ",
                    tuning->declaration().device_class());
  }
  return absl::InvalidArgumentError(message);
}

struct OpenTuning {
  std::unique_ptr<Client> client;
  std::string name;
};
absl::StatusOr<OpenTuning> Find(const Invocation& invocation, const std::string& given) {
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, OpenClient(invocation));
  FUSION_ASSIGN_OR_RETURN(std::string name, TuningName(*client, given));
  return OpenTuning{std::move(client), std::move(name)};
}

ExitCode ListTunings(const Invocation& invocation, const std::string& program, int limit) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::ListTuningsResponse> tunings = ReadTunings(**client, program, limit);
  if (!tunings.ok()) return invocation.Report(tunings.status());
  if (invocation.json)
    std::cout << JsonText(TuningListJson(*tunings));
  else if (tunings->tunings_size() == 0 && !program.empty())
    std::cout << "no tuning of a program " << program << "\n";
  else
    std::cout << TuningListText(*tunings, invocation.Style());
  return kDone;
}

ExitCode ShowTuning(const Invocation& invocation, const std::string& given, const std::string& plots,
                    bool all) {
  if (!plots.empty())
    if (absl::Status status = CheckTuningPlotFolder(plots); !status.ok()) return invocation.Report(status);
  absl::StatusOr<OpenTuning> open = Find(invocation, given);
  if (!open.ok()) return invocation.Report(open.status());
  const auto& [client, name] = *open;
  absl::StatusOr<v1::TuningDetails> details = client->GetTuning(name);
  if (!details.ok()) return invocation.Report(details.status());
  absl::StatusOr<PlotPaths> paths = PlotPaths();
  if (!plots.empty()) {
    const PlottedTuning plotted = PlottedOf(*details);
    absl::StatusOr<std::string> landscape = PlotLandscape(plotted),
                                convergence = PlotTuningConvergence(plotted);
    paths = !landscape.ok()     ? landscape.status()
            : !convergence.ok() ? absl::StatusOr<PlotPaths>(convergence.status())
                                : WriteTuningPlots(*landscape, *convergence, plots);
  }
  const PlotPaths written = paths.value_or(PlotPaths());
  if (invocation.json) {
    std::cout << JsonText(TuningDetailsJson(*details, written.measured, written.convergence));
  } else {
    TextStyle style = invocation.Style();
    style.all = all;
    std::cout << TuningDetailsText(*details, style);
    if (!plots.empty() && paths.ok())
      std::cout << "plots: " << written.measured << ", " << written.convergence << "\n";
  }
  if (paths.ok()) return kDone;
  std::cerr << "error: the plots were not written: " << paths.status().message() << "\n";
  return ExitCodeOf(paths.status());
}

ExitCode WatchTuning(const Invocation& invocation, const std::string& given, bool until_converged) {
  absl::StatusOr<OpenTuning> open = Find(invocation, given);
  if (!open.ok()) return invocation.Report(open.status());
  const auto& [client, name] = *open;
  InterruptHandler interrupt(client.get(), nullptr);
  const absl::Status status = client->WatchTuning(name, [&](const v1::Tuning& tuning) {
    // A line each, so that a reader can take them as they come.
    if (invocation.json) {
      std::cout << TuningJson(tuning).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n"
                << std::flush;
    } else {
      std::cout << TuningLineText(tuning) << std::flush;
    }
    return !(until_converged && tuning.phase() == v1::CONVERGED);
  });
  if (interrupt.interrupted()) return kInterrupted;
  return status.ok() ? kDone : invocation.Report(status);
}

ExitCode ResetTuning(const Invocation& invocation, const std::string& given) {
  absl::StatusOr<OpenTuning> open = Find(invocation, given);
  if (!open.ok()) return invocation.Report(open.status());
  const auto& [client, name] = *open;
  absl::StatusOr<v1::Tuning> tuning = client->ResetTuning(name);
  if (!tuning.ok()) return invocation.Report(tuning.status());
  if (invocation.json) {
    std::cout << JsonText(TuningJson(*tuning));
  } else {
    std::cout << tuning->name() << " begins anew: generation " << tuning->generation() << "\n";
  }
  return kDone;
}

// Every report that is kept, of all generations.
absl::StatusOr<std::vector<v1::StoredTuningReport>> ReadReports(Client& client, const std::string& name) {
  constexpr int kPage = 10'000;
  std::vector<v1::StoredTuningReport> reports;
  std::string token;
  do {
    FUSION_ASSIGN_OR_RETURN(v1::ListTuningReportsResponse page, client.ListTuningReports(name, kPage, token));
    for (v1::StoredTuningReport& report : *page.mutable_reports()) reports.push_back(std::move(report));
    token = page.next_page_token();
  } while (!token.empty());
  return reports;
}

ExitCode ExportTuning(const Invocation& invocation, const std::string& given, const std::string& output) {
  absl::StatusOr<OpenTuning> open = Find(invocation, given);
  if (!open.ok()) return invocation.Report(open.status());
  const auto& [client, name] = *open;
  absl::StatusOr<v1::TuningDetails> details = client->GetTuning(name);
  if (!details.ok()) return invocation.Report(details.status());
  absl::StatusOr<std::vector<v1::StoredTuningReport>> reports = ReadReports(*client, name);
  if (!reports.ok()) return invocation.Report(reports.status());
  const Json results = T4Json(details->tuning(), *reports);
  if (output.empty()) {
    std::cout << JsonText(results);
    return kDone;
  }
  if (absl::Status status = WriteFile(output, JsonText(results)); !status.ok())
    return invocation.Report(status);
  if (invocation.json) {
    std::cout << JsonText({{"schema", "fusion.tuning_export/1"},
                           {"tuning", name},
                           {"results", results["results"].size()},
                           {"output", output}});
  } else {
    std::cout << results["results"].size() << " results are in " << output << "\n";
  }
  return kDone;
}

}  // namespace

void AddTuneCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* tune = app->add_subcommand("tune", "Parameters of running programs, tuned online");
  auto name = std::make_shared<std::string>();
  auto program = std::make_shared<std::string>();
  auto folder = std::make_shared<std::string>();
  auto output = std::make_shared<std::string>();
  auto limit = std::make_shared<int>(100);
  auto all = std::make_shared<bool>(false);
  auto until_converged = std::make_shared<bool>(false);
  const char* const kName = "tunings/ID, ID, or PROGRAM/SECTION where there is one tuning of it";

  CLI::App* list = tune->add_subcommand("list", "Tunings, the newest report first");
  list->add_option("--program", *program, "Only those of this program");
  list->add_option("--limit", *limit, "Most tunings to list")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  AddCommonOptions(list, invocation);
  list->callback([=] { invocation->run = [=] { return ListTunings(*invocation, *program, *limit); }; });

  CLI::App* show = tune->add_subcommand("show", "What is known of a tuning");
  show->add_option("TUNING", *name, kName)->required();
  show->add_option("--plots,--plot", *folder,
                   "Folder for two SVG plots: what was measured where, and how the best came to be")
      ->type_name("DIR")
      ->check(NotEmpty());
  show->add_flag("--all", *all, "Show every configuration, not the first ten");
  AddCommonOptions(show, invocation);
  show->callback([=] { invocation->run = [=] { return ShowTuning(*invocation, *name, *folder, *all); }; });

  CLI::App* watch = tune->add_subcommand("watch", "A line for every change, until it is interrupted");
  watch->add_option("TUNING", *name, kName)->required();
  watch->add_flag("--until-converged", *until_converged, "End when nothing better is expected");
  AddCommonOptions(watch, invocation);
  watch->callback(
      [=] { invocation->run = [=] { return WatchTuning(*invocation, *name, *until_converged); }; });

  CLI::App* reset = tune->add_subcommand("reset", "Forget what was measured, and begin anew");
  reset->add_option("TUNING", *name, kName)->required();
  AddCommonOptions(reset, invocation);
  reset->callback([=] { invocation->run = [=] { return ResetTuning(*invocation, *name); }; });

  CLI::App* export_command =
      tune->add_subcommand("export", "Every report, in the T4 format that other tuners read and write");
  export_command->add_option("TUNING", *name, kName)->required();
  export_command->add_option("--output", *output, "File to write instead of stdout")
      ->type_name("FILE")
      ->check(NotEmpty());
  AddCommonOptions(export_command, invocation);
  export_command->callback(
      [=] { invocation->run = [=] { return ExportTuning(*invocation, *name, *output); }; });
}

}  // namespace fusion
