#include <algorithm>
#include <iostream>
#include <memory>

#include "client/cli/artifact_folder.h"
#include "client/cli/invocation.h"
#include "client/cli/option_checks.h"
#include "client/cli/watch.h"

namespace fusion {
namespace {

ExitCode ListJobs(const Invocation& invocation, int limit) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  v1::ListJobsResponse all;
  while (all.jobs_size() < limit) {
    absl::StatusOr<v1::ListJobsResponse> page =
        (*client)->ListJobs(std::min(limit - all.jobs_size(), 1000), all.next_page_token());
    if (!page.ok()) return invocation.Report(page.status());
    all.set_next_page_token(page->next_page_token());
    all.mutable_jobs()->MergeFrom(page->jobs());
    if (all.next_page_token().empty()) break;
  }
  std::cout << (invocation.json ? JsonText(JobListJson(all)) : JobListText(all, invocation.Style()));
  return kDone;
}

ExitCode ShowJob(const Invocation& invocation, const std::string& name, bool all) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::Job> job = (*client)->GetJob(JobName(name));
  if (!job.ok()) return invocation.Report(job.status());
  TextStyle style = invocation.Style();
  style.all = all;
  std::cout << (invocation.json ? JsonText(JobJson(*job)) : JobText(*job, style));
  return kDone;
}

ExitCode WatchJob(const Invocation& invocation, const std::string& name, WatchOptions options) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::Job> job = (*client)->GetJob(JobName(name));
  if (!job.ok()) return invocation.Report(job.status());
  options.worker_starts = job->state() == v1::QUEUED || job->state() == v1::RUNNING;
  if (options.worker_starts) (*client)->StartEmbeddedWorker(job->target());
  return WatchToEnd(invocation, client->get(), job->name(), options);
}

ExitCode Cancel(const Invocation& invocation, const std::string& name) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::Job> job = (*client)->CancelJob(JobName(name));
  if (!job.ok()) return invocation.Report(job.status());
  if (job->state() == v1::SUCCEEDED || job->state() == v1::FAILED)
    std::cerr << "note: " << job->name() << " had ended; nothing was cancelled\n";
  std::cout << (invocation.json ? JsonText(JobJson(*job)) : JobText(*job, invocation.Style()));
  return kDone;
}

}  // namespace

void AddJobsCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* jobs = app->add_subcommand("jobs", "Jobs of a server");
  auto name = std::make_shared<std::string>();
  auto watch_options = std::make_shared<WatchOptions>();
  auto all = std::make_shared<bool>(false);
  auto limit = std::make_shared<int>(50);

  CLI::App* list = jobs->add_subcommand("list", "Jobs, newest first");
  list->add_option("--limit", *limit, "Most jobs to list")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  AddCommonOptions(list, invocation);
  list->callback([=] { invocation->run = [=] { return ListJobs(*invocation, *limit); }; });

  CLI::App* show = jobs->add_subcommand("show", "State, and result or error, of a job");
  show->add_option("JOB", *name, "jobs/ID, or ID")->required();
  show->add_flag("--all", *all, "Show every candidate, not the first ten");
  AddCommonOptions(show, invocation);
  show->callback([=] { invocation->run = [=] { return ShowJob(*invocation, *name, *all); }; });

  CLI::App* watch = jobs->add_subcommand("watch", "Follow a job to its end, as submit does");
  watch->add_option("JOB", *name, "jobs/ID, or ID")->required();
  watch->add_option("--output", watch_options->output, "Folder for the code of rank 1")->check(NotEmpty());
  watch->add_flag("--force", watch_options->force, kForceHelp);
  watch->add_flag("--all", watch_options->all, "Show every candidate, not the first ten");
  AddCommonOptions(watch, invocation);
  watch->callback([=] { invocation->run = [=] { return WatchJob(*invocation, *name, *watch_options); }; });

  CLI::App* cancel = jobs->add_subcommand("cancel", "Stop a job");
  cancel->add_option("JOB", *name, "jobs/ID, or ID")->required();
  AddCommonOptions(cancel, invocation);
  AddTraceCommand(jobs, invocation);
  cancel->callback([=] { invocation->run = [=] { return Cancel(*invocation, *name); }; });
}

}  // namespace fusion
