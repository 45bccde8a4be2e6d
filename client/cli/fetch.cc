#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/artifact_folder.h"
#include "client/cli/invocation.h"
#include "client/cli/option_checks.h"
#include "client/cli/watch.h"

namespace fusion {
namespace {

struct FetchOptions {
  std::string job;
  int rank = 1;
  std::string output;
  bool force = false;
};

ExitCode Fetch(const Invocation& invocation, const FetchOptions& options) {
  if (absl::Status status = CheckArtifactFolder(options.output, options.force); !status.ok())
    return invocation.Report(status);
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  const std::string name = JobName(options.job);
  absl::StatusOr<v1::Job> job = (*client)->GetJob(name);
  if (!job.ok()) return invocation.Report(job.status());
  absl::StatusOr<v1::Artifact> artifact = (*client)->DownloadArtifact(name, options.rank);
  if (!artifact.ok()) return invocation.Report(artifact.status());
  const std::string report = JsonText(SubmitJson(*job, options.output));
  absl::Status status = WriteArtifact(*artifact, report, options.output, options.force);
  if (!status.ok()) return invocation.Report(status);
  if (invocation.json) {
    Json files = Json::array();
    for (const v1::ArtifactFile& file : artifact->files()) files.push_back(file.path());
    std::cout << JsonText({{"schema", "fusion.fetch/1"},
                           {"job", name},
                           {"rank", options.rank},
                           {"artifact", options.output},
                           {"files", std::move(files)}});
  } else {
    std::cout << "rank " << options.rank << " of " << name << " is in " << options.output << "\n";
  }
  return kDone;
}

}  // namespace

void AddFetchCommand(CLI::App* app, Invocation* invocation) {
  auto options = std::make_shared<FetchOptions>();
  CLI::App* command =
      app->add_subcommand("fetch", "Write the code of one candidate of a finished job into a folder");
  command->add_option("JOB", options->job, "jobs/ID, or ID")->required();
  command->add_option("--rank", options->rank, "Which candidate")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--output", options->output, "Folder to write")->required()->check(NotEmpty());
  command->add_flag("--force", options->force, kForceHelp);
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Fetch(*invocation, *options); }; });
}

}  // namespace fusion
