#include "server/skeletons/row_panel/row_values.h"

#include "absl/strings/str_cat.h"

namespace fusion {

RowValues::RowValues(LoweringContext& context, const RowPanelNodes& nodes, const RowLanes& lanes)
    : context_(context),
      graph_(context.graph),
      implementation_(context.implementation),
      parameters_(context.implementation.As<RowPanelParameters>()),
      nodes_(nodes),
      lanes_(lanes) {}

bool RowValues::Held(ValueId value) const { return Contains(held_, value); }

bool RowValues::HeldColumn(ValueId value) const { return Contains(held_columns_, value); }

bool RowValues::StaysInRegisters(ValueId value) const {
  const KeptRows& kept = parameters_.kept;
  return kept.register_rows > 0 && Contains(kept.values, value);
}

void RowValues::Find(RowStages* stages, std::vector<ir::LaneVariable>* of_lanes,
                     std::vector<ir::LaneVariable>* of_kernel) {
  if (parameters_.keeps_results)
    kept_results_ = DearResults(graph_, implementation_.order, parameters_.roles);
  std::map<ValueId, int> first;
  for (NodeId id : implementation_.order) {
    const Node& node = graph_.node(id);
    if (nodes_.Phase(node) == kFinishPhase) continue;
    // Also what only a later sweep reads.
    if (in_batches() && StaysInRegisters(node.result) && !Held(node.result)) held_.push_back(node.result);
    for (size_t k = 0; k < node.operands.size(); ++k) FindOperand(node, static_cast<int>(k), stages, &first);
  }
  for (ValueId value : held_)
    (StaysInRegisters(value) ? of_kernel : of_lanes)
        ->push_back(lanes_.ChunkVariable(context_.CType(value), HeldName(value), "", row_count()));
  for (ValueId value : held_columns_)
    of_lanes->push_back(lanes_.ChunkVariable(context_.CType(value), "c_" + context_.Name(value), ""));
}

// `first`: the phase in which a matrix value is first at hand.
void RowValues::FindOperand(const Node& node, int k, RowStages* stages, std::map<ValueId, int>* first) {
  const ValueId value = node.operands[k];
  const Shape shape = nodes_.ShapeOf(node, k);
  if (shape == Shape::kMatrix) {
    const bool input = !context_.ProducedHere(value);
    if (input && parameters_.stages > 0) return stages->Add(value);
    if (in_batches() && (input || StaysInRegisters(value)) && !Held(value)) held_.push_back(value);
    const int phase = nodes_.Phase(node);
    auto [it, inserted] =
        first->emplace(value, input ? phase : nodes_.Phase(graph_.node(*graph_.value(value).producer)));
    if (lanes_.static_chunks() && phase > it->second && !Held(value)) held_.push_back(value);
  }
  const bool for_finish = node.is_reduction() && !nodes_.IsTermOperand(node, k);
  if (shape == Shape::kColumn && !for_finish && lanes_.static_chunks() && parameters_.hold_columns &&
      !context_.ProducedHere(value) && !HeldColumn(value))
    held_columns_.push_back(value);
}

std::string RowValues::RowDeclaration(const std::string& type, const std::string& name) const {
  return absl::StrCat(type, " ", name, row_count() > 1 ? absl::StrCat("[", row_count(), "]") : "", ";");
}

std::string RowValues::RowText(ValueId value) const {
  // Beside a batch of matrix rows there are no registers for values of 16 rows: the compiler places the
  // loads.
  if (in_batches() && !context_.ProducedHere(value)) return context_.Pointer(value) + "[row]";
  return OfRow("u_" + context_.Name(value));
}

std::string RowValues::RowOperand(const Node& node, int k) const {
  return nodes_.ShapeOf(node, k) == Shape::kScalar ? context_.Scalar(node.operands[k], context_.CType(node))
                                                   : RowText(node.operands[k]);
}

}  // namespace fusion
