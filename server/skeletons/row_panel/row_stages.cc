#include "server/skeletons/row_panel/row_stages.h"

#include "absl/strings/str_cat.h"

namespace fusion {
RowStages::RowStages(LoweringContext& context, std::string rows, std::string columns)
    : context_(context),
      parameters_(context.implementation.As<RowPanelParameters>()),
      kept_(context.implementation.As<RowPanelParameters>().kept),
      rows_(std::move(rows)),
      columns_(std::move(columns)),
      groups_per_block_(parameters_.cluster_blocks > 1 ? 1
                                                       : parameters_.threads / parameters_.threads_per_row),
      warps_(parameters_.threads_per_row / parameters_.cluster_blocks / 32),
      lane_(parameters_.cluster_blocks > 1 ? absl::StrCat("(lane % ", parameters_.threads, ")") : "lane") {}

std::string RowStages::RowStride(ValueId value) const {
  const auto& leading = context_.graph.value(value).leading_dimension;
  return leading ? context_.Size(*leading) : columns_;
}
std::string RowStages::RowStart(ValueId value) const {
  return context_.graph.value(value).leading_dimension ? absl::StrCat("row * ", RowStride(value)) : "start";
}
std::string RowStages::RowBase(ValueId value) const {
  return absl::StrCat("(", context_.Pointer(value), " + ", RowStart(value), ")");
}

void RowStages::Add(ValueId value) {
  if (!Staged(value)) staged_.push_back(value);
}
bool RowStages::Staged(ValueId value) const { return Contains(staged_, value); }
bool RowStages::Kept(ValueId value) const { return kept_.shared_rows > 0 && Contains(kept_.values, value); }
bool RowStages::Keeps(ValueId value) const {
  return Kept(value) && !kept_.filled && (context_.ProducedHere(value) || !Staged(value));
}

int64_t RowStages::SlotBytes(ValueId value) const {
  const int64_t entries = int64_t{parameters_.chunks} * parameters_.vector_width * parameters_.threads;
  // A window begins where a 16-byte unit of device memory does, up to one unit before the first column.
  return entries * context_.TypeBytes(value) + (bulk() ? int64_t{16} * parameters_.threads / 32 : 0);
}

int64_t RowStages::KeptBytes() const {
  int64_t bytes = 0;
  for (ValueId value : kept_.values) bytes += kept_.shared_rows * SlotBytes(value);
  return bytes;
}

void RowStages::Reserve(SharedRule* shared) {
  int64_t kept = 0;
  for (ValueId value : kept_.values) {
    kept_offset_[value] = kept;
    kept += kept_.shared_rows * SlotBytes(value);
  }
  for (ValueId value : staged_) {
    ring_offset_[value] = shared->fixed_bytes;
    shared->fixed_bytes += parameters_.stages * parameters_.rows_per_step * SlotBytes(value);
  }
  if (bulk() && any()) {
    barrier_offset_ = shared->fixed_bytes;
    shared->fixed_bytes += int64_t{8} * parameters_.stages * (parameters_.threads / 32);
    shared->fixed_bytes = (shared->fixed_bytes + 15) / 16 * 16;
  }
  reserved_bytes_ = shared->fixed_bytes;
}

std::string RowStages::Ring() const {
  return parameters_.cluster_blocks > 1
             ? absl::StrCat("fu_block_shared<", parameters_.threads, ">(shared, lane, ", reserved_bytes_, ")")
             : "shared";
}

std::string RowStages::IndexLine(const std::string& step) const {
  return absl::StrCat("const fu_index index = ", step,
                      ", local = ", reversed_rows() ? "count - 1 - index" : "index", ", row = ", first_row(),
                      " + local * ", row_step(), ", start = row * ", columns_,
                      "; (void)local; (void)row; (void)start;");
}

std::string RowStages::CountLine() const {
  if (in_turns()) return absl::StrCat("const fu_index count = (", rows_, " - group + groups - 1) / groups;");
  if (parameters_.tile_rows == 0)
    return absl::StrCat("const fu_index first = group * ", rows_, " / groups, count = (group + 1) * ", rows_,
                        " / groups - first;");
  return absl::StrCat("const fu_index count = ", rows_, " - first < ", parameters_.tile_rows, " ? ", rows_,
                      " - first : ", parameters_.tile_rows, ";");
}

bool RowStages::reversed_rows() const {
  return parameters_.reversed && (parameters_.rows_per_step == 1 || parameters_.stages > 0);
}

std::vector<std::string> RowStages::ForEachRow(const std::string& step, std::vector<std::string> lines,
                                               StepRows which) const {
  const int rows = parameters_.rows_per_step;
  if (rows == 1) return lines;
  // Whole steps are reversed where their rows stay in registers.
  const std::string first =
      absl::StrCat(parameters_.reversed && !reversed_rows() ? absl::StrCat("(steps - 1 - ", step, ")") : step,
                   " * ", rows);
  const auto row = [&](const std::string& local) {
    return absl::StrCat("row = ", first_row(), " + ", local, " * ", row_step(), ", start = row * ", columns_,
                        "; (void)row; (void)start;");
  };
  const auto next = [&](const char* sign) {
    return absl::StrCat("row", sign, row_step(), ", start", sign, row_step(), " * ", columns_);
  };
  const bool guarded = which == StepRows::kPresent || !repeats_rows();
  std::vector<std::string> loop;
  if (repeats_rows()) {
    loop = {"{",
            absl::StrCat("fu_index local = ", first, ", ", row("local")),
            absl::StrCat("const int present = count - local < ", rows, " ? (int)(count - local) : ", rows,
                         "; (void)present;"),
            "FUSION_UNROLL",
            absl::StrCat("for (int r = 0; r < ", rows, "; ++r) {"),
            absl::StrCat("const bool there = ", kFull, " || r < present; (void)there;")};
    if (guarded) loop.push_back("if (there) {");
  } else {
    const std::string local = reversed_rows() ? "count - 1 - index" : "index";
    loop = {"{",
            absl::StrCat("fu_index index = ", first, ", ", row(absl::StrCat("(", local, ")"))),
            "FUSION_UNROLL",
            absl::StrCat("for (int r = 0; r < ", rows, "; ++r, ++index, ",
                         next(reversed_rows() ? " -= " : " += "), ") {"),
            "if (index < count) {",
            absl::StrCat("const fu_index local = ", local, "; (void)local;")};
  }
  lines.insert(lines.begin(), loop.begin(), loop.end());
  if (guarded) lines.push_back("}");
  if (repeats_rows())
    lines.push_back(absl::StrCat("if (", kFull, " || r + 1 < present) ++local, ", next(" += "), ";"));
  lines.insert(lines.end(), {"}", "}"});
  return lines;
}

std::string RowStages::ColumnLine() const {
  if (!bulk())
    return absl::StrCat("const fu_index j = ", parameters_.column_tiles ? "tile + " : "",
                        "((fu_index)c * lanes + lane) * ", parameters_.vector_width, ";");
  return absl::StrCat("const fu_index j = ((fu_index)(lane / 32 * ", parameters_.chunks,
                      " + c) * 32 + lane % 32) * ", parameters_.vector_width, ";");
}

std::string RowStages::WholeChunk() const {
  return parameters_.ragged ? absl::StrCat("(", kWhole, " && c < ", parameters_.chunks - 1, ")") : kWhole;
}

int64_t RowStages::WholeColumns() const {
  return int64_t{parameters_.chunks - (parameters_.ragged ? 1 : 0)} * parameters_.threads_per_row *
         parameters_.vector_width;
}

std::string RowStages::Slot(ValueId value, const std::string& step) const {
  std::string ring;
  if (Staged(value)) {
    std::string place = absl::StrCat("(int)(", step, " % ", parameters_.stages, ")");
    if (parameters_.rows_per_step > 1)
      place = absl::StrCat("(", place, " * ", parameters_.rows_per_step, " + r)");
    ring = absl::StrCat(Ring(), " + ", ring_offset_.at(value), " + ", place, " * ", SlotBytes(value));
  }
  if (!Kept(value)) return ring;
  const std::string place =
      absl::StrCat("kept + ", kept_offset_.at(value), " + (int)local * ", SlotBytes(value));
  return ring.empty() ? place : absl::StrCat("(", KeptLine(), " ? ", place, " : ", ring, ")");
}

std::string RowStages::LaneChunk(ValueId value, const std::string& slot) const {
  return absl::StrCat("((", context_.CType(value), "*)(", slot, ") + ((fu_index)c * ", parameters_.threads,
                      " + (group % ", groups_per_block_, ") * lanes + ", lane_, ") * ",
                      parameters_.vector_width, ")");
}

std::string RowStages::WarpWindow(ValueId value, const std::string& slot) const {
  const int64_t window = SlotBytes(value) / (parameters_.threads / 32);
  return absl::StrCat("((", context_.CType(value), "*)(", slot, " + ((group % ", groups_per_block_, ") * ",
                      warps_, " + ", lane_, " / 32) * ", window, "))");
}

std::string RowStages::WarpOffset(ValueId value) const {
  return absl::StrCat(RowStart(value), " + (fu_index)(lane / 32) * ",
                      int64_t{32} * parameters_.chunks * parameters_.vector_width);
}

std::string RowStages::WarpChunk(ValueId value, const std::string& slot) {
  return absl::StrCat(WarpWindow(value, slot), " + fu_window_shift(", context_.Pointer(value), " + ",
                      WarpOffset(value), ") + (c * 32 + lane % 32) * ", parameters_.vector_width);
}

std::string RowStages::StoredEntries(ValueId value) const {
  const std::string stride = RowStride(value);
  return stride == columns_ ? absl::StrCat(rows_, " * ", columns_)
                            : absl::StrCat("(", rows_, " - 1) * ", stride, " + ", columns_);
}

std::string RowStages::Barrier(const std::string& step) const {
  return absl::StrCat("((fu_barrier*)(", Ring(), " + ", barrier_offset_, ") + ((int)(", step, " % ",
                      parameters_.stages, ") * ", groups_per_block_, " + group % ", groups_per_block_, ") * ",
                      warps_, " + ", lane_, " / 32)");
}

std::vector<std::string> RowStages::InitializeLines() const {
  if (!bulk()) return {};
  return {absl::StrCat("for (int s = 0; s < ", parameters_.stages, "; ++s) fu_window_init(", Barrier("s"),
                       ", lane);"),
          "fu_window_init_end();"};
}

std::vector<std::string> RowStages::EndLines() const {
  return {absl::StrCat("for (int s = 0; s < ", parameters_.stages, "; ++s) fu_window_end(", Barrier("s"),
                       ", lane);")};
}

std::vector<std::string> RowStages::FetchLines(const std::map<ValueId, std::string>& aligned,
                                               const std::string& step) {
  const int64_t window = int64_t{32} * parameters_.chunks * parameters_.vector_width;
  std::vector<std::string> copies;
  if (parameters_.rows_per_step == 1) copies.push_back(IndexLine(step));
  for (ValueId value : staged_) {
    const std::string unless =
        Kept(value) && kept_.filled ? absl::StrCat("if (local >= ", kept_.shared_rows, ") ") : "";
    const std::string slot = Slot(value, step), pointer = context_.Pointer(value);
    copies.push_back(
        bulk() ? absl::StrCat(unless, "fu_window_fetch(", WarpWindow(value, slot), ", ", pointer, ", ",
                              WarpOffset(value), ", own, ", StoredEntries(value), ", ", Barrier(step), ");")
               : absl::StrCat(unless, "fu_stage<", parameters_.vector_width, ">(", LaneChunk(value, slot),
                              ", ", pointer, " + ", RowStart(value), ", j, ", columns_, ", ",
                              aligned.at(value), ", ", WholeChunk(), ");"));
  }
  copies = ForEachRow(step, std::move(copies), StepRows::kPresent);
  if (!bulk()) return copies;
  std::vector<std::string> lines = {
      "fu_warp_barrier();", "if (lane % 32 == 0) {",
      absl::StrCat("fu_index own = ", columns_, " - (fu_index)(lane / 32) * ", window, ";"),
      absl::StrCat("own = own < 0 ? 0 : own < ", window, " ? own : ", window, ";")};
  lines.insert(lines.end(), copies.begin(), copies.end());
  lines.push_back(absl::StrCat("fu_window_arrive(", Barrier(step), ");"));
  lines.push_back("}");
  return lines;
}

std::string RowStages::CommitLine() const { return bulk() ? "" : "fu_copy_commit();"; }

std::string RowStages::WaitLine() const {
  if (bulk())
    return absl::StrCat("fu_window_wait(", Barrier("step"), ", (int)(step / ", parameters_.stages, ") & 1);");
  return absl::StrCat("fu_copy_wait<", parameters_.stages - 1, ">();");
}

std::string RowStages::ReadLine(ValueId value, const std::string& target) {
  const std::string slot = Slot(value, "step");
  if (bulk())
    return absl::StrCat("fu_window_read<", parameters_.vector_width, ">(", target, ", ",
                        WarpChunk(value, slot), ");");
  return absl::StrCat("fu_take<", parameters_.vector_width, ">(", target, ", ", LaneChunk(value, slot), ");");
}

std::string RowStages::KeepLine(ValueId value, const std::string& source) {
  const std::string slot = Slot(value, "step");
  return absl::StrCat("if (", KeptLine(), ") fu_keep<", parameters_.vector_width, ">(",
                      bulk() ? WarpChunk(value, slot) : LaneChunk(value, slot), ", ", source, ");");
}

}  // namespace fusion
