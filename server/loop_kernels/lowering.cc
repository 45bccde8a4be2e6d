#include "server/loop_kernels/lowering.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/loop_kernels/device_text.h"
#include "server/loop_kernels/kept_over_strips.h"
#include "server/loop_kernels/reuse.h"
#include "server/loops/build_c.h"
#include "server/loops/footprint.h"
#include "server/loops/nest.h"

namespace fusion {
namespace {

using Kind = CStatement::Kind;

constexpr int64_t kMostBlockThreads = 1024;
constexpr int64_t kSharedAlignment = 16;

// The depths of meta_for on the ways from here to the innermost ones: all have to be the same.
void AddMetaDepths(const CStatement& statement, int depth, std::set<int>* depths) {
  if (statement.meta) ++depth;
  if (!statement.meta && !HasMeta(statement)) return;
  bool inner = false;
  for (const CStatementPtr& each : statement.body)
    if (HasMeta(*each)) inner = true, AddMetaDepths(*each, depth, depths);
  if (!inner) depths->insert(depth);
}

int CountMetas(const CStatement& statement) {
  int count = statement.meta ? 1 : 0;
  for (const CStatementPtr& inner : statement.body) count += CountMetas(*inner);
  return count;
}

// Lowers one kernel.
class KernelLowering {
 public:
  KernelLowering(const CRegion& region, const Nest& nest, const LoopLoweringOptions& options,
                 const std::set<std::string>& host_names, ErrorList* errors)
      : region_(region),
        nest_(nest),
        options_(options),
        host_names_(host_names),
        errors_(errors),
        values_(ScopeValues(region.scope, options.constants)) {}

  LoopKernel Lower(const CStatement& root, const KernelLoops* loops, std::string name) {
    LoopKernel out;
    position_ = root.position;
    std::set<int> depths;
    AddMetaDepths(root, 0, &depths);
    if (depths.size() != 1 || *depths.begin() % 2 != 0) {
      Refuse(
          "the number of meta_for loops around each other has to be even, and the same everywhere in a "
          "kernel");
      return out;
    }
    block_loops_ = *depths.begin() / 2;
    lanes_ = 1;
    MeasureLanes(root, 0);
    if (lanes_ < 1 || lanes_ > kMostBlockThreads) {
      Refuse(
          absl::StrCat("a block would have ", lanes_, " threads; 1 to ", kMostBlockThreads, " are possible"));
      return out;
    }
    FindNames(root);
    FindKept(root);
    if (options_.cached && loops != nullptr) FindBoxes(*loops);
    Parameters(&out);
    std::vector<ir::Statement> body = std::move(head_);
    if (turns_apart_ > 0) body.push_back(ir::Text("int fu_turn = 0;"));
    Blocks(root, &out, &body);
    while (!body.empty() && body.back().kind == ir::Statement::Kind::kBarrier) body.pop_back();
    out.kernel.name = std::move(name);
    out.kernel.comment = absl::StrCat("Loops at ", root.position.line, ":", root.position.column, ".");
    out.kernel.threads = static_cast<int>(lanes_);
    out.kernel.uses_shared = shared_bytes_ > 0;
    out.kernel.shared_bytes = absl::StrCat(shared_bytes_);
    out.shared_bytes = shared_bytes_;
    for (const Box& box : boxes_) {
      const std::string& array = nest_.arrays[box.touched.array].variable.name;
      if (std::find(out.cached.begin(), out.cached.end(), array) == out.cached.end())
        out.cached.push_back(array);
    }
    out.kernel.sections.push_back(
        {.group_threads = static_cast<int>(lanes_), .lane_variables = lane_variables_, .body = body});
    return out;
  }

 private:
  struct Box {
    TouchedBox touched;
    std::string name;  // of the part in shared memory
    int64_t offset = 0;
    std::vector<int64_t> extents;
    int64_t padding = 0;  // entries behind each row
  };

  void Refuse(const std::string& what) { errors_->Add({position_}, what); }

  // --- Names ---
  const CVariable* Variable(const std::string& name) const {
    for (auto variable = region_.scope.rbegin(); variable != region_.scope.rend(); ++variable)
      if (variable->name == name) return &*variable;
    return nullptr;
  }
  void FindNames(const CStatement& root) {
    AddDeclared(root, &declared_);
    AddNames(root, &used_);
    CollectWrites(root);
    Close();
  }
  // Adds the names that declarations of used names use.
  void Close() {
    for (size_t before = 0; before != used_.size();) {
      before = used_.size();
      for (const CVariable& variable : region_.scope)
        if (used_.count(variable.name) > 0 && declared_.count(variable.name) == 0 &&
            options_.constants.count(variable.name) == 0)
          AddNames(variable, &used_);
    }
  }
  void CollectWrites(const CStatement& statement) {
    if (statement.kind == Kind::kAssignment && statement.target->kind == CExpression::Kind::kSubscript)
      written_.insert(statement.target->text);
    for (const CStatementPtr& inner : statement.body) CollectWrites(*inner);
  }

  // Parameters of the kernel, and constants in its head.
  void Parameters(LoopKernel* out) {
    std::set<std::string> done = declared_;
    const auto integer = [&](const std::string& name, CType type) {
      const std::string own = DeviceName(name);
      if (const auto value = options_.constants.find(name); value != options_.constants.end()) {
        head_.push_back(ir::Text(absl::StrCat("const ", DeviceType(type, false), " ", own, " = ",
                                              value->second, "; (void)", own, ";")));
        return;
      }
      out->arguments.push_back({.kind = LoopArgument::Kind::kInteger, .name = name, .type = type});
      out->kernel.parameters.push_back({"fu_index", own + "_fu"});
      head_.push_back(ir::Text(absl::StrCat("const ", DeviceType(type, false), " ", own, " = (",
                                            DeviceType(type, false), ")", own, "_fu; (void)", own, ";")));
    };
    // Parameters that nothing declares come first, as declarations use them.
    for (const std::string& name : used_)
      if (Variable(name) == nullptr && host_names_.count(name) == 0 && done.insert(name).second)
        integer(name, CType::kInt);
    for (const std::string& name : host_names_)
      if (used_.count(name) > 0 && done.insert(name).second) integer(name, CType::kInt);
    for (const CVariable& variable : region_.scope) {
      if (used_.count(variable.name) == 0 || done.count(variable.name) > 0 ||
          Variable(variable.name) != &variable)
        continue;
      done.insert(variable.name);
      const std::string own = DeviceName(variable.name), type = DeviceType(variable.type, options_.force_f64);
      if (variable.type == CType::kOther) {
        Refuse(absl::StrCat(variable.name,
                            " has a type that kernels do not have: int, long, float and double are known"));
      } else if (variable.array) {
        const bool writes = written_.count(variable.name) > 0;
        if (variable.type == CType::kLong)
          Refuse(absl::StrCat(variable.name,
                              " is an array of long; kernels have arrays of int, float and double"));
        out->arguments.push_back(
            {.kind = variable.workspace ? LoopArgument::Kind::kWorkspace : LoopArgument::Kind::kArray,
             .name = variable.name,
             .type = variable.type,
             .writes = writes});
        out->kernel.parameters.push_back(
            {absl::StrCat(writes ? "" : "const ", StoredType(variable.type), "* FUSION_RESTRICT"), own});
      } else if (options_.constants.count(variable.name) > 0) {
        integer(variable.name, NarrowType(variable));
      } else if (variable.initial != nullptr && IsIntegerType(variable.type)) {
        head_.push_back(ir::Text(absl::StrCat("const ", type, " ", own, " = ", Expression(*variable.initial),
                                              "; (void)", own, ";")));
      } else if (variable.constant) {
        head_.push_back(ir::Text(absl::StrCat("const ", DeviceType(NarrowType(variable), false), " ", own,
                                              " = ", *variable.constant, "; (void)", own, ";")));
      } else if (IsIntegerType(variable.type)) {
        integer(variable.name, variable.type);
      } else {
        out->arguments.push_back(
            {.kind = LoopArgument::Kind::kScalar, .name = variable.name, .type = variable.type});
        out->kernel.parameters.push_back({type, own});
      }
    }
  }
  // Constants that the preprocessor knows are ints where they fit, as numbers are in C.
  static CType NarrowType(const CVariable& variable) {
    return variable.constant && *variable.constant >= -2147483647 && *variable.constant <= 2147483647
               ? CType::kInt
               : variable.type;
  }
  // Integers of the reference lie in f64.
  const char* StoredType(CType type) const { return options_.force_f64 ? "double" : DeviceType(type, false); }

  // --- Expressions ---
  std::string Expression(const CExpression& expression) const { return CText(*Device(expression)); }

  CExpressionPtr Device(const CExpression& expression) const {
    using Of = CExpression::Kind;
    auto copy = std::make_shared<CExpression>(expression);
    for (CExpressionPtr& operand : copy->operands) operand = Device(*operand);
    switch (expression.kind) {
      case Of::kName:
        copy->text = DeviceName(expression.text);
        break;
      case Of::kSubscript:
        return Entry(expression, true);
      case Of::kCast:
        copy->text = DeviceType(expression.type, options_.force_f64);
        break;
      case Of::kCall:
        return DeviceCall(*copy, options_.force_f64);
      default:
        break;
    }
    return copy;
  }

  // An entry of an array: where it lies in memory, or in shared memory, if `reads` and it is there.
  CExpressionPtr Entry(const CExpression& expression, bool reads) const {
    if (reads)
      if (const auto cached = cached_.find(Place(expression)); cached != cached_.end()) return cached->second;
    auto entry = std::make_shared<CExpression>(expression);
    entry->text = DeviceName(expression.text);
    const CVariable* variable = declared_.count(expression.text) > 0 ? nullptr : Variable(expression.text);
    for (CExpressionPtr& index : entry->operands) index = Device(*index);
    if (variable == nullptr) return entry;  // of its own, with dimensions
    CExpressionPtr flat = entry->operands[0];
    for (size_t i = 1; i < entry->operands.size() && i < variable->extents.size(); ++i)
      flat = CBinary("+", CBinary("*", flat, Device(*variable->extents[i])), entry->operands[i]);
    entry->operands = {flat};
    if (!reads || !options_.force_f64 || !IsIntegerType(variable->type)) return entry;
    auto whole = std::make_shared<CExpression>();
    whole->kind = CExpression::Kind::kCast;
    whole->type = variable->type;
    whole->text = DeviceType(variable->type, false);
    whole->operands = {entry};
    return whole;
  }
  using At = std::pair<int, int>;
  static At Place(const CExpression& expression) {
    return {expression.position.line, expression.position.column};
  }

  // --- Blocks ---
  // How many threads a block has: the most of its loops over threads.
  void MeasureLanes(const CStatement& statement, int metas) {
    if (statement.meta && ++metas > block_loops_) {
      int64_t lanes = 1;
      const CStatement* at = &statement;
      for (int left = block_loops_; at != nullptr;) {
        if (at->meta) {
          const auto trips = EvaluateC(*TripCount(*at), values_);
          if (!trips)
            return Refuse(absl::StrCat("how many threads ", at->variable.name,
                                       " counts is not known: ", CText(*at->bound)));
          lanes = *trips > kMostBlockThreads || *trips < 0 ? kMostBlockThreads + 1 : lanes * *trips;
          if (lanes > kMostBlockThreads) break;
          if (--left == 0) break;
        }
        const CStatement* next = nullptr;
        for (const CStatementPtr& inner : at->body)
          if (HasMeta(*inner)) next = inner.get();
        at = next;
      }
      lanes_ = std::max(lanes_, lanes);
      return;
    }
    for (const CStatementPtr& inner : statement.body) MeasureLanes(*inner, metas);
  }

  // A chain has the loops that count blocks, or those that count threads, the declarations between them, and
  // what the innermost one does.
  struct LoopChain {
    std::vector<const CStatement*> loops, between;
    const CStatement* inside = nullptr;
  };
  // Nothing: something else stands between them.
  std::optional<LoopChain> ChainOf(const CStatement& statement) const {
    LoopChain chain;
    const CStatement* at = &statement;
    while (static_cast<int>(chain.loops.size()) < block_loops_) {
      if (at->meta) {
        chain.loops.push_back(at);
        at = at->body[0].get();
        continue;
      }
      if (at->kind != Kind::kBlock && at->kind != Kind::kSchedule) return std::nullopt;
      const CStatement* next = nullptr;
      for (const CStatementPtr& inner : at->body) {
        if (next != nullptr) return std::nullopt;
        if (inner->kind == Kind::kDeclaration) {
          chain.between.push_back(inner.get());
        } else if (HasMeta(*inner)) {
          next = inner.get();
        } else {
          return std::nullopt;
        }
      }
      if (next == nullptr) return std::nullopt;
      at = next;
    }
    chain.inside = at;
    return chain;
  }

  // Loops over blocks, with declarations between them.
  void Blocks(const CStatement& statement, LoopKernel* out, std::vector<ir::Statement>* body) {
    const std::optional<LoopChain> chain = ChainOf(statement);
    if (!chain) return Refuse("between loops over blocks only declarations may stand");
    const std::vector<const CStatement*>& loops = chain->loops;
    if (loops.size() > 1) body->push_back(ir::Text("fu_index fu_rest = block;"));
    for (size_t i = loops.size(); i-- > 0;) {
      const CExpressionPtr trips = TripCount(*loops[i]);
      const std::string type = DeviceType(loops[i]->variable.type, false);
      std::string number = "(" + type + ")block";
      if (loops.size() > 1) {
        // The first loop's count is what is left.
        number = i == 0 ? absl::StrCat("(", type, ")fu_rest")
                        : absl::StrCat("(", type, ")(fu_rest % (", Expression(*trips), "))");
      }
      CStatement device = *loops[i];
      device.start = Device(*loops[i]->start);
      device.step = Device(*loops[i]->step);
      const std::string value = CText(*CounterValue(device, CName(number)));
      body->push_back(ir::Text(
          absl::StrCat("const ", type, " ", DeviceName(loops[i]->variable.name), " = ", value, ";")));
      if (i > 0) body->push_back(ir::Text(absl::StrCat("fu_rest /= ", Expression(*trips), ";")));
      out->blocks.insert(out->blocks.begin(), trips);
    }
    for (const CStatement* declaration : chain->between) Uniform(*declaration, body);
    Uniform(*chain->inside, body);
  }

  // Lowers what all threads of a block do alike.
  void Uniform(const CStatement& statement, std::vector<ir::Statement>* body) {
    switch (statement.kind) {
      case Kind::kBlock:
      case Kind::kSchedule: {
        const bool declares =
            std::any_of(statement.body.begin(), statement.body.end(),
                        [](const CStatementPtr& inner) { return inner->kind == Kind::kDeclaration; });
        std::vector<ir::Statement> inner;
        for (const CStatementPtr& each : statement.body) Uniform(*each, declares ? &inner : body);
        if (declares) body->push_back(ir::If("true", std::move(inner)));
        break;
      }
      case Kind::kDeclaration:
        if (statement.variable.array) return Shared(statement.variable, body);
        for (const std::string& line : Lines(statement)) body->push_back(ir::Text(line));
        break;
      case Kind::kAssignment:
        if (statement.target->kind == CExpression::Kind::kName)
          for (const std::string& line : Lines(statement)) body->push_back(ir::Text(line));
        else
          Leader(statement, body);
        break;
      case Kind::kIf:
        if (!HasMeta(statement)) return Leader(statement, body);
        body->push_back(ir::If("true", Branches(statement)));
        break;
      case Kind::kFor:
        if (statement.meta) return Threads(statement, true, body);
        if (!HasMeta(statement)) return Leader(statement, body);
        if (const auto kept = kept_.find(&statement); kept != kept_.end()) {
          Kept(kept->second, body);
        } else {
          std::vector<ir::Statement> inner;
          Uniform(*statement.body[0], &inner);
          body->push_back(ir::Loop(Header(statement), std::move(inner)));
        }
        break;
    }
  }
  void Kept(const KeptOverStrips& kept, std::vector<ir::Statement>* body) {
    std::vector<ir::Statement> whole, inner;
    Threads(*kept.before, false, &whole);
    if (turns_apart_ > 0) {
      Fill(*kept.loop->start, *kept.loop, &whole);
      FillNext(*kept.loop, &inner);
    }
    Threads(*kept.loop->body[0], turns_apart_ == 0, &inner);
    whole.push_back(ir::Loop(Header(*kept.loop), std::move(inner)));
    Threads(*kept.after, false, &whole);
    whole.push_back(ir::Barrier());
    // A loop without iterations touches nothing.
    body->push_back(ir::If(Expression(*CBinary(kept.loop->relation, kept.loop->start, kept.loop->bound)),
                           std::move(whole)));
  }
  // Parts in shared memory take turns: while threads use what they have, that of the next iteration is on its
  // way.
  void FillNext(const CStatement& loop, std::vector<ir::Statement>* body) {
    body->push_back(ir::Text("fu_copy_wait<0>();"));
    body->push_back(ir::Barrier());
    PointToParts(body);
    body->push_back(ir::Text(absl::StrCat("fu_turn = ", turns_apart_, " - fu_turn;")));
    const CExpressionPtr next = CBinary(loop.down ? "-" : "+", CName(loop.variable.name), loop.step);
    std::vector<ir::Statement> fill;
    Fill(*CName("@next"), loop, &fill);
    body->push_back(ir::Text(absl::StrCat("const ", DeviceType(loop.variable.type, false),
                                          " fu_next = ", Expression(*next), ";")));
    body->push_back(ir::If(Expression(*CBinary(loop.relation, CName("@next"), loop.bound)), std::move(fill)));
  }
  // Begins to bring what an iteration needs.
  void Fill(const CExpression& iteration, const CStatement& loop, std::vector<ir::Statement>* body) {
    std::vector<ir::Statement> inner = {
        ir::Text(absl::StrCat("const ", DeviceType(loop.variable.type, false), " ",
                              DeviceName(loop.variable.name), " = ", Expression(iteration), ";"))};
    PointToParts(&inner);
    FillParts(&inner);
    inner.push_back(ir::Text("fu_copy_commit();"));
    body->push_back(ir::If("true", std::move(inner)));
  }
  // Finds the loops around loops over threads over which threads keep what they add up.
  void FindKept(const CStatement& statement) {
    if (statement.kind == Kind::kFor && !statement.meta && HasMeta(statement)) {
      std::optional<KeptOverStrips> kept = KeepOverStrips(statement, WrittenArrays(), values_, lanes_,
                                                          static_cast<int>(lane_variables_.size()));
      if (kept) {
        for (const KeptOverStrips::Variable& variable : kept->variables) {
          ir::LaneVariable lane{.type = DeviceType(variable.type, options_.force_f64),
                                .name = DeviceName(variable.name).substr(1),
                                .extents = {},
                                .initial = {}};
          for (int64_t extent : variable.extents) {
            absl::StrAppend(&lane.extents, "[", extent, "]");
            lane.entries *= static_cast<int>(extent);
          }
          lane_variables_.push_back(std::move(lane));
          kept_types_[variable.name] = variable.type;
        }
        kept_arrays_.insert(kept->arrays.begin(), kept->arrays.end());
        AddDeclared(*kept->loop, &declared_);
        kept_.emplace(&statement, *std::move(kept));
        return;
      }
    }
    for (const CStatementPtr& inner : statement.body) FindKept(*inner);
  }
  // An array that a block shares lies in shared memory.
  void Shared(const CVariable& array, std::vector<ir::Statement>* body) {
    const auto entries = array.extents.size() == 1 ? EvaluateC(*array.extents[0], values_) : std::nullopt;
    if (!entries || *entries < 1 || *entries > (1 << 16))
      return Refuse(
          absl::StrCat(array.name,
                       " is an array that a block shares: it needs one extent, that is known and not "
                       "above 65536; declare it inside of the loops over threads"));
    const std::string type = DeviceType(array.type, options_.force_f64), name = DeviceName(array.name);
    body->push_back(
        ir::Text(absl::StrCat(type, "* const ", name, " = (", type, "*)(shared + ", shared_bytes_, ");")));
    TakeShared(*entries * EntryBytes(array.type), &shared_bytes_);
  }
  static void TakeShared(int64_t bytes, int64_t* end) {
    *end += (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  }
  std::vector<ir::Statement> Branches(const CStatement& statement) {
    const std::string condition = absl::StrCat("fu_if", ++conditions_);
    std::vector<ir::Statement> out = {
        ir::Text(absl::StrCat("const bool ", condition, " = ", Expression(*statement.value), ";"))};
    for (size_t i = 0; i < statement.body.size(); ++i) {
      std::vector<ir::Statement> inner;
      Uniform(*statement.body[i], &inner);
      out.push_back(ir::If(absl::StrCat(i == 0 ? "" : "!", condition), std::move(inner)));
    }
    return out;
  }
  // One thread does it.
  void Leader(const CStatement& statement, std::vector<ir::Statement>* body) {
    if (statement.kind != Kind::kAssignment && AssignsUniform(statement))
      return Refuse(
          "a condition or loop outside of the loops over threads gives a scalar a value that all threads "
          "need");
    body->push_back(ir::Leader(Lines(statement)));
    body->push_back(ir::Barrier());
  }
  bool AssignsUniform(const CStatement& statement) const {
    std::set<std::string> own;
    AddDeclared(statement, &own);
    const auto assigns = [&](auto&& self, const CStatement& one) -> bool {
      if (one.kind == Kind::kAssignment && one.target->kind == CExpression::Kind::kName &&
          own.count(one.target->text) == 0)
        return true;
      return std::any_of(one.body.begin(), one.body.end(),
                         [&](const CStatementPtr& inner) { return self(self, *inner); });
    };
    return assigns(assigns, statement);
  }

  // --- Threads ---
  // `fill`: they need what shared memory has, or others need what they write.
  void Threads(const CStatement& statement, bool fill, std::vector<ir::Statement>* body) {
    if (fill) FillBoxes(body);
    const std::optional<LoopChain> chain = ChainOf(statement);
    if (!chain) return Refuse("between loops over threads only declarations may stand");
    const std::vector<const CStatement*>& loops = chain->loops;
    std::vector<std::string> lines;
    int64_t lanes = 1;
    std::vector<std::string> places;
    for (size_t i = loops.size(); i-- > 0;) {
      const int64_t trips = EvaluateC(*TripCount(*loops[i]), values_).value_or(1);
      const std::string type = DeviceType(loops[i]->variable.type, false);
      const std::string rest = lanes == 1 ? "lane" : absl::StrCat("lane / ", lanes);
      const std::string number = i == 0 ? rest : absl::StrCat(rest, " % ", trips);
      CStatement device = *loops[i];
      device.start = Device(*loops[i]->start);
      device.step = Device(*loops[i]->step);
      const bool plain = number == "lane";
      places.push_back(absl::StrCat("const ", type, " ", DeviceName(loops[i]->variable.name), " = ",
                                    CText(*CounterValue(device, CName(trips == 1 ? "0"
                                                                      : plain    ? number
                                                                                 : "(" + number + ")"))),
                                    ";"));
      lanes *= trips;
    }
    for (auto place = places.rbegin(); place != places.rend(); ++place) lines.push_back(*place);
    for (const CStatement* declaration : chain->between) Append(Lines(*declaration), &lines);
    Append(Lines(*Reused(*chain->inside)), &lines);
    body->push_back(ir::LanePhase(std::move(lines), lanes == lanes_ ? "" : absl::StrCat(lanes)));
    if (fill) body->push_back(ir::Barrier());
  }
  CStatementPtr Reused(const CStatement& work) {
    const auto body = std::make_shared<CStatement>(work);
    if (!options_.reuse) return body;
    std::map<std::string, CType> arrays = WrittenArrays();
    arrays.insert(kept_types_.begin(), kept_types_.end());
    const CStatementPtr reused = WithWholeStrips(KeepInRegisters(body, arrays, values_), values_);
    AddDeclared(*reused, &declared_);  // what it keeps has names of its own
    return reused;
  }
  std::map<std::string, CType> WrittenArrays() const {
    std::map<std::string, CType> arrays;
    for (const std::string& name : written_)
      if (const CVariable* variable = declared_.count(name) > 0 ? nullptr : Variable(name);
          variable != nullptr)
        arrays[name] = variable->type;
    return arrays;
  }
  static void Append(const std::vector<std::string>& from, std::vector<std::string>* to) {
    to->insert(to->end(), from.begin(), from.end());
  }

  std::string Header(const CStatement& loop) const {
    const std::string counter = DeviceName(loop.variable.name);
    const bool one = loop.step->kind == CExpression::Kind::kInteger && loop.step->integer == 1;
    return absl::StrCat("for (",
                        loop.declares ? absl::StrCat(DeviceType(loop.variable.type, false), " ") : "",
                        counter, " = ", Expression(*loop.start), "; ", Expression(*GoesOn(loop)), "; ",
                        one ? absl::StrCat(loop.down ? "--" : "++", counter)
                            : absl::StrCat(counter, loop.down ? " -= " : " += ", Expression(*loop.step)),
                        ")");
  }

  // A statement as lines of C++.
  std::vector<std::string> Lines(const CStatement& statement) const {
    std::vector<std::string> lines;
    const auto indented = [&](const CStatement& inner) {
      for (const std::string& line : inner.kind == Kind::kBlock ? Inside(inner) : Lines(inner))
        lines.push_back("  " + line);
    };
    switch (statement.kind) {
      case Kind::kBlock:
      case Kind::kSchedule: {
        const bool scoped =
            std::any_of(statement.body.begin(), statement.body.end(),
                        [](const CStatementPtr& inner) { return inner->kind == Kind::kDeclaration; });
        if (!scoped) return Inside(statement);
        lines.push_back("{");
        for (const std::string& line : Inside(statement)) lines.push_back("  " + line);
        lines.push_back("}");
        break;
      }
      case Kind::kDeclaration: {
        const CVariable& variable = statement.variable;
        std::string line =
            absl::StrCat(DeviceType(variable.type, options_.force_f64), " ", DeviceName(variable.name));
        for (const CExpressionPtr& extent : variable.extents)
          absl::StrAppend(&line, "[", Expression(*extent), "]");
        if (statement.value != nullptr) absl::StrAppend(&line, " = ", Expression(*statement.value));
        absl::StrAppend(&line, ";");
        if (variable.extents.empty()) absl::StrAppend(&line, " (void)", DeviceName(variable.name), ";");
        lines.push_back(line);
        break;
      }
      case Kind::kAssignment:
        return Assignment(statement);
      case Kind::kIf:
        lines.push_back(absl::StrCat("if (", Expression(*statement.value), ") {"));
        indented(*statement.body[0]);
        if (statement.body.size() > 1) {
          lines.push_back("} else {");
          indented(*statement.body[1]);
        }
        lines.push_back("}");
        break;
      case Kind::kFor:
        if (statement.parts) lines.push_back("FUSION_UNROLL");
        if (statement.strips) lines.push_back("FUSION_UNROLL_ON_DEVICE");
        lines.push_back(Header(statement) + " {");
        indented(*statement.body[0]);
        lines.push_back("}");
        break;
    }
    return lines;
  }
  std::vector<std::string> Inside(const CStatement& block) const {
    std::vector<std::string> lines;
    for (const CStatementPtr& inner : block.body) Append(Lines(*inner), &lines);
    return lines;
  }

  std::vector<std::string> Assignment(const CStatement& statement) const {
    const CExpression& target = *statement.target;
    if (target.kind == CExpression::Kind::kName)
      return {absl::StrCat(DeviceName(target.text), " ", statement.operation, " ",
                           Expression(*statement.value), ";")};
    const CExpressionPtr entry = Entry(target, false);
    const CVariable* variable = declared_.count(target.text) > 0 ? nullptr : Variable(target.text);
    std::string operation = statement.operation;
    CExpressionPtr value = Device(*statement.value);
    if (variable != nullptr && IsIntegerType(variable->type) && options_.force_f64) {
      if (operation.size() > 1)
        value = CBinary(operation.substr(0, operation.size() - 1), Entry(target, true), value);
      auto whole = std::make_shared<CExpression>();
      whole->kind = CExpression::Kind::kCast;
      whole->type = variable->type;
      whole->text = DeviceType(variable->type, false);
      whole->operands = {value};
      value = whole;
      operation = "=";
    }
    std::vector<std::string> lines = {absl::StrCat(CText(*entry), " ", operation, " ", CText(*value), ";")};
    if (variable == nullptr) return lines;
    for (const Box& box : boxes_) {
      if (nest_.arrays[box.touched.array].variable.name != target.text || IsElsewhere(target, box)) continue;
      // A thread that reads the entry again must find what it wrote.
      lines.push_back("{");
      lines.push_back(absl::StrCat("  const int fu_at = ", CText(*entry->operands[0]), " - (",
                                   *Text(box.touched.first[0]), ");"));
      lines.push_back(absl::StrCat("  if (fu_at >= 0 && fu_at < ", box.extents[0], ") ", box.name,
                                   "[fu_at] = ", CText(*entry), ";"));
      lines.push_back("}");
    }
    return lines;
  }
  // The box is there in the other branch of a condition that the statement is under.
  bool IsElsewhere(const CExpression& target, const Box& box) const {
    if (box.touched.guard == nullptr) return false;
    for (const NestAccess& access : nest_.accesses)
      if (access.writes && access.position.line == target.position.line &&
          access.position.column == target.position.column)
        return std::none_of(access.guards.begin(), access.guards.end(), [&](const NestGuard& guard) {
          return guard.key == box.touched.guard->key && guard.holds == box.touched.guard->holds;
        });
    return true;
  }

  // --- Parts in shared memory ---
  // A polynomial in names of the kernel, or nothing where a symbol has none.
  std::optional<std::string> Text(const Polynomial& polynomial) const {
    if (!polynomial.exact()) return std::nullopt;
    std::string text;
    for (const auto& [monomial, coefficient] : polynomial.terms()) {
      const bool negative = coefficient < 0;
      const Int128 size = negative ? -coefficient : coefficient;
      if (size > 1'000'000'000) return std::nullopt;
      std::string term = size == 1 && !monomial.empty() ? "" : absl::StrCat(static_cast<int64_t>(size));
      for (const auto& [symbol, power] : monomial) {
        const std::optional<std::string> name = SymbolText(symbol);
        if (!name) return std::nullopt;
        for (int i = 0; i < power; ++i) absl::StrAppend(&term, term.empty() ? "" : " * ", *name);
      }
      absl::StrAppend(&text, text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + "), term);
    }
    return text.empty() ? "0" : text;
  }
  std::optional<std::string> SymbolText(const std::string& symbol) const {
    for (const NestLoop& loop : nest_.loops)
      if (loop.symbol == symbol) {
        if (!(loop.value == Polynomial::Symbol(symbol))) return std::nullopt;
        return DeviceName(loop.counter);
      }
    for (const NestQuotient& quotient : nest_.quotients)
      if (quotient.symbol == symbol) {
        const auto numerator = Text(quotient.numerator), denominator = Text(quotient.denominator);
        if (!numerator || !denominator) return std::nullopt;
        return absl::StrCat("((", *numerator, ") / (", *denominator, "))");
      }
    return DeviceName(symbol);
  }
  void UseSymbols(const Polynomial& polynomial) {
    for (const std::string& symbol : polynomial.Symbols()) {
      bool plain = true;
      for (const NestLoop& loop : nest_.loops) plain &= loop.symbol != symbol;
      for (const NestQuotient& quotient : nest_.quotients)
        if (quotient.symbol == symbol) {
          plain = false;
          UseSymbols(quotient.numerator);
          UseSymbols(quotient.denominator);
        }
      if (plain) used_.insert(symbol);
    }
  }
  Polynomial WithConstants(Polynomial polynomial) const {
    for (const auto& [name, value] : options_.constants)
      if (polynomial.Has(name)) polynomial = polynomial.Substitute(name, Polynomial(value));
    return polynomial;
  }

  void FindBoxes(const KernelLoops& loops) {
    std::set<std::string> inside;  // names that only threads have
    for (int loop : loops.local) inside.insert(nest_.loops[loop].counter);
    int64_t always = 0, yes = 0, no = 0;
    std::string key;
    for (TouchedBox& touched : BoxesOf(nest_, loops)) {
      const NestArray& array = nest_.arrays[touched.array];
      if (kept_arrays_.count(array.variable.name) > 0) continue;
      const bool writes = written_.count(array.variable.name) > 0;
      if (writes && (touched.first.size() > 1 || !MayKeep(touched))) continue;
      if (std::any_of(touched.uses.begin(), touched.uses.end(),
                      [&](const TouchedBox::Use& use) { return nest_.accesses[use.access].writes; })) {
        std::erase_if(touched.uses,
                      [&](const TouchedBox::Use& use) { return nest_.accesses[use.access].writes; });
        if (touched.uses.empty()) continue;
      }
      Box box{.touched = touched, .name = absl::StrCat("fu_part", boxes_.size()), .offset = 0, .extents = {}};
      int64_t entries = 1;
      bool known = true;
      for (size_t i = 0; i < touched.extents.size(); ++i) {
        box.touched.first[i] = WithConstants(touched.first[i]);
        box.touched.strides[i] = WithConstants(touched.strides[i]);
        const auto extent = WithConstants(touched.extents[i]).Constant();
        known &= extent && *extent >= 1 && *extent <= (1 << 16) && Text(box.touched.first[i]) &&
                 Text(box.touched.strides[i]);
        if (!known) break;
        box.extents.push_back(*extent);
        entries *= *extent;
        known &= entries <= (1 << 16);
      }
      for (const TouchedBox::Use& use : touched.uses)
        for (const Polynomial& place : use.place) known &= Text(WithConstants(place)).has_value();
      for (const Polynomial& extent : array.extents) known &= Text(extent).has_value();
      if (touched.guard != nullptr) {
        std::set<std::string> names;
        AddNames(*touched.guard->condition, &names);
        for (const std::string& name : names) known &= declared_.count(name) == 0;
        if (key.empty()) key = touched.guard->key;
        known &= key == touched.guard->key;
      }
      if (!known) continue;
      int64_t* const end = touched.guard == nullptr ? &always : touched.guard->holds ? &yes : &no;
      box.offset = *end;
      // Rows begin in different banks, and where 16 bytes begin, if they can.
      const int64_t unit = 16 / EntryBytes(array.variable.type);
      if (box.extents.size() > 1)
        box.padding = box.extents.back() % unit == 0 ? unit : 1 - box.extents.back() % 2;
      entries += entries / box.extents.back() * box.padding;
      TakeShared(entries * EntryBytes(array.variable.type), end);
      boxes_.push_back(std::move(box));
    }
    for (Box& box : boxes_) {
      if (box.touched.guard != nullptr) box.offset += always;
      for (const Polynomial& first : box.touched.first) UseSymbols(first);
      for (const Polynomial& stride : box.touched.strides) UseSymbols(stride);
      for (const Polynomial& extent : nest_.arrays[box.touched.array].extents) UseSymbols(extent);
      for (const TouchedBox::Use& use : box.touched.uses) {
        std::string index;
        for (size_t i = 0; i < use.place.size(); ++i) {
          UseSymbols(WithConstants(use.place[i]));
          const std::string place = *Text(WithConstants(use.place[i]));
          const int64_t pitch = box.extents[i] + (i + 1 == use.place.size() ? box.padding : 0);
          index = i == 0 ? place : absl::StrCat("(", index, ") * ", pitch, " + ", place);
        }
        const NestAccess& access = nest_.accesses[use.access];
        CExpressionPtr entry = CName(absl::StrCat(box.name, "[", index, "]"));
        cached_[{access.position.line, access.position.column}] = entry;
      }
    }
    shared_bytes_ = always + std::max(yes, no);
    // The next iteration has to find what one writes.
    const bool written = std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) {
      return written_.count(nest_.arrays[box.touched.array].variable.name) > 0;
    });
    if (!kept_.empty() && key.empty() && !written) {
      turns_apart_ = shared_bytes_;
      shared_bytes_ *= 2;
    }
    Close();
  }
  // Everything that writes the array is in one branch or the other of the box's condition, so that it is
  // known whether the box is there.
  bool MayKeep(const TouchedBox& touched) const {
    if (touched.guard == nullptr) return true;
    return std::all_of(nest_.accesses.begin(), nest_.accesses.end(), [&](const NestAccess& access) {
      return access.array != touched.array || !access.writes ||
             std::any_of(access.guards.begin(), access.guards.end(),
                         [&](const NestGuard& guard) { return guard.key == touched.guard->key; });
    });
  }
  int64_t EntryBytes(CType type) const { return options_.force_f64 || type == CType::kDouble ? 8 : 4; }

  // All threads bring the parts from memory.
  void FillBoxes(std::vector<ir::Statement>* body) {
    if (boxes_.empty()) return;
    if (!std::exchange(pointed_, true)) PointToParts(body);
    FillParts(body);
    body->push_back(ir::Text("fu_copy_commit();"));
    body->push_back(ir::Text("fu_copy_wait<0>();"));
    body->push_back(ir::Barrier());
  }
  void PointToParts(std::vector<ir::Statement>* body) const {
    for (const Box& box : boxes_) {
      const std::string type = StoredType(nest_.arrays[box.touched.array].variable.type);
      body->push_back(ir::Text(absl::StrCat(type, "* const ", box.name, " = (", type, "*)(shared + ",
                                            turns_apart_ > 0 ? "fu_turn + " : "", box.offset, ");")));
    }
  }
  void FillParts(std::vector<ir::Statement>* body) const {
    for (const Box& box : boxes_) {
      const CVariable& array = nest_.arrays[box.touched.array].variable;
      int64_t entries = 1;
      for (int64_t extent : box.extents) entries *= extent;
      // Entries that lie next to each other come together.
      const int64_t unit = box.padding > 1 && box.touched.strides.back() == Polynomial(1) ? box.padding : 1;
      const std::string first = unit == 1 ? "item" : absl::StrCat("item * ", unit);
      std::string at;
      int64_t inner = entries;
      for (size_t i = 0; i < box.extents.size(); ++i) {
        inner /= box.extents[i];
        std::string place = first;
        if (inner > 1) place = absl::StrCat(place, " / ", inner);
        if (i > 0) place = absl::StrCat(place, " % ", box.extents[i]);
        absl::StrAppend(&at, at.empty() ? "" : " + ", "(", *Text(box.touched.first[i]), " + ",
                        box.extents.size() > 1 ? "(" + place + ")" : place, ")");
        if (!(box.touched.strides[i] == Polynomial(1)))
          absl::StrAppend(&at, " * (", *Text(box.touched.strides[i]), ")");
      }
      Polynomial count(1);
      for (const Polynomial& extent : nest_.arrays[box.touched.array].extents)
        count = count * WithConstants(extent);
      std::string to = first;
      if (box.padding > 0) absl::StrAppend(&to, " + ", first, " / ", box.extents.back(), " * ", box.padding);
      // Guards in the text may leave out what lies outside.
      ir::Statement fill =
          ir::StridedPhase({absl::StrCat("fu_part_in<", unit, ">(", box.name, " + ", to, ", ",
                                         DeviceName(array.name), ", ", at, ", ", *Text(count), ");")},
                           absl::StrCat(entries / unit));
      if (box.touched.guard == nullptr) {
        body->push_back(std::move(fill));
      } else {
        const std::string condition = Expression(*box.touched.guard->condition);
        body->push_back(ir::If(box.touched.guard->holds ? condition : absl::StrCat("!(", condition, ")"),
                               {std::move(fill)}));
      }
    }
  }

  const CRegion& region_;
  const Nest& nest_;
  const LoopLoweringOptions& options_;
  const std::set<std::string>& host_names_;
  ErrorList* const errors_;
  const IntegerValues values_;
  SourcePosition position_;
  int block_loops_ = 0, conditions_ = 0;
  int64_t lanes_ = 1, shared_bytes_ = 0;
  std::set<std::string> declared_, used_, written_;
  bool pointed_ = false;     // the parts have their names
  int64_t turns_apart_ = 0;  // bytes between parts that take turns; 0: they do not
  std::vector<ir::Statement> head_;
  std::vector<Box> boxes_;
  std::map<At, CExpressionPtr> cached_;  // uses of what is in shared memory
  std::map<const CStatement*, KeptOverStrips> kept_;
  std::set<std::string> kept_arrays_;
  std::map<std::string, CType> kept_types_;  // by the names of lane variables
  std::vector<ir::LaneVariable> lane_variables_;
};

class LoopsLowering {
 public:
  LoopsLowering(const MappedLoops& mapped, const LoopLoweringOptions& options, ErrorList* errors)
      : mapped_(mapped), options_(options), errors_(errors) {}

  LoopCode Lower() {
    for (const CRegion& region : mapped_.program.regions) {
      region_ = &region;
      nest_ = BuildNest(mapped_.program, region, errors_);
      kernels_ = KernelsOf(*nest_);
      next_ = 0;
      std::copy_if(region.scope.begin(), region.scope.end(), std::back_inserter(code_.workspaces),
                   [](const CVariable& variable) { return variable.workspace; });
      code_.regions.push_back({.scope = region.scope, .steps = {}});
      Host(region.statement, &code_.regions.back().steps);
    }
    return std::move(code_);
  }

 private:
  void Host(const CStatementPtr& statement, std::vector<HostStep>* steps) {
    switch (statement->kind) {
      case Kind::kBlock:
      case Kind::kSchedule: {
        const std::set<std::string> before = host_names_;
        for (const CStatementPtr& inner : statement->body) Host(inner, steps);
        host_names_ = before;
        break;
      }
      case Kind::kDeclaration:
        host_names_.insert(statement->variable.name);
        steps->push_back({.kind = HostStep::Kind::kLet, .statement = statement});
        break;
      case Kind::kAssignment:
        errors_->Add({statement->position}, "the host gives nothing a value between kernels");
        break;
      case Kind::kIf: {
        HostStep step{.kind = HostStep::Kind::kIf, .statement = statement};
        Host(statement->body[0], &step.body);
        if (statement->body.size() > 1) Host(statement->body[1], &step.otherwise);
        steps->push_back(std::move(step));
        break;
      }
      case Kind::kFor: {
        if (!statement->meta) {
          const std::set<std::string> before = host_names_;
          host_names_.insert(statement->variable.name);
          HostStep step{.kind = HostStep::Kind::kLoop, .statement = statement};
          Host(statement->body[0], &step.body);
          host_names_ = before;
          steps->push_back(std::move(step));
          break;
        }
        // A nest has its kernels in the order of the text, too, but for those with an odd number of loops.
        const int depth = MetaDepth(*statement);
        const KernelLoops* loops = nullptr;
        if (depth % 2 == 0 && next_ < kernels_.size()) loops = &kernels_[next_++];
        if (CountMetas(*statement) != depth) loops = nullptr;  // several loops over threads
        KernelLowering lowering(*region_, *nest_, options_, host_names_, errors_);
        code_.kernels.push_back(
            lowering.Lower(*statement, loops, absl::StrCat(options_.prefix, code_.kernels.size())));
        steps->push_back({.kind = HostStep::Kind::kLaunch,
                          .statement = statement,
                          .kernel = static_cast<int>(code_.kernels.size()) - 1});
        break;
      }
    }
  }

  const MappedLoops& mapped_;
  const LoopLoweringOptions& options_;
  ErrorList* const errors_;
  const CRegion* region_ = nullptr;
  std::unique_ptr<Nest> nest_;
  std::vector<KernelLoops> kernels_;
  size_t next_ = 0;  // of them
  std::set<std::string> host_names_;
  LoopCode code_;
};

}  // namespace

LoopCode LowerLoops(const MappedLoops& mapped, const LoopLoweringOptions& options, ErrorList* errors) {
  return LoopsLowering(mapped, options, errors).Lower();
}

}  // namespace fusion
