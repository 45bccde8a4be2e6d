// Searches in processes of their own, with a memory limit and a deadline: a graph whose search needs more
// than there is ends its own search with an error, and nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/search.pb.h"
#include "library/catalog/catalog.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/optimize/plans.h"

namespace fusion {

// The argument of fusion-server that makes it a process of a SearchPool.
inline constexpr char kSearchProcessArgument[] = "--search-process";

struct SearchLimits {
  // One process may have so much private memory; 0: half of what the machine has. Searches that run at once
  // have as much each: where that is more than there is, the system ends a search before anything else.
  uint64_t memory_bytes = 0;
  std::chrono::milliseconds time{600'000};
  // Processes that are kept for the next searches.
  int idle = 2;
  std::string program;  // "": fusion-server beside this program, in ../bin beside it, or in PATH
};

// A search found this; implementations that nothing uses are left out.
struct FoundPlans {
  Plans plans;
  v1::PairExplanation pair;  // of SearchRequest::why
  std::string fusions_text;  // of SearchRequest::texts; every fusion implementation with its estimate
};

// Thread safe.
class SearchPool {
 public:
  explicit SearchPool(SearchLimits limits);
  // No search may run.
  ~SearchPool();

  // Returns the plans of request.source, which is `graph` once it is checked; `library` and `model` of the
  // request are set here. `cancelled` is asked about every 20 ms. Statuses are those of ResolveHints,
  // PlanCovers and ExplainPair; ResourceExhausted: the search needs more memory; DeadlineExceeded; Cancelled;
  // Internal: its process died; NotFound: there is no program.
  absl::StatusOr<FoundPlans> Search(v1::SearchRequest request, const Graph& graph, const CostModel& model,
                                    const Catalog& library, const std::function<bool()>& cancelled);

 private:
  struct Process;
  absl::StatusOr<std::unique_ptr<Process>> Take();
  void Keep(std::unique_ptr<Process> process);

  const SearchLimits limits_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Process>> idle_;  // guarded by mutex_
};

// The process answers requests until `input` ends. Returns the exit status of the program.
int RunSearchProcess(int input, int output);

}  // namespace fusion
