// Vectors that one block holds in registers (vector skeleton with chunks > 0): a lane has the same entries of
// every vector from the first load to the last store. A reduction is complete when the block has reduced it,
// so its result, and scalars made from it, are used by later nodes of the same kernel; nothing is read twice,
// and nothing but what is needed outside goes through memory. For vectors of some thousand entries: the
// steps of an iterative method beside its matrix product.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/lowering/lowering_context.h"
#include "server/skeletons/block_vector/block_vector.h"

namespace fusion {
namespace {

class BlockVectorLowering {
 public:
  explicit BlockVectorLowering(LoweringContext& context)
      : context_(context),
        graph_(context.graph),
        parameters_(context.implementation.As<BlockVectorParameters>()) {
    context.loop = {.threads = parameters_.threads, .vector_width = parameters_.vector_width};
  }

  absl::StatusOr<FusionCode> Lower() {
    AssignPhases();
    if (extent_ == nullptr) return absl::InternalError("vectors of a block: there is none");
    body_.push_back(ir::Text(absl::StrCat("const fu_index extent = ", context_.Size(*extent_), ";")));
    for (int phase = 0; phase <= last_phase_; ++phase) {
      EmitScalars(phase);
      EmitVectors(phase);
    }
    ir::Kernel kernel{
        .name = context_.kernel_name(""), .comment = context_.comment(), .threads = parameters_.threads};
    flags_.insert(flags_.end(), std::make_move_iterator(body_.begin()), std::make_move_iterator(body_.end()));
    kernel.sections = {{parameters_.threads, lane_variables_, std::move(flags_)}};
    FusionCode code;
    code.launches.push_back(context_.FinishKernel(std::move(kernel), GridRule{}, {}));
    code.limits = {{*extent_, int64_t{parameters_.chunks} * parameters_.threads * parameters_.vector_width}};
    return code;
  }

 private:
  // A node runs in the phase in which its operands are at hand; the result of a reduction is one phase later.
  void AssignPhases() {
    for (NodeId id : context_.implementation.order) {
      const Node& node = graph_.node(id);
      int phase = 0;
      for (ValueId operand : node.operands) {
        if (!context_.ProducedHere(operand)) continue;
        const NodeId producer = *graph_.value(operand).producer;
        phase = std::max(phase, phase_.at(producer) + (graph_.node(producer).is_reduction() ? 1 : 0));
      }
      phase_[id] = phase;
      last_phase_ = std::max(last_phase_, phase + (node.is_reduction() ? 1 : 0));
      if (!node.dimensions.empty() && extent_ == nullptr) extent_ = &node.dimensions[0].extent;
    }
  }

  void DefineScalar(const Node& node, const std::string& text) {
    const std::string name = context_.Name(node.result);
    body_.push_back(ir::Text(absl::StrCat("const ", context_.CType(node), " u_", name, " = ", text, ";")));
    if (context_.Stored(node.result))
      body_.push_back(ir::Leader({absl::StrCat(context_.Pointer(node.result), "[0] = u_", name, ";")}));
  }

  // Defines the results of the reductions of the phase before, and the scalars of this one.
  void EmitScalars(int phase) {
    for (NodeId id : context_.implementation.order) {
      const Node& node = graph_.node(id);
      std::vector<std::string> operands(node.operands.size());
      if (node.is_reduction() && phase_.at(id) == phase - 1) {
        for (int k : node.overload->finish_operands)
          operands[k] = context_.Scalar(node.operands[k], context_.CType(node));
        DefineScalar(node, ReductionFinish(context_, node, "total_" + context_.Name(node.result), operands));
      } else if (node.dimensions.empty() && phase_.at(id) == phase) {
        for (size_t k = 0; k < operands.size(); ++k)
          operands[k] = context_.Scalar(node.operands[k], context_.CType(node));
        DefineScalar(node, context_.Call(node, node.overload->routine, operands));
      }
    }
  }

  void EmitVectors(int phase) {
    std::vector<std::string> lines;
    std::vector<const Node*> reductions;
    // All vectors are loaded in the first phase, so that none is waited for behind a reduction.
    if (phase == 0) {
      for (ValueId value : context_.implementation.loads) {
        if (graph_.value(value).type.is_scalar()) continue;
        Declare(context_.CType(value), "r_" + context_.Name(value));
        lines.push_back(absl::StrCat("fu_load<", parameters_.vector_width, ">($r_", context_.Name(value),
                                     "[c], ", context_.Pointer(value), ", i, extent, ", Aligned(value),
                                     ");"));
      }
      if (!lines.empty()) EmitChunks(std::move(lines));
      lines.clear();
    }
    for (NodeId id : context_.implementation.order) {
      const Node& node = graph_.node(id);
      if (node.dimensions.empty() || phase_.at(id) != phase) continue;
      EmitNode(node, &lines);
      if (node.is_reduction()) reductions.push_back(&node);
    }
    if (!lines.empty()) EmitChunks(std::move(lines));
    for (const Node* node : reductions) {
      const std::string name = context_.Name(node->result);
      body_.push_back(ir::Reduce(context_.MonoidName(*node), "acc_" + name, "total_" + name));
    }
  }

  void EmitNode(const Node& node, std::vector<std::string>* lines) {
    const std::string name = context_.Name(node.result), monoid = context_.MonoidName(node);
    const int width = parameters_.vector_width;
    std::vector<std::string> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(node.operand_maps[k].empty()
                             ? context_.Scalar(node.operands[k], context_.CType(node))
                             : absl::StrCat("$r_", context_.Name(node.operands[k]), "[c][v]"));
    lines->push_back("FUSION_UNROLL");
    if (node.is_reduction()) {
      lane_variables_.push_back(
          {.type = monoid + "::Acc", .name = "acc_" + name, .initial = monoid + "::identity()"});
      lines->push_back(absl::StrCat("for (int v = 0; v < ", width, "; ++v) if (i + v < extent) $acc_", name,
                                    " = ", monoid, "::combine($acc_", name, ", ", monoid, "::lift(",
                                    ReductionTerm(context_, node, operands), ", i + v));"));
      return;
    }
    Declare(context_.CType(node), "r_" + name);
    lines->push_back(absl::StrCat("for (int v = 0; v < ", width, "; ++v) $r_", name,
                                  "[c][v] = ", context_.Call(node, node.overload->routine, operands), ";"));
    if (context_.Stored(node.result))
      lines->push_back(absl::StrCat("fu_store<", width, ">(", context_.Pointer(node.result), ", $r_", name,
                                    "[c], i, extent, ", Aligned(node.result), ");"));
  }

  void Declare(std::string type, std::string name) {
    lane_variables_.push_back(
        {.type = std::move(type),
         .name = std::move(name),
         .extents = absl::StrCat("[", parameters_.chunks, "][", parameters_.vector_width, "]"),
         .entries = parameters_.chunks * parameters_.vector_width});
  }
  void EmitChunks(std::vector<std::string> lines) {
    lines.insert(
        lines.begin(),
        {"FUSION_UNROLL", absl::StrCat("for (int c = 0; c < ", parameters_.chunks, "; ++c) {"),
         absl::StrCat("const fu_index i = ((fu_index)c * lanes + lane) * ", parameters_.vector_width, ";")});
    lines.push_back("}");
    body_.push_back(ir::LanePhase(std::move(lines)));
  }
  // A uniform flag: whether vector accesses to the value are aligned. Each value is accessed in one place.
  std::string Aligned(ValueId value) {
    std::string flag = "a_" + context_.Name(value);
    flags_.push_back(
        ir::Text(absl::StrCat("const bool ", flag, " = fu_aligned(", context_.Pointer(value), ");")));
    return flag;
  }

  LoweringContext& context_;
  const Graph& graph_;
  const BlockVectorParameters& parameters_;
  const Extent* extent_ = nullptr;
  std::map<NodeId, int> phase_;
  int last_phase_ = 0;
  std::vector<ir::LaneVariable> lane_variables_;
  std::vector<ir::Statement> body_, flags_;  // the flags before all else
};

}  // namespace

absl::StatusOr<FusionCode> LowerBlockVector(LoweringContext& context) {
  return BlockVectorLowering(context).Lower();
}

}  // namespace fusion
