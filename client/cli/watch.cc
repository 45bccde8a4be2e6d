#include "client/cli/watch.h"

#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "client/api/embedded.h"
#include "client/cli/artifact_folder.h"
#include "client/cli/progress.h"

namespace fusion {
namespace {

int ErrorWidth() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// The options that led to the server, so that what is told next can be copied.
std::string ConnectionText(const ConnectionOptions& options) {
  std::string text;
  for (const auto& [name, value] : {std::pair("--server", &options.server),
                                    {"--tls-ca", &options.tls_ca},
                                    {"--tls-cert", &options.tls_cert},
                                    {"--tls-key", &options.tls_key},
                                    {"--token-file", &options.token_file}})
    if (!value->empty()) absl::StrAppend(&text, " ", name, " ", *value);
  return text;
}

std::string ResumeCommand(const Invocation& invocation, const std::string& job) {
  return absl::StrCat("fusion-client jobs watch ", job, ConnectionText(invocation));
}

std::string InterruptedText(const Invocation& invocation, const Client& client, const std::string& job) {
  if (!client.keeps_jobs())
    return absl::StrCat("\ninterrupted; ", job, " ends with its temporary data directory\n");
  return absl::StrCat("\ninterrupted; ", job,
                      client.embedded() ? " is kept; go on with:" : " lives on; watch it with:", "\n  ",
                      ResumeCommand(invocation, job), "\n");
}

std::string DefaultFolder(const v1::Job& job) {
  std::string graph;
  for (char c : job.result().graph().name()) graph += absl::ascii_isalnum(c) || c == '_' ? c : '_';
  return absl::StrCat(EmbeddedDataDirectory(), "/artifacts/", graph.empty() ? "graph" : graph, "-",
                      absl::StripPrefix(job.name(), "jobs/"));
}

int64_t CountRanked(const v1::JobResult& result) {
  return std::count_if(result.candidates().begin(), result.candidates().end(),
                       [](const v1::Candidate& candidate) { return candidate.outcome() == v1::OK; });
}

// The folder written, or "" when no candidate ran.
absl::StatusOr<std::string> ExportFolder(Client* client, const v1::Job& job, const WatchOptions& options) {
  if (CountRanked(job.result()) == 0) return "";
  const std::string folder = options.output.empty() ? DefaultFolder(job) : options.output;
  FUSION_ASSIGN_OR_RETURN(v1::Artifact artifact, client->DownloadArtifact(job.name(), 1));
  const std::string report = JsonText(SubmitJson(job, folder));
  FUSION_RETURN_IF_ERROR(WriteArtifact(artifact, report, folder, options.force));
  return folder;
}

std::string AfterResultText(const Invocation& invocation, const Client& client, const v1::Job& job,
                            const std::string& folder) {
  const v1::JobResult& result = job.result();
  std::string text =
      absl::StrCat("\nbuilds: ", result.builds(), ", of these ", result.builds_reused(), " reused\n");
  if (CountRanked(result) == 0) return text;
  if (!folder.empty()) absl::StrAppend(&text, "rank 1 is in ", folder, "\n");
  if (!client.keeps_jobs() || (!folder.empty() && CountRanked(result) < 2)) return text;
  absl::StrAppend(&text, folder.empty() ? "rank 1:   " : "another:  ", "fusion-client fetch ", job.name(),
                  folder.empty() ? "" : " --rank 2", " --output DIR", ConnectionText(invocation), "\n");
  return text;
}

ExitCode ShowEnd(const Invocation& invocation, Client* client, const v1::Job& job,
                 const WatchOptions& options) {
  if (job.state() != v1::SUCCEEDED) {
    const absl::Status error = FromRpcStatus(job.error());
    if (invocation.json) std::cout << JsonText(SubmitJson(job, ""));
    std::cerr << job.name() << " " << v1::JobState_Name(job.state())
              << (error.message().empty() ? "" : absl::StrCat("\nerror: ", error.message())) << "\n";
    return ExitCodeOfJob(job);
  }
  if (IsBenchmark(job.result())) {
    std::cout << (invocation.json ? JsonText(BenchmarkJson(job))
                                  : BenchmarkText(job.result(), invocation.Style()));
    // The notes say why.
    const v1::RoutineTables& routines = job.result().routines();
    return routines.tables().empty() && !routines.notes().empty() ? kFailed : kDone;
  }
  absl::StatusOr<std::string> folder = ExportFolder(client, job, options);
  if (invocation.json) {
    std::cout << JsonText(SubmitJson(job, folder.value_or("")));
  } else {
    TextStyle style = invocation.Style();
    style.all = options.all;
    std::cout << ResultText(job.result(), style)
              << AfterResultText(invocation, *client, job, folder.value_or(""));
  }
  if (!folder.ok()) {
    std::cerr << "error: the exported folder was not written: " << folder.status().message() << "\n";
    return ExitCodeOf(folder.status());
  }
  return CountRanked(job.result()) > 0 ? kDone : kFailed;
}

}  // namespace

std::string JobName(const std::string& given) {
  return absl::StartsWith(given, "jobs/") ? given : absl::StrCat("jobs/", given);
}

ExitCode WatchToEnd(const Invocation& invocation, Client* client, const std::string& job,
                    const WatchOptions& options) {
  ProgressPrinter progress(std::cerr, isatty(STDERR_FILENO), ErrorWidth());
  InterruptHandler interrupt(client, [&] {
    progress.Clear();
    spdlog::set_level(spdlog::level::err);  // that tasks of the embedded worker stop is no news
    std::cerr << InterruptedText(invocation, *client, job) << std::flush;
  });
  if (options.worker_starts && client->embedded()) progress.Show("measuring the devices of this machine");
  absl::StatusOr<v1::Job> ended =
      client->WatchJob(job, 0, [&](const v1::JobEvent& event) { progress.Show(event); });
  if (interrupt.interrupted()) {
    v1::Job left;  // it goes on, or waits to be watched
    left.set_name(job);
    left.set_state(v1::RUNNING);
    if (invocation.json) std::cout << JsonText(SubmitJson(left, ""));
    return kInterrupted;
  }
  progress.Clear();
  if (!ended.ok()) {
    const ExitCode code = invocation.Report(ended.status());
    if (absl::IsUnavailable(ended.status()))
      std::cerr << job << " may live on; when its server answers:\n  " << ResumeCommand(invocation, job)
                << "\n";
    return code;
  }
  return ShowEnd(invocation, client, *ended, options);
}

}  // namespace fusion
