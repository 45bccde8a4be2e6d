// The lanes do this in one chunk of columns: a phase's maps and the terms of its reductions.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/lowering/lowering_context.h"
#include "server/skeletons/row_panel/row_lanes.h"
#include "server/skeletons/row_panel/row_panel_nodes.h"
#include "server/skeletons/row_panel/row_stages.h"
#include "server/skeletons/row_panel/row_values.h"

namespace fusion {

// The chunk of one phase. Its lines stand in a loop over the chunks, where `c` and `j`, and in lines of rows
// `r`, are in scope.
class RowChunk {
 public:
  struct Lines {
    std::vector<std::string> columns, rows;  // these stand once, and for each row of the step
    bool empty() const { return columns.empty() && rows.empty(); }
  };

  // `columns`: text of the extent. All arguments outlive the chunk.
  RowChunk(LoweringContext& context, const RowPanelNodes& nodes, const RowValues& values, RowStages& stages,
           RowLanes& lanes, std::string columns, int phase);

  // Adds a node over the matrix, with what it needs and where its result goes.
  void Add(const Node& node);
  Lines Take() { return std::move(lines_); }

 private:
  using Shape = RowPanelNodes::Shape;

  void AddMap(const Node& node);
  void AddReduction(const Node& node);
  // Makes a value over (row, column) or over columns available as an array of vector_width entries, and gives
  // its name. Recomputes what an earlier phase computed and did not hold.
  std::string Operand(const Node& node, int k);
  std::string ColumnOperand(ValueId value);
  std::string MatrixOperand(ValueId value);
  std::string RowOperand(const Node& node, int k);
  // Returns the operands of one entry, in a loop over `v`.
  std::vector<std::string> EntryOperands(const Node& node);
  // Adds target[v] = routine(operands) for the entries of the chunk.
  void Map(const Node& node, const std::string& target, std::vector<std::string>* lines);
  // Returns the declaration of an array of the value's entries, for `lines`.
  std::string Declaration(ValueId value, const std::string& name) const;
  // Adds a loop over the entries of the lane.
  void ForEachEntry(const std::string& statement, std::vector<std::string>* lines) const;

  LoweringContext& context_;
  const Graph& graph_;
  const RowPanelParameters& parameters_;
  const RowPanelNodes& nodes_;
  const RowValues& values_;
  RowStages& stages_;
  RowLanes& lanes_;
  const std::string columns_;
  const int phase_;
  std::set<std::string> available_;
  Lines lines_;
};

}  // namespace fusion
