#include "server/search/plain_vectors.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "server/plan/l2_use.h"
#include "server/skeletons/shared/fusion_shape.h"
#include "server/skeletons/shared/linearize.h"
#include "server/skeletons/shared/member_order.h"

namespace fusion {
namespace {

constexpr L2Use kAnyL2Use = {.vectors = true};

uint64_t Bit(int position) { return uint64_t{1} << position; }

// Returns the type of the vectors if the node maps vectors of that type, and scalars, to such a vector; else
// null.
const Type* VectorType(const Graph& graph, const Node& node) {
  const Type& type = graph.value(node.result).type;
  if (node.mapped() || node.is_reduction() || node.dimensions.size() != 1 || type.mapped ||
      type.extents.size() != 1 || type.extents[0] != node.dimensions[0].extent || node.result_map.size() != 1)
    return nullptr;
  for (size_t k = 0; k < node.operands.size(); ++k) {
    const Type& operand = graph.value(node.operands[k]).type;
    if (operand.is_scalar() ? !node.operand_maps[k].empty()
                            : operand != type || node.operand_maps[k].size() != 1)
      return nullptr;
  }
  return &type;
}

}  // namespace

PlainVectors::PlainVectors(const Graph& graph, const SizeValues& sizes, const CostModel& model,
                           const ImplementationOptions& options)
    : graph_(graph),
      sizes_(sizes),
      model_(model),
      options_(options),
      vector_(graph.values().size(), -1),
      seen_in_(graph.values().size(), 0) {
  const FusionShape all{.graph = graph, .sizes = sizes, .model = model};
  std::map<std::pair<DataType, Extent>, int> numbers;
  for (const Node& node : graph.nodes()) {
    NodeFacts& facts = nodes_.emplace_back();
    const Type* type = VectorType(graph, node);
    if (type == nullptr) continue;
    facts.vectors = numbers.try_emplace({type->data_type, type->extents[0]}, static_cast<int>(numbers.size()))
                        .first->second;
    for (ValueId operand : node.operands)
      if (!graph.value(operand).literal && !Contains(facts.operands, operand))
        facts.operands.push_back(operand);
    facts.flops = NodeFlops(graph, node, sizes);
    facts.instructions = all.InstructionsOf(node);
  }
  for (const Value& value : graph.values())
    values_.push_back({.vector = !value.type.is_scalar(),
                       .in_l2 = kAnyL2Use.Keeps(value),
                       .bytes = static_cast<double>(value.type.Bytes(sizes))});
}

// Returns whether the set is plain; then finds what it touches.
bool PlainVectors::See(const NodeSet& nodes) {
  members_ = nodes.Members();
  if (members_.size() < 2 || members_.size() > size_t{kMaxLinearizedNodes}) return false;
  const int vectors = nodes_[members_[0]].vectors;
  for (int member : members_)
    if (nodes_[member].vectors != vectors || vectors < 0) return false;
  ++set_;
  loads_.clear();
  stores_.clear();
  readers_.assign(members_.size(), 0);
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    for (ValueId id : nodes_[members_[i]].operands) {
      if (seen_in_[id.value] != set_) {
        seen_in_[id.value] = set_;
        vector_[id.value] = static_cast<int>(readers_.size());
        loads_.push_back(id);
        if (values_[id.value].vector) readers_.push_back(0);
      }
      if (values_[id.value].vector) readers_[vector_[id.value]] |= Bit(i);
    }
    const Value& result = graph_.value(graph_.node(NodeId{members_[i]}).result);
    seen_in_[result.id.value] = set_;
    vector_[result.id.value] = i;
    if (result.is_output || std::any_of(result.consumers.begin(), result.consumers.end(),
                                        [&](NodeId id) { return !nodes.Contains(id.value); }))
      stores_.push_back(result.id);
  }
  std::sort(loads_.begin(), loads_.end());
  std::sort(stores_.begin(), stores_.end());
  return true;
}

// Orders the members as OrderMembers does.
void PlainVectors::Order() {
  const int count = static_cast<int>(members_.size()), vectors = static_cast<int>(readers_.size());
  // The ascending order is the first of all. It is taken when nothing less will do (Linearize).
  int touched[kMaxLinearizedNodes] = {}, ends[kMaxLinearizedNodes] = {};
  for (int i = 0; i < vectors; ++i) {
    const uint64_t touching = readers_[i] | (i < count ? Bit(i) : 0);
    ++ends[63 - std::countl_zero(touching)];
    for (uint64_t rest = touching; rest != 0; rest &= rest - 1) ++touched[std::countr_zero(rest)];
  }
  int live = vectors - count, bound = live;
  live_ = live;
  for (int i = 0; i < count; ++i) {
    live_ = std::max(live_, ++live);
    live -= ends[i];
    bound = std::max(bound, touched[i]);
  }
  if (live_ == bound || count < 3) return;
  LinearizationProblem problem{.node_count = count};
  for (int i = 0; i < vectors; ++i) {
    FusionVariable& variable = problem.variables.emplace_back();
    variable.size = 1;
    variable.producer = i < count ? i : -1;
    variable.from_start = i >= count;
    for (uint64_t rest = readers_[i]; rest != 0; rest &= rest - 1)
      variable.consumers.push_back(std::countr_zero(rest));
  }
  const Linearization found = Linearize(problem, {.max_steps = kMemberOrderSteps});
  live_ = static_cast<int>(found.active_size);
  std::vector<int> ordered;
  for (int position : found.order) ordered.push_back(members_[position]);
  members_ = std::move(ordered);
}

PlainVectors::Numbers PlainVectors::NumbersSeen() const {
  double bytes_read = 0, bytes_written = 0, flops = 0, instructions = 0;
  uint64_t in_l2 = 0;
  for (ValueId value : loads_) {
    bytes_read += values_[value.value].bytes;
    in_l2 += values_[value.value].in_l2;
  }
  for (ValueId value : stores_) bytes_written += values_[value.value].bytes;
  for (int member : members_) {
    flops += nodes_[member].flops;
    instructions += nodes_[member].instructions;
  }
  return {static_cast<uint64_t>(nodes_[members_[0]].vectors),
          members_.size(),
          readers_.size() - members_.size(),  // vectors that are loaded
          stores_.size(),
          static_cast<uint64_t>(live_),
          in_l2,
          std::bit_cast<uint64_t>(bytes_read),
          std::bit_cast<uint64_t>(bytes_written),
          std::bit_cast<uint64_t>(flops),
          std::bit_cast<uint64_t>(instructions)};
}

bool PlainVectors::Implement(const NodeSet& nodes, std::vector<FusionImplementation>* out) {
  if (!See(nodes) || (options_.measured && !options_.measured(nodes).empty())) return false;
  Order();
  const auto [found, is_new] = choices_.try_emplace(NumbersSeen());
  std::vector<Choice>& choices = found->second;
  if (is_new) {
    std::string reason;
    for (FusionImplementation& implementation :
         ImplementFusion(graph_, nodes, sizes_, model_, options_, &reason)) {
      choices.push_back({implementation.skeleton, implementation.parameters, implementation.estimate});
      out->push_back(std::move(implementation));
    }
    return true;
  }
  for (const Choice& choice : choices) {
    FusionImplementation& implementation = out->emplace_back();
    implementation.fusion.nodes = nodes;
    implementation.order.reserve(members_.size());
    for (int member : members_) implementation.order.push_back(NodeId{member});
    implementation.skeleton = choice.skeleton;
    implementation.parameters = choice.parameters;
    implementation.loads = loads_;
    implementation.stores = stores_;
    implementation.estimate = choice.estimate;
  }
  return true;
}

}  // namespace fusion
