#include "server/optimize/search_process.h"

#include <malloc.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <new>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/rpc/status_details.h"
#include "base/sandbox/child_process.h"
#include "base/sandbox/message_pipe.h"
#include "base/status_macros.h"
#include "server/optimize/explain_pair.h"
#include "server/optimize/hints.h"
#include "server/optimize/plan_text.h"
#include "server/optimize/search_messages.h"
#include "server/optimize/submission.h"

namespace fusion {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr char kProgramName[] = "fusion-server";
// A search that has taken so long leaves the processors to the others that want them.
constexpr std::chrono::milliseconds kLongSearch{200};
// The end of a process is seen as late as this.
constexpr std::chrono::seconds kEndPatience{10};

absl::Status NeedsMoreMemory(uint64_t limit) {
  return absl::ResourceExhaustedError(absl::StrCat("the search needs more memory than it may have, ",
                                                   limit >> 20, " MiB",
                                                   " (--search-memory of the server); a smaller graph, or a "
                                                   "smaller number for --max-fusions, needs less"));
}

// The server has the remembered kernels; this asks for them as the search comes to them.
class AskedMemory final : public KernelMemory {
 public:
  AskedMemory(int input, int output, const v1::PredictionModel& model)
      : input_(input), output_(output), families_(model.families().begin(), model.families().end()) {}

  std::vector<RememberedKernel> Find(const std::string& family) const override {
    if (!families_.contains(family)) return {};
    v1::SearchReply question;
    question.set_family(family);
    v1::RememberedKernels answer;
    absl::Status asked = WriteMessage(output_, question);
    if (asked.ok()) asked = ReadMessage(input_, &answer);
    // Nobody waits for the search any more.
    if (!asked.ok()) _Exit(1);
    return FromMessage(answer);
  }
  std::vector<std::string> Families() const override { return {families_.begin(), families_.end()}; }

 private:
  const int input_, output_;
  const std::set<std::string> families_;
};

absl::StatusOr<v1::FoundPlans> Search(const v1::SearchRequest& request,
                                      std::shared_ptr<const Catalog> library,
                                      std::shared_ptr<const KernelMemory> memory) {
  FUSION_ASSIGN_OR_RETURN(const Submission submission, CheckSource(request.source(), std::move(library)));
  FUSION_ASSIGN_OR_RETURN(const CostModel model, FromMessage(request.model(), std::move(memory)));
  FUSION_ASSIGN_OR_RETURN(const Hints hints, ResolveHints(*submission.graph, request.hints()));
  FUSION_ASSIGN_OR_RETURN(Plans plans, PlanCovers(submission, model, request.candidates(),
                                                  request.deterministic(), hints, request.fusions()));
  v1::PairExplanation pair;
  if (request.why_size() == 2) {
    FUSION_ASSIGN_OR_RETURN(pair,
                            ExplainPair(submission, model, plans, hints, request.why(0), request.why(1)));
  }
  std::string fusions_text, lp_text;
  if (request.texts()) {
    fusions_text = PrintFusions(*submission.graph, plans.space);
    lp_text = std::move(plans.lp_text);
  }
  v1::FoundPlans found = ToMessage(WithoutUnused(std::move(plans)));
  if (request.why_size() == 2) *found.mutable_pair() = std::move(pair);
  found.set_fusions_text(std::move(fusions_text));
  found.set_lp_text(std::move(lp_text));
  return found;
}

}  // namespace

int RunSearchProcess(int input, int output) {
  spdlog::set_default_logger(spdlog::stderr_logger_st("fusion-search"));  // stdout is for replies
  rlimit memory{};
  if (getrlimit(RLIMIT_DATA, &memory) != 0 || memory.rlim_cur == RLIM_INFINITY)
    spdlog::warn("the memory of searches is not limited: this system does not permit it");
  std::shared_ptr<const Catalog> library;
  while (true) {
    v1::SearchRequest request;
    if (absl::Status read = ReadMessage(input, &request); !read.ok()) return absl::IsCancelled(read) ? 0 : 1;
    v1::SearchReply reply;
    bool goes_on = true;
    try {
      if (request.library_size() > 0) {
        auto loaded = Catalog::FromDefinitions({request.library().begin(), request.library().end()});
        library = loaded.ok() ? *std::move(loaded) : nullptr;
      }
      absl::StatusOr<v1::FoundPlans> found = absl::InternalError("the library of functions cannot be read");
      if (library != nullptr)
        found = Search(request, library, std::make_shared<AskedMemory>(input, output, request.model()));
      if (found.ok())
        *reply.mutable_plans() = *std::move(found);
      else
        *reply.mutable_error() = ToRpcStatus(found.status());
    } catch (const std::bad_alloc&) {
      reply.mutable_error()->set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
      goes_on = false;
    } catch (const std::exception& error) {
      *reply.mutable_error() =
          ToRpcStatus(absl::InternalError(absl::StrCat("the search failed: ", error.what())));
      goes_on = false;
    }
    if (!WriteMessage(output, reply).ok() || !goes_on) return 1;
    reply.Clear();
    request.Clear();
    malloc_trim(0);  // what a large graph took is not kept until the next one comes
  }
}

struct SearchPool::Process {
  std::unique_ptr<ChildProcess> child;
  std::string library;  // hash of the one that it has
};

SearchPool::SearchPool(SearchLimits limits)
    : limits_([&] {
        if (limits.memory_bytes == 0) limits.memory_bytes = MachineBytes() / 2;
        return std::move(limits);
      }()) {}

SearchPool::~SearchPool() = default;

absl::StatusOr<std::unique_ptr<SearchPool::Process>> SearchPool::Take() {
  {
    const std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      std::unique_ptr<Process> process = std::move(idle_.back());
      idle_.pop_back();
      if (!process->child->Wait(SteadyClock::now()).has_value()) return process;
    }
  }
  ChildProcess::Options options;
  options.command = {limits_.program.empty() ? FindOwnProgram(kProgramName) : limits_.program,
                     kSearchProcessArgument};
  if (options.command[0].empty())
    return absl::NotFoundError(
        absl::StrCat("no ", kProgramName, " beside this program or in PATH, which searches"));
  options.input = true;
  options.limits = {.data_bytes = limits_.memory_bytes};
  auto process = std::make_unique<Process>();
  FUSION_ASSIGN_OR_RETURN(process->child, ChildProcess::Start(options));
  return process;
}

void SearchPool::Keep(std::unique_ptr<Process> process) {
  const std::lock_guard lock(mutex_);
  if (static_cast<int>(idle_.size()) < limits_.idle) idle_.push_back(std::move(process));
}

absl::StatusOr<FoundPlans> SearchPool::Search(v1::SearchRequest request, const Graph& graph,
                                              const CostModel& model, const Catalog& library,
                                              const std::function<bool()>& cancelled) {
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Take());
  *request.mutable_model() = ToMessage(model);
  request.clear_library();
  if (process->library != library.hash())
    request.mutable_library()->Add(library.definitions().begin(), library.definitions().end());
  process->library = library.hash();

  const auto start = SteadyClock::now();
  bool yields = false;
  absl::Status given_up;
  const KeepWaiting keep_waiting = [&]() -> absl::Status {
    if (cancelled && cancelled()) given_up = absl::CancelledError("cancelled while it searched");
    if (const auto taken = SteadyClock::now() - start; taken > limits_.time) {
      given_up = absl::DeadlineExceededError(absl::StrFormat(
          "the search took longer than %.3g s", std::chrono::duration<double>(limits_.time).count()));
    } else if (taken > kLongSearch && !yields) {
      yields = true;
      process->child->Yield();
    }
    return given_up;
  };
  absl::Status status = WriteMessage(process->child->input(), request, keep_waiting);
  v1::SearchReply reply;
  while (status.ok()) {
    status = ReadMessage(process->child->output(), &reply, keep_waiting);
    if (!status.ok() || !reply.has_family()) break;
    const std::vector<RememberedKernel> kernels =
        model.memory() == nullptr ? std::vector<RememberedKernel>() : model.memory()->Find(reply.family());
    status = WriteMessage(process->child->input(), ToMessage(kernels), keep_waiting);
  }
  if (!given_up.ok()) return given_up;
  if (!status.ok()) {
    const std::optional<ExitStatus> end = process->child->Wait(SteadyClock::now() + kEndPatience);
    return absl::InternalError(absl::StrCat("the process that searched ",
                                            end.has_value() ? end->ToString() : "closed its output",
                                            "; the memory of this machine may have run out"));
  }
  // Its process ends with that.
  if (reply.error().code() == static_cast<int>(absl::StatusCode::kResourceExhausted))
    return NeedsMoreMemory(limits_.memory_bytes);
  if (!yields) Keep(std::move(process));  // its priority cannot be raised again
  if (reply.has_error()) return FromRpcStatus(reply.error());
  FoundPlans found;
  FUSION_ASSIGN_OR_RETURN(found.plans, FromMessage(reply.plans(), graph));
  found.pair = reply.plans().pair();
  found.fusions_text = reply.plans().fusions_text();
  return found;
}

}  // namespace fusion
