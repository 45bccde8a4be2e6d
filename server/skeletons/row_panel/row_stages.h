// Rows of matrices in shared memory: a ring of stages that asynchronous copies fill ahead, and rows that stay
// from one sweep of a cooperative kernel to the next.
//
// A group does its rows in steps of rows_per_step. A slot holds one row of one matrix. LoadPath::kStaged:
// each lane copies its own columns and reads them back itself, so no barrier is needed. LoadPath::kBulk: the
// columns of a warp are neighbours; its first lane starts one bulk copy of the window of 16-byte units that
// holds them, and the warp waits at an mbarrier of its own (sm_90).
//
// Where the rows of a step come to registers at once, a step that has fewer does its last one again instead,
// so that no load needs a guard, and only what must happen once for each row has one.
//
// The lines have these names in scope: `count`, `steps` (rows and steps of the group); `step`, and those of
// IndexLine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/lowering/lowering_context.h"
#include "server/skeletons/row_panel/parameters.h"

namespace fusion {

// Constant in the rows' code: all lanes have whole vectors, in ragged rows in all chunks but the last, and
// these are aligned.
inline constexpr char kWhole[] = "fu_whole";
// Constant there, where steps repeat rows: the step has all of its rows.
inline constexpr char kFull[] = "fu_full";

// Lines are for these rows of a step that has fewer than a whole one.
enum class StepRows {
  kPresent,  // each row that there is, once
  kRepeated  // where steps repeat rows, the last row again in place of missing ones
};

class RowStages {
 public:
  // `rows`, `columns`: text of the extents.
  RowStages(LoweringContext& context, std::string rows, std::string columns);

  // Adds a matrix that is read from device memory through the ring.
  void Add(ValueId value);
  bool Staged(ValueId value) const;
  bool any() const { return !staged_.empty(); }
  const std::vector<ValueId>& staged() const { return staged_; }
  bool bulk() const { return parameters_.load_path == LoadPath::kBulk; }

  // Takes the ring's part of shared memory, and says how many bytes the kept rows need, in every sweep at the
  // same place.
  void Reserve(SharedRule* shared);
  int64_t KeptBytes() const;

  // Declares count, the rows of the group.
  std::string CountLine() const;
  // Declares, for the one row of a step: index (in the order in which the group does them; there is none from
  // `count` on), local (which of the group's rows it is), row, and start, the position of its first entry in
  // a matrix without leading dimension.
  std::string IndexLine(const std::string& step) const;
  // Returns whether a step with fewer rows does its last one again.
  bool repeats_rows() const { return parameters_.stages == 0 && parameters_.rows_per_step > 1; }
  // Returns `lines` for each row of the step; if there are several rows, in a loop over `r` that declares
  // local, row and start.
  std::vector<std::string> ForEachRow(const std::string& step, std::vector<std::string> lines,
                                      StepRows which) const;
  // Returns, in lines for StepRows::kRepeated, the condition of what must happen once a row; "" for none.
  std::string Once() const { return repeats_rows() ? "if (there) " : ""; }
  // Return, for a matrix, the entries from one row to the next; where the row of the current step begins, as
  // entries and as a pointer.
  std::string RowStride(ValueId value) const;
  std::string RowStart(ValueId value) const;
  std::string RowBase(ValueId value) const;
  // Declares the column `j` at which the lane's chunk `c` begins.
  std::string ColumnLine() const;
  // Returns, in a loop over the chunks of code that stands twice, a constant that says whether all lanes have
  // a whole vector in chunk `c`, and it is aligned.
  std::string WholeChunk() const;
  // Returns the columns that the chunks have together of which that may be said.
  int64_t WholeColumns() const;

  // Returns lane lines that run once before the first fetch.
  std::vector<std::string> InitializeLines() const;
  // Returns lane lines that run once after the last step, where another sweep may use the ring's memory.
  std::vector<std::string> EndLines() const;
  // Copies the rows of `step` to its slots: per lane (kBulk), or for each chunk of a lane (kStaged);
  // `aligned` as for fu_load.
  std::vector<std::string> FetchLines(const std::map<ValueId, std::string>& aligned, const std::string& step);
  // Returns the line after each fetch, also one that copied nothing; empty when nothing is to be done.
  std::string CommitLine() const;
  // Returns the line that waits until the rows of the current step have arrived.
  std::string WaitLine() const;
  // Returns the line target[v] = the lane's entries of chunk `c` of the row.
  std::string ReadLine(ValueId value, const std::string& target);
  // Returns whether this sweep copies the rows of the value from registers to shared memory, where a later
  // one finds them: the sweep computes the value, or has not read it through the ring.
  bool Keeps(ValueId value) const;
  // Returns whether an earlier sweep did, so that ReadLine finds the first rows there.
  bool Finds(ValueId value) const { return kept_.filled && Kept(value); }
  // Returns the condition that a row is one of these.
  std::string KeptLine() const { return absl::StrCat("local < ", kept_.shared_rows); }
  // Copies source[v] of chunk `c` there, if the row is one of those that are kept.
  std::string KeepLine(ValueId value, const std::string& source);

 private:
  // The group's rows: every so many from the first, or the next ones of a tile.
  // A group's rows follow each other in tiles and on hosts, whose processors fetch what follows; else groups
  // take turns, so that blocks read neighbouring rows at a time.
  bool in_turns() const { return parameters_.tile_rows == 0 && context_.options.simt; }
  const char* first_row() const { return in_turns() ? "group" : "first"; }
  const char* row_step() const { return in_turns() ? "groups" : "1"; }
  bool reversed_rows() const;  // from the last row to the first, not by whole steps
  bool Kept(ValueId value) const;
  int64_t SlotBytes(ValueId value) const;                          // of one row of each group of the block
  std::string Slot(ValueId value, const std::string& step) const;  // its address
  // kStaged: pointer to the lane's chunk `c`.
  std::string LaneChunk(ValueId value, const std::string& slot) const;
  std::string WarpWindow(ValueId value, const std::string& slot) const;  // kBulk: pointer to the window
  std::string WarpChunk(ValueId value, const std::string& slot);  // kBulk: pointer to the lane's chunk `c`
  std::string Barrier(const std::string& step) const;
  std::string WarpOffset(ValueId value) const;     // of the warp's first column in the matrix, in entries
  std::string StoredEntries(ValueId value) const;  // of the whole matrix, to the end of its last row
  std::string Ring() const;                        // `shared` of the lane's block

  LoweringContext& context_;
  const RowPanelParameters& parameters_;
  const KeptRows& kept_;
  const std::string rows_, columns_;
  const int groups_per_block_, warps_;  // of a group in its block
  const std::string lane_;              // among those of its block
  int64_t reserved_bytes_ = 0;
  std::vector<ValueId> staged_;
  std::map<ValueId, int64_t> kept_offset_, ring_offset_;  // offsets in `kept` and in `shared`
  int64_t barrier_offset_ = 0;
};

}  // namespace fusion
