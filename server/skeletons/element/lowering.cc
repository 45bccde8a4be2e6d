// Element skeleton: blocks walk over tiles of a mapped list. Elements are stored as an array of structures,
// so a tile of one operand is one contiguous range.
//
// Nodes of thread granularity run with one thread per element. Others (SUB_WARP) spread the threads of the
// block over (element, thread of element) pairs and exchange operands through shared memory. Consecutive
// nodes of thread granularity share a lane phase; every change of phase is a barrier. Inputs and results that
// only such threads touch may stay in device memory (StorageClass::kDevice): they are read and written there.
//
// LoadPath::kExchanged: threads of a warp load and store the elements of all of them together and exchange
// their parts by shuffles, so that all of them take part to the end, also those that have no element.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/lowering/lowering_context.h"
#include "server/skeletons/element/element.h"

namespace fusion {
namespace {

class ElementLowering {
 public:
  explicit ElementLowering(LoweringContext& context)
      : context_(context),
        graph_(context.graph),
        implementation_(context.implementation),
        parameters_(context.implementation.As<ElementParameters>()),
        exchanged_units_(parameters_.load_path == LoadPath::kExchanged
                             ? ExchangedUnits(context.graph, context.implementation)
                             : 0) {}

  absl::StatusOr<FusionCode> Lower() {
    const int tile = parameters_.elements_per_block;
    if (exchanges() && (tile != parameters_.threads || tile % 32 != 0))
      return absl::InternalError("element skeleton: elements are exchanged by whole warps");
    if (tile <= 0 || tile > parameters_.threads)
      return absl::InternalError("element skeleton: elements per block must be between 1 and the threads");
    for (const PlacedValue& placed : parameters_.placement)
      if (placed.storage == StorageClass::kShared && placed.offset * tile * WidestEntryBytes() % 16 != 0)
        return absl::InternalError(
            "element skeleton: values in shared memory begin at multiples of 16 bytes");
    LowerScalars(context_, ScalarNodes(), &body_);
    std::vector<ir::Statement> body;
    body.push_back(ir::Text("const fu_index first = (fu_index)tile * tile_elements;"));
    if (!exchanges()) body.push_back(ir::Text(ActiveOfTile()));
    EmitLoads(&body);
    EmitPhases(&body);
    EmitStores(&body);
    body_.push_back(
        ir::Text(absl::StrCat("const fu_index count = ", context_.Size(Extent{.name = kElementsSize}), ";")));
    const char* const number = WidestTileBytes() >= 256 ? "fu_tile" : "fu_index";
    body_.push_back(ir::Text(absl::StrCat("const int tile_elements = ", tile, ";")));
    body_.push_back(
        ir::Text(absl::StrCat("const ", number, " tiles = (", number,
                              ")((unsigned long long)(count + tile_elements - 1) / ", tile, ");")));
    // A processor reads memory faster in one long run.
    body_.push_back(ir::Loop(
        context_.options.simt ? absl::StrCat("for (", number, " tile = (", number,
                                             ")block; tile < tiles; tile += (", number, ")grid)")
                              : absl::StrCat("for (", number, " tile = tiles * block / grid, end = tiles * ",
                                             "(block + 1) / grid; tile < end; ++tile)"),
        std::move(body)));

    ir::Kernel kernel{
        .name = context_.kernel_name(""), .comment = context_.comment(), .threads = parameters_.threads};
    SharedRule shared{.fixed_bytes = SharedTileBytes()};
    kernel.uses_shared = shared.fixed_bytes > 0;
    kernel.shared_bytes = absl::StrCat(shared.fixed_bytes);
    kernel.sections = {{parameters_.threads, lane_variables_, std::move(body_)}};
    FusionCode code;
    code.launches.push_back(
        context_.FinishKernel(std::move(kernel),
                              GridRule{.extents = {Extent{.name = kElementsSize}},
                                       .items_per_block = tile,
                                       .blocks_per_multiprocessor = parameters_.blocks_per_multiprocessor},
                              shared));
    return code;
  }

 private:
  bool exchanges() const { return exchanged_units_ > 0; }
  bool Exchanged(ValueId value) const {
    return exchanges() && ExchangeableUnits(graph_.value(value)) == exchanged_units_;
  }
  // The element of the tile that a thread holds.
  const char* ElementOfLane() const { return exchanges() ? "element" : "lane"; }
  int WidestEntryBytes() const {
    int bytes = 4;
    for (const PlacedValue& placed : parameters_.placement)
      bytes = std::max(bytes, context_.TypeBytes(placed.value));
    return bytes;
  }
  // Returns the bytes of a tile of the largest list that the kernel reads or writes.
  int64_t WidestTileBytes() const {
    int64_t bytes = 0;
    for (const auto* values : {&implementation_.loads, &implementation_.stores})
      for (ValueId value : *values)
        if (Mapped(value))
          bytes = std::max<int64_t>(
              bytes, int64_t{parameters_.elements_per_block} * Entries(value) * context_.TypeBytes(value));
    return bytes;
  }
  int64_t SharedTileBytes() const {
    return parameters_.shared_entries * parameters_.elements_per_block * WidestEntryBytes();
  }
  const PlacedValue* Placement(ValueId value) const {
    for (const PlacedValue& placed : parameters_.placement)
      if (placed.value == value) return &placed;
    return nullptr;
  }
  bool Stands(ValueId value, StorageClass storage) const {
    const PlacedValue* placed = Placement(value);
    return placed != nullptr && placed->storage == storage;
  }
  bool Shared(ValueId value) const { return Stands(value, StorageClass::kShared); }
  bool InDevice(ValueId value) const { return Stands(value, StorageClass::kDevice); }
  int64_t Stride(ValueId value) const { return Placement(value)->size; }
  int Entries(ValueId value) const { return graph_.value(value).type.element_entries(); }
  // Returns the entries that a thread which holds the element accesses at once in device memory: 16 bytes,
  // where elements are made of them.
  int VectorWidth(ValueId value) const {
    const int width = 16 / context_.TypeBytes(value);
    return Entries(value) % width == 0 ? width : 1;
  }
  // Entries k .. k + width of the registers `name`, as an array.
  std::string Part(ValueId value, const std::string& name) const {
    return absl::StrCat("*(", context_.CType(value), "(*)[", VectorWidth(value), "])(", name, " + k)");
  }
  std::string Aligned(ValueId value) {
    const std::string flag = "av_" + context_.Name(value);
    if (flags_.insert(flag).second)
      body_.push_back(
          ir::Text(absl::StrCat("const bool ", flag, " = fu_aligned(", context_.Pointer(value), ");")));
    return flag;
  }
  bool Mapped(ValueId value) const { return graph_.value(value).type.mapped; }

  // The tile of a shared value, as a pointer to its first entry.
  std::string SharedTile(ValueId value) const {
    return absl::StrCat("((", context_.CType(value), "*)(shared + ",
                        Placement(value)->offset * parameters_.elements_per_block * WidestEntryBytes(), "))");
  }
  // Returns whether 16-byte accesses to elements of a value in device memory are possible, if it is aligned.
  bool InUnits(ValueId value) const { return Entries(value) * context_.TypeBytes(value) % 16 == 0; }
  // The entries of element `element` of a value, as a pointer (const for reading). `by_units`: the constant
  // `placed` says whether what is in device memory permits 16-byte accesses.
  std::string ElementPointer(ValueId value, const std::string& element, bool by_units = false) {
    if (InDevice(value)) {
      const std::string pointer =
          absl::StrCat(context_.Pointer(value), " + (first + ", element, ") * ", Entries(value));
      return by_units && InUnits(value) ? absl::StrCat("fu_placed<placed>(", pointer, ")")
                                        : absl::StrCat("(", pointer, ")");
    }
    if (Shared(value)) return absl::StrCat("(", SharedTile(value), " + ", element, " * ", Stride(value), ")");
    return "$r_" + context_.Name(value);
  }
  // Returns whether registers of this value live across lane phases.
  bool Carried(ValueId value) const { return Contains(carried_, value); }
  std::string RegisterName(ValueId value) const {
    return absl::StrCat(Carried(value) ? "$" : "", "r_", context_.Name(value));
  }

  v1::Granularity GranularityAt(size_t position) const {
    return GranularityOf(graph_.node(implementation_.order[position]), parameters_.choices[position]);
  }
  bool IsScalarNode(const Node& node) const { return node.dimensions.empty(); }

  std::vector<NodeId> ScalarNodes() const {
    std::vector<NodeId> scalars;
    for (NodeId id : implementation_.order)
      if (IsScalarNode(graph_.node(id))) scalars.push_back(id);
    return scalars;
  }

  void EmitLoads(std::vector<ir::Statement>* body) {
    std::vector<std::string> copies;
    for (ValueId value : implementation_.loads) {
      if (!Mapped(value) || !Shared(value)) continue;
      copies.push_back(absl::StrCat("fu_elements_in<", parameters_.threads, ", ", Entries(value), ", ",
                                    Stride(value), ", ", parameters_.elements_per_block, ">(",
                                    SharedTile(value), ", ", context_.Pointer(value), " + first * ",
                                    Entries(value), ", active, lane);"));
    }
    if (copies.empty()) return;
    copies.push_back("fu_copy_commit();");
    copies.push_back("fu_copy_wait<0>();");
    if (parameters_.load_repeats == 1) {
      body->push_back(ir::Collective(std::move(copies)));
      body->push_back(ir::Barrier());
      return;
    }
    body->push_back(ir::Loop(LoadLoop(), {ir::Text(OtherTile()), ir::Text(ActiveOfTile()),
                                          ir::Collective(std::move(copies)), ir::Barrier()}));
  }

  // Loads that are repeated are of tiles far apart, the last one of the block's own.
  std::string LoadLoop() const {
    return absl::StrCat("for (fu_index again = ", parameters_.load_repeats - 1, "; again >= 0; --again)");
  }
  std::string OtherTile() const {
    return absl::StrCat("const fu_index first = (tile + again * (tiles / ", parameters_.load_repeats,
                        ")) % tiles * tile_elements;");
  }
  static std::string ActiveOfTile() {
    return "const int active = (int)(count - first < tile_elements ? count - first : tile_elements);";
  }
  std::string ComputeLoop() const {
    return absl::StrCat("for (fu_index again = 0; again < ", parameters_.compute_repeats, "; ++again)");
  }

  void EmitStores(std::vector<ir::Statement>* body) {
    std::vector<std::string> copies;
    for (ValueId value : implementation_.stores) {
      if (!Mapped(value) || !Shared(value)) continue;
      copies.push_back(absl::StrCat("fu_elements_out<", parameters_.threads, ", ", Entries(value), ", ",
                                    Stride(value), ", ", parameters_.elements_per_block, ">(",
                                    context_.Pointer(value), " + first * ", Entries(value), ", ",
                                    SharedTile(value), ", active, lane);"));
    }
    if (!copies.empty()) {
      body->push_back(ir::Barrier());
      body->push_back(ir::Collective(std::move(copies)));
    }
    if (SharedTileBytes() > 0) body->push_back(ir::Barrier());  // the next tile overwrites shared memory
  }

  // Groups the nodes into lane phases of one granularity.
  struct Phase {
    v1::Granularity granularity = v1::THREAD;
    std::vector<size_t> positions;
  };
  std::vector<Phase> Phases() const {
    std::vector<Phase> phases;
    for (size_t i = 0; i < implementation_.order.size(); ++i) {
      if (IsScalarNode(graph_.node(implementation_.order[i]))) continue;
      const v1::Granularity granularity = GranularityAt(i);
      const bool join =
          !phases.empty() && granularity == v1::THREAD && phases.back().granularity == v1::THREAD;
      if (!join) phases.push_back({.granularity = granularity});
      phases.back().positions.push_back(i);
    }
    return phases;
  }

  void EmitPhases(std::vector<ir::Statement>* body) {
    const std::vector<Phase> phases = Phases();
    // Register values that are produced in one thread phase and read in another must live across phases.
    for (size_t p = 0; p < phases.size(); ++p)
      for (size_t position : phases[p].positions) {
        const Node& node = graph_.node(implementation_.order[position]);
        for (ValueId operand : node.operands)
          for (size_t q = 0; q < p; ++q)
            for (size_t other : phases[q].positions)
              if (graph_.node(implementation_.order[other]).result == operand && !Shared(operand) &&
                  !Carried(operand))
                carried_.push_back(operand);
      }
    for (ValueId value : carried_)
      lane_variables_.push_back({.type = context_.CType(value),
                                 .name = "r_" + context_.Name(value),
                                 .extents = absl::StrCat("[", Entries(value), "]"),
                                 .entries = Entries(value)});
    for (size_t p = 0; p < phases.size(); ++p) {
      if (p > 0) body->push_back(ir::Barrier());
      if (phases[p].granularity == v1::THREAD)
        EmitThreadPhase(phases[p], body);
      else
        EmitSubWarpPhase(phases[p].positions[0], body);
    }
  }

  // One operand as the routine wants it: a pointer to entries, or a value for scalars.
  std::string OperandText(const Node& node, size_t k, const std::string& element, bool by_units = false) {
    const ValueId value = node.operands[k];
    if (!Mapped(value)) return context_.Scalar(value, context_.CType(node));
    std::string pointer =
        Shared(value) || InDevice(value) ? ElementPointer(value, element, by_units) : RegisterName(value);
    return graph_.value(value).type.element_shape.empty() ? pointer + "[0]" : pointer;
  }

  // Returns how a loop over the entries of a value is printed: loops over elements that no registers hold in
  // any case (a thread has 255 of 4 bytes) are not unrolled. The f64 reference of products of 16 x 16 took
  // nvcc 15.4 s with these loops and those of its routine unrolled, 4.8 and 1.7 s with either, 0.5 s with
  // neither.
  std::string Unroll(ValueId value) const {
    constexpr int kMostRegisters = 255;
    return Entries(value) * context_.TypeBytes(value) / 4 > kMostRegisters ? "FUSION_NO_UNROLL"
                                                                           : "FUSION_UNROLL";
  }
  // The loop over the accesses of a thread to its element of a value, by V entries each.
  std::string AccessLoop(ValueId value) const {
    const int width = VectorWidth(value);
    return absl::StrCat("for (int k = 0; k < ", Entries(value), "; ",
                        width > 1 ? absl::StrCat("k += ", width) : "++k", ") ");
  }
  // Where access k begins in device memory; of accesses by functions also where the value ends, and whether
  // it is aligned.
  std::string AccessIndex(ValueId value) const {
    return absl::StrCat("(first + ", ElementOfLane(), ") * ", Entries(value), " + k");
  }
  std::string BoundedIndex(ValueId value) {
    return absl::StrCat(AccessIndex(value), ", count * ", Entries(value), ", ", Aligned(value));
  }
  // Functions are for vectors, and for lanes that may have no element.
  bool ByFunction(ValueId value) const { return VectorWidth(value) > 1 || exchanges(); }

  // Between device memory and the registers of the thread that holds an element.
  void EmitLoad(ValueId value, std::vector<std::string>* lines) {
    const std::string name = "r_" + context_.Name(value), pointer = context_.Pointer(value);
    if (Exchanged(value)) {
      lines->push_back(absl::StrCat("fu_load_exchanged<", exchanged_units_, ">(", name, ", ", pointer,
                                    ", first, count, lane, ", Aligned(value), ");"));
      return;
    }
    lines->push_back(Unroll(value));
    const std::string access = ByFunction(value)
                                   ? absl::StrCat("fu_load<", VectorWidth(value), ">(", Part(value, name),
                                                  ", ", pointer, ", ", BoundedIndex(value), ");")
                                   : absl::StrCat(name, "[k] = ", pointer, "[", AccessIndex(value), "];");
    lines->push_back(AccessLoop(value) + access);
  }
  void EmitStore(ValueId value, const std::string& name, std::vector<std::string>* lines) {
    const std::string pointer = context_.Pointer(value);
    if (Exchanged(value)) {
      lines->push_back(absl::StrCat("fu_store_exchanged<", exchanged_units_, ">(", pointer, ", ", name,
                                    ", first, count, lane, ", Aligned(value), ");"));
      return;
    }
    lines->push_back(Unroll(value));
    const std::string access = ByFunction(value)
                                   ? absl::StrCat("fu_store<", VectorWidth(value), ">(", pointer, ", ",
                                                  Part(value, name), ", ", BoundedIndex(value), ");")
                                   : absl::StrCat(pointer, "[", AccessIndex(value), "] = ", name, "[k];");
    lines->push_back(AccessLoop(value) + access);
  }
  void EmitThreadPhase(const Phase& phase, std::vector<ir::Statement>* body) {
    std::vector<std::string> lines;
    if (exchanges())
      lines.push_back(
          absl::StrCat("const int element = fu_exchanged_element<", exchanged_units_, ">(lane);"));
    std::set<ValueId> loaded;
    const bool load_again = parameters_.load_repeats > 1, compute_again = parameters_.compute_repeats > 1;
    // More than there are repeats, as no compiler knows.
    if (load_again || compute_again)
      lines.push_back(absl::StrCat("const fu_index never = fu_unknown(count) + ",
                                   std::max(parameters_.load_repeats, parameters_.compute_repeats), ";"));
    for (size_t position : phase.positions) {
      const Node& node = graph_.node(implementation_.order[position]);
      std::vector<ValueId> in_registers;  // of the operands
      // Direct loads stand just before their first use.
      for (ValueId value : node.operands) {
        if (!Mapped(value) || Shared(value) || context_.ProducedHere(value) || !loaded.insert(value).second)
          continue;
        lines.push_back(
            absl::StrCat(context_.CType(value), " r_", context_.Name(value), "[", Entries(value), "];"));
        in_registers.push_back(value);
        const std::string spoil = "spoil_" + context_.Name(value);
        if (load_again) {
          lines.push_back(absl::StrCat(context_.CType(value), " ", spoil, "[1] = {0};"));
          lines.push_back("FUSION_NO_UNROLL");
          lines.push_back(LoadLoop() + " {");
          lines.push_back(OtherTile());
        }
        EmitLoad(value, &lines);
        if (load_again) {
          lines.push_back(
              absl::StrCat("if (again > never) fu_disturb(", spoil, ", r_", context_.Name(value), ");"));
          lines.push_back("}");
          lines.push_back(
              absl::StrCat("if (", spoil, "[0] != 0) r_", context_.Name(value), "[0] = ", spoil, "[0];"));
        }
      }
      const ValueId result = node.result;
      if (!Shared(result) && !Carried(result))
        lines.push_back(
            absl::StrCat(context_.CType(result), " r_", context_.Name(result), "[", Entries(result), "];"));
      const std::string target = Shared(result) ? ElementPointer(result, "lane") : RegisterName(result);
      if (compute_again) {
        lines.push_back("FUSION_NO_UNROLL");
        lines.push_back(ComputeLoop() + " {");
        lines.push_back("fu_forget_memory();");
      }
      if (node.overload->form == v1::ELEMENT) {
        std::vector<std::string> arguments;
        for (size_t k = 0; k < node.operands.size(); ++k) arguments.push_back(OperandText(node, k, "lane"));
        arguments.push_back(target);
        const Implementation& choice = node.overload->implementations[parameters_.choices[position]];
        lines.push_back(context_.Call(node, choice.routine, arguments) + ";");
      } else {
        lines.push_back(Unroll(result));
        lines.push_back(absl::StrCat(
            "for (int k = 0; k < ", Entries(result), "; ++k) ", target,
            "[k] = ", context_.Call(node, node.overload->routine, EntryOperands(node, "lane", "k")), ";"));
      }
      if (compute_again) {
        if (!Shared(result))
          for (ValueId value : in_registers)
            lines.push_back(
                absl::StrCat("if (again > never) fu_disturb(r_", context_.Name(value), ", ", target, ");"));
        lines.push_back("}");
      }
      if (context_.Stored(result) && !Shared(result)) EmitStore(result, target, &lines);
    }
    body->push_back(ir::LanePhase(std::move(lines), exchanges() ? "tile_elements" : "active"));
  }

  // Entry `entry` of each operand of an entry-by-entry node; scalars and SCALAR elements are broadcast.
  std::vector<std::string> EntryOperands(const Node& node, const std::string& element,
                                         const std::string& entry) {
    std::vector<std::string> texts;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId value = node.operands[k];
      std::string text = OperandText(node, k, element);
      if (Mapped(value) && !graph_.value(value).type.element_shape.empty()) text += "[" + entry + "]";
      texts.push_back(text);
    }
    return texts;
  }

  // The values that a node reads and writes, each once.
  static std::set<ValueId> Touched(const Node& node) {
    std::set<ValueId> values(node.operands.begin(), node.operands.end());
    values.insert(node.result);
    return values;
  }

  void EmitSubWarpPhase(size_t position, std::vector<ir::Statement>* body) {
    const Node& node = graph_.node(implementation_.order[position]);
    const bool element_form = node.overload->form == v1::ELEMENT;
    const Implementation* choice =
        element_form ? &node.overload->implementations[parameters_.choices[position]] : nullptr;
    const int per_element = ItemsPerElement(graph_, node, parameters_.choices[position]);
    // One item a lane: no loop over them.
    const bool once = parameters_.elements_per_block * per_element <= parameters_.threads;
    const std::string item = once ? "lane" : "item", items = absl::StrCat("active * ", per_element);
    std::vector<std::string> lines = {absl::StrCat("const int element = ", item, " / ", per_element, ";"),
                                      absl::StrCat("const int part = ", item, " % ", per_element, ";")};
    // Routines that go by single entries need only one version.
    const bool by_units = element_form && choice->threads != v1::PER_RESULT_ENTRY;
    const std::string target = ElementPointer(node.result, "element", by_units);
    if (element_form) {
      std::vector<std::string> arguments = {"part"};
      for (size_t k = 0; k < node.operands.size(); ++k)
        arguments.push_back(OperandText(node, k, "element", by_units));
      arguments.push_back(target);
      lines.push_back(context_.Call(node, choice->routine, arguments) + ";");
    } else {
      lines.push_back(absl::StrCat(
          target, "[part] = ",
          context_.Call(node, node.overload->routine, EntryOperands(node, "element", "part")), ";"));
    }
    ir::Statement phase =
        once ? ir::LanePhase(std::move(lines), items) : ir::StridedPhase(std::move(lines), items);
    std::vector<std::string> aligned;
    for (ValueId value : Touched(node))
      if (by_units && InDevice(value) && InUnits(value)) aligned.push_back(Aligned(value));
    if (!aligned.empty()) phase = ir::Versions(absl::StrJoin(aligned, " && "), "placed", {std::move(phase)});
    if (parameters_.compute_repeats == 1) {
      body->push_back(std::move(phase));
      return;
    }
    body->push_back(
        ir::Loop(ComputeLoop(), {ir::Text("fu_forget_memory();"), std::move(phase), ir::Barrier()}));
  }

  LoweringContext& context_;
  const Graph& graph_;
  const FusionImplementation& implementation_;
  const ElementParameters& parameters_;
  const int exchanged_units_;  // 0: nothing is exchanged
  std::vector<ir::Statement> body_;
  std::vector<ir::LaneVariable> lane_variables_;
  std::vector<ValueId> carried_;
  std::set<std::string> flags_;
};

}  // namespace

absl::StatusOr<FusionCode> LowerElement(LoweringContext& context) { return ElementLowering(context).Lower(); }

}  // namespace fusion
