#include "server/skeletons/row_panel/row_chunk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/lowering/long_sums.h"

namespace fusion {

RowChunk::RowChunk(LoweringContext& context, const RowPanelNodes& nodes, const RowValues& values,
                   RowStages& stages, RowLanes& lanes, std::string columns, int phase)
    : context_(context),
      graph_(context.graph),
      parameters_(context.implementation.As<RowPanelParameters>()),
      nodes_(nodes),
      values_(values),
      stages_(stages),
      lanes_(lanes),
      columns_(std::move(columns)),
      phase_(phase) {}

void RowChunk::Add(const Node& node) {
  if (node.is_reduction())
    AddReduction(node);
  else
    AddMap(node);
}

void RowChunk::AddMap(const Node& node) {
  std::vector<std::string>* const lines = &lines_.rows;
  const std::string local = "r_" + context_.Name(node.result);
  if (available_.insert(local).second) Map(node, local, lines);
  const std::string source = values_.Held(node.result) ? values_.HeldText(node.result) : local;
  if (stages_.Keeps(node.result)) lines->push_back(stages_.KeepLine(node.result, source));
  if (values_.KeptForPhases(node.result))
    ForEachEntry(absl::StrCat(lanes_.Guard() == "true" ? "" : absl::StrCat("if (", lanes_.Guard(), ") "),
                              values_.KeptName(node.result), "[j + v] = ", source, "[v];"),
                 lines);
  if (!context_.Stored(node.result)) return;
  const std::string base = stages_.RowBase(node.result);
  if (parameters_.vector_width == 1 && !lanes_.static_chunks())
    lines->push_back(absl::StrCat(base, "[j] = ", source, "[0];"));
  else
    lines->push_back(absl::StrCat(context_.StoreName(), "(", base, ", ", source, ", j, ", columns_, ", ",
                                  lanes_.Aligned(node.result, true), lanes_.WholeArgument(), ");"));
}

void RowChunk::AddReduction(const Node& node) {
  const std::string name = context_.Name(node.result);
  const std::vector<std::string> operands = EntryOperands(node);
  const std::string monoid = context_.MonoidName(node);
  const bool by_row = nodes_.IsRowReduction(node);
  const std::string accumulator = by_row                   ? values_.OfRow("$row_" + name)
                                  : lanes_.static_chunks() ? absl::StrCat("$acc_", name, "[c][v]")
                                                           : absl::StrCat("acc_", name, "[j + v]");
  // The sum of a lane's part of a long row is that of its chunks.
  const bool in_parts = by_row && IsLongSum(context_, node) && parameters_.vector_width > 1 &&
                        parameters_.chunks * parameters_.vector_width > 2 * kPartTerms;
  const std::string target = in_parts ? "part_" + name : accumulator;
  if (in_parts) lines_.rows.push_back(absl::StrCat(monoid, "::Acc ", target, " = ", monoid, "::identity();"));
  ForEachEntry(absl::StrCat(by_row ? "" : stages_.Once(),
                            lanes_.Guard() == "true" ? "" : absl::StrCat("if (", lanes_.Guard(), ") "),
                            target, " = ", monoid, "::combine(", target, ", ", monoid, "::lift(",
                            ReductionTerm(context_, node, operands), ", ", by_row ? "j + v" : "row", "));"),
               &lines_.rows);
  if (in_parts)
    lines_.rows.push_back(
        absl::StrCat(accumulator, " = ", monoid, "::combine(", accumulator, ", ", target, ");"));
}

std::string RowChunk::Operand(const Node& node, int k) {
  return nodes_.ShapeOf(node, k) == Shape::kColumn ? ColumnOperand(node.operands[k])
                                                   : MatrixOperand(node.operands[k]);
}

std::string RowChunk::ColumnOperand(ValueId value) {
  const std::string local = "c_" + context_.Name(value);
  if (values_.HeldColumn(value)) return absl::StrCat("$", local, "[c]");
  if (!available_.insert(local).second) return local;
  if (context_.ProducedHere(value)) {
    Map(graph_.node(*graph_.value(value).producer), local, &lines_.columns);
    return local;
  }
  lines_.columns.push_back(Declaration(value, local));
  lines_.columns.push_back(lanes_.Load(local, context_.Pointer(value), value, false));
  return local;
}

std::string RowChunk::MatrixOperand(ValueId value) {
  const std::string local = "r_" + context_.Name(value);
  const bool held = values_.Held(value);
  if (available_.count(local)) return held ? values_.HeldText(value) : local;
  if (context_.ProducedHere(value)) {
    if (held) return values_.HeldText(value);  // computed in its phase, which is earlier
    available_.insert(local);
    const Node& producer = graph_.node(*graph_.value(value).producer);
    if (!values_.KeptForPhases(value) || nodes_.Phase(producer) == phase_) {
      Map(producer, local, &lines_.rows);
      return local;
    }
    lines_.rows.push_back(Declaration(value, local));
    ForEachEntry(absl::StrCat(lanes_.Guard() == "true" ? "" : absl::StrCat("if (", lanes_.Guard(), ") "),
                              local, "[v] = ", values_.KeptName(value), "[j + v];"),
                 &lines_.rows);
    return local;
  }
  available_.insert(local);
  if (stages_.Staged(value)) {
    lines_.rows.push_back(Declaration(value, local));
    lines_.rows.push_back(stages_.ReadLine(value, local));
    return local;
  }
  const std::string base = stages_.RowBase(value);
  if (held) {
    if (nodes_.FirstPhase(value) == phase_ && !values_.in_batches())
      lines_.rows.push_back(lanes_.Load(values_.HeldText(value), base, value, true));
    return values_.HeldText(value);
  }
  lines_.rows.push_back(Declaration(value, local));
  lines_.rows.push_back(lanes_.Load(local, base, value, true));
  return local;
}

std::vector<std::string> RowChunk::EntryOperands(const Node& node) {
  std::vector<std::string> operands;
  for (int k = 0; k < static_cast<int>(node.operands.size()); ++k) {
    const Shape shape = nodes_.ShapeOf(node, k);
    const bool for_finish = node.is_reduction() && !nodes_.IsTermOperand(node, k);
    if (shape == Shape::kScalar || (shape == Shape::kRow && for_finish))
      operands.push_back(values_.RowOperand(node, k));
    else if (shape == Shape::kRow)
      operands.push_back(RowOperand(node, k));
    else if (for_finish)
      operands.push_back("");  // read when the reduction is finished
    else
      operands.push_back(Operand(node, k) + "[v]");
  }
  return operands;
}

// In a step that repeats rows the operand is loaded whether or not the row is there, as those of the matrices
// are: behind the guard of what is done with it each row would wait for its own.
std::string RowChunk::RowOperand(const Node& node, int k) {
  const ValueId value = node.operands[k];
  if (!values_.in_batches() || context_.ProducedHere(value)) return values_.RowOperand(node, k);
  const std::string local = "u_" + context_.Name(value);
  if (available_.insert(local).second)
    lines_.rows.push_back(
        absl::StrCat("const ", context_.CType(value), " ", local, " = ", values_.RowText(value), ";"));
  return local;
}

void RowChunk::Map(const Node& node, const std::string& target, std::vector<std::string>* lines) {
  const std::vector<std::string> operands = EntryOperands(node);
  const bool held = values_.Held(node.result) && target == "r_" + context_.Name(node.result);
  if (!held)
    lines->push_back(absl::StrCat(context_.CType(node), " ", target, "[", parameters_.vector_width, "];"));
  ForEachEntry(absl::StrCat(held ? values_.HeldText(node.result) : target,
                            "[v] = ", context_.Call(node, node.overload->routine, operands), ";"),
               lines);
}

std::string RowChunk::Declaration(ValueId value, const std::string& name) const {
  return absl::StrCat(context_.CType(value), " ", name, "[", parameters_.vector_width, "];");
}

void RowChunk::ForEachEntry(const std::string& statement, std::vector<std::string>* lines) const {
  lines->push_back("FUSION_UNROLL");
  lines->push_back(absl::StrCat("for (int v = 0; v < ", parameters_.vector_width, "; ++v) ", statement));
}

}  // namespace fusion
