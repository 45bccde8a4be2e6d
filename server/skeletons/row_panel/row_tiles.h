// Row panels whose blocks have tiles: some rows and a part of the columns (RowPanelParameters::tile_rows).
// A tile reduces a part of a row, which the finish kernel puts together with the others' parts; column
// reductions are complete in the tile where it has all rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/lowering/lowering_context.h"
#include "server/skeletons/row_panel/row_lanes.h"
#include "server/skeletons/row_panel/row_panel_nodes.h"
#include "server/skeletons/row_panel/row_stages.h"
#include "server/skeletons/row_panel/row_values.h"

namespace fusion {

class RowTiles {
 public:
  // All arguments outlive this object.
  RowTiles(LoweringContext& context, const RowPanelNodes& nodes, const RowStages& stages, RowLanes& lanes,
           const RowValues& values);

  // Takes workspace for what is reduced over the columns; none if blocks have rows of their own.
  void Place(FusionCode* code);
  // The kernel leaves parts of rows' reductions.
  bool row_parts() const { return !reductions_.empty(); }
  // Returns whether this kernel, and not the finish, computes what the phase computes of rows alone.
  bool RowsHere(int phase) const { return phase == 0 || parameters_.tile_rows == 0; }
  // Declares which rows and columns the block has: `first` row, `tile` column, and which `part` of the rows
  // that is.
  std::string TileLine(const std::string& columns) const;
  // Returns the statement that stores the tile's part `total` of the row reduction, for each row of the step.
  ir::Statement StorePart(const Node& node, const std::string& total);
  // Where the tile has all rows (the condition AllRows): finishes the reductions over the rows, and the maps
  // over the columns that follow them.
  static const char* AllRows() { return "groups == tiles"; }
  ir::Statement CompleteColumns(const std::vector<GridReduction>& reductions,
                                const std::vector<NodeId>& finish_nodes, const std::string& columns);
  // Returns what is left for the finish kernel.
  RowFinish Finish() const;

 private:
  using Shape = RowPanelNodes::Shape;

  // Returns the text of an operand at entry `v` of the chunk; loads it, once, if it is a vector. `at_hand`:
  // arrays of the chunk.
  std::string ColumnOperand(const Node& node, int k, const std::string& columns,
                            std::map<ValueId, std::string>* at_hand, std::vector<std::string>* lines);

  LoweringContext& context_;
  const Graph& graph_;
  const FusionImplementation& implementation_;
  const RowPanelParameters& parameters_;
  const RowPanelNodes& nodes_;
  const RowStages& stages_;
  RowLanes& lanes_;
  const RowValues& values_;
  std::vector<GridReduction> reductions_;  // over the columns
};

}  // namespace fusion
