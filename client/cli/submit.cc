#include <cmath>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/artifact_folder.h"
#include "client/cli/c_source.h"
#include "client/cli/invocation.h"
#include "client/cli/measurement_options.h"
#include "client/cli/option_checks.h"
#include "client/cli/source_file.h"
#include "client/cli/target_option.h"
#include "client/cli/watch.h"

namespace fusion {
namespace {

struct SubmitOptions {
  std::string file;
  std::vector<std::string> sizes;
  v1::Target target = v1::TARGET_AUTO;
  std::string arch;
  std::string device;
  int candidates = 30;
  double time_limit_seconds = 0;
  int priority = 0;
  double queue_limit_seconds = 0, build_limit_seconds = 0, run_limit_seconds = 0;
  RankingOptions ranking;
  MeasurementOptions measurement;
  std::string request_id;
  std::string dump_directory;
  std::string code_name;
  bool detach = false;
  bool measure_all = false;
  bool no_measure = false;
  bool quick = false;
  WatchOptions watch;
};

ExitCode Submit(const Invocation& invocation, const SubmitOptions& options) {
  for (const auto& [option, seconds] : {std::pair("--time-limit", options.time_limit_seconds),
                                        std::pair("--queue-limit", options.queue_limit_seconds),
                                        std::pair("--build-limit", options.build_limit_seconds),
                                        std::pair("--run-limit", options.run_limit_seconds)})
    if (!std::isfinite(seconds))
      return invocation.Report(
          absl::InvalidArgumentError(absl::StrCat(option, ": must be a number of seconds")));
  absl::StatusOr<SourceFile> file = IsCFile(options.file) ? ReadLoops(options.file, options.sizes)
                                                          : ReadSource(options.file, options.sizes);
  if (!file.ok()) return invocation.Report(file.status());
  v1::SubmitRequest request;
  if (absl::Status status = AddTolerances(options.measurement.tolerances, &request); !status.ok())
    return invocation.Report(status);
  if (!options.watch.output.empty() && options.detach)
    return invocation.Report(
        absl::InvalidArgumentError("--output: a job that is left to the server (--detach) writes no folder; "
                                   "fusion-client fetch JOB --output DIR does when it has ended"));
  // Before the work, not after it.
  if (!options.watch.output.empty()) {
    absl::Status status = CheckArtifactFolder(options.watch.output, options.watch.force);
    if (!status.ok()) return invocation.Report(status);
  }
  absl::StatusOr<std::string> address = ServerAddress(invocation);
  if (!address.ok()) return invocation.Report(address.status());
  if (!options.dump_directory.empty() && !address->empty())
    return invocation.Report(
        absl::InvalidArgumentError("--dump-dir works with the embedded server alone (--server embedded)"));

  EmbeddedOptions embedded;
  embedded.dump_directory = options.dump_directory;
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, embedded);
  if (!client.ok()) return invocation.Report(client.status());

  if (absl::Status status = UploadInputs(**client, options.measurement.inputs, &file->source); !status.ok())
    return ReportWithSource(invocation, status, *file);
  *request.mutable_source() = std::move(file->source);
  request.set_target(options.target);
  request.set_arch(options.arch);
  request.set_device(options.device);
  request.set_candidates(options.candidates);
  request.set_cache(options.ranking.cache);
  request.set_deterministic(options.ranking.deterministic);
  *request.mutable_hints() = options.ranking.hints;
  request.set_measure_all(options.measure_all);
  request.set_no_measure(options.no_measure);
  request.set_quick(options.quick);
  request.set_time_limit_seconds(options.time_limit_seconds);
  request.set_priority(options.priority);
  v1::JobLimits* limits = request.mutable_limits();
  limits->set_fusions(options.ranking.most_fusions);
  limits->set_queue_seconds(options.queue_limit_seconds);
  limits->set_build_seconds(options.build_limit_seconds);
  limits->set_run_seconds(options.run_limit_seconds);
  request.set_request_id(options.request_id);
  request.set_code_name(options.code_name);
  absl::StatusOr<v1::Job> job = (*client)->Submit(request, SayOnceWhyItWaits());
  if (!job.ok()) return ReportWithSource(invocation, job.status(), *file);
  if (!options.detach) {
    // Not earlier: a graph that is refused should be refused at once. Without measuring, this machine still
    // computes the results.
    (*client)->StartEmbeddedWorker(options.no_measure ? v1::TARGET_AUTO : options.target);
    WatchOptions watch = options.watch;
    watch.worker_starts = true;
    return WatchToEnd(invocation, client->get(), job->name(), watch);
  }

  if (invocation.json) {
    std::cout << JsonText(SubmitJson(*job, ""));
  } else {
    std::cout << job->name() << "\n";
  }
  if (!job->waits_for().empty()) std::cerr << "note: " << job->waits_for() << "\n";
  if ((*client)->embedded())
    std::cerr << "note: without a server the job waits until it is watched: fusion-client jobs watch "
              << job->name() << "\n";
  return kDone;
}

}  // namespace

void AddSubmitCommand(CLI::App* app, Invocation* invocation) {
  auto options = std::make_shared<SubmitOptions>();
  CLI::App* command = app->add_subcommand(
      "submit",
      "Find, build, verify and time fused kernels for a graph, or kernels of loops in C; best first");
  command
      ->add_option("FILE", options->file,
                   "Graph: .fuse, .json or .pb; - reads .fuse from stdin. Or marked loops in C: .c")
      ->required();
  command->add_option("--size", options->sizes, "Value of a size, as n=1000000; may be repeated")
      ->allow_extra_args(false);
  AddTargetOption(command, &options->target);
  command->add_option(
      "--arch", options->arch,
      "Architecture, as sm_90; an unknown one is the nearest older one (default: that of the device)");
  AddDeviceOption(command, &options->device);
  command->add_option("--candidates", options->candidates, "Most implementations to build and time")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddRankingOptions(command, &options->ranking);
  AddMeasurementOptions(command, &options->measurement);
  command->add_option("--priority", options->priority, "Among your own jobs, larger first (-100 to 100)")
      ->check(CLI::Range(-100, 100));
  command
      ->add_option("--queue-limit", options->queue_limit_seconds,
                   "Seconds that the job may wait for a device (default: 30), and a build or timing for "
                   "a worker (default: as long as it takes), before it is given up (exit 124)")
      ->check(CLI::Range(0.0, 86400.0));
  command
      ->add_option("--build-limit", options->build_limit_seconds,
                   "Seconds that the build of a kernel may take (default: 120)")
      ->check(CLI::Range(0.0, 86400.0));
  command
      ->add_option("--run-limit", options->run_limit_seconds,
                   "Seconds that one run of a candidate may take (default: 20)")
      ->check(CLI::Range(0.0, 86400.0));
  command
      ->add_option("--time-limit", options->time_limit_seconds,
                   "Seconds after which the job is given up (exit 124)")
      ->check(GreaterThanZero());
  CLI::Option* const measure_all =
      command->add_flag("--measure-all", options->measure_all,
                        "Also build and time candidates that, as predicted, cannot be the fastest");
  CLI::Option* const quick = command->add_flag(
      "--quick", options->quick,
      "A first answer: at most 3 candidates, each timed a few times and verified on two kinds of data");
  command
      ->add_flag("--no-measure", options->no_measure,
                 "Measure nothing, for a device that need not be there: at most 5 candidates in predicted "
                 "order, compiled, and computed on the host at small sizes")
      ->excludes(measure_all)
      ->excludes(quick);
  command->add_option("--output", options->watch.output, "Folder for the code of rank 1")->check(NotEmpty());
  command
      ->add_option("--name", options->code_name,
                   "What the exported code is called: gelu gives gelu.h and gelu_launch, so that the code of "
                   "several graphs goes into one program (default: fused)")
      ->check(NotEmpty());
  command->add_flag("--force", options->watch.force, kForceHelp);
  command->add_flag("--all", options->watch.all, "Show every candidate, not the first ten");
  command->add_flag("--detach", options->detach, "Print the job's name and leave it to the server");
  command->add_option(
      "--request-id", options->request_id,
      "The same id again gives the same job, with the limits and the priority that it had; for "
      "another graph, other sizes, another target or search it is refused");
  command
      ->add_option("--dump-dir", options->dump_directory,
                   "Folder for the text of every stage (embedded server)")
      ->check(NotEmpty());
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Submit(*invocation, *options); }; });
}

}  // namespace fusion
