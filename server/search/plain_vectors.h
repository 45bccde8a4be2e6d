// The choice of implementations for many sets of one graph that only map vectors of one type: what a node or
// a value takes is found once, and times are predicted once for all sets that are equal in what the model
// sees of them. The results are those of ImplementFusion, to the last bit.
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/plan/plan.h"
#include "server/search/implementation_choice.h"

namespace fusion {

// Keeps references to all that it is given. Not thread safe.
class PlainVectors {
 public:
  // Requires options without `wanted`.
  PlainVectors(const Graph& graph, const SizeValues& sizes, const CostModel& model,
               const ImplementationOptions& options);

  // Appends what ImplementFusion gives for a convex set, and returns true; or does nothing and returns false:
  // for single nodes, more than kMaxLinearizedNodes, reductions, vectors of several types, and where measured
  // kernels compute the set.
  bool Implement(const NodeSet& nodes, std::vector<FusionImplementation>* out);

  // Times were predicted for so many sets.
  int64_t predictions() const { return static_cast<int64_t>(choices_.size()); }

 private:
  struct NodeFacts {
    int vectors = -1;               // number of the type of all vectors that it touches; -1: no plain node
    std::vector<ValueId> operands;  // each once, without literals
    double flops = 0, instructions = 0;
  };
  struct ValueFacts {
    bool vector = false, in_l2 = false;  // in_l2: what L2Use keeps of vectors
    double bytes = 0;
  };
  struct Choice {
    const Skeleton* skeleton;
    std::any parameters;
    RunTimeEstimate estimate;
  };
  // Choices depend on these numbers alone beside device, options and graph.
  using Numbers = std::array<uint64_t, 10>;

  bool See(const NodeSet& nodes);
  void Order();
  Numbers NumbersSeen() const;

  const Graph& graph_;
  const SizeValues& sizes_;
  const CostModel& model_;
  const ImplementationOptions& options_;
  std::vector<NodeFacts> nodes_;
  std::vector<ValueFacts> values_;
  absl::flat_hash_map<Numbers, std::vector<Choice>> choices_;

  // These fields describe the set that is looked at.
  std::vector<int> members_;             // as a kernel computes them (member_order.h)
  std::vector<ValueId> loads_, stores_;  // ascending
  // The readers of each vector, results of members first, as bits: positions among the ascending members.
  std::vector<uint64_t> readers_;
  int live_ = 0;  // most vectors of which an entry is live at once
  // For each value its position in readers_, if it was seen in the set of that number.
  std::vector<int> vector_;
  std::vector<int64_t> seen_in_;
  int64_t set_ = 0;
};

}  // namespace fusion
