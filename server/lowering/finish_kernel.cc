// The second kernel of a fusion with reductions over the whole grid: combines the partial results in a fixed
// order, finishes them and computes what depends on them alone (maps over the columns or the rows, scalars).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/lowering/lowering_context.h"

namespace fusion {
namespace {

// CUDA: 64 bytes of f32 columns; the threads beyond take slices of the partial results. Few, so that a matrix
// of 2048 columns gives work to all multiprocessors.
constexpr int kColumnsPerBlock = 16;
// Partial results that a thread reads before it needs the first: the kernel is short, and mostly waits.
constexpr int kReadAhead = 8;

class FinishLowering {
 public:
  FinishLowering(LoweringContext& context, const std::vector<GridReduction>& reductions,
                 const std::vector<NodeId>& early_scalars, const std::vector<NodeId>& nodes,
                 const Extent& columns, const RowFinish& rows)
      : context_(context),
        graph_(context.graph),
        reductions_(reductions),
        early_scalars_(early_scalars),
        nodes_(nodes),
        columns_(columns),
        rows_(rows),
        threads_(context.finish_threads()) {}

  absl::StatusOr<KernelLaunch> Lower() {
    bool has_partials = false;
    for (const GridReduction& reduction : reductions_)
      has_partials |= reduction.per_column && !reduction.atomic;
    // On the host, and where there is but one part, lanes are columns and there is one slice.
    columns_per_block_ = context_.options.simt && has_partials ? kColumnsPerBlock : threads_;
    slices_ = threads_ / columns_per_block_;
    bool has_columns = false, has_scalars = false;
    for (const GridReduction& reduction : reductions_)
      (reduction.per_column ? has_columns : has_scalars) = true;
    for (NodeId node : nodes_)
      if (graph_.node(node).dimensions.empty()) has_scalars = true;
    std::vector<ir::Statement> body;
    EmitEarlyScalars(&body);
    if (!rows_.nodes.empty()) EmitRows(&body);
    if (has_columns) EmitColumns(&body);
    if (has_scalars) {
      std::vector<ir::Statement> scalars;
      EmitScalars(&scalars);
      body.push_back(ir::If("block == 0", std::move(scalars)));
    }
    ir::Kernel kernel{.name = context_.kernel_name("_finish"),
                      .comment = absl::StrCat("Completes the reductions of: ", context_.comment()),
                      .threads = threads_};
    kernel.uses_shared = shared_bytes_ > 0;
    kernel.shared_bytes = absl::StrCat(shared_bytes_);
    kernel.sections = {{threads_, lane_variables_, std::move(body)}};
    GridRule grid{.items_per_block = columns_per_block_, .blocks_per_multiprocessor = 16};
    if (has_columns)
      grid.extents = {columns_};
    else if (!rows_.nodes.empty())
      grid.extents = {rows_.rows}, grid.items_per_block = 1;
    return context_.FinishKernel(std::move(kernel), grid, {.fixed_bytes = shared_bytes_});
  }

 private:
  // The text of an operand: vectors over columns at column j, over rows at the row, scalars.
  std::string OperandText(const Node& node, int position) {
    const ValueId value = node.operands[position];
    if (node.operand_maps[position].empty()) {
      if (computed_.count(value)) return "u_" + context_.Name(value);
      return context_.ProducedHere(value) ? absl::StrCat(context_.Pointer(value), "[0]")
                                          : context_.ScalarInput(value, context_.CType(node));
    }
    if (computed_.count(value)) return "r_" + context_.Name(value);
    return absl::StrCat(context_.Pointer(value), "[", index_, "]");
  }
  std::vector<std::string> OperandTexts(const Node& node) {
    std::vector<std::string> texts(node.operands.size());
    for (size_t k = 0; k < node.operands.size(); ++k) {
      // The terms' operands are not needed here, and may be matrices.
      const auto& finish = node.overload->finish_operands;
      if (node.is_reduction() && std::find(finish.begin(), finish.end(), static_cast<int>(k)) == finish.end())
        continue;
      texts[k] = OperandText(node, static_cast<int>(k));
    }
    return texts;
  }

  void EmitEarlyScalars(std::vector<ir::Statement>* body) {
    for (NodeId id : early_scalars_) {
      const Node& node = graph_.node(id);
      body->push_back(
          ir::Text(absl::StrCat("const ", context_.CType(node), " u_", context_.Name(node.result), " = ",
                                context_.Call(node, node.overload->routine, OperandTexts(node)), ";")));
      computed_.insert(node.result);
    }
  }

  // Declares the complete result; `index`: where it is stored, empty when it is there already.
  void Complete(const Node& node, const std::string& accumulated, const std::string& prefix,
                const std::string& index, std::vector<std::string>* lines) {
    const std::string name = prefix + context_.Name(node.result);
    lines->push_back(absl::StrCat(
        "const ", context_.CType(node), " ", name, " = ",
        index.empty() ? accumulated : ReductionFinish(context_, node, accumulated, OperandTexts(node)), ";"));
    computed_.insert(node.result);
    if (context_.Stored(node.result) && !index.empty())
      lines->push_back(absl::StrCat(context_.Pointer(node.result), "[", index, "] = ", name, ";"));
  }

  // A block for each row: its lanes take the parts in turn.
  void EmitRows(std::vector<ir::Statement>* body) {
    index_ = "row";
    std::vector<ir::Statement> of_row;
    std::vector<std::string> parts, leader;
    for (const GridReduction& reduction : rows_.reductions) {
      const Node& node = graph_.node(reduction.node);
      const std::string name = "row_" + context_.Name(node.result), monoid = context_.MonoidName(node);
      lane_variables_.push_back({.type = monoid + "::Acc", .name = name});
      parts.insert(parts.end(),
                   {absl::StrCat("fu_long<", monoid, "> p_", name, ";"),
                    absl::StrCat("for (fu_index p = lane; p < row_parts; p += lanes) p_", name, ".add(",
                                 GridReductionTarget(context_, reduction), "[row * row_parts + p]);"),
                    absl::StrCat("$", name, " = p_", name, ".value();")});
    }
    of_row.push_back(ir::LanePhase(std::move(parts)));
    for (NodeId id : rows_.nodes) {
      const Node& node = graph_.node(id);
      const std::string name = context_.Name(node.result);
      if (node.is_reduction()) {
        of_row.push_back(ir::Reduce(context_.MonoidName(node), "row_" + name, "total_" + name));
        Complete(node, "total_" + name, "r_", "row", &leader);
        continue;
      }
      leader.push_back(absl::StrCat("const ", context_.CType(node), " r_", name, " = ",
                                    context_.Call(node, node.overload->routine, OperandTexts(node)), ";"));
      computed_.insert(node.result);
      if (context_.Stored(node.result) && rows_.stored.count(id))
        leader.push_back(absl::StrCat(context_.Pointer(node.result), "[row] = r_", name, ";"));
    }
    of_row.push_back(ir::Leader(std::move(leader)));
    body->push_back(ir::Text(absl::StrCat(
        "const fu_index row_parts = ", ColumnParts(context_.Size(columns_), rows_.part_columns), ";")));
    body->push_back(ir::Loop(
        absl::StrCat("for (fu_index row = block; row < ", context_.Size(rows_.rows), "; row += grid)"),
        std::move(of_row)));
    index_ = "j";
  }

  void EmitColumns(std::vector<ir::Statement>* body) {
    const std::string n = context_.Size(columns_);
    std::vector<ir::Statement> tile;
    std::vector<std::string> partial = {
        absl::StrCat("const fu_index j = base + lane % ", columns_per_block_, ";"),
        absl::StrCat("const int slice = lane / ", columns_per_block_, ";")};
    std::vector<std::string> complete = {"const fu_index j = base + lane;"};
    for (const GridReduction& reduction : reductions_) {
      if (!reduction.per_column) continue;
      const Node& node = graph_.node(reduction.node);
      const std::string name = context_.Name(node.result), monoid = context_.MonoidName(node);
      const std::string slot = GridReductionTarget(context_, reduction);
      if (reduction.atomic) {
        Complete(node, absl::StrCat(slot, "[j]"), "r_", reduction.complete() ? "" : "j", &complete);
        continue;
      }
      const std::string shared = absl::StrCat("((", monoid, "::Acc*)(shared + ", shared_bytes_, "))");
      shared_bytes_ += int64_t{threads_} * context_.AccumulatorBytes(node);
      partial.push_back(absl::StrCat("fu_long<", monoid, "> p_", name, ";"));
      const std::string groups = context_.Groups(0);
      partial.insert(
          partial.end(),
          {absl::StrCat("if (j < ", n, ") FUSION_NO_UNROLL for (fu_index first = slice; first < ", groups,
                        "; first += ", kReadAhead * slices_, ") {"),
           absl::StrCat(monoid, "::Acc part[", kReadAhead, "];"),
           absl::StrCat("fu_index group = first, at = first * ", n, " + j;"), "FUSION_UNROLL",
           absl::StrCat("for (int u = 0; u < ", kReadAhead, "; ++u, group += ", slices_, ", at += ", slices_,
                        " * ", n, ") part[u] = group < ", groups, " ? ", slot, "[at] : ", monoid,
                        "::identity();"),
           "FUSION_UNROLL",
           absl::StrCat("for (int u = 0; u < ", kReadAhead, "; ++u) p_", name, ".add(part[u]);"), "}"});
      partial.push_back(absl::StrCat(shared, "[lane] = p_", name, ".value();"));
      complete.push_back(absl::StrCat("fu_long<", monoid, "> q_", name, ";"));
      complete.push_back(absl::StrCat("for (int slice = 0; slice < ", slices_, "; ++slice) q_", name, ".add(",
                                      shared, "[slice * ", columns_per_block_, " + lane]);"));
      Complete(node, absl::StrCat("q_", name, ".value()"), "r_", "j", &complete);
    }
    for (NodeId id : nodes_) {
      const Node& node = graph_.node(id);
      if (node.dimensions.empty()) continue;
      const std::string name = context_.Name(node.result);
      complete.push_back(absl::StrCat("const ", context_.CType(node), " r_", name, " = ",
                                      context_.Call(node, node.overload->routine, OperandTexts(node)), ";"));
      computed_.insert(node.result);
      if (context_.Stored(node.result))
        complete.push_back(absl::StrCat(context_.Pointer(node.result), "[j] = r_", name, ";"));
    }
    if (shared_bytes_ > 0) {
      tile.push_back(ir::LanePhase(std::move(partial)));
      tile.push_back(ir::Barrier());
    }
    tile.push_back(
        ir::LanePhase(std::move(complete), absl::StrCat("(", n, " - base < ", columns_per_block_, " ? ", n,
                                                        " - base : ", columns_per_block_, ")")));
    if (shared_bytes_ > 0) tile.push_back(ir::Barrier());
    body->push_back(ir::Loop(
        absl::StrCat(
            "for (fu_index base = block * ", columns_per_block_, "; base < ",
            rows_.columns_complete ? absl::StrCat("(", context_.Groups(0), " == 1 ? 0 : ", n, ")") : n,
            "; base += grid * ", columns_per_block_, ")"),
        std::move(tile)));
  }

  void EmitScalars(std::vector<ir::Statement>* body) {
    std::vector<std::string> leader;
    for (const GridReduction& reduction : reductions_) {
      if (reduction.per_column) continue;
      const Node& node = graph_.node(reduction.node);
      const std::string name = context_.Name(node.result), monoid = context_.MonoidName(node);
      const std::string slot = GridReductionTarget(context_, reduction);
      if (reduction.atomic) {
        Complete(node, absl::StrCat(slot, "[0]"), "u_", reduction.complete() ? "" : "0", &leader);
        continue;
      }
      lane_variables_.push_back({.type = monoid + "::Acc", .name = "acc_" + name});
      body->push_back(ir::LanePhase({absl::StrCat("fu_long<", monoid, "> p_", name, ";"),
                                     absl::StrCat("for (fu_index b = lane; b < ", context_.Groups(0),
                                                  "; b += lanes) p_", name, ".add(", slot, "[b]);"),
                                     absl::StrCat("$acc_", name, " = p_", name, ".value();")}));
      body->push_back(ir::Reduce(monoid, "acc_" + name, "total_" + name));
      Complete(node, "total_" + name, "u_", "0", &leader);
    }
    for (NodeId id : nodes_) {
      const Node& node = graph_.node(id);
      if (!node.dimensions.empty()) continue;
      const std::string name = context_.Name(node.result);
      leader.push_back(absl::StrCat("const ", context_.CType(node), " u_", name, " = ",
                                    context_.Call(node, node.overload->routine, OperandTexts(node)), ";"));
      computed_.insert(node.result);
      if (context_.Stored(node.result))
        leader.push_back(absl::StrCat(context_.Pointer(node.result), "[0] = u_", name, ";"));
    }
    body->push_back(ir::Leader(std::move(leader)));
  }

  LoweringContext& context_;
  const Graph& graph_;
  const std::vector<GridReduction>& reductions_;
  const std::vector<NodeId>& early_scalars_;
  const std::vector<NodeId>& nodes_;
  const Extent columns_;
  const RowFinish& rows_;
  const int threads_;
  std::string index_ = "j";  // of vectors' entries
  int columns_per_block_ = 0, slices_ = 0;
  int64_t shared_bytes_ = 0;
  std::set<ValueId> computed_;
  std::vector<ir::LaneVariable> lane_variables_;
};

}  // namespace

absl::StatusOr<KernelLaunch> LowerFinishKernel(LoweringContext& context,
                                               const std::vector<GridReduction>& reductions,
                                               const std::vector<NodeId>& early_scalars,
                                               const std::vector<NodeId>& nodes, const Extent& columns,
                                               const RowFinish& rows) {
  return FinishLowering(context, reductions, early_scalars, nodes, columns, rows).Lower();
}

}  // namespace fusion
