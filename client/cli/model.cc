#include <iostream>
#include <memory>
#include <string>

#include "client/cli/invocation.h"
#include "client/cli/option_checks.h"
#include "client/cli/plot_files.h"

namespace fusion {
namespace {

struct ReportOptions {
  v1::ReportModelRequest request;
  std::string plots;  // folder; "": none
};

ExitCode Report(const Invocation& invocation, const ReportOptions& options) {
  const bool plots = !options.plots.empty();
  if (plots)
    if (absl::Status status = CheckPlotFolder(options.plots); !status.ok()) return invocation.Report(status);
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  InterruptHandler interrupt(client->get(), nullptr);

  v1::ReportModelRequest request = options.request;
  request.set_plots(plots);
  absl::StatusOr<v1::ReportModelResponse> report = (*client)->ReportModel(request);
  if (!report.ok()) return invocation.Report(report.status());
  absl::StatusOr<PlotPaths> paths = plots ? WritePlots(*report, options.plots) : PlotPaths();
  const PlotPaths written = paths.value_or(PlotPaths());
  if (invocation.json) {
    std::cout << JsonText(ModelReportJson(*report, written.measured, written.convergence));
  } else {
    std::cout << ModelReportText(*report, invocation.Style());
    if (plots && paths.ok())
      std::cout << "plots: " << written.measured << ", " << written.convergence << "\n";
  }
  if (paths.ok()) return kDone;
  std::cerr << "error: the plots were not written: " << paths.status().message() << "\n";
  return ExitCodeOf(paths.status());
}

ExitCode ResetModel(const Invocation& invocation, const v1::ResetModelRequest& request) {
  if (!request.all() && request.device().empty())
    return invocation.Report(absl::InvalidArgumentError("of which device? --device NAME, or --all"));
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::ResetModelResponse> forgotten = (*client)->ResetModel(request);
  if (!forgotten.ok()) return invocation.Report(forgotten.status());
  std::cout << (invocation.json ? JsonText(ModelResetJson(*forgotten)) : ModelResetText(*forgotten));
  return kDone;
}

}  // namespace

void AddModelCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* model = app->add_subcommand("model", "Predicted run times");
  auto options = std::make_shared<ReportOptions>();
  CLI::App* report = model->add_subcommand(
      "report",
      "How well predictions agree with what jobs measured: errors, order, and what trusting them costs");
  report
      ->add_option_function<std::string>(
          "--device", [options](const std::string& name) { options->request.set_device(name); },
          "Only jobs on devices of this name (default: all)")
      ->type_name("NAME");
  report
      ->add_option_function<std::string>(
          "--cache",
          [options](const std::string& state) {
            options->request.set_cache(state == "warm" ? v1::WARM : v1::COLD);
          },
          "Only jobs that ranked by cold times, or warm ones (default: both)")
      ->check(CLI::IsMember({"cold", "warm"}));
  report
      ->add_option_function<int>(
          "--jobs", [options](int jobs) { options->request.set_jobs(jobs); },
          "Most jobs to report on, the newest")
      ->check(CLI::Range(1, 10000))
      ->default_str("1000");
  report
      ->add_option("--plots", options->plots,
                   "Folder for two SVG plots of up to 28 graphs, the newest: predicted against measured "
                   "times, and how soon "
                   "the fastest is found")
      ->type_name("DIR")
      ->check(NotEmpty());
  AddCommonOptions(report, invocation);
  report->callback([=] { invocation->run = [=] { return Report(*invocation, *options); }; });

  auto request = std::make_shared<v1::ResetModelRequest>();
  CLI::App* reset = model->add_subcommand(
      "reset",
      "Forget the measured times of kernels and routines, and the corrections of predictions, of a device: "
      "later jobs measure and learn them anew (for admins)");
  CLI::Option* device = reset
                            ->add_option_function<std::string>(
                                "--device", [request](const std::string& name) { request->set_device(name); },
                                "Of devices of this name, as `workers list` prints it")
                            ->type_name("NAME")
                            ->check(NotEmpty());
  reset
      ->add_flag_callback(
          "--all", [request] { request->set_all(true); }, "Of all devices")
      ->excludes(device);
  AddCommonOptions(reset, invocation);
  reset->callback([=] { invocation->run = [=] { return ResetModel(*invocation, *request); }; });
}

}  // namespace fusion
