// Row panels whose blocks have tiles: some rows and a part of the columns (RowPanelParameters::tile_rows).
// What a tile reduces of a row is a part of that, which the finish kernel puts together with the others';
// column reductions are complete in the tile where it has all rows.
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
  // All outlive it.
  RowTiles(LoweringContext& context, const RowPanelNodes& nodes, const RowStages& stages, RowLanes& lanes,
           const RowValues& values);

  // Takes workspace for what is reduced over the columns; none if blocks have rows of their own.
  void Place(FusionCode* code);
  // The kernel leaves parts of rows' reductions.
  bool row_parts() const { return !reductions_.empty(); }
  // Whether what is computed of rows alone in the phase is computed by this kernel, and not by the finish.
  bool RowsHere(int phase) const { return phase == 0 || parameters_.tile_rows == 0; }
  // Declares which rows and columns the block has: `first` row, `tile` column, and which `part` of the rows
  // that is.
  std::string TileLine(const std::string& columns) const;
  // What the tile adds to the row reduction, for each row of the step; `total`: its part.
  ir::Statement StorePart(const Node& node, const std::string& total);
  // Where the tile has all rows (the condition AllRows): finishes the reductions over the rows, and the maps
  // over the columns that follow them.
  static const char* AllRows() { return "groups == tiles"; }
  ir::Statement CompleteColumns(const std::vector<GridReduction>& reductions,
                                const std::vector<NodeId>& finish_nodes, const std::string& columns);
  // What is left for the finish kernel.
  RowFinish Finish() const;

 private:
  using Shape = RowPanelNodes::Shape;

  // Text of an operand at entry `v` of the chunk; loads it, once, if it is a vector. `at_hand`: arrays of the
  // chunk.
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
