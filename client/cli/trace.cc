#include <iostream>
#include <memory>
#include <string>

#include "client/cli/invocation.h"
#include "client/cli/option_checks.h"
#include "client/cli/watch.h"
#include "client/cli/write_file.h"

namespace fusion {
namespace {

ExitCode Trace(const Invocation& invocation, const std::string& given, const std::string& output) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  const std::string job = JobName(given);
  absl::StatusOr<std::string> trace = (*client)->TraceJob(job);
  if (!trace.ok()) return invocation.Report(trace.status());
  if (output.empty()) {
    std::cout << *trace;
    return kDone;
  }
  if (absl::Status status = WriteFile(output, *trace); !status.ok()) return invocation.Report(status);
  if (invocation.json)
    std::cout << JsonText({{"schema", "fusion.trace/1"}, {"job", job}, {"file", output}});
  else
    std::cout << "the trace of " << job << " is in " << output << "; open it with https://ui.perfetto.dev\n";
  return kDone;
}

}  // namespace

void AddTraceCommand(CLI::App* jobs, Invocation* invocation) {
  auto name = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  CLI::App* command = jobs->add_subcommand(
      "trace", "When each part of a job ran, and where, as JSON for Perfetto and chrome://tracing");
  command->add_option("JOB", *name, "jobs/ID, or ID")->required();
  command->add_option("--output", *output, "File to write instead of stdout")->check(NotEmpty());
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Trace(*invocation, *name, *output); }; });
}

}  // namespace fusion
