// A step of a block has `step` entries: as many whole rows as its lanes have entries for, at most. The
// entries of a lane have the same columns in every step, whatever the number of columns is. Steps whose
// vectors are all aligned and complete go without guards; the others follow them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/lowering/long_sums.h"
#include "server/lowering/lowering_context.h"
#include "server/skeletons/narrow_columns/narrow_columns.h"

namespace fusion {
namespace {

class NarrowColumnsLowering {
 public:
  explicit NarrowColumnsLowering(LoweringContext& context)
      : context_(context),
        graph_(context.graph),
        parameters_(context.implementation.As<NarrowColumnsParameters>()),
        rows_(context.Size(parameters_.roles.rows)),
        columns_(context.Size(parameters_.roles.columns)),
        width_(parameters_.vector_width),
        unroll_(parameters_.unroll) {
    context.loop = {.threads = parameters_.threads, .vector_width = width_};
  }

  absl::StatusOr<FusionCode> Lower() {
    SortNodes();
    LowerScalars(context_, early_scalars_, &body_);
    FusionCode code;
    int64_t accumulator_bytes = 1;
    for (const Node* node : matrix_nodes_) {
      if (!node->is_reduction()) continue;
      reductions_.push_back(PlaceGridReduction(context_, *node, true, parameters_.roles.columns, &code));
      accumulator_bytes = std::max<int64_t>(accumulator_bytes, context_.AccumulatorBytes(*node));
      const std::string name = context_.Name(node->result), monoid = context_.MonoidName(*node);
      AddLaneArray(monoid + "::Acc", "acc_" + name, monoid + "::identity()");
      if (IsLongSum(context_, *node))
        AddLaneArray(LongSumType(context_, *node), "long_" + name, LongSumType(context_, *node) + "()");
    }
    EmitSteps();
    EmitParts();

    const int64_t block_entries = int64_t{parameters_.threads} * width_;
    const SharedRule shared{.fixed_bytes = block_entries * accumulator_bytes};
    ir::Kernel kernel{
        .name = context_.kernel_name(""), .comment = context_.comment(), .threads = parameters_.threads};
    kernel.uses_shared = true;
    kernel.shared_bytes = absl::StrCat(shared.fixed_bytes);
    kernel.sections = {{parameters_.threads, lane_variables_, std::move(body_)}};
    GridRule grid{.extents = {parameters_.roles.rows, parameters_.roles.columns},
                  .items_per_block = block_entries * unroll_,
                  .blocks_per_multiprocessor = parameters_.blocks_per_multiprocessor};
    code.launches.push_back(context_.FinishKernel(std::move(kernel), std::move(grid), shared));
    code.limits = {{parameters_.roles.columns, block_entries}};
    if (NeedsFinish(reductions_, finish_nodes_)) {
      FUSION_ASSIGN_OR_RETURN(auto finish, LowerFinishKernel(context_, reductions_, early_scalars_,
                                                             finish_nodes_, parameters_.roles.columns));
      code.launches.push_back(std::move(finish));
    }
    return code;
  }

 private:
  // Roles are in the order of the nodes.
  void SortNodes() {
    const std::vector<NodeId>& order = context_.implementation.order;
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& node = graph_.node(order[i]);
      if (parameters_.roles.phases[i] == kFinishPhase)
        finish_nodes_.push_back(order[i]);
      else if (node.dimensions.empty())
        early_scalars_.push_back(order[i]);
      else
        matrix_nodes_.push_back(&node);
    }
  }

  void AddLaneArray(const std::string& type, const std::string& name, const std::string& initial) {
    lane_variables_.push_back({.type = type,
                               .name = name,
                               .extents = absl::StrCat("[", width_, "]"),
                               .initial = initial,
                               .entries = width_});
  }
  // The lines for each entry `v` of a lane's vector.
  std::vector<std::string> ForEachEntry(std::vector<std::string> lines) const {
    lines.insert(lines.begin(), {"FUSION_UNROLL", absl::StrCat("for (int v = 0; v < ", width_, "; ++v) {")});
    lines.push_back("}");
    return lines;
  }

  void EmitSteps() {
    body_.push_back(ir::Text(absl::StrCat("const fu_index extent = ", rows_, " * ", columns_, ";")));
    body_.push_back(ir::Text(absl::StrCat("const fu_index step = (fu_index)lanes * ", width_, " / ", columns_,
                                          " * ", columns_, ";")));
    std::vector<std::string> aligned = {absl::StrCat("step % ", width_, " == 0")};
    std::vector<std::string> columns_lines;
    for (const Node* node : matrix_nodes_)
      for (size_t k = 0; k < node->operands.size(); ++k) {
        const ValueId value = node->operands[k];
        if (!IsRead(*node, k) || context_.ProducedHere(value) || Contains(loaded_, value)) continue;
        const std::string name = context_.Name(value), pointer = context_.Pointer(value);
        if (node->operand_maps[k].size() == 2) {
          matrices_.push_back(value);
          aligned.push_back(absl::StrCat("fu_aligned(", pointer, ")"));
        } else if (node->operand_maps[k].size() == 1) {
          AddLaneArray(context_.CType(value), "c_" + name, "");
          columns_lines.push_back(absl::StrCat("$c_", name, "[v] = ", pointer, "[((fu_index)lane * ", width_,
                                               " + v) % ", columns_, "];"));
        } else {
          continue;
        }
        loaded_.push_back(value);
      }
    if (!columns_lines.empty()) body_.push_back(ir::LanePhase(ForEachEntry(std::move(columns_lines))));
    body_.push_back(ir::Text(absl::StrCat("const bool aligned = ", absl::StrJoin(aligned, " && "), ";")));
    body_.push_back(ir::Text(absl::StrCat("const fu_index whole = aligned ? extent / (step * ", unroll_,
                                          ") : 0, steps = (extent + step * ", unroll_, " - 1) / (step * ",
                                          unroll_, ");")));
    EmitLoop("whole", "group", true);
    // The first group that comes behind `whole` in the turn of the grid goes on with the rest.
    EmitLoop("steps", "whole + (group - whole % groups + groups) % groups", false);
    std::vector<std::string> ends;
    ForEachLongSum([&](const std::string& long_sum, const std::string& accumulator, const Node&) {
      for (std::string& line : EndLongSum(long_sum, accumulator)) ends.push_back(std::move(line));
    });
    if (!ends.empty()) body_.push_back(ir::LanePhase(ForEachEntry(std::move(ends))));
  }

  template <typename Body>
  void ForEachLongSum(Body body) {
    for (const Node* node : matrix_nodes_)
      if (node->is_reduction() && IsLongSum(context_, *node)) {
        const std::string name = context_.Name(node->result);
        body(absl::StrCat("$long_", name, "[v]"), absl::StrCat("$acc_", name, "[v]"), *node);
      }
  }

  // A loop over the steps of the group from `first` on, below `end`.
  void EmitLoop(const std::string& end, const std::string& first, bool whole) {
    std::vector<std::string> lines;
    for (ValueId value : matrices_)
      lines.push_back(
          absl::StrCat(context_.CType(value), " r_", context_.Name(value), "[", unroll_, "][", width_, "];"));
    const std::string index =
        absl::StrCat("const fu_index i = (at * ", unroll_, " + u) * step + (fu_index)lane * ", width_, ";");
    const std::string limit = "const fu_index last = (at * " + absl::StrCat(unroll_) +
                              " + u + 1) * step < extent ? (at * " + absl::StrCat(unroll_) +
                              " + u + 1) * step : extent;";
    const std::string loop = absl::StrCat("for (int u = 0; u < ", unroll_, "; ++u) {");
    // All loads of the step stand before all computations, so that they are under way together.
    lines.insert(lines.end(), {"FUSION_UNROLL", loop, index});
    if (!whole) lines.push_back(limit);
    for (ValueId value : matrices_) lines.push_back(Load(value, whole));
    lines.push_back("}");
    lines.insert(lines.end(), {"FUSION_UNROLL", loop, index, "(void)i;"});
    if (!whole) lines.push_back(limit);
    std::vector<std::string> entry;
    for (const Node* node : matrix_nodes_) EmitNode(*node, &entry);
    if (!whole) {
      entry.insert(entry.begin(), "if (i + v < last) {");
      entry.push_back("}");
    }
    for (std::string& line : ForEachEntry(std::move(entry))) lines.push_back(std::move(line));
    lines.push_back("}");

    std::vector<std::string> parts;
    ForEachLongSum([&](const std::string& long_sum, const std::string& accumulator, const Node& node) {
      for (std::string& line : AddPart(context_, node, long_sum, accumulator))
        parts.push_back(std::move(line));
    });
    ir::Statement step =
        ir::LanePhase(std::move(lines), whole ? absl::StrCat("step / ", width_)
                                              : absl::StrCat("(step + ", width_ - 1, ") / ", width_));
    const int steps_of_part = parts.empty() ? 1 : StepsOfPart(unroll_);
    if (parts.empty()) {
      body_.push_back(ir::Loop(absl::StrCat("for (fu_index at = ", first, "; at < ", end, "; at += groups)"),
                               {std::move(step)}));
      return;
    }
    const std::string stride = absl::StrCat("groups * ", steps_of_part);
    body_.push_back(
        ir::Loop(absl::StrCat("for (fu_index part = ", first, "; part < ", end, "; part += ", stride, ")"),
                 {ir::Text(absl::StrCat("const fu_index behind = ", end, " - part < ", stride, " ? ", end,
                                        " : part + ", stride, ";")),
                  ir::Loop("for (fu_index at = part; at < behind; at += groups)", {std::move(step)}),
                  ir::LanePhase(ForEachEntry(std::move(parts)))}));
  }

  std::string Load(ValueId value, bool whole) {
    const std::string vector = absl::StrCat("r_", context_.Name(value), "[u]"),
                      pointer = context_.Pointer(value);
    if (width_ == 1) return absl::StrCat(vector, "[0] = ", whole ? "" : "i >= last ? 0 : ", pointer, "[i];");
    return absl::StrCat(context_.LoadName(value), "(", vector, ", ", pointer,
                        whole ? ", i, extent, true, true);" : ", i, last, false);");
  }

  // A finish reads operands that the terms of a reduction do not.
  static bool IsRead(const Node& node, size_t k) {
    const std::vector<int>& terms = node.overload->term_operands;
    return !node.is_reduction() || std::find(terms.begin(), terms.end(), static_cast<int>(k)) != terms.end();
  }

  // Adds the lines that compute a node for entry v of vector u.
  void EmitNode(const Node& node, std::vector<std::string>* lines) {
    const std::string name = context_.Name(node.result), type = context_.CType(node);
    std::vector<std::string> operands(node.operands.size());
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId value = node.operands[k];
      if (!IsRead(node, k)) continue;
      const std::string operand = context_.Name(value);
      operands[k] = node.operand_maps[k].empty()       ? context_.Scalar(value, type)
                    : context_.ProducedHere(value)     ? "e_" + operand
                    : node.operand_maps[k].size() == 2 ? absl::StrCat("r_", operand, "[u][v]")
                                                       : absl::StrCat("$c_", operand, "[v]");
    }
    if (!node.is_reduction()) {
      lines->push_back(absl::StrCat("const ", type, " e_", name, " = ",
                                    context_.Call(node, node.overload->routine, operands), ";"));
      return;
    }
    const std::string monoid = context_.MonoidName(node), accumulator = absl::StrCat("$acc_", name, "[v]");
    lines->push_back(absl::StrCat(accumulator, " = ", monoid, "::combine(", accumulator, ", ", monoid,
                                  "::lift(", ReductionTerm(context_, node, operands), ", (i + v) / ",
                                  columns_, "));"));
  }

  // Puts the lanes' parts of each column together, and leaves the block's.
  void EmitParts() {
    for (const GridReduction& reduction : reductions_) {
      const Node& node = graph_.node(reduction.node);
      const std::string name = context_.Name(node.result), monoid = context_.MonoidName(node),
                        accumulator = monoid + "::Acc",
                        entries = absl::StrCat("((", accumulator, "*)shared)"),
                        target = GridReductionTarget(context_, reduction);
      body_.push_back(ir::LanePhase(
          ForEachEntry({absl::StrCat(entries, "[lane * ", width_, " + v] = $acc_", name, "[v];")})));
      body_.push_back(ir::Barrier());
      std::vector<std::string> lines;
      if (IsLongSum(context_, node)) {
        lines = {absl::StrCat(LongSumType(context_, node), " total;"),
                 absl::StrCat("for (fu_index e = item; e < step; e += ", columns_, ") total.add(", entries,
                              "[e]);"),
                 absl::StrCat(target, "[group * ", columns_, " + item] = total.value();")};
      } else {
        lines = {absl::StrCat(accumulator, " total = ", entries, "[item];"),
                 absl::StrCat("for (fu_index e = item + ", columns_, "; e < step; e += ", columns_,
                              ") total = ", monoid, "::combine(total, ", entries, "[e]);"),
                 absl::StrCat(target, "[group * ", columns_, " + item] = total;")};
      }
      body_.push_back(ir::StridedPhase(std::move(lines), columns_));
      if (&reduction != &reductions_.back()) body_.push_back(ir::Barrier());
    }
  }

  LoweringContext& context_;
  const Graph& graph_;
  const NarrowColumnsParameters& parameters_;
  const std::string rows_, columns_;
  const int width_, unroll_;
  std::vector<NodeId> early_scalars_, finish_nodes_;
  std::vector<const Node*> matrix_nodes_;
  std::vector<ValueId> matrices_, loaded_;
  std::vector<GridReduction> reductions_;
  std::vector<ir::LaneVariable> lane_variables_;
  std::vector<ir::Statement> body_;
};

}  // namespace

absl::StatusOr<FusionCode> LowerNarrowColumns(LoweringContext& context) {
  return NarrowColumnsLowering(context).Lower();
}

}  // namespace fusion
