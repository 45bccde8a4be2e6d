#include "server/skeletons/row_panel/row_lanes.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {

RowLanes::RowLanes(LoweringContext& context, const RowStages& stages, std::string columns)
    : context_(context),
      stages_(stages),
      parameters_(context.implementation.As<RowPanelParameters>()),
      columns_(std::move(columns)) {}

int64_t RowLanes::TileColumns() const {
  return int64_t{parameters_.chunks} * parameters_.threads_per_row * parameters_.vector_width;
}

ir::LaneVariable RowLanes::ChunkVariable(std::string type, std::string name, std::string initial,
                                         int rows) const {
  return {.type = std::move(type),
          .name = std::move(name),
          .extents = absl::StrCat(rows > 1 ? absl::StrCat("[", rows, "]") : "", "[", parameters_.chunks, "][",
                                  parameters_.vector_width, "]"),
          .initial = std::move(initial),
          .entries = rows * parameters_.chunks * parameters_.vector_width};
}

ir::Statement RowLanes::ChunkLoop(std::vector<std::string> lines, bool per_entry) const {
  const int width = parameters_.vector_width;
  if (per_entry) {
    lines.insert(lines.begin(), {"FUSION_UNROLL",
                                 absl::StrCat("for (int v = 0; v < ", width, "; ++v) if (", Guard(), ") {")});
    lines.push_back("}");
  }
  if (static_chunks()) {
    lines.insert(lines.begin(),
                 {"FUSION_UNROLL", absl::StrCat("for (int c = 0; c < ", parameters_.chunks, "; ++c) {"),
                  stages_.ColumnLine()});
    lines.push_back("}");
    return ir::LanePhase(std::move(lines));
  }
  lines.insert(lines.begin(), absl::StrCat("const fu_index j = column + (fu_index)lane * ", width, ";"));
  const std::string remaining = width == 1
                                    ? absl::StrCat(columns_, " - column")
                                    : absl::StrCat("(", columns_, " - column + ", width - 1, ") / ", width);
  return ir::Loop(
      absl::StrCat("for (fu_index column = 0; column < ", columns_, "; column += (fu_index)lanes * ", width,
                   ")"),
      {ir::LanePhase(std::move(lines), absl::StrCat("(", remaining, " < lanes ? ", remaining, " : lanes)"))});
}

std::string RowLanes::Guard() const {
  if (!static_chunks() && parameters_.vector_width == 1) return "true";
  return absl::StrCat(versions_ ? absl::StrCat(stages_.WholeChunk(), " || ") : "", "j + v < ", columns_);
}

std::string RowLanes::Aligned(ValueId value, bool matrix) {
  if (parameters_.vector_width == 1) return "true";
  std::string flag = absl::StrCat(matrix ? "am_" : "av_", context_.Name(value));
  if (flags_.insert(flag).second) {
    flagged_.emplace_back(value, matrix);
    flag_statements_.push_back(ir::Text(absl::StrCat(
        "const bool ", flag, " = fu_aligned(", context_.Pointer(value), ")",
        matrix ? absl::StrCat(" && ", stages_.RowStride(value), " % ", parameters_.vector_width, " == 0")
               : "",
        ";")));
  }
  return flag;
}

void RowLanes::FlushFlags(std::vector<ir::Statement>* body) {
  if (versions_) return;  // they decide which version, before both
  body->insert(body->end(), flag_statements_.begin(), flag_statements_.end());
  flag_statements_.clear();
}

std::string RowLanes::Load(const std::string& target, const std::string& base, ValueId value, bool matrix) {
  const int width = parameters_.vector_width;
  if (width == 1 && !static_chunks()) return absl::StrCat(target, "[0] = ", base, "[j];");
  return absl::StrCat(context_.LoadName(value), "(", target, ", ", base, ", j, ", columns_, ", ",
                      Aligned(value, matrix), WholeArgument(), ");");
}

std::string RowLanes::EndVersions(std::vector<ir::Statement>* outside) {
  versions_ = false;
  std::string whole = parameters_.tile_rows > 0 ? absl::StrCat("tile + ", TileColumns(), " <= ", columns_)
                      : parameters_.ragged      ? absl::StrCat(columns_, " >= ", stages_.WholeColumns())
                                                : absl::StrCat(columns_, " == ", TileColumns());
  for (const std::string& flag : flags_) absl::StrAppend(&whole, " && ", flag);
  FlushFlags(outside);
  return whole;
}

WholeCondition RowLanes::Whole(const Extent& columns) const {
  using Kind = WholeCondition::OfSize::Kind;
  const bool tiles = parameters_.tile_rows > 0;
  WholeCondition whole{.exact = !tiles};
  whole.sizes.push_back(tiles ? WholeCondition::OfSize{columns, Kind::kMultiple, TileColumns()}
                        : parameters_.ragged
                            ? WholeCondition::OfSize{columns, Kind::kAtLeast, stages_.WholeColumns()}
                            : WholeCondition::OfSize{columns, Kind::kEquals, TileColumns()});
  for (const auto& [value, matrix] : flagged_) {
    whole.aligned.push_back(value);
    if (matrix)
      whole.sizes.push_back({context_.graph.value(value).leading_dimension.value_or(columns), Kind::kMultiple,
                             parameters_.vector_width});
  }
  return whole;
}

std::string RowLanes::WholeArgument() const {
  return versions_ ? absl::StrCat(", ", stages_.WholeChunk()) : "";
}

}  // namespace fusion
