// Parameters of row panels for rows that fill no warp.
#include <algorithm>

#include "server/skeletons/row_panel/row_panel.h"

namespace fusion {

void AddShortRows(const FusionShape& shape, const RowPanelNeeds& needs, const AddRowPanel& add) {
  // Each group would leave its part of a reduction over the rows.
  if (shape.grid_reductions > 0 || needs.matrices == 0) return;
  const int64_t columns = std::max<int64_t>(1, shape.Size(shape.roles.columns));
  for (int width : RowVectorWidths(shape)) {
    int lanes = 1;
    while (int64_t{lanes} * width < columns) lanes *= 2;
    if (lanes >= 32) continue;
    for (int threads : {256, 128, 512}) {
      const RowPanelParameters rows = {.threads = threads,
                                       .vector_width = width,
                                       .chunks = 1,
                                       .threads_per_row = lanes,
                                       .blocks_per_multiprocessor = kAllThatFit};
      RowPanelParameters several = rows;
      several.hold_columns = needs.column_operands > 0;
      add(several);
      for (int together : RowsInRegisters(shape, needs, width)) {
        several.rows_per_step = together;
        add(several);
      }
      RowPanelParameters one_shot = rows;
      one_shot.blocks_per_multiprocessor = 0;
      for (int resident = 1; resident <= (needs.held_inputs > 0 ? 4 : 1); ++resident) {
        one_shot.resident_blocks = resident;
        add(one_shot);
      }
    }
  }
}

}  // namespace fusion
