// The places and names that the values of a row panel have while its rows are done.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/lowering/lowering_context.h"
#include "server/skeletons/row_panel/row_lanes.h"
#include "server/skeletons/row_panel/row_panel_nodes.h"
#include "server/skeletons/row_panel/row_stages.h"

namespace fusion {

class RowValues {
 public:
  // All arguments outlive this object.
  RowValues(LoweringContext& context, const RowPanelNodes& nodes, const RowLanes& lanes);

  // Decides what is held, and adds the matrices that are read through the ring to *stages and the variables
  // of what is held to *of_lanes or, where it stays from sweep to sweep, *of_kernel.
  void Find(RowStages* stages, std::vector<ir::LaneVariable>* of_lanes,
            std::vector<ir::LaneVariable>* of_kernel);

  // Rows of a step.
  int row_count() const { return parameters_.rows_per_step; }
  // All rows of a step are loaded into registers before any is used.
  bool in_batches() const { return lanes_.static_chunks() && parameters_.stages == 0 && row_count() > 1; }

  // Matrix values in registers beyond the phase in which they are first at hand, and column operands that
  // stay there across rows.
  const std::vector<ValueId>& held() const { return held_; }
  const std::vector<ValueId>& held_columns() const { return held_columns_; }
  bool Held(ValueId value) const;
  bool HeldColumn(ValueId value) const;
  // Later phases find the value, which an earlier one has computed, in shared memory.
  bool KeptForPhases(ValueId value) const { return Contains(kept_results_, value); }
  const std::vector<ValueId>& kept_results() const { return kept_results_; }
  std::string KeptName(ValueId value) const { return "kept_" + context_.Name(value); }
  // A later sweep finds the value in registers.
  bool StaysInRegisters(ValueId value) const;

  // Returns the text of what each row of a step has: an array's entry, in a loop over `r`, for several rows.
  std::string OfRow(const std::string& name) const { return row_count() > 1 ? name + "[r]" : name; }
  std::string RowDeclaration(const std::string& type, const std::string& name) const;
  // Returns the text of a value that is held, in chunk `c`.
  std::string HeldText(ValueId value) const { return OfRow("$" + HeldName(value)) + "[c]"; }
  // Returns the text of a value with an entry a row.
  std::string RowText(ValueId value) const;
  // Returns the text of operand k, of one entry or one a row.
  std::string RowOperand(const Node& node, int k) const;

 private:
  using Shape = RowPanelNodes::Shape;

  void FindOperand(const Node& node, int k, RowStages* stages, std::map<ValueId, int>* first);
  std::string HeldName(ValueId value) const {
    return (StaysInRegisters(value) ? "k_" : "r_") + context_.Name(value);
  }

  LoweringContext& context_;
  const Graph& graph_;
  const FusionImplementation& implementation_;
  const RowPanelParameters& parameters_;
  const RowPanelNodes& nodes_;
  const RowLanes& lanes_;
  std::vector<ValueId> held_, held_columns_, kept_results_;
};

}  // namespace fusion
