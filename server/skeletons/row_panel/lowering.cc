// Row-panel skeleton: a group of threads (a block, a warp, or a cluster of blocks) holds one row of the
// matrices at a time and walks over rows with a persistent grid. Each lane owns the same columns in every
// row, so column reductions stay with the lane until the end; a row reduction is complete when the group has
// reduced it, so its result can be used on the same row (ATAX, softmax) without a second pass over memory.
//
// With chunks > 0 a lane's part of the row has a static size and lives in registers, or comes from a ring of
// rows in shared memory (row_stages.h); with column_tiles the lanes hold a part of the columns at a time.
// With chunks == 0 the row is walked in a run-time loop, read again in each phase, and column reductions are
// accumulated in shared memory: any width.
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/lowering/long_sums.h"
#include "server/lowering/lowering_context.h"
#include "server/skeletons/row_panel/row_chunk.h"
#include "server/skeletons/row_panel/row_lanes.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/row_panel/row_panel_nodes.h"
#include "server/skeletons/row_panel/row_stages.h"
#include "server/skeletons/row_panel/row_tiles.h"
#include "server/skeletons/row_panel/row_values.h"

namespace fusion {
namespace {

class RowPanelLowering {
 public:
  explicit RowPanelLowering(LoweringContext& context)
      : context_(context),
        graph_(context.graph),
        implementation_(context.implementation),
        parameters_(context.implementation.As<RowPanelParameters>()),
        panel_(parameters_.roles),
        rows_(context.Size(panel_.rows)),
        columns_(context.Size(panel_.columns)),
        stages_(context, rows_, columns_),
        nodes_(graph_, implementation_),
        lanes_(context, stages_, columns_),
        values_(context, nodes_, lanes_),
        tiles_(context, nodes_, stages_, lanes_, values_) {
    context.loop = {.threads = parameters_.threads,
                    .vector_width = parameters_.vector_width,
                    .l2 = {.percent = parameters_.l2_percent},
                    .atomic = parameters_.atomic};
  }

  absl::StatusOr<FusionCode> Lower() {
    group_threads_ = parameters_.threads_per_row;
    groups_per_block_ = parameters_.cluster_blocks > 1 ? 1 : parameters_.threads / group_threads_;
    values_.Find(&stages_, &lane_variables_, &kernel_variables_);
    shared_.extent = panel_.columns;
    FusionCode code;
    CreateReductions(&code);

    const std::vector<NodeId> early_scalars = EarlyScalars();
    LowerScalars(context_, early_scalars, &body_);
    std::vector<ir::Zeroed> zeros = ZerosFor(context_, reductions_, panel_.columns);
    if (parameters_.tile_rows > 0) {
      body_.push_back(ir::Text(tiles_.TileLine(columns_)));
      EmitRowsTwice();
      EmitPartials();
    } else if (parameters_.column_tiles) {
      body_.push_back(ir::Text(absl::StrCat("constexpr bool ", kWhole, " = false; (void)", kWhole, ";")));
      if (!zeros.empty()) body_.push_back(ir::ZeroWait());
      std::vector<ir::Statement> outside;
      outside.swap(body_);
      EmitRestart();
      EmitRows();
      EmitPartials();
      outside.push_back(ir::Loop(
          absl::StrCat("for (fu_index tile = 0; tile < ", columns_, "; tile += ", lanes_.TileColumns(), ")"),
          std::move(body_)));
      body_ = std::move(outside);
    } else {
      if (lanes_.static_chunks())
        EmitRowsTwice();
      else
        EmitRows();
      if (!zeros.empty()) body_.push_back(ir::ZeroWait());
      EmitPartials();
    }

    ir::Kernel kernel{.name = context_.kernel_name(""),
                      .comment = context_.comment(),
                      .threads = parameters_.threads,
                      .minimum_blocks = parameters_.resident_blocks,
                      .cluster_blocks = parameters_.cluster_blocks};
    kernel.zeroed = std::move(zeros);
    kernel.lane_variables = std::move(kernel_variables_);
    kernel.uses_shared = shared_.fixed_bytes > 0 || shared_.bytes_per_entry > 0;
    kernel.shared_bytes = absl::StrCat(shared_.fixed_bytes, " + ", shared_.bytes_per_entry, " * ", columns_);
    kernel.sections = {{group_threads_, lane_variables_, std::move(body_)}};
    GridRule grid{.extents = {panel_.rows},
                  .items_per_block = groups_per_block_,
                  .blocks_per_multiprocessor = parameters_.blocks_per_multiprocessor,
                  .groups_per_block = groups_per_block_,
                  .cluster_blocks = parameters_.cluster_blocks};
    if (parameters_.tile_rows > 0) {
      grid.items_per_block = parameters_.tile_rows;
      grid.part_entries = lanes_.TileColumns();
      grid.parts = panel_.columns;
    }
    code.launches.push_back(context_.FinishKernel(std::move(kernel), std::move(grid), shared_));
    code.launches.back().whole = std::move(whole_);
    if (lanes_.static_chunks() && !parameters_.column_tiles)
      code.limits = {{panel_.columns, lanes_.TileColumns()}};
    code.kept_bytes = stages_.KeptBytes();
    const std::vector<NodeId> finish_nodes = FinishNodes();
    const RowFinish rows = tiles_.Finish();
    if (NeedsFinish(reductions_, finish_nodes) || !rows.nodes.empty()) {
      FUSION_ASSIGN_OR_RETURN(auto finish, LowerFinishKernel(context_, reductions_, early_scalars,
                                                             finish_nodes, panel_.columns, rows));
      code.launches.push_back(std::move(finish));
    }
    return code;
  }

 private:
  using Shape = RowPanelNodes::Shape;

  // Accumulators as they are before the first row.
  void EmitRestart() {
    std::vector<std::string> lines = {"(void)j;"};
    for (const GridReduction& reduction : reductions_) {
      const Node& node = graph_.node(reduction.node);
      lines.push_back("FUSION_UNROLL");
      const std::string reset = absl::StrCat("$acc_", context_.Name(node.result),
                                             "[c][v] = ", context_.MonoidName(node), "::identity();");
      lines.push_back(absl::StrCat("for (int v = 0; v < ", parameters_.vector_width, "; ++v) ",
                                   IsLongSum(context_, node)
                                       ? absl::StrCat("{ ", reset, " $long_", context_.Name(node.result),
                                                      "[c][v] = ", LongSumType(context_, node), "(); }")
                                       : reset));
    }
    body_.push_back(lanes_.ChunkLoop(std::move(lines), false));
  }
  // Returns the nodes that are computed after all rows.
  std::vector<NodeId> FinishNodes() const {
    std::vector<NodeId> nodes;
    for (NodeId id : implementation_.order)
      if (nodes_.Phase(graph_.node(id)) == kFinishPhase) nodes.push_back(id);
    return nodes;
  }
  // Scalars that are at hand before the first row.
  std::vector<NodeId> EarlyScalars() const {
    std::vector<NodeId> scalars;
    for (NodeId id : implementation_.order)
      if (const Node& node = graph_.node(id);
          nodes_.Phase(node) != kFinishPhase && nodes_.SpaceOf(node) == Shape::kScalar)
        scalars.push_back(id);
    return scalars;
  }
  // The group's number among those with parts of the same results.
  const char* part() const { return parameters_.tile_rows > 0 ? "part" : "group"; }
  // All rows of the group.
  void EmitRows() {
    EmitPrologue();
    std::vector<ir::Statement> row_body;
    EmitStep(&row_body);
    if (stages_.repeats_rows()) return EmitRepeatingSteps(row_body);
    // Copies that are ahead of the first step are those of steps before it: their code stands once.
    body_.push_back(
        StepLoop(absl::StrCat(stages_.any() ? 1 - parameters_.stages : 0), "steps", std::move(row_body)));
    if (stages_.any() && stages_.bulk()) body_.push_back(ir::LanePhase(stages_.EndLines()));
  }
  // The lines of `entry`, for an entry of a long column sum, done for all entries of all of them; nothing
  // where there are no such sums.
  std::optional<ir::Statement> ForEachLongEntry(
      const std::function<std::vector<std::string>(const Node& node, const std::string& long_sum,
                                                   const std::string& accumulator)>& entry) {
    std::vector<std::string> lines;
    const std::string at = lanes_.static_chunks() ? "[c][v]" : "[j + v]",
                      lane = lanes_.static_chunks() ? "$" : "";
    for (const GridReduction& reduction : reductions_) {
      const Node& node = graph_.node(reduction.node);
      if (!reduction.per_column || !IsLongSum(context_, node)) continue;
      const std::string name = context_.Name(node.result);
      lines.push_back("FUSION_UNROLL");
      lines.push_back(absl::StrCat("for (int v = 0; v < ", parameters_.vector_width, "; ++v) ",
                                   lanes_.Guard() == "true" || lanes_.static_chunks()
                                       ? ""
                                       : absl::StrCat("if (", lanes_.Guard(), ") "),
                                   "{"));
      for (std::string& line :
           entry(node, absl::StrCat(lane, "long_", name, at), absl::StrCat(lane, "acc_", name, at)))
        lines.push_back(std::move(line));
      lines.push_back("}");
    }
    if (lines.empty()) return std::nullopt;
    lines.insert(lines.begin(), "(void)j;");
    return lanes_.ChunkLoop(std::move(lines), false);
  }
  // A loop over steps, which gives the sums of as many rows as the column accumulators may take to the long
  // ones.
  ir::Statement StepLoop(const std::string& begin, const std::string& end, std::vector<ir::Statement> body) {
    const int steps = StepsOfPart(values_.row_count());
    std::optional<ir::Statement> add =
        ForEachLongEntry([&](const Node& node, const std::string& long_sum, const std::string& accumulator) {
          std::vector<std::string> lines = AddPart(context_, node, long_sum, accumulator);
          // Long sums in shared memory begin here, since few rows need none.
          if (!lanes_.static_chunks())
            lines.insert(lines.begin(), absl::StrCat("if (first_step == 0) ", long_sum, " = ",
                                                     LongSumType(context_, node), "();"));
          return lines;
        });
    if (add && steps == 1) body.push_back(*std::exchange(add, std::nullopt));
    if (!add)
      return ir::Loop(absl::StrCat("for (fu_index step = ", begin, "; step < ", end, "; ++step)"),
                      std::move(body));
    std::vector<ir::Statement> parts = {
        ir::Text(absl::StrCat("const fu_index last_step = first_step + ", steps, " < ", end,
                              " ? first_step + ", steps, " : ", end, ";")),
        ir::Loop("for (fu_index step = first_step; step < last_step; ++step)", std::move(body))};
    parts.push_back(ir::If(absl::StrCat("last_step < ", end), {*std::move(add)}));
    return ir::Loop(absl::StrCat("for (fu_index first_step = ", begin, "; first_step < ", end,
                                 "; first_step += ", steps, ")"),
                    std::move(parts));
  }
  // Steps that repeat rows where they have fewer: without guards all but the last are full, or (reversed) all
  // but the first, which stands beside their loop. In one loop the two would share registers, and spill.
  void EmitRepeatingSteps(const std::vector<ir::Statement>& step) {
    const auto with = [&](std::vector<std::string> texts) {
      std::vector<ir::Statement> body = ir::Texts(std::move(texts));
      body.insert(body.end(), step.begin(), step.end());
      return body;
    };
    const auto full = [](bool value) {
      return absl::StrCat("constexpr bool ", kFull, " = ", value ? "true" : "false", "; (void)", kFull, ";");
    };
    const std::string whole_steps = absl::StrCat("count / ", parameters_.rows_per_step);
    ir::Statement loop = parameters_.reversed
                             ? StepLoop(absl::StrCat("steps - ", whole_steps), "steps", with({full(true)}))
                             : StepLoop("0", whole_steps, with({full(true)}));
    ir::Statement rest =
        ir::If(absl::StrCat("count % ", parameters_.rows_per_step, " != 0"),
               with({full(false), parameters_.reversed ? "const fu_index step = 0;"
                                                       : "const fu_index step = steps - 1;"}));
    if (parameters_.reversed) std::swap(loop, rest);
    std::vector<ir::Statement> both;
    both.push_back(std::move(loop));
    both.push_back(std::move(rest));
    body_.push_back(ir::IfVersion(kWhole, true, std::move(both)));
    body_.push_back(ir::IfVersion(kWhole, false, {StepLoop("0", "steps", with({full(false)}))}));
  }
  // Once without the guards, for rows that the lanes' vectors fill exactly, or (ragged) but for the last
  // chunk.
  void EmitRowsTwice() {
    std::vector<ir::Statement> outside;
    outside.swap(body_);
    lanes_.BeginVersions();
    EmitRows();
    std::string whole = lanes_.EndVersions(&outside);
    whole_ = lanes_.Whole(panel_.columns);
    outside.push_back(ir::Versions(std::move(whole), kWhole, std::move(body_), /*known_at_launch=*/true));
    body_ = std::move(outside);
  }
  void CreateReductions(FusionCode* code) {
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (!node.is_reduction() || nodes_.IsRowReduction(node)) continue;
      const bool per_column = nodes_.IsColumnReduction(node);
      reductions_.push_back(PlaceGridReduction(context_, node, per_column, panel_.columns, code));
    }
    tiles_.Place(code);
    stages_.Reserve(&shared_);
    // Largest entries first, so that each array of accumulators is aligned.
    std::vector<GridReduction> by_size = reductions_;
    std::stable_sort(by_size.begin(), by_size.end(), [&](const GridReduction& a, const GridReduction& b) {
      return context_.AccumulatorBytes(graph_.node(a.node)) > context_.AccumulatorBytes(graph_.node(b.node));
    });
    // Accumulators of f32 sums are the smallest, and their long sums come before them.
    const auto shared_array = [&](const std::string& type, const std::string& name, int64_t bytes) {
      // The pointer is to this group's part of entries [group in block][columns].
      body_.push_back(ir::Text(absl::StrCat(
          type, "* const ", name, " = (", type, "*)(shared + ", shared_.bytes_per_entry, " * ", columns_, ")",
          groups_per_block_ == 1 ? "" : absl::StrCat(" + (group % ", groups_per_block_, ") * ", columns_),
          ";")));
      shared_.bytes_per_entry += bytes * groups_per_block_;
    };
    const auto place_kept_results = [&](int bytes) {
      for (ValueId value : values_.kept_results())
        if (DataTypeBytes(graph_.value(value).type.data_type) == bytes)
          shared_array(context_.CType(value), values_.KeptName(value), bytes);
    };
    place_kept_results(8);
    bool long_sums_placed = false;
    const auto place_long_sums = [&] {
      if (std::exchange(long_sums_placed, true)) return;
      for (const GridReduction& reduction : by_size)
        if (const Node& node = graph_.node(reduction.node); reduction.per_column && IsLongSum(context_, node))
          shared_array(LongSumType(context_, node), "long_" + context_.Name(node.result), kLongSumBytes);
    };
    for (const GridReduction& reduction : by_size) {
      const Node& node = graph_.node(reduction.node);
      const std::string name = context_.Name(node.result), monoid = context_.MonoidName(node);
      const bool is_long = IsLongSum(context_, node);
      if (!reduction.per_column) {
        body_.push_back(
            ir::Text(is_long ? absl::StrCat(LongSumType(context_, node), " acc_", name, ";")
                             : absl::StrCat(monoid, "::Acc acc_", name, " = ", monoid, "::identity();")));
      } else if (lanes_.static_chunks()) {
        lane_variables_.push_back(
            lanes_.ChunkVariable(monoid + "::Acc", "acc_" + name, monoid + "::identity()"));
        if (is_long)
          lane_variables_.push_back(lanes_.ChunkVariable(LongSumType(context_, node), "long_" + name,
                                                         LongSumType(context_, node) + "()"));
      } else {
        if (context_.AccumulatorBytes(node) < kLongSumBytes) place_long_sums();
        shared_array(monoid + "::Acc", "acc_" + name, context_.AccumulatorBytes(node));
        body_.push_back(
            lanes_.ChunkLoop({absl::StrCat("acc_", name, "[j + v] = ", monoid, "::identity();")}, true));
      }
    }
    place_kept_results(4);
  }

  void FetchStep(const std::string& step, std::vector<ir::Statement>* body) {
    std::map<ValueId, std::string> aligned;
    if (!stages_.bulk())
      for (ValueId value : stages_.staged()) aligned[value] = lanes_.Aligned(value, true);
    lanes_.FlushFlags(&body_);
    std::vector<std::string> lines = stages_.FetchLines(aligned, step);
    body->push_back(ir::If(
        absl::StrCat(step, " < steps"),
        {stages_.bulk() ? ir::LanePhase(std::move(lines)) : lanes_.ChunkLoop(std::move(lines), false)}));
    if (!stages_.CommitLine().empty()) body->push_back(ir::LanePhase({stages_.CommitLine()}));
  }

  // Operands over the rows, one entry a row; they are read one step ahead, since a row waits for them at
  // once.
  std::vector<ValueId> RowInputs() const {
    std::vector<ValueId> inputs;
    if (values_.in_batches()) return inputs;
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.Phase(node) == kFinishPhase || !tiles_.RowsHere(nodes_.Phase(node))) continue;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const ValueId value = node.operands[k];
        if (tiles_.row_parts() && node.is_reduction() && !nodes_.IsTermOperand(node, static_cast<int>(k)))
          continue;
        if (nodes_.ShapeOf(node, static_cast<int>(k)) == Shape::kRow && !context_.ProducedHere(value) &&
            !Contains(inputs, value))
          inputs.push_back(value);
      }
    }
    return inputs;
  }
  void ReadRowInputs(const std::string& step, const std::vector<ValueId>& inputs,
                     std::vector<ir::Statement>* body) {
    std::vector<std::string> lines;
    if (values_.row_count() == 1) lines = {stages_.IndexLine(step)};
    for (ValueId value : inputs)
      lines.push_back(absl::StrCat(values_.OfRow("next_" + context_.Name(value)), " = ",
                                   context_.Pointer(value), "[row];"));
    lines = stages_.ForEachRow(step, std::move(lines), StepRows::kPresent);
    body->push_back(ir::If(absl::StrCat(step, " < steps"), ir::Texts(std::move(lines))));
  }
  // Uniform statements for each row of the current step.
  void EmitRowTexts(std::vector<std::string> lines, StepRows which, std::vector<ir::Statement>* body) {
    std::vector<ir::Statement> texts = ir::Texts(stages_.ForEachRow("step", std::move(lines), which));
    std::move(texts.begin(), texts.end(), std::back_inserter(*body));
  }
  void StoreRowResult(const Node& node, std::vector<ir::Statement>* body) {
    if (!context_.Stored(node.result)) return;
    ir::Statement store = ir::Leader(stages_.ForEachRow(
        "step", {absl::StrCat(context_.Pointer(node.result), "[row] = ", values_.RowText(node.result), ";")},
        StepRows::kPresent));
    body->push_back(parameters_.tile_rows > 0 ? ir::If("tile == 0", {std::move(store)}) : std::move(store));
  }

  void EmitPrologue() {
    if (!values_.held_columns().empty()) {
      std::vector<std::string> lines;
      for (ValueId value : values_.held_columns())
        lines.push_back(lanes_.Load(absl::StrCat("$c_", context_.Name(value), "[c]"), context_.Pointer(value),
                                    value, false));
      ir::Statement loop = lanes_.ChunkLoop(std::move(lines), false);
      lanes_.FlushFlags(&body_);
      body_.push_back(std::move(loop));
    }
    body_.push_back(ir::Text(stages_.CountLine()));
    body_.push_back(ir::Text(values_.row_count() == 1
                                 ? "const fu_index steps = count;"
                                 : absl::StrCat("const fu_index steps = (count + ", values_.row_count() - 1,
                                                ") / ", values_.row_count(), ";")));
    row_inputs_ = RowInputs();
    for (ValueId value : row_inputs_) {
      const std::string name = "next_" + context_.Name(value), type = context_.CType(value);
      body_.push_back(ir::Text(values_.row_count() == 1
                                   ? absl::StrCat(type, " ", name, " = ", type, "(0);")
                                   : absl::StrCat(type, " ", name, "[", values_.row_count(), "] = {};")));
    }
    if (!row_inputs_.empty()) ReadRowInputs("0", row_inputs_, &body_);
    if (!stages_.any()) return;
    if (stages_.bulk()) body_.push_back(ir::LanePhase(stages_.InitializeLines()));
  }

  void EmitStep(std::vector<ir::Statement>* body) {
    if (stages_.any()) {
      FetchStep(absl::StrCat("(step + ", parameters_.stages - 1, ")"), body);
      body->push_back(ir::Text("if (step < 0) continue;"));
    }
    if (values_.row_count() == 1) body->push_back(ir::Text(stages_.IndexLine("step")));
    if (stages_.any()) body->push_back(ir::LanePhase({stages_.WaitLine()}));
    if (values_.in_batches()) LoadBatch(body);
    for (ValueId value : row_inputs_) {
      const std::string name = context_.Name(value), type = context_.CType(value);
      if (values_.row_count() == 1) {
        body->push_back(ir::Text(absl::StrCat("const ", type, " u_", name, " = next_", name, ";")));
        continue;
      }
      body->push_back(ir::Text(values_.RowDeclaration(type, "u_" + name)));
      body->push_back(ir::Text("FUSION_UNROLL"));
      body->push_back(ir::Text(absl::StrCat("for (int r = 0; r < ", values_.row_count(), "; ++r) u_", name,
                                            "[r] = next_", name, "[r];")));
    }
    if (!row_inputs_.empty()) ReadRowInputs("(step + 1)", row_inputs_, body);
    for (int phase = 0; phase < panel_.phase_count && tiles_.RowsHere(phase); ++phase) EmitPhase(phase, body);
  }

  // All matrix entries of the step; but the first step finds those that an earlier sweep left in registers,
  // and others those that it left in shared memory.
  void LoadBatch(std::vector<ir::Statement>* body) {
    std::vector<std::string> always, unless_left, keeps;
    for (ValueId value : values_.held()) {
      if (context_.ProducedHere(value)) continue;
      std::string load = lanes_.Load(values_.HeldText(value), stages_.RowBase(value), value, true);
      if (stages_.Finds(value))
        load = absl::StrCat("if (", stages_.KeptLine(), ") ",
                            stages_.ReadLine(value, values_.HeldText(value)), " else ", load);
      (values_.StaysInRegisters(value) && parameters_.kept.filled ? unless_left : always)
          .push_back(std::move(load));
      if (stages_.Keeps(value)) keeps.push_back(stages_.KeepLine(value, values_.HeldText(value)));
    }
    lanes_.FlushFlags(&body_);
    if (!always.empty())
      body->push_back(
          lanes_.ChunkLoop(stages_.ForEachRow("step", std::move(always), StepRows::kRepeated), false));
    if (!unless_left.empty())
      body->push_back(ir::If(
          "step > 0", {lanes_.ChunkLoop(
                          stages_.ForEachRow("step", std::move(unless_left), StepRows::kRepeated), false)}));
    // Behind all loads, so that none waits for one before it.
    if (!keeps.empty()) {
      keeps.insert(keeps.begin(), "(void)j;");
      body->push_back(
          lanes_.ChunkLoop(stages_.ForEachRow("step", std::move(keeps), StepRows::kRepeated), false));
    }
  }

  void EmitPhase(int phase, std::vector<ir::Statement>* body) {
    // Row maps first: the matrix part of this phase may read them, and they never read it, since a row
    // reduction is complete one phase later.
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.Phase(node) == phase && nodes_.SpaceOf(node) == Shape::kRow) EmitRowNode(node, body);
    }
    RowChunk chunk(context_, nodes_, values_, stages_, lanes_, columns_, phase);
    std::vector<const Node*> row_reductions;
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.Phase(node) != phase) continue;
      if (nodes_.SpaceOf(node) == Shape::kMatrix) {
        chunk.Add(node);
        if (nodes_.IsRowReduction(node)) row_reductions.push_back(&node);
      }
    }
    RowChunk::Lines lines = chunk.Take();
    if (lines.empty()) return;
    for (const Node* node : row_reductions) {
      const std::string monoid = context_.MonoidName(*node), name = "row_" + context_.Name(node->result);
      lane_variables_.push_back(
          {.type = monoid + "::Acc",
           .name = name,
           .extents = values_.row_count() > 1 ? absl::StrCat("[", values_.row_count(), "]") : "",
           .entries = values_.row_count()});
      body->push_back(ir::LanePhase(
          values_.row_count() == 1
              ? std::vector<std::string>{absl::StrCat("$", name, " = ", monoid, "::identity();")}
              : std::vector<std::string>{"FUSION_UNROLL",
                                         absl::StrCat("for (int r = 0; r < ", values_.row_count(), "; ++r) $",
                                                      name, "[r] = ", monoid, "::identity();")}));
    }
    std::vector<std::string> all = std::move(lines.columns);
    for (std::string& line : stages_.ForEachRow("step", std::move(lines.rows), StepRows::kRepeated))
      all.push_back(std::move(line));
    ir::Statement loop = lanes_.ChunkLoop(std::move(all), false);
    lanes_.FlushFlags(&body_);
    std::vector<ir::Statement> fetches = FetchesBeside(phase);
    loop.body.insert(loop.body.begin(), fetches.begin(), fetches.end());
    if (lanes_.static_chunks())
      body->push_back(std::move(loop));
    else
      EmitRowParts(row_reductions, std::move(loop), body);
    for (const Node* node : row_reductions) {
      const std::string name = context_.Name(node->result);
      body->push_back(
          ir::Reduce(context_.MonoidName(*node), "row_" + name, "total_" + name, values_.row_count()));
      if (tiles_.row_parts()) {
        body->push_back(tiles_.StorePart(*node, "total_" + name));
        continue;
      }
      std::vector<std::string> operands(node->operands.size());
      for (int k : node->overload->finish_operands) operands[k] = values_.RowOperand(*node, k);
      DefineRowResult(*node, ReductionFinish(context_, *node, values_.OfRow("total_" + name), operands),
                      body);
    }
  }
  // On a host, where a phase of several computes what takes long, memory would wait for it: the lines of the
  // next row that will be read meanwhile come into the caches, and those of this row that a later phase
  // writes.
  std::vector<ir::Statement> FetchesBeside(int phase) {
    std::vector<ir::Statement> fetches;
    if (context_.options.simt || lanes_.static_chunks() || panel_.phase_count == 1) return fetches;
    const auto in_phase = [&](const Node& node) {
      return nodes_.Phase(node) == phase && nodes_.SpaceOf(node) == Shape::kMatrix;
    };
    const auto fetch = [&](ValueId value, const char* row, bool write) {
      fetches.push_back(
          ir::Text(absl::StrCat("fu_fetch<", write ? "1" : "0", ">(", context_.Pointer(value), " + (", row,
                                ") * ", stages_.RowStride(value), " + column, lanes);")));
    };
    if (std::none_of(implementation_.order.begin(), implementation_.order.end(),
                     [&](NodeId id) { return in_phase(graph_.node(id)) && IsDear(graph_.node(id)); }))
      return fetches;
    std::set<ValueId> read;
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      for (size_t k = 0; k < node.operands.size(); ++k)
        if (nodes_.ShapeOf(node, static_cast<int>(k)) == Shape::kMatrix &&
            !context_.ProducedHere(node.operands[k]) && read.insert(node.operands[k]).second)
          fetch(node.operands[k], "row + 1", false);
      if (nodes_.Phase(node) != kFinishPhase && nodes_.Phase(node) > phase &&
          nodes_.SpaceOf(node) == Shape::kMatrix && !node.is_reduction() && context_.Stored(node.result))
        fetch(node.result, "row", true);
    }
    return fetches;
  }
  // The loop over the columns of a row of any length, whose sums in f32 are long ones from some length on.
  void EmitRowParts(const std::vector<const Node*>& row_reductions, ir::Statement loop,
                    std::vector<ir::Statement>* body) {
    std::vector<std::string> parts, ends;
    const auto append = [&](std::vector<std::string> more, std::vector<std::string>* lines) {
      if (values_.row_count() > 1)
        lines->push_back(absl::StrCat("for (int r = 0; r < ", values_.row_count(), "; ++r) {"));
      lines->insert(lines->end(), more.begin(), more.end());
      if (values_.row_count() > 1) lines->push_back("}");
    };
    for (const Node* node : row_reductions) {
      if (!IsLongSum(context_, *node)) continue;
      const std::string name = context_.Name(node->result), type = LongSumType(context_, *node);
      const std::string long_sum = values_.OfRow("$long_" + name),
                        accumulator = values_.OfRow("$row_" + name);
      lane_variables_.push_back(
          {.type = type,
           .name = "long_" + name,
           .extents = values_.row_count() > 1 ? absl::StrCat("[", values_.row_count(), "]") : "",
           .initial = type + "()",
           .entries = values_.row_count()});
      append(AddPart(context_, *node, long_sum, accumulator), &parts);
      std::vector<std::string> end = EndLongSum(long_sum, accumulator);
      end.push_back(absl::StrCat(long_sum, " = ", type, "();"));  // for the next row
      append(std::move(end), &ends);
    }
    if (parts.empty()) {
      body->push_back(std::move(loop));
      return;
    }
    // The loop of ChunkLoop, in parts.
    const std::string stride = absl::StrCat("(fu_index)lanes * ", parameters_.vector_width),
                      part = absl::StrCat("(fu_index)lanes * ",
                                          parameters_.vector_width * StepsOfPart(parameters_.vector_width));
    loop.text =
        absl::StrCat("for (fu_index column = first_column; column < last_column; column += ", stride, ")");
    body->push_back(
        ir::Loop(absl::StrCat("for (fu_index first_column = 0; first_column < ", columns_,
                              "; first_column += ", part, ")"),
                 {ir::Text(absl::StrCat("const fu_index last_column = first_column + ", part, " < ", columns_,
                                        " ? first_column + ", part, " : ", columns_, ";")),
                  std::move(loop),
                  ir::If(absl::StrCat("last_column < ", columns_), {ir::LanePhase(std::move(parts))})}));
    body->push_back(ir::If(absl::StrCat(columns_, " > ", part), {ir::LanePhase(std::move(ends))}));
  }
  void DefineRowResult(const Node& node, const std::string& text, std::vector<ir::Statement>* body) {
    const std::string name = "u_" + context_.Name(node.result);
    if (values_.row_count() == 1) {
      body->push_back(ir::Text(absl::StrCat("const ", context_.CType(node), " ", name, " = ", text, ";")));
    } else {
      body->push_back(ir::Text(values_.RowDeclaration(context_.CType(node), name)));
      EmitRowTexts({absl::StrCat(name, "[r] = ", text, ";")}, StepRows::kRepeated, body);
    }
    StoreRowResult(node, body);
  }
  void EmitRowNode(const Node& node, std::vector<ir::Statement>* body) {
    std::vector<std::string> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(values_.RowOperand(node, static_cast<int>(k)));
    if (!node.is_reduction()) {
      DefineRowResult(node, context_.Call(node, node.overload->routine, operands), body);
      return;
    }
    const std::string monoid = context_.MonoidName(node), name = context_.Name(node.result);
    const std::string term =
        absl::StrCat(monoid, "::lift(", ReductionTerm(context_, node, operands), ", row)");
    EmitRowTexts({IsLongSum(context_, node)
                      ? absl::StrCat("acc_", name, ".add(", term, ");")
                      : absl::StrCat("acc_", name, " = ", monoid, "::combine(acc_", name, ", ", term, ");")},
                 StepRows::kPresent, body);
  }

  // Emits what this group adds to the reductions over the grid.
  void EmitPartials() {
    std::vector<std::string> lines, vectors, leader;
    std::optional<ir::Statement> end =
        ForEachLongEntry([](const Node&, const std::string& long_sum, const std::string& accumulator) {
          return EndLongSum(long_sum, accumulator);
        });
    if (end)
      body_.push_back(
          lanes_.static_chunks()
              ? *std::move(end)
              : ir::If(absl::StrCat("steps > ", StepsOfPart(values_.row_count())), {*std::move(end)}));
    for (const GridReduction& reduction : reductions_) {
      const Node& node = graph_.node(reduction.node);
      const std::string name = "acc_" + context_.Name(node.result);
      if (!reduction.per_column) {
        leader.push_back(
            GroupPart(context_, reduction, IsLongSum(context_, node) ? name + ".value()" : name));
        continue;
      }
      const std::string target = GridReductionTarget(context_, reduction);
      const int width = parameters_.vector_width;
      const std::string entry = absl::StrCat("$", name, "[c][v]");
      if (lanes_.static_chunks())
        if (const std::string added = AddedPart(context_, reduction, entry, "j + v"); added != entry)
          vectors.insert(vectors.end(),
                         {"FUSION_UNROLL", absl::StrCat("for (int v = 0; v < ", width, "; ++v) if (",
                                                        lanes_.Guard(), ") ", entry, " = ", added, ";")});
      if (reduction.atomic && lanes_.static_chunks())
        vectors.push_back(
            absl::StrCat("fu_atomic_add<", width, ">(", target, ", $", name, "[c], j, ", columns_, ");"));
      else if (lanes_.static_chunks() && width * context_.AccumulatorBytes(node) == 16)
        vectors.push_back(absl::StrCat("fu_store<", width, ">(", target, " + ", part(), " * ", columns_,
                                       ", $", name, "[c], j, ", columns_, ", ", columns_, " % ", width,
                                       " == 0);"));
      else
        lines.push_back(absl::StrCat(
            target, "[", part(), " * ", columns_, " + j + v] = ",
            lanes_.static_chunks() ? absl::StrCat("$", name, "[c][v]") : absl::StrCat(name, "[j + v]"), ";"));
    }
    std::vector<ir::Statement> columns;
    if (!lines.empty()) columns.push_back(lanes_.ChunkLoop(std::move(lines), true));
    if (!vectors.empty()) columns.push_back(lanes_.ChunkLoop(std::move(vectors), false));
    if (parameters_.tile_rows > 0 && !columns.empty()) {
      ir::Statement complete = tiles_.CompleteColumns(reductions_, FinishNodes(), columns_);
      lanes_.FlushFlags(&body_);
      body_.push_back(ir::If(tiles_.AllRows(), {std::move(complete)}));
      columns = {ir::If(absl::StrCat("!(", tiles_.AllRows(), ")"), std::move(columns))};
    }
    std::move(columns.begin(), columns.end(), std::back_inserter(body_));
    if (!leader.empty()) body_.push_back(ir::Leader(std::move(leader)));
  }

  LoweringContext& context_;
  const Graph& graph_;
  const FusionImplementation& implementation_;
  const RowPanelParameters& parameters_;
  const LoopRoles& panel_;
  const std::string rows_, columns_;
  RowStages stages_;
  const RowPanelNodes nodes_;
  RowLanes lanes_;
  RowValues values_;
  RowTiles tiles_;
  int group_threads_ = 0, groups_per_block_ = 1;
  std::vector<ValueId> row_inputs_;
  std::vector<GridReduction> reductions_;
  SharedRule shared_;
  std::optional<WholeCondition> whole_;
  std::vector<ir::LaneVariable> lane_variables_, kernel_variables_;
  std::vector<ir::Statement> body_;
};

}  // namespace

absl::StatusOr<FusionCode> LowerRowPanel(LoweringContext& context) {
  return RowPanelLowering(context).Lower();
}

}  // namespace fusion
