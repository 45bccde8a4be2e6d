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
#include <iterator>

#include "absl/strings/str_cat.h"
#include "server/codegen/lowering_context.h"
#include "server/codegen/row_lanes.h"
#include "server/codegen/row_panel_nodes.h"
#include "server/codegen/row_stages.h"

namespace fusion {
namespace {

class RowPanelLowering {
 public:
  explicit RowPanelLowering(LoweringContext& context)
      : context_(context),
        graph_(context.graph),
        implementation_(context.implementation),
        parameters_(context.implementation.parameters),
        panel_(context.implementation.row_panel),
        rows_(context.Size(panel_.rows)),
        columns_(context.Size(panel_.columns)),
        stages_(context, rows_, columns_),
        nodes_(graph_, implementation_),
        lanes_(context, stages_, columns_) {}

  absl::StatusOr<FusionCode> Lower() {
    group_threads_ = parameters_.threads_per_row;
    groups_per_block_ = parameters_.cluster_blocks > 1 ? 1 : parameters_.threads / group_threads_;
    FindHeldValues();
    shared_.extent = panel_.columns;
    FusionCode code;
    CreateReductions(&code);

    EmitScalars();
    std::vector<ir::Zeroed> zeros = ZerosFor(context_, reductions_, panel_.columns);
    if (parameters_.tile_rows > 0) {
      EmitTile();
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
    if (lanes_.static_chunks() && !parameters_.column_tiles)
      code.limits = {{panel_.columns, lanes_.TileColumns()}};
    code.kept_bytes = stages_.KeptBytes();
    std::vector<NodeId> early_scalars, finish_nodes;
    for (size_t i = 0; i < implementation_.order.size(); ++i) {
      const NodeId id = implementation_.order[i];
      if (panel_.phases[i] == kFinishPhase)
        finish_nodes.push_back(id);
      else if (nodes_.SpaceOf(graph_.node(id)) == Shape::kScalar)
        early_scalars.push_back(id);
    }
    if (NeedsFinish(reductions_, finish_nodes)) {
      auto finish = LowerFinishKernel(context_, reductions_, early_scalars, finish_nodes, panel_.columns);
      if (!finish.ok()) return finish.status();
      code.launches.push_back(*std::move(finish));
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
      lines.push_back(absl::StrCat("for (int v = 0; v < ", parameters_.vector_width, "; ++v) $acc_",
                                   context_.Name(node.result), "[c][v] = ", context_.MonoidName(node),
                                   "::identity();"));
    }
    body_.push_back(lanes_.ChunkLoop(std::move(lines), false));
  }
  // Which rows and columns the block has: `first` row, `tile` column, and which `part` of the rows that is.
  void EmitTile() {
    const std::string tiles =
        absl::StrCat("(", columns_, " <= ", lanes_.TileColumns(), " ? 1 : (", columns_, " + ",
                     lanes_.TileColumns() - 1, ") / ", lanes_.TileColumns(), ")");
    body_.push_back(ir::Text(absl::StrCat("const fu_index tiles = ", tiles, ", tile = group % tiles * ",
                                          lanes_.TileColumns(), ", part = group / tiles, first = part * ",
                                          parameters_.tile_rows, "; (void)part;")));
  }
  // The group's number among those with parts of the same results.
  const char* part() const { return parameters_.tile_rows > 0 ? "part" : "group"; }
  // All rows of the group.
  void EmitRows() {
    EmitPrologue();
    std::vector<ir::Statement> row_body;
    EmitStep(&row_body);
    ir::Statement loop = ir::Loop("for (fu_index step = 0; step < steps; ++step)", std::move(row_body));
    body_.push_back(stages_.repeats_rows() ? ir::Versions(stages_.FullCondition(), kFull, {std::move(loop)})
                                           : std::move(loop));
    if (stages_.any() && stages_.bulk()) body_.push_back(ir::LanePhase(stages_.EndLines()));
  }
  // Once without the guards, for rows that the lanes' vectors fill exactly, or (ragged) but for the last
  // chunk.
  void EmitRowsTwice() {
    std::vector<ir::Statement> outside;
    outside.swap(body_);
    lanes_.BeginVersions();
    EmitRows();
    std::string whole = lanes_.EndVersions(&outside);
    outside.push_back(ir::Versions(std::move(whole), kWhole, std::move(body_)));
    body_ = std::move(outside);
  }
  bool Held(ValueId value) const { return std::find(held_.begin(), held_.end(), value) != held_.end(); }
  bool HeldColumn(ValueId value) const {
    return std::find(held_columns_.begin(), held_columns_.end(), value) != held_columns_.end();
  }

  // Matrix values that are needed in a later phase than the one in which they are first at hand; and column
  // operands that stay in registers across rows.
  void FindHeldValues() {
    std::map<ValueId, int> first;
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.Phase(node) == kFinishPhase) continue;
      // Also what only a later sweep reads.
      if (in_batches() && StaysInRegisters(node.result) && !Held(node.result)) held_.push_back(node.result);
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const ValueId value = node.operands[k];
        const Shape shape = nodes_.ShapeOf(node, static_cast<int>(k));
        if (shape == Shape::kMatrix) {
          const bool input = !context_.ProducedHere(value);
          if (input && parameters_.stages > 0) {
            stages_.Add(value);
            continue;
          }
          if (in_batches() && (input || StaysInRegisters(value)) && !Held(value)) held_.push_back(value);
          auto [it, inserted] = first.emplace(
              value, input ? nodes_.Phase(node) : nodes_.Phase(graph_.node(*graph_.value(value).producer)));
          if (lanes_.static_chunks() && nodes_.Phase(node) > it->second && !Held(value))
            held_.push_back(value);
        }
        const bool for_finish = node.is_reduction() && !nodes_.IsTermOperand(node, static_cast<int>(k));
        if (shape == Shape::kColumn && !for_finish && lanes_.static_chunks() && parameters_.hold_columns &&
            !context_.ProducedHere(value) && !HeldColumn(value))
          held_columns_.push_back(value);
      }
    }
    for (ValueId value : held_)
      (StaysInRegisters(value) ? kernel_variables_ : lane_variables_)
          .push_back(lanes_.ChunkVariable(context_.CType(value), HeldName(value), "", row_count()));
    for (ValueId value : held_columns_)
      lane_variables_.push_back(lanes_.ChunkVariable(context_.CType(value), "c_" + context_.Name(value), ""));
  }
  int row_count() const { return parameters_.rows_per_step; }
  // All rows of a step are loaded into registers before any is used.
  bool in_batches() const { return lanes_.static_chunks() && parameters_.stages == 0 && row_count() > 1; }
  bool StaysInRegisters(ValueId value) const {
    const KeptRows& kept = implementation_.kept;
    return kept.register_rows > 0 &&
           std::find(kept.values.begin(), kept.values.end(), value) != kept.values.end();
  }
  std::string HeldName(ValueId value) const {
    return (StaysInRegisters(value) ? "k_" : "r_") + context_.Name(value);
  }
  // What there is once for each row of a step: an array, in a loop over `r`, when these are several.
  std::string OfRow(const std::string& name) const { return row_count() > 1 ? name + "[r]" : name; }
  std::string HeldText(ValueId value) const { return absl::StrCat(OfRow("$" + HeldName(value)), "[c]"); }
  std::string RowText(ValueId value) {
    // Beside a batch of matrix rows there are no registers for values of 16 rows: the compiler places the
    // loads.
    if (in_batches() && !context_.ProducedHere(value)) return context_.Pointer(value) + "[row]";
    return OfRow("u_" + context_.Name(value));
  }

  void CreateReductions(FusionCode* code) {
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (!node.is_reduction() || nodes_.IsRowReduction(node)) continue;
      const bool per_column = nodes_.IsColumnReduction(node);
      reductions_.push_back(PlaceGridReduction(context_, node, per_column, panel_.columns, code));
    }
    stages_.Reserve(&shared_);
    // Largest entries first, so that each array of accumulators is aligned.
    std::vector<GridReduction> by_size = reductions_;
    std::stable_sort(by_size.begin(), by_size.end(), [&](const GridReduction& a, const GridReduction& b) {
      return context_.AccumulatorBytes(graph_.node(a.node)) > context_.AccumulatorBytes(graph_.node(b.node));
    });
    for (const GridReduction& reduction : by_size) {
      const Node& node = graph_.node(reduction.node);
      const std::string name = "acc_" + context_.Name(node.result), monoid = context_.MonoidName(node);
      if (!reduction.per_column) {
        body_.push_back(ir::Text(absl::StrCat(monoid, "::Acc ", name, " = ", monoid, "::identity();")));
      } else if (lanes_.static_chunks()) {
        lane_variables_.push_back(lanes_.ChunkVariable(monoid + "::Acc", name, monoid + "::identity()"));
      } else {
        // Shared accumulators of this group: entries [group in block][columns].
        body_.push_back(ir::Text(absl::StrCat(
            monoid, "::Acc* const ", name, " = (", monoid, "::Acc*)(shared + ", shared_.bytes_per_entry,
            " * ", columns_, ")",
            groups_per_block_ == 1 ? "" : absl::StrCat(" + (group % ", groups_per_block_, ") * ", columns_),
            ";")));
        shared_.bytes_per_entry += int64_t{context_.AccumulatorBytes(node)} * groups_per_block_;
        body_.push_back(lanes_.ChunkLoop({absl::StrCat(name, "[j + v] = ", monoid, "::identity();")}, true));
      }
    }
  }

  std::string ScalarText(ValueId value, const std::string& c_type) {
    return context_.ProducedHere(value) ? "u_" + context_.Name(value) : context_.ScalarInput(value, c_type);
  }

  void EmitScalars() {
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.SpaceOf(node) != Shape::kScalar || nodes_.Phase(node) == kFinishPhase) continue;
      std::vector<std::string> arguments;
      for (ValueId operand : node.operands) arguments.push_back(ScalarText(operand, context_.CType(node)));
      const std::string name = context_.Name(node.result);
      body_.push_back(ir::Text(absl::StrCat("const ", context_.CType(node), " u_", name, " = ",
                                            context_.Call(node, node.overload->routine, arguments), ";")));
      if (context_.Stored(node.result))
        body_.push_back(
            ir::If("block == 0",
                   {ir::Leader({absl::StrCat(context_.Pointer(node.result), "[0] = u_", name, ";")})}));
    }
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
    if (in_batches()) return inputs;
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.Phase(node) == kFinishPhase) continue;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const ValueId value = node.operands[k];
        if (nodes_.ShapeOf(node, static_cast<int>(k)) == Shape::kRow && !context_.ProducedHere(value) &&
            std::find(inputs.begin(), inputs.end(), value) == inputs.end())
          inputs.push_back(value);
      }
    }
    return inputs;
  }
  void ReadRowInputs(const std::string& step, const std::vector<ValueId>& inputs,
                     std::vector<ir::Statement>* body) {
    std::vector<std::string> lines;
    if (row_count() == 1) lines = {stages_.IndexLine(step)};
    for (ValueId value : inputs)
      lines.push_back(
          absl::StrCat(OfRow("next_" + context_.Name(value)), " = ", context_.Pointer(value), "[row];"));
    lines = stages_.ForEachRow(step, std::move(lines), StepRows::kPresent);
    body->push_back(ir::If(absl::StrCat(step, " < steps"), ir::Texts(std::move(lines))));
  }
  std::string RowDeclaration(const std::string& type, const std::string& name) const {
    return absl::StrCat(type, " ", name, row_count() > 1 ? absl::StrCat("[", row_count(), "]") : "", ";");
  }
  // Uniform statements for each row of the current step.
  void EmitRowTexts(std::vector<std::string> lines, StepRows which, std::vector<ir::Statement>* body) {
    std::vector<ir::Statement> texts = ir::Texts(stages_.ForEachRow("step", std::move(lines), which));
    std::move(texts.begin(), texts.end(), std::back_inserter(*body));
  }
  void StoreRowResult(const Node& node, std::vector<ir::Statement>* body) {
    if (context_.Stored(node.result))
      body->push_back(ir::Leader(stages_.ForEachRow(
          "step", {absl::StrCat(context_.Pointer(node.result), "[row] = ", RowText(node.result), ";")},
          StepRows::kPresent)));
  }

  void EmitPrologue() {
    if (!held_columns_.empty()) {
      std::vector<std::string> lines;
      for (ValueId value : held_columns_)
        lines.push_back(lanes_.Load(absl::StrCat("$c_", context_.Name(value), "[c]"), context_.Pointer(value),
                                    value, false));
      ir::Statement loop = lanes_.ChunkLoop(std::move(lines), false);
      lanes_.FlushFlags(&body_);
      body_.push_back(std::move(loop));
    }
    body_.push_back(ir::Text(stages_.CountLine()));
    body_.push_back(ir::Text(row_count() == 1 ? "const fu_index steps = count;"
                                              : absl::StrCat("const fu_index steps = (count + ",
                                                             row_count() - 1, ") / ", row_count(), ";")));
    row_inputs_ = RowInputs();
    for (ValueId value : row_inputs_) {
      const std::string name = "next_" + context_.Name(value), type = context_.CType(value);
      body_.push_back(ir::Text(row_count() == 1
                                   ? absl::StrCat(type, " ", name, " = ", type, "(0);")
                                   : absl::StrCat(type, " ", name, "[", row_count(), "] = {};")));
    }
    if (!row_inputs_.empty()) ReadRowInputs("0", row_inputs_, &body_);
    if (!stages_.any()) return;
    if (stages_.bulk()) body_.push_back(ir::LanePhase(stages_.InitializeLines()));
    for (int stage = 0; stage + 1 < parameters_.stages; ++stage) FetchStep(absl::StrCat(stage), &body_);
  }

  void EmitStep(std::vector<ir::Statement>* body) {
    if (row_count() == 1) body->push_back(ir::Text(stages_.IndexLine("step")));
    if (stages_.any()) {
      FetchStep(absl::StrCat("(step + ", parameters_.stages - 1, ")"), body);
      body->push_back(ir::LanePhase({stages_.WaitLine()}));
    }
    if (in_batches()) LoadBatch(body);
    for (ValueId value : row_inputs_) {
      const std::string name = context_.Name(value), type = context_.CType(value);
      if (row_count() == 1) {
        body->push_back(ir::Text(absl::StrCat("const ", type, " u_", name, " = next_", name, ";")));
        continue;
      }
      body->push_back(ir::Text(RowDeclaration(type, "u_" + name)));
      body->push_back(ir::Text("FUSION_UNROLL"));
      body->push_back(ir::Text(
          absl::StrCat("for (int r = 0; r < ", row_count(), "; ++r) u_", name, "[r] = next_", name, "[r];")));
    }
    if (!row_inputs_.empty()) ReadRowInputs("(step + 1)", row_inputs_, body);
    for (int phase = 0; phase < panel_.phase_count; ++phase) EmitPhase(phase, body);
  }

  // All matrix entries of the step; but the first step finds those that an earlier sweep left in registers,
  // and others those that it left in shared memory.
  void LoadBatch(std::vector<ir::Statement>* body) {
    std::vector<std::string> always, unless_left, keeps;
    for (ValueId value : held_) {
      if (context_.ProducedHere(value)) continue;
      std::string load = lanes_.Load(HeldText(value), stages_.RowBase(value), value, true);
      if (stages_.Finds(value))
        load = absl::StrCat("if (", stages_.KeptLine(), ") ", stages_.ReadLine(value, HeldText(value)),
                            " else ", load);
      (StaysInRegisters(value) && implementation_.kept.filled ? unless_left : always)
          .push_back(std::move(load));
      if (stages_.Keeps(value)) keeps.push_back(stages_.KeepLine(value, HeldText(value)));
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

  // The lines of one chunk of a phase: once, and for each row of the step.
  struct PhaseLines {
    std::vector<std::string> columns, rows;
  };

  void EmitPhase(int phase, std::vector<ir::Statement>* body) {
    // Row maps first: the matrix part of this phase may read them, and they never read it, since a row
    // reduction is complete one phase later.
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.Phase(node) == phase && nodes_.SpaceOf(node) == Shape::kRow) EmitRowNode(node, body);
    }
    PhaseLines lines;
    available_.clear();
    std::vector<const Node*> row_reductions;
    for (NodeId id : implementation_.order) {
      const Node& node = graph_.node(id);
      if (nodes_.Phase(node) != phase) continue;
      if (nodes_.SpaceOf(node) == Shape::kMatrix) {
        EmitMatrixNode(node, phase, &lines);
        if (nodes_.IsRowReduction(node)) row_reductions.push_back(&node);
      }
    }
    if (lines.columns.empty() && lines.rows.empty()) return;
    for (const Node* node : row_reductions) {
      const std::string monoid = context_.MonoidName(*node), name = "row_" + context_.Name(node->result);
      lane_variables_.push_back({.type = monoid + "::Acc",
                                 .name = name,
                                 .extents = row_count() > 1 ? absl::StrCat("[", row_count(), "]") : "",
                                 .entries = row_count()});
      body->push_back(ir::LanePhase(
          row_count() == 1
              ? std::vector<std::string>{absl::StrCat("$", name, " = ", monoid, "::identity();")}
              : std::vector<std::string>{"FUSION_UNROLL",
                                         absl::StrCat("for (int r = 0; r < ", row_count(), "; ++r) $", name,
                                                      "[r] = ", monoid, "::identity();")}));
    }
    std::vector<std::string> all = std::move(lines.columns);
    for (std::string& line : stages_.ForEachRow("step", std::move(lines.rows), StepRows::kRepeated))
      all.push_back(std::move(line));
    ir::Statement loop = lanes_.ChunkLoop(std::move(all), false);
    lanes_.FlushFlags(&body_);
    body->push_back(std::move(loop));
    for (const Node* node : row_reductions) {
      const std::string name = context_.Name(node->result);
      body->push_back(ir::Reduce(context_.MonoidName(*node), "row_" + name, "total_" + name, row_count()));
      std::vector<std::string> operands(node->operands.size());
      for (int k : node->overload->finish_operands) operands[k] = RowOperand(*node, k);
      DefineRowResult(*node, ReductionFinish(context_, *node, OfRow("total_" + name), operands), body);
    }
  }
  void DefineRowResult(const Node& node, const std::string& text, std::vector<ir::Statement>* body) {
    const std::string name = "u_" + context_.Name(node.result);
    if (row_count() == 1) {
      body->push_back(ir::Text(absl::StrCat("const ", context_.CType(node), " ", name, " = ", text, ";")));
    } else {
      body->push_back(ir::Text(RowDeclaration(context_.CType(node), name)));
      EmitRowTexts({absl::StrCat(name, "[r] = ", text, ";")}, StepRows::kRepeated, body);
    }
    StoreRowResult(node, body);
  }
  std::string RowOperand(const Node& node, int k) {
    return nodes_.ShapeOf(node, k) == Shape::kScalar ? ScalarText(node.operands[k], context_.CType(node))
                                                     : RowText(node.operands[k]);
  }

  void EmitRowNode(const Node& node, std::vector<ir::Statement>* body) {
    std::vector<std::string> operands;
    for (size_t k = 0; k < node.operands.size(); ++k)
      operands.push_back(RowOperand(node, static_cast<int>(k)));
    if (!node.is_reduction()) {
      DefineRowResult(node, context_.Call(node, node.overload->routine, operands), body);
      return;
    }
    const std::string monoid = context_.MonoidName(node), name = context_.Name(node.result);
    EmitRowTexts({absl::StrCat("acc_", name, " = ", monoid, "::combine(acc_", name, ", ", monoid, "::lift(",
                               ReductionTerm(context_, node, operands), ", row));")},
                 StepRows::kPresent, body);
  }

  // Makes a value over (row, column) or over columns available as an array of vector_width entries in the
  // chunk loop, and gives its name. Recomputes what an earlier phase computed and did not hold.
  std::string ChunkOperand(const Node& node, int k, int phase, PhaseLines* lines) {
    const ValueId value = node.operands[k];
    const Shape shape = nodes_.ShapeOf(node, k);
    const std::string name = context_.Name(value);
    if (shape == Shape::kColumn) {
      if (HeldColumn(value)) return absl::StrCat("$c_", name, "[c]");
      const std::string local = "c_" + name;
      if (!available_.insert(local).second) return local;
      const auto& producer = graph_.value(value).producer;
      if (context_.ProducedHere(value)) {
        EmitChunkMap(graph_.node(*producer), local, phase, lines, &lines->columns);
        return local;
      }
      lines->columns.push_back(
          absl::StrCat(context_.CType(value), " ", local, "[", parameters_.vector_width, "];"));
      lines->columns.push_back(lanes_.Load(local, context_.Pointer(value), value, false));
      return local;
    }
    const std::string local = "r_" + name;
    if (available_.count(local)) return Held(value) ? HeldText(value) : local;
    if (context_.ProducedHere(value)) {
      const Node& producer = graph_.node(*graph_.value(value).producer);
      if (Held(value)) return HeldText(value);  // computed in its phase, which is earlier
      available_.insert(local);
      EmitChunkMap(producer, local, phase, lines, &lines->rows);
      return local;
    }
    available_.insert(local);
    if (stages_.Staged(value)) {
      lines->rows.push_back(
          absl::StrCat(context_.CType(value), " ", local, "[", parameters_.vector_width, "];"));
      lines->rows.push_back(stages_.ReadLine(value, local));
      return local;
    }
    const std::string base = stages_.RowBase(value);
    if (Held(value)) {
      if (nodes_.FirstPhase(value) == phase && !in_batches())
        lines->rows.push_back(lanes_.Load(HeldText(value), base, value, true));
      return HeldText(value);
    }
    lines->rows.push_back(
        absl::StrCat(context_.CType(value), " ", local, "[", parameters_.vector_width, "];"));
    lines->rows.push_back(lanes_.Load(local, base, value, true));
    return local;
  }
  std::vector<std::string> EntryOperands(const Node& node, int phase, PhaseLines* lines) {
    std::vector<std::string> operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Shape shape = nodes_.ShapeOf(node, static_cast<int>(k));
      if (shape == Shape::kScalar || shape == Shape::kRow) {
        operands.push_back(RowOperand(node, static_cast<int>(k)));
      } else if (node.is_reduction() && !nodes_.IsTermOperand(node, static_cast<int>(k))) {
        operands.push_back("");  // read when the reduction is finished
      } else {
        operands.push_back(ChunkOperand(node, static_cast<int>(k), phase, lines) + "[v]");
      }
    }
    return operands;
  }
  // target[v] = routine(operands) for the entries of the chunk.
  void EmitChunkMap(const Node& node, const std::string& target, int phase, PhaseLines* phase_lines,
                    std::vector<std::string>* lines) {
    const std::vector<std::string> operands = EntryOperands(node, phase, phase_lines);
    const bool held = Held(node.result) && target == "r_" + context_.Name(node.result);
    if (!held)
      lines->push_back(absl::StrCat(context_.CType(node), " ", target, "[", parameters_.vector_width, "];"));
    lines->push_back("FUSION_UNROLL");
    lines->push_back(absl::StrCat("for (int v = 0; v < ", parameters_.vector_width, "; ++v) ",
                                  held ? HeldText(node.result) : target,
                                  "[v] = ", context_.Call(node, node.overload->routine, operands), ";"));
  }

  void EmitMatrixNode(const Node& node, int phase, PhaseLines* phase_lines) {
    std::vector<std::string>* lines = &phase_lines->rows;
    const std::string name = context_.Name(node.result);
    if (!node.is_reduction()) {
      const std::string local = "r_" + name;
      if (available_.insert(local).second) EmitChunkMap(node, local, phase, phase_lines, lines);
      if (stages_.Keeps(node.result))
        lines->push_back(stages_.KeepLine(node.result, Held(node.result) ? HeldText(node.result) : local));
      if (context_.Stored(node.result)) {
        const std::string source = Held(node.result) ? HeldText(node.result) : local;
        const std::string base = stages_.RowBase(node.result);
        if (parameters_.vector_width == 1 && !lanes_.static_chunks())
          lines->push_back(absl::StrCat(base, "[j] = ", source, "[0];"));
        else
          lines->push_back(absl::StrCat(context_.StoreName(), "(", base, ", ", source, ", j, ", columns_,
                                        ", ", lanes_.Aligned(node.result, true), lanes_.WholeArgument(),
                                        ");"));
      }
      return;
    }
    const std::vector<std::string> operands = EntryOperands(node, phase, phase_lines);
    const std::string monoid = context_.MonoidName(node);
    const bool by_row = nodes_.IsRowReduction(node);
    const std::string accumulator = by_row                   ? OfRow("$row_" + name)
                                    : lanes_.static_chunks() ? absl::StrCat("$acc_", name, "[c][v]")
                                                             : absl::StrCat("acc_", name, "[j + v]");
    lines->push_back("FUSION_UNROLL");
    lines->push_back(absl::StrCat(
        "for (int v = 0; v < ", parameters_.vector_width, "; ++v) ", by_row ? "" : stages_.Once(),
        lanes_.Guard() == "true" ? "" : absl::StrCat("if (", lanes_.Guard(), ") "), accumulator, " = ",
        monoid, "::combine(", accumulator, ", ", monoid, "::lift(", ReductionTerm(context_, node, operands),
        ", ", by_row ? "j + v" : "row", "));"));
  }

  // What this group adds to the reductions over the grid.
  void EmitPartials() {
    std::vector<std::string> lines, vectors, leader;
    for (const GridReduction& reduction : reductions_) {
      const std::string name = "acc_" + context_.Name(graph_.node(reduction.node).result);
      if (!reduction.per_column) {
        leader.push_back(GroupPart(context_, reduction, name));
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
        vectors.push_back(absl::StrCat("fu_atomic_add<", width, ">(", target, ", $", name, "[c], j, ",
                                       columns_, ", fu_aligned(", target, "));"));
      else if (lanes_.static_chunks() && width * context_.AccumulatorBytes(graph_.node(reduction.node)) == 16)
        vectors.push_back(absl::StrCat("fu_store<", width, ">(", target, " + ", part(), " * ", columns_,
                                       ", $", name, "[c], j, ", columns_, ", ", columns_, " % ", width,
                                       " == 0);"));
      else
        lines.push_back(absl::StrCat(
            target, "[", part(), " * ", columns_, " + j + v] = ",
            lanes_.static_chunks() ? absl::StrCat("$", name, "[c][v]") : absl::StrCat(name, "[j + v]"), ";"));
    }
    if (!lines.empty()) body_.push_back(lanes_.ChunkLoop(std::move(lines), true));
    if (!vectors.empty()) body_.push_back(lanes_.ChunkLoop(std::move(vectors), false));
    if (!leader.empty()) body_.push_back(ir::Leader(std::move(leader)));
  }

  LoweringContext& context_;
  const Graph& graph_;
  const FusionImplementation& implementation_;
  const SkeletonParameters& parameters_;
  const RowPanelRoles& panel_;
  const std::string rows_, columns_;
  RowStages stages_;
  const RowPanelNodes nodes_;
  RowLanes lanes_;
  int group_threads_ = 0, groups_per_block_ = 1;
  std::vector<ValueId> held_, held_columns_, row_inputs_;
  std::vector<GridReduction> reductions_;
  SharedRule shared_;
  std::vector<ir::LaneVariable> lane_variables_, kernel_variables_;
  std::vector<ir::Statement> body_;
  std::set<std::string> available_;
};

}  // namespace

absl::StatusOr<FusionCode> LowerRowPanel(LoweringContext& context) {
  return RowPanelLowering(context).Lower();
}

}  // namespace fusion
