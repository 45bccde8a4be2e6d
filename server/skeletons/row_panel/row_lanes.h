// The lanes of a group share the columns of a row in this way: the loop over a lane's columns, the arrays for
// them, loads with their alignment and the guards against columns that do not exist.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/lowering/lowering_context.h"
#include "server/skeletons/row_panel/row_stages.h"

namespace fusion {

class RowLanes {
 public:
  // `columns`: text of the extent. The context and the stages outlive this object.
  RowLanes(LoweringContext& context, const RowStages& stages, std::string columns);

  // A lane's part of the row has a static size; else the row is walked in a run-time loop.
  bool static_chunks() const { return parameters_.chunks > 0; }
  // Returns the columns that the lanes of a group hold together.
  int64_t TileColumns() const;
  // Returns an array with an entry for each column of a lane, of `rows` rows.
  ir::LaneVariable ChunkVariable(std::string type, std::string name, std::string initial, int rows = 1) const;
  // Returns a loop over all columns of the row, outside or inside of the lane phase. `per_entry`: the lines
  // stand in a loop over v with the guard j + v < columns.
  ir::Statement ChunkLoop(std::vector<std::string> lines, bool per_entry) const;
  // Returns a condition that is true for entries inside the row. In a run-time loop over single columns lanes
  // are bounded already.
  std::string Guard() const;

  // Returns a flag that says whether rows (or, if not `matrix`, the vector) permit vector accesses: the base
  // and the length of a row are multiples of 16 bytes. It is declared by the next FlushFlags, or, in code
  // that stands twice, before both.
  std::string Aligned(ValueId value, bool matrix);
  void FlushFlags(std::vector<ir::Statement>* body);
  // Returns the line that loads the lane's vector at column j.
  std::string Load(const std::string& target, const std::string& base, ValueId value, bool matrix);

  // Code that is emitted from here on stands twice (ir::Versions), once without guards.
  void BeginVersions() { versions_ = true; }
  // Returns the condition of the version without guards; what it needs goes to *outside.
  std::string EndVersions(std::vector<ir::Statement>* outside);
  // Returns that condition for the host, after EndVersions. `columns`: the extent.
  WholeCondition Whole(const Extent& columns) const;
  // Returns the last argument of loads and stores, with its comma, where there are versions.
  std::string WholeArgument() const;

 private:
  LoweringContext& context_;
  const RowStages& stages_;
  const RowPanelParameters& parameters_;
  const std::string columns_;
  bool versions_ = false;  // in the code that stands twice
  std::set<std::string> flags_;
  std::vector<std::pair<ValueId, bool>> flagged_;  // the value of each, and whether it is a matrix
  std::vector<ir::Statement> flag_statements_;
};

}  // namespace fusion
