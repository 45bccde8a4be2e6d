#include "server/skeletons/shared/linearize.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace fusion {
namespace {

// The order that always takes the smallest node whose producers are placed.
std::vector<int> FirstTopologicalOrder(const LinearizationProblem& problem) {
  std::vector<std::vector<int>> successors(problem.node_count);
  std::vector<int> waiting_for(problem.node_count, 0);
  for (const FusionVariable& variable : problem.variables) {
    if (variable.producer < 0) continue;
    for (int consumer : variable.consumers) {
      successors[variable.producer].push_back(consumer);
      ++waiting_for[consumer];
    }
  }
  std::vector<int> ready, order;  // ready: a heap, smallest first
  auto add = [&](int node) {
    ready.push_back(node);
    std::push_heap(ready.begin(), ready.end(), std::greater<>());
  };
  for (int node = 0; node < problem.node_count; ++node)
    if (waiting_for[node] == 0) add(node);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), std::greater<>());
    const int node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (int next : successors[node])
      if (--waiting_for[next] == 0) add(next);
  }
  assert(static_cast<int>(order.size()) == problem.node_count);
  return order;
}

// The order that always takes, of the nodes whose producers are placed, the one after which the least is
// active; the smallest of equal ones.
std::vector<int> GreedyOrder(const LinearizationProblem& problem) {
  const int count = problem.node_count;
  std::vector<int> waiting_for(count, 0), order;
  std::vector<std::vector<int>> touched(count), successors(count);  // touched: variables, each once
  std::vector<int> unread;                                          // of each variable: consumers to come
  std::vector<bool> begun;
  for (size_t i = 0; i < problem.variables.size(); ++i) {
    const FusionVariable& variable = problem.variables[i];
    std::vector<int> readers = variable.consumers;
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (int reader : readers) {
      touched[reader].push_back(static_cast<int>(i));
      if (variable.producer < 0) continue;
      successors[variable.producer].push_back(reader);
      ++waiting_for[reader];
    }
    if (variable.producer >= 0) touched[variable.producer].push_back(static_cast<int>(i));
    unread.push_back(static_cast<int>(readers.size()));
    begun.push_back(variable.producer < 0 && variable.from_start);
  }
  const auto change = [&](int node) {
    int64_t by = 0;
    for (int i : touched[node]) {
      const FusionVariable& variable = problem.variables[i];
      const int left = unread[i] - (variable.producer == node ? 0 : 1);
      if (!begun[i]) by += variable.size;
      if (left == 0 && !variable.to_end) by -= variable.size;
    }
    return by;
  };
  std::vector<int> ready;
  for (int node = 0; node < count; ++node)
    if (waiting_for[node] == 0) ready.push_back(node);
  while (!ready.empty()) {
    auto best = ready.begin();
    int64_t least = change(*best);
    for (auto other = ready.begin() + 1; other != ready.end(); ++other)
      if (const int64_t by = change(*other); by < least || (by == least && *other < *best)) {
        best = other;
        least = by;
      }
    const int node = *best;
    ready.erase(best);
    order.push_back(node);
    for (int i : touched[node]) {
      begun[i] = true;
      if (problem.variables[i].producer != node) --unread[i];
    }
    for (int next : successors[node])
      if (--waiting_for[next] == 0) ready.push_back(next);
  }
  assert(static_cast<int>(order.size()) == count);
  return order;
}

// Returns what every order must hold at once: at a node its operands, its result, and what is held
// throughout.
int64_t LowerBound(const LinearizationProblem& problem) {
  std::vector<int64_t> at_node(problem.node_count, 0);
  int64_t throughout = 0, at_start = 0, at_end = 0;
  for (const FusionVariable& variable : problem.variables) {
    const bool from_start = variable.from_start && variable.producer < 0;
    if (from_start) at_start += variable.size;
    if (variable.to_end) at_end += variable.size;
    if (from_start && variable.to_end) {
      throughout += variable.size;
      continue;
    }
    std::vector<int> touching = variable.consumers;
    if (variable.producer >= 0) touching.push_back(variable.producer);
    std::sort(touching.begin(), touching.end());
    touching.erase(std::unique(touching.begin(), touching.end()), touching.end());
    for (int node : touching) at_node[node] += variable.size;
  }
  int64_t bound = std::max(at_start, at_end);
  for (int64_t size : at_node) bound = std::max(bound, size + throughout);
  return bound;
}

// Searches orders in lexicographic order, with nodes as bits of one word.
class LinearizationSearch {
 public:
  LinearizationSearch(const LinearizationProblem& problem, int64_t max_steps)
      : problem_(problem), steps_left_(max_steps), needed_(problem.node_count, 0) {
    for (const FusionVariable& variable : problem.variables) {
      uint64_t consumers = 0;
      for (int consumer : variable.consumers) consumers |= Bit(consumer);
      consumers_.push_back(consumers);
      if (variable.producer < 0) continue;
      for (int consumer : variable.consumers) needed_[consumer] |= Bit(variable.producer);
    }
  }

  // The lexicographically first order with M_lb <= limit; empty when there is none, or at the step limit.
  std::vector<int> FirstOrder(int64_t limit) {
    hopeless_.clear();
    order_.clear();
    limit_ = limit;
    return Complete(0) ? order_ : std::vector<int>();
  }
  bool out_of_steps() const { return steps_left_ < 0; }

 private:
  static uint64_t Bit(int node) { return uint64_t{1} << node; }

  bool Complete(uint64_t placed) {
    if (static_cast<int>(order_.size()) == problem_.node_count) return true;
    if (hopeless_.contains(placed)) return false;
    for (int node = 0; node < problem_.node_count; ++node) {
      if ((placed & Bit(node)) || (needed_[node] & ~placed)) continue;
      if (--steps_left_ < 0) return false;
      if (ActiveWith(placed, node) > limit_) continue;
      order_.push_back(node);
      if (Complete(placed | Bit(node))) return true;
      order_.pop_back();
    }
    if (steps_left_ >= 0) hopeless_.insert(placed);
    return false;
  }

  // Sum of sizes active at the position of `node`, which comes right after `placed`. Depends on the set
  // alone, not on its order: this is why the memory of hopeless sets is exact.
  int64_t ActiveWith(uint64_t placed, int node) const {
    const uint64_t after = placed | Bit(node);
    int64_t size = 0;
    for (size_t i = 0; i < consumers_.size(); ++i) {
      const FusionVariable& variable = problem_.variables[i];
      const bool computed = variable.producer >= 0;
      const bool begun = computed ? (after & Bit(variable.producer)) != 0
                                  : variable.from_start || (consumers_[i] & after) != 0;
      const bool unfinished = variable.to_end || variable.producer == node || (consumers_[i] & ~placed) != 0;
      if (begun && unfinished) size += variable.size;
    }
    return size;
  }

  const LinearizationProblem& problem_;
  int64_t steps_left_;
  std::vector<uint64_t> needed_;     // per node: producers of its operands
  std::vector<uint64_t> consumers_;  // per variable
  int64_t limit_ = 0;
  std::vector<int> order_;
  absl::flat_hash_set<uint64_t> hopeless_;  // placed sets that no order completes within limit_
};

}  // namespace

std::vector<ActiveInterval> ActiveIntervals(const LinearizationProblem& problem,
                                            const std::vector<int>& order) {
  std::vector<int> position(problem.node_count, 0);
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  const int end = std::max(problem.node_count - 1, 0);
  std::vector<ActiveInterval> intervals;
  for (const FusionVariable& variable : problem.variables) {
    ActiveInterval interval{end, 0, variable.size};
    auto touch = [&](int at) {
      interval.first = std::min(interval.first, at);
      interval.last = std::max(interval.last, at);
    };
    for (int consumer : variable.consumers) touch(position[consumer]);
    if (variable.producer >= 0) touch(position[variable.producer]);
    if (variable.from_start && variable.producer < 0) touch(0);
    if (variable.to_end) touch(end);
    intervals.push_back(interval);
  }
  return intervals;
}

int64_t ActiveSize(const LinearizationProblem& problem, const std::vector<int>& order) {
  std::vector<int64_t> change(order.size() + 2, 0);
  for (const ActiveInterval& interval : ActiveIntervals(problem, order)) {
    change[interval.first] += interval.size;
    change[interval.last + 1] -= interval.size;
  }
  int64_t largest = 0, active = 0;
  for (int64_t by : change) largest = std::max(largest, active += by);
  return largest;
}

Linearization Linearize(const LinearizationProblem& problem, const LinearizeOptions& options) {
  Linearization best;
  best.order = FirstTopologicalOrder(problem);
  best.active_size = ActiveSize(problem, best.order);
  best.lower_bound = LowerBound(problem);
  best.proved_optimal = best.active_size == best.lower_bound;
  if (best.proved_optimal) return best;
  std::vector<int> greedy = GreedyOrder(problem);
  const int64_t greedy_size = ActiveSize(problem, greedy);
  const auto take = [&](std::vector<int> order, int64_t size) {
    best.order = std::move(order);
    best.active_size = size;
    best.proved_optimal = size == best.lower_bound;
  };
  if (problem.node_count > kMaxLinearizedNodes) {
    if (greedy_size < best.active_size) take(std::move(greedy), greedy_size);
    return best;
  }
  // Each order found is the first of all within its limit, and the next limit is below what it reached: so
  // the last one is the first of all optimal ones.
  LinearizationSearch search(problem, options.max_steps);
  int64_t limit = std::min(greedy_size, best.active_size - 1);
  while (!best.proved_optimal) {
    std::vector<int> order = search.FirstOrder(limit);
    if (order.empty()) {
      best.proved_optimal = !search.out_of_steps();
      break;
    }
    const int64_t size = ActiveSize(problem, order);
    take(std::move(order), size);
    limit = best.active_size - 1;
  }
  if (greedy_size < best.active_size) take(std::move(greedy), greedy_size);
  if (best.proved_optimal) best.lower_bound = best.active_size;
  return best;
}

FusionVariables FusionVariablesOf(const Graph& graph, const NodeSet& nodes,
                                  const std::function<int64_t(const Value&)>& size_of, bool staged) {
  FusionVariables fusion;
  std::map<NodeId, int> index;
  std::map<ValueId, FusionVariable> variables;
  for (int member : nodes.Members()) {
    index[NodeId{member}] = static_cast<int>(fusion.nodes.size());
    fusion.nodes.push_back(NodeId{member});
  }
  for (NodeId id : fusion.nodes) {
    for (ValueId operand : graph.node(id).operands) variables[operand];
    variables[graph.node(id).result];
  }
  fusion.problem.node_count = static_cast<int>(fusion.nodes.size());
  for (auto& [id, variable] : variables) {
    const Value& value = graph.value(id);
    if (value.literal) continue;
    variable.size = size_of(value);
    bool read_outside = false;
    for (NodeId consumer : value.consumers) {
      const auto inside = index.find(consumer);
      if (inside == index.end())
        read_outside = true;
      else
        variable.consumers.push_back(inside->second);
    }
    const bool computed = value.producer && index.count(*value.producer);
    if (computed) variable.producer = index.at(*value.producer);
    variable.from_start = staged && !computed;
    variable.to_end = staged && computed && (value.is_output || read_outside);
    fusion.values.push_back(id);
    fusion.problem.variables.push_back(std::move(variable));
  }
  return fusion;
}

}  // namespace fusion
