// Skeletons lower their loops with this: names, parameters and the C++ text of nodes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/lowering/fusion_code.h"
#include "server/plan/l2_use.h"

namespace fusion {

// A skeleton says this of its loop before it lowers it.
struct LoopSettings {
  int threads = 128;     // per block
  int vector_width = 1;  // entries of one load or store
  L2Use l2;
  bool atomic = false;  // sums over the grid are added up in device memory
};

// Everything about one kernel under construction.
class LoweringContext {
 public:
  LoweringContext(const Graph& graph, const FusionImplementation& implementation,
                  const LoweringOptions& options);
  // Serves a sweep of the cooperative fusion `whole`. `first_workspace`: number of the first workspace slot.
  // The sweep's finish has as many threads as the sweep itself.
  LoweringContext(const FusionImplementation& whole, const Graph& graph, const FusionImplementation& sweep,
                  const LoweringOptions& options, int first_workspace);

  const Graph& graph;
  const FusionImplementation& implementation;
  const LoweringOptions& options;
  const NodeSet& kernel_nodes;  // the nodes of all sweeps
  LoopSettings loop;

  std::string CType(ValueId value) const;  // "float" / "double"
  int TypeBytes(ValueId value) const;
  std::string CType(const Node& node) const { return CType(node.result); }
  // Returns what the identifiers of a value end with, after a prefix and "_": its name, or a similar one
  // where a routine ends like its name (e_map).
  std::string Name(ValueId value) const;
  bool InFusion(NodeId node) const { return implementation.fusion.nodes.Contains(node.value); }
  bool ProducedHere(ValueId value) const;
  bool Stored(ValueId value) const;

  // Parameters of the kernel being built; each is added once, on first use, in a deterministic order.
  std::string Pointer(ValueId value);                     // "g_A", to read or write
  std::string Size(const Extent& extent);                 // "n_m" or "512LL"
  std::string Sizes(const std::vector<Extent>& extents);  // product
  std::string Workspace(int slot, const std::string& c_type);
  std::string Groups(int launch);
  // Returns the text of a scalar that exists before the kernel starts: literal, by-value parameter, or
  // load. `c_type` casts.
  std::string ScalarInput(ValueId value, const std::string& c_type);

  // Returns the text of a scalar that this kernel has computed, or that exists before.
  std::string Scalar(ValueId value, const std::string& c_type);

  // Return "fu_load<4>", or a name with what the L2 cache is asked to do with the value or what is written.
  std::string LoadName(ValueId value) const;
  std::string StoreName() const;

  // routine<T>(arguments...)
  std::string Call(const Node& node, const std::string& routine, const std::vector<std::string>& arguments);
  // "fu_sum<float>"
  std::string MonoidName(const Node& node) const;
  std::string Accumulator(const Node& node) const { return MonoidName(node) + "::Acc"; }
  int AccumulatorBytes(const Node& node) const;

  // Takes what was collected for this kernel and starts the next one.
  KernelLaunch FinishKernel(ir::Kernel kernel, GridRule grid, SharedRule shared);

  const std::set<const ElementaryFunction*>& functions() const { return functions_; }
  int finish_threads() const { return first_workspace_ ? loop.threads : 512; }
  std::string kernel_name(const std::string& suffix) const;
  std::string comment() const;

 private:
  const std::optional<int> first_workspace_;
  std::vector<KernelArgument> arguments_;
  std::set<const ElementaryFunction*> functions_;
};

// Computes nodes of scalars that exist before the kernel starts, in every thread, and stores those that leave
// it.
void LowerScalars(LoweringContext& context, const std::vector<NodeId>& nodes,
                  std::vector<ir::Statement>* body);

// Return the text of a reduction's term and of its finish, given the text of each operand.
std::string ReductionTerm(LoweringContext& context, const Node& node,
                          const std::vector<std::string>& operands);
std::string ReductionFinish(LoweringContext& context, const Node& node, const std::string& accumulated,
                            const std::vector<std::string>& operands);
// Returns the product of the extents of the reduction dimensions, as text.
std::string ReductionExtent(LoweringContext& context, const Node& node);

// A result that is complete only when the whole grid is done. Each group leaves its part in the workspace,
// for the finish kernel to combine; or, with LoopSettings::atomic and for sums, all groups add to the same
// entries, of f64: those of the result itself where it is stored as it is, else in the workspace.
struct GridReduction {
  NodeId node;
  bool per_column = false;  // else a scalar
  bool atomic = false;
  bool in_place = false;  // atomic, and then there is no slot
  int workspace_slot = 0;
  bool complete() const { return in_place; }  // when the grid is done
};
// Returns the text of a group's part `part`, as it is added to what the reduction's entry `index` ("" of a
// scalar) begins as.
std::string AddedPart(LoweringContext& context, const GridReduction& reduction, const std::string& part,
                      const std::string& index);
// Takes a workspace slot in *code where one is needed. `columns`: entries, if per column.
GridReduction PlaceGridReduction(LoweringContext& context, const Node& node, bool per_column,
                                 const Extent& columns, FusionCode* code);
// Does the same for a reduction over the columns, of which blocks have parts (RowPanelParameters::tile_rows):
// the parts of a row lie next to each other.
GridReduction PlaceRowReduction(LoweringContext& context, const Node& node, const Extent& rows,
                                FusionCode* code);
// Returns, as text, how many parts so many columns have, at least one; `columns`: text of the extent.
std::string ColumnParts(const std::string& columns, int64_t part_columns);
// Returns the pointer to the slot or the result, as a parameter of the kernel being built.
std::string GridReductionTarget(LoweringContext& context, const GridReduction& reduction);
// Returns the statement by which one lane of a group leaves the group's part of a scalar.
std::string GroupPart(LoweringContext& context, const GridReduction& reduction, const std::string& part);
// Returns the entries that the kernel must set before it adds, for the atomic reductions among these.
std::vector<ir::Zeroed> ZerosFor(LoweringContext& context, const std::vector<GridReduction>& reductions,
                                 const Extent& columns);
// Returns whether anything remains to be done after the grid.
bool NeedsFinish(const std::vector<GridReduction>& reductions, const std::vector<NodeId>& nodes);

// The kernel that combines the partial results of launch 0, finishes them and computes the nodes of the
// finish phase. `early_scalars`: scalars of the fusion that were at hand before the reductions; computed
// again where they are needed.
//
// `rows`: blocks that had parts of the columns leave this to be done for each row, and of the columns.
struct RowFinish {
  Extent rows{.constant = 0};
  int64_t part_columns = 0;
  std::vector<GridReduction> reductions;
  std::vector<NodeId> nodes;  // in order: these reductions and maps over the rows
  std::set<NodeId> stored;    // those of `nodes` whose results are stored, where they leave the kernel
  // Where there is one part of each column, its reductions and what follows them are complete.
  bool columns_complete = false;
};
absl::StatusOr<KernelLaunch> LowerFinishKernel(LoweringContext& context,
                                               const std::vector<GridReduction>& reductions,
                                               const std::vector<NodeId>& early_scalars,
                                               const std::vector<NodeId>& nodes, const Extent& columns,
                                               const RowFinish& rows = {});

}  // namespace fusion
