// Parameters of row panels for rows that fill no warp. Internal to server/search.
#pragma once

#include <functional>

#include "server/search/fusion_shape.h"

namespace fusion {

// Appends, by `add`, groups of as many lanes as a row needs: a power of two below 32. For plain loads, and
// where nothing is reduced over the rows.
void AddShortRows(const FusionShape& shape, const RowPanelNeeds& needs,
                  const std::function<void(SkeletonParameters)>& add);

}  // namespace fusion
