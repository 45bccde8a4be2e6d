// One dimension (a flattened matrix counts as one), grid-stride over tiles of threads *
// vector width. Maps are computed where they stand; reductions leave one partial result per block and are
// finished by a second kernel, in a fixed order: the same bits on every run. Or, with
// VectorParameters::atomic, blocks add theirs to the result.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/lowering/long_sums.h"
#include "server/lowering/lowering_context.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

class VectorLowering {
 public:
  explicit VectorLowering(LoweringContext& context)
      : context_(context), graph_(context.graph), parameters_(context.implementation.As<VectorParameters>()) {
    context.loop = {.threads = parameters_.threads,
                    .vector_width = parameters_.vector_width,
                    .l2 = {.percent = parameters_.l2_percent, .vectors = true},
                    .atomic = parameters_.atomic};
  }

  absl::StatusOr<FusionCode> Lower() {
    const FusionImplementation& implementation = context_.implementation;
    for (NodeId id : implementation.order) {
      const Node& node = graph_.node(id);
      if (node.dimensions.empty()) {
        (DependsOnReduction(node) ? late_scalars_ : early_scalars_).push_back(id);
      } else {
        vector_nodes_.push_back(id);
        if (extents_.empty())
          for (const NodeDimension& dimension : node.dimensions) extents_.push_back(dimension.extent);
      }
    }
    LowerScalars(context_, early_scalars_, &body_);
    if (!vector_nodes_.empty()) EmitLoop();
    FusionCode code;
    std::vector<GridReduction> reductions;
    for (NodeId id : vector_nodes_) {
      const Node& node = graph_.node(id);
      if (!node.is_reduction()) continue;
      const std::string name = context_.Name(node.result);
      reductions.push_back(PlaceGridReduction(context_, node, false, {}, &code));
      body_.push_back(ir::Reduce(context_.MonoidName(node), "acc_" + name, "total_" + name));
    }
    std::vector<ir::Zeroed> zeros = ZerosFor(context_, reductions, {});
    if (!zeros.empty()) body_.push_back(ir::ZeroWait());
    for (const GridReduction& reduction : reductions)
      body_.push_back(ir::Leader(
          {GroupPart(context_, reduction, "total_" + context_.Name(graph_.node(reduction.node).result))}));
    ir::Kernel kernel{
        .name = context_.kernel_name(""), .comment = context_.comment(), .threads = parameters_.threads};
    kernel.zeroed = std::move(zeros);
    kernel.sections = {{parameters_.threads, lane_variables_, std::move(body_)}};
    GridRule grid{
        .extents = extents_,
        .items_per_block = int64_t{parameters_.threads} * parameters_.vector_width * parameters_.unroll,
        .blocks_per_multiprocessor = parameters_.blocks_per_multiprocessor};
    code.launches.push_back(context_.FinishKernel(std::move(kernel), grid, {}));
    if (NeedsFinish(reductions, late_scalars_)) {
      FUSION_ASSIGN_OR_RETURN(auto finish, LowerFinishKernel(context_, reductions, early_scalars_,
                                                             late_scalars_, Extent{.constant = 0}));
      code.launches.push_back(std::move(finish));
    }
    return code;
  }

 private:
  bool DependsOnReduction(const Node& node) const {
    for (ValueId operand : node.operands) {
      const auto& producer = graph_.value(operand).producer;
      if (!producer || !context_.InFusion(*producer)) continue;
      const Node& other = graph_.node(*producer);
      if (other.is_reduction() || (other.dimensions.empty() && DependsOnReduction(other))) return true;
    }
    return false;
  }

  void EmitLoop() {
    const int width = parameters_.vector_width, unroll = parameters_.unroll, threads = parameters_.threads;
    const bool simple = width == 1 && unroll == 1;  // lanes are bounded, so no access needs a guard
    body_.push_back(ir::Text(absl::StrCat("const fu_index extent = ", context_.Sizes(extents_), ";")));
    std::vector<std::string> lines;
    if (unroll > 1) {
      lines.push_back("FUSION_UNROLL");
      lines.push_back(absl::StrCat("for (int u = 0; u < ", unroll, "; ++u) {"));
      lines.push_back(absl::StrCat("const fu_index i = base + ((fu_index)u * lanes + lane) * ", width, ";"));
    } else {
      lines.push_back(width == 1 ? "const fu_index i = base + lane;"
                                 : absl::StrCat("const fu_index i = base + (fu_index)lane * ", width, ";"));
    }
    for (ValueId value : context_.implementation.loads) {
      if (graph_.value(value).type.is_scalar()) continue;
      const std::string name = context_.Name(value), pointer = context_.Pointer(value);
      lines.push_back(absl::StrCat(context_.CType(value), " r_", name, "[", width, "];"));
      if (simple)
        lines.push_back(absl::StrCat("r_", name, "[0] = ", pointer, "[i];"));
      else
        lines.push_back(absl::StrCat(context_.LoadName(value), "(r_", name, ", ", pointer, ", i, extent, ",
                                     Aligned(value), ");"));
    }
    // One entry after the other, not one function after the other: functions with branches (log, erf) are not
    // reordered by the compiler, and values between them would stay in registers for all entries.
    for (ValueId value : context_.implementation.stores)
      if (!graph_.value(value).type.is_scalar())
        lines.push_back(absl::StrCat(context_.CType(value), " r_", context_.Name(value), "[", width, "];"));
    lines.push_back("FUSION_UNROLL");
    lines.push_back(absl::StrCat("for (int v = 0; v < ", width, "; ++v) {"));
    for (NodeId id : vector_nodes_) EmitNode(graph_.node(id), simple, &lines);
    lines.push_back("}");
    for (ValueId value : context_.implementation.stores) {
      if (graph_.value(value).type.is_scalar()) continue;
      const std::string name = context_.Name(value), pointer = context_.Pointer(value);
      if (simple)
        lines.push_back(absl::StrCat(pointer, "[i] = r_", name, "[0];"));
      else
        lines.push_back(absl::StrCat(context_.StoreName(), "(", pointer, ", r_", name, ", i, extent, ",
                                     Aligned(value), ");"));
    }
    if (unroll > 1) lines.push_back("}");
    std::vector<std::string> parts, ends;
    for (NodeId id : vector_nodes_) {
      const Node& node = graph_.node(id);
      if (!IsLongSum(context_, node)) continue;
      const std::string name = context_.Name(node.result);
      lane_variables_.push_back({.type = LongSumType(context_, node),
                                 .name = "long_" + name,
                                 .initial = LongSumType(context_, node) + "()"});
      for (std::string& line : AddPart(context_, node, "$long_" + name, "$acc_" + name))
        parts.push_back(std::move(line));
      for (std::string& line : EndLongSum("$long_" + name, "$acc_" + name)) ends.push_back(std::move(line));
    }
    const int steps_of_part = StepsOfPart(width * unroll);
    if (steps_of_part == 1) {
      lines.insert(lines.end(), parts.begin(), parts.end());
      parts.clear();
    }
    const int64_t tile = int64_t{threads} * width * unroll;
    const std::string remaining =
        width == 1 ? "extent - base" : absl::StrCat("(extent - base + ", width - 1, ") / ", width);
    ir::Statement step = ir::LanePhase(
        lines, unroll > 1 ? "" : absl::StrCat("(", remaining, " < lanes ? ", remaining, " : lanes)"));
    const std::string begin = EmitShare(tile), end = context_.options.simt ? "extent" : "end",
                      together = context_.options.simt ? "groups * " : "";
    if (parts.empty()) {
      body_.push_back(ir::Loop(
          absl::StrCat("for (fu_index base = ", begin, "; base < ", end, "; base += ", together, tile, ")"),
          {std::move(step)}));
    } else {
      const std::string stride = absl::StrCat(together, tile * steps_of_part);
      body_.push_back(ir::Loop(
          absl::StrCat("for (fu_index first = ", begin, "; first < ", end, "; first += ", stride, ")"),
          {ir::Text(absl::StrCat("const fu_index last = ", end, " - first < ", stride, " ? ", end,
                                 " : first + ", stride, ";")),
           ir::Loop(absl::StrCat("for (fu_index base = first; base < last; base += ", together, tile, ")"),
                    {std::move(step)}),
           ir::LanePhase(std::move(parts))}));
    }
    if (!ends.empty()) body_.push_back(ir::LanePhase(std::move(ends)));
  }

  // Returns where a group begins. On a GPU groups take tiles in turns, as neighbours run at the same time; a
  // processor reads memory faster in one long run, which ends at `end`.
  std::string EmitShare(int64_t tile) {
    if (context_.options.simt) return absl::StrCat("group * ", tile);
    body_.push_back(ir::Text(absl::StrCat("const fu_index tiles = (extent + ", tile - 1, ") / ", tile,
                                          ", past = tiles * (group + 1) / groups * ", tile,
                                          ", end = past < extent ? past : extent;")));
    return absl::StrCat("tiles * group / groups * ", tile);
  }

  // Adds the lines that compute a vector node for entry v.
  void EmitNode(const Node& node, bool simple, std::vector<std::string>* lines) {
    const std::string name = context_.Name(node.result), type = context_.CType(node);
    std::vector<std::string> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(node.operand_maps[k].empty() ? context_.Scalar(node.operands[k], type)
                                                      : Entry(node.operands[k]));
    if (!node.is_reduction()) {
      const bool stored = context_.Stored(node.result);
      lines->push_back(absl::StrCat(stored ? "" : absl::StrCat("const ", type, " "), Entry(node.result),
                                    " = ", context_.Call(node, node.overload->routine, operands), ";"));
      return;
    }
    const std::string monoid = context_.MonoidName(node);
    lane_variables_.push_back(
        {.type = monoid + "::Acc", .name = "acc_" + name, .initial = monoid + "::identity()"});
    lines->push_back(absl::StrCat(simple ? "" : "if (i + v < extent) ", "$acc_", name, " = ", monoid,
                                  "::combine($acc_", name, ", ", monoid, "::lift(",
                                  ReductionTerm(context_, node, operands), ", i + v));"));
  }

  // Entry v of a vector: loaded, or to be stored, in an array of this lane; else a value of the entry alone.
  std::string Entry(ValueId value) {
    const bool array = !context_.ProducedHere(value) || context_.Stored(value);
    return array ? absl::StrCat("r_", context_.Name(value), "[v]") : absl::StrCat("e_", context_.Name(value));
  }

  // A uniform flag: whether vector accesses to the value are aligned. Declared on first use.
  std::string Aligned(ValueId value) {
    if (parameters_.vector_width == 1) return "true";
    std::string flag = "a_" + context_.Name(value);
    if (std::find(flags_.begin(), flags_.end(), flag) == flags_.end()) {
      flags_.push_back(flag);
      body_.push_back(
          ir::Text(absl::StrCat("const bool ", flag, " = fu_aligned(", context_.Pointer(value), ");")));
    }
    return flag;
  }

  LoweringContext& context_;
  const Graph& graph_;
  const VectorParameters& parameters_;
  std::vector<NodeId> early_scalars_, late_scalars_, vector_nodes_;
  std::vector<Extent> extents_;
  std::vector<ir::LaneVariable> lane_variables_;
  std::vector<ir::Statement> body_;
  std::vector<std::string> flags_;
};

}  // namespace

absl::StatusOr<FusionCode> LowerVector(LoweringContext& context) { return VectorLowering(context).Lower(); }

}  // namespace fusion
