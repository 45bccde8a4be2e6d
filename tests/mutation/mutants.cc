#include "tests/mutation/mutants.h"

#include <algorithm>
#include <optional>
#include <regex>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/source.h"
#include "server/target/target.h"
#include "tests/mutation/text_edits.h"

namespace fusion::testing {
namespace {

using ir::Statement;
using Kind = Statement::Kind;

std::string Excerpt(std::string text) {
  constexpr size_t kLongest = 300;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
  return text;
}

// Whether a printed kernel is the one of the name, or its version without guards.
bool IsOf(const std::string& kernel, const std::string& text) {
  return absl::StrContains(text, kernel + "(") || absl::StrContains(text, kernel + "_whole(");
}

// Calls `visit` with every text of a body, in a fixed order.
void VisitTexts(std::vector<Statement>* body, const std::function<void(std::string*)>& visit) {
  for (Statement& statement : *body) {
    if (statement.kind != Kind::kVersions) visit(&statement.text);
    for (std::string& line : statement.lines) visit(&line);
    VisitTexts(&statement.body, visit);
  }
}

// With every statement: where it stands among those beside it.
using StatementVisitor =
    std::function<void(std::vector<Statement>* body, size_t position, ir::Section* section)>;
void VisitStatements(std::vector<Statement>* body, ir::Section* section, const StatementVisitor& visit) {
  for (size_t i = 0; i < body->size(); ++i) {
    VisitStatements(&(*body)[i].body, section, visit);
    visit(body, i, section);
  }
}

// The launches that are changed.
struct Launches {
  size_t first = 0, last = 0;

  void ForTexts(MutableCode* code, const std::function<void(std::string*)>& visit) const {
    for (size_t launch = first; launch < last; ++launch)
      for (ir::Section& section : code->code.launches[launch].kernel.sections)
        VisitTexts(&section.body, visit);
  }
  void ForStatements(MutableCode* code, const StatementVisitor& visit) const {
    for (size_t launch = first; launch < last; ++launch)
      for (ir::Section& section : code->code.launches[launch].kernel.sections)
        VisitStatements(&section.body, &section, visit);
  }
};

class Finder {
 public:
  Finder(const FusionCode& code, v1::Target target, Launches launches)
      : code_(Unchanged(code)), target_(target), launches_(launches) {}

  std::vector<Mutation> Find() {
    FindInTexts();
    FindInStatements();
    FindInVariables();
    FindInRoutines();
    for (size_t launch = launches_.first; launch < launches_.last; ++launch) {
      FindInZeros(launch);
      FindInVersions(launch);
      FindInPrint(launch);
    }
    target_ == v1::CUDA ? FindInCudaRuntime() : FindInHostRuntime();
    return std::move(found_);
  }

 private:
  bool cuda() const { return target_ == v1::CUDA; }
  void Add(MutationKind kind, std::string what, std::function<void(MutableCode*)> apply) {
    found_.push_back({kind, std::move(what), std::move(apply)});
  }

  void FindInTexts() {
    size_t next = 0;
    launches_.ForTexts(&code_, [&](std::string* text) {
      const size_t number = next++;
      for (const TextEdit& edit : EditsOf(*text, target_))
        Add(edit.kind, Excerpt(absl::StrCat(*text, "  ->  ", Edited(*text, edit))),
            [launches = launches_, number, edit](MutableCode* code) {
              size_t counted = 0;
              launches.ForTexts(code, [&](std::string* of_code) {
                if (counted++ == number) *of_code = Edited(*of_code, edit);
              });
            });
    });
  }

  void AddToStatement(MutationKind kind, std::string what, size_t number, StatementVisitor change) {
    Add(kind, Excerpt(std::move(what)),
        [launches = launches_, number, change = std::move(change)](MutableCode* code) {
          // The change may take statements away, so it is made when all have been counted.
          size_t counted = 0;
          std::function<void()> made;
          launches.ForStatements(code, [&](std::vector<Statement>* body, size_t at, ir::Section* section) {
            if (counted++ == number) made = [=] { change(body, at, section); };
          });
          if (made) made();
        });
  }

  void FindInStatements() {
    size_t next = 0;
    launches_.ForStatements(&code_, [&](std::vector<Statement>* body, size_t position, ir::Section* section) {
      const size_t number = next++;
      const Statement& statement = (*body)[position];
      switch (statement.kind) {
        case Kind::kLoop:
          FindInLoop(statement, number);
          break;
        case Kind::kIf:
          AddToStatement(
              MutationKind::kGuard, absl::StrCat("if (", statement.text, ")  ->  if (true)"), number,
              [](std::vector<Statement>* in, size_t at, ir::Section*) { (*in)[at].text = "true"; });
          break;
        case Kind::kLanePhase:
          FindInPhase(statement, number, section->group_threads);
          break;
        case Kind::kLeader:
          FindInLeader(statement, number);
          break;
        case Kind::kReduce:
          FindInReduce(statement, number, section->group_threads);
          break;
        case Kind::kBarrier:
          if (cuda()) Drop(number, "the barrier of the group");
          break;
        case Kind::kZeroWait:
          if (cuda()) Drop(number, "the wait for the zeros");
          break;
        case Kind::kText:
        case Kind::kVersions:
          break;
      }
      if (!cuda()) FindLostOrder(*body, position, number);
    });
  }
  void Drop(size_t number, const std::string& what) {
    AddToStatement(MutationKind::kBarrier, absl::StrCat(what, " is left out"), number,
                   [](std::vector<Statement>* in, size_t at, ir::Section*) { in->erase(in->begin() + at); });
  }

  void FindInLoop(const Statement& loop, size_t number) {
    const std::optional<ForHeader> header = ForHeaderOf(loop.text, 0);
    if (!header) return;
    for (const char* group : {"groups - 1", "0", "1", "groups / 2"})
      AddToStatement(MutationKind::kLane, absl::StrCat(loop.text, " without group ", group), number,
                     [condition = header->condition, group = std::string(group)](std::vector<Statement>* in,
                                                                                 size_t at, ir::Section*) {
                       (*in)[at].text.insert(condition.first, absl::StrCat("group != ", group, " && "));
                     });
  }

  // The lanes that are left out: conditions on the lane or item.
  static std::vector<std::string> LostLanes(const std::string& lane, int lanes) {
    std::vector<std::string> lost = {
        absl::StrCat(lane, " == 0"),           absl::StrCat(lane, " == 1"),
        absl::StrCat(lane, " == ", lanes - 1), absl::StrCat(lane, " == ", lanes / 2),
        absl::StrCat(lane, " % 2 == 1"),       absl::StrCat(lane, " >= ", lanes - std::max(1, lanes / 8))};
    if (lanes > 32) {
      lost.push_back(absl::StrCat(lane, " / 32 == 1"));
      lost.push_back(absl::StrCat(lane, " / 32 == ", lanes / 32 - 1));
      lost.push_back(absl::StrCat(lane, " % 32 == 31"));
    }
    return lost;
  }

  void FindInPhase(const Statement& phase, size_t number, int lanes) {
    const std::string all = absl::StrJoin(phase.lines, " ");
    if (!phase.items.empty()) {
      for (const char* change : {" - 1", " + 1"})
        AddToStatement(MutationKind::kBound, absl::StrCat(phase.items, change, " lanes or items of: ", all),
                       number,
                       [change = std::string(change)](std::vector<Statement>* in, size_t at, ir::Section*) {
                         (*in)[at].items = absl::StrCat("(", (*in)[at].items, ")", change);
                       });
      if (!phase.strided)
        AddToStatement(MutationKind::kGuard,
                       absl::StrCat("all lanes, not those below ", phase.items, ": ", all), number,
                       [](std::vector<Statement>* in, size_t at, ir::Section*) { (*in)[at].items.clear(); });
    }
    // Lanes that exchange something would wait for those that are left out.
    if (phase.collective || absl::StrContains(all, "exchange") || absl::StrContains(all, "fu_window") ||
        absl::StrContains(all, "fu_copy_") || absl::StrContains(all, "_warp"))
      return;
    for (const std::string& lost : LostLanes(phase.strided ? "item" : "lane", lanes))
      AddToStatement(MutationKind::kLane, absl::StrCat("without lanes with ", lost, ": ", all), number,
                     [lost](std::vector<Statement>* in, size_t at, ir::Section*) {
                       std::vector<std::string>& lines = (*in)[at].lines;
                       lines.insert(lines.begin(), absl::StrCat("if (!(", lost, ")) {"));
                       lines.push_back("}");
                     });
  }

  void FindInLeader(const Statement& leader, size_t number) {
    const std::string all = absl::StrJoin(leader.lines, " ");
    if (!absl::StrContains(all, "fu_atomic_add(")) return;
    for (const char* group : {"groups - 1", "0", "1"})
      AddToStatement(MutationKind::kLane, absl::StrCat("without the part of group ", group, ": ", all),
                     number,
                     [group = std::string(group)](std::vector<Statement>* in, size_t at, ir::Section*) {
                       std::vector<std::string>& lines = (*in)[at].lines;
                       lines.insert(lines.begin(), absl::StrCat("if (group != ", group, ") {"));
                       lines.push_back("}");
                     });
  }

  void FindInReduce(const Statement& reduce, size_t number, int lanes) {
    const std::string entry = reduce.count > 1 ? "[r]" : "";
    const std::string forget =
        absl::StrCat(reduce.count > 1 ? absl::StrCat("for (int r = 0; r < ", reduce.count, "; ++r) ") : "",
                     "$", reduce.source, entry, " = ", reduce.monoid, "::identity();");
    for (const std::string& lost : LostLanes("lane", lanes))
      AddToStatement(
          MutationKind::kLane, absl::StrCat("reduction of ", reduce.source, " without lanes with ", lost),
          number, [lost, forget](std::vector<Statement>* in, size_t at, ir::Section*) {
            in->insert(in->begin() + at, ir::LanePhase({absl::StrCat("if (", lost, ") ", forget)}));
          });
  }

  // Of the host: what follows the loop over lanes (or a loop with such in it) at `position` no longer waits
  // for it.
  void FindLostOrder(const std::vector<Statement>& body, size_t position, size_t number) {
    const Statement& first = body[position];
    if (first.kind != Kind::kLanePhase && first.kind != Kind::kLoop) return;
    size_t next = position + 1;
    while (next < body.size() && (body[next].kind == Kind::kBarrier || body[next].kind == Kind::kText))
      ++next;
    if (next == body.size()) return;
    const Statement& second = body[next];
    const std::string what =
        absl::StrCat(first.kind == Kind::kLoop ? first.text : absl::StrJoin(first.lines, " "), " || ",
                     second.kind == Kind::kReduce ? second.target : absl::StrJoin(second.lines, " "));
    const bool is_phase = second.kind == Kind::kLanePhase;
    if (is_phase || second.kind == Kind::kReduce || second.kind == Kind::kLeader)
      AddToStatement(
          MutationKind::kBarrier, "the second before the first: " + what, number,
          [next](std::vector<Statement>* in, size_t at, ir::Section*) { std::swap((*in)[at], (*in)[next]); });
    const auto plain = [](const Statement& phase) { return !phase.strided && !phase.collective; };
    if (!is_phase || first.kind != Kind::kLanePhase || !plain(first) || !plain(second)) return;
    AddToStatement(
        MutationKind::kBarrier, "each lane goes on without the others: " + what, number,
        [next](std::vector<Statement>* in, size_t at, ir::Section*) {
          std::vector<std::string> lines;
          for (const Statement& phase : {(*in)[at], (*in)[next]}) {
            lines.push_back(phase.items.empty() ? "{" : absl::StrCat("if (lane < ", phase.items, ") {"));
            lines.insert(lines.end(), phase.lines.begin(), phase.lines.end());
            lines.push_back("}");
          }
          (*in)[at] = ir::LanePhase(std::move(lines));
          in->erase(in->begin() + at + 1, in->begin() + next + 1);
        });
  }

  void FindInVariables() {
    for (size_t launch = launches_.first; launch < launches_.last; ++launch) {
      const std::vector<ir::Section>& sections = code_.code.launches[launch].kernel.sections;
      for (size_t s = 0; s < sections.size(); ++s)
        for (size_t v = 0; v < sections[s].lane_variables.size(); ++v) {
          const ir::LaneVariable& variable = sections[s].lane_variables[v];
          const auto variable_of = [launch, s, v](MutableCode* code) -> ir::LaneVariable& {
            return code->code.launches[launch].kernel.sections[s].lane_variables[v];
          };
          for (const TextEdit& edit : EditsOf(variable.initial, target_))
            Add(edit.kind,
                absl::StrCat(variable.name, " begins as ", Edited(variable.initial, edit), " and not ",
                             variable.initial),
                [variable_of, edit](MutableCode* code) {
                  variable_of(code).initial = Edited(variable_of(code).initial, edit);
                });
          if (variable.initial.empty()) FindKept(launch, s, variable, variable_of);
        }
    }
  }
  // What is set to the identity before each row keeps what the row before left there.
  void FindKept(size_t launch, size_t section, const ir::LaneVariable& variable,
                const std::function<ir::LaneVariable&(MutableCode*)>& variable_of) {
    const std::regex reset(
        absl::StrCat("\\$", variable.name, "((?:\\[\\w+\\])*) = ([^;]*::identity\\(\\));"));
    std::string identity;
    const auto keep = [launch, section, reset](MutableCode* code, std::string* found) {
      VisitTexts(&code->code.launches[launch].kernel.sections[section].body, [&](std::string* text) {
        std::smatch match;
        if (!std::regex_search(*text, match, reset)) return;
        *found = match[2];
        *text = std::regex_replace(*text, reset, "(void)0;");
      });
    };
    MutableCode copy = code_;
    keep(&copy, &identity);
    if (identity.empty()) return;
    Add(MutationKind::kInitial, absl::StrCat(variable.name, " is not set to ", identity, " again"),
        [keep, variable_of](MutableCode* code) {
          std::string begin;
          keep(code, &begin);
          variable_of(code).initial = begin;
        });
  }

  void FindInRoutines() {
    if (launches_.first > 0) return;
    const std::vector<std::string> lines = absl::StrSplit(code_.routines, '\n');
    size_t begin = 0;
    for (const std::string& line : lines) {
      if (!absl::StrContains(line, "FUSION_FN") && !absl::StartsWith(line, "//"))
        for (TextEdit edit : EditsOf(line, target_, /*is_routine=*/true)) {
          const std::string what = absl::StrCat("in a routine: ", line, "  ->  ", Edited(line, edit));
          edit.begin += begin;
          Add(edit.kind, what, [edit](MutableCode* code) { code->routines = Edited(code->routines, edit); });
        }
      begin += line.size() + 1;
    }
  }

  void FindInZeros(size_t launch) {
    const std::vector<ir::Zeroed>& zeroed = code_.code.launches[launch].kernel.zeroed;
    for (size_t z = 0; z < zeroed.size(); ++z) {
      const auto zeros_of = [launch, z](MutableCode* code) -> ir::Zeroed& {
        return code->code.launches[launch].kernel.zeroed[z];
      };
      Add(MutationKind::kBound, absl::StrCat("zeros of ", zeroed[z].pointer, ": one fewer"),
          [zeros_of](MutableCode* code) { absl::StrAppend(&zeros_of(code).count, " - 1"); });
      for (const char* other : {" + 1", " - 1"})
        Add(MutationKind::kInitial, absl::StrCat(zeroed[z].pointer, " begins as ", zeroed[z].value, other),
            [zeros_of, other = std::string(other)](MutableCode* code) {
              zeros_of(code).value = absl::StrCat("(", zeros_of(code).value, ")", other);
            });
      Add(MutationKind::kInitial, absl::StrCat(zeroed[z].pointer, " is not set"),
          [zeros_of](MutableCode* code) { zeros_of(code).count = "0"; });
    }
  }

  // The kernel without guards is launched whatever the sizes are.
  void FindInVersions(size_t launch) {
    if (!code_.code.launches[launch].whole) return;
    Add(MutationKind::kGuard, "the kernel without guards is launched at all sizes",
        [launch](MutableCode* code) {
          KernelLaunch& of = code->code.launches[launch];
          of.whole->sizes.clear();
          of.whole->aligned.clear();
          for (ir::Section& section : of.kernel.sections)
            VisitStatements(&section.body, &section,
                            [](std::vector<Statement>* body, size_t position, ir::Section*) {
                              Statement& statement = (*body)[position];
                              if (statement.known_at_launch) statement.text = "true";
                            });
        });
  }

  // What only the printed text has. All versions of the kernel are searched for the place.
  void FindInPrint(size_t launch) {
    const auto replace = [&](MutationKind kind, const std::string& before, const std::string& after,
                             const std::string& what) {
      size_t most = 0;
      for (const ir::Kernel& kernel : LaunchableKernels(code_.code.launches[launch]))
        most = std::max(most, CountOf(TargetOf(target_).Print(kernel), before));
      const std::string kernel = code_.code.launches[launch].kernel.name;
      for (size_t number = 0; number < most; ++number)
        Add(kind, absl::StrCat(what, " (number ", number + 1, ")"),
            [kernel, before, after, number](MutableCode* code) {
              code->change_text = [=](std::string text) {
                if (!IsOf(kernel, text)) return text;
                return ReplaceNumber(std::move(text), before, after, number);
              };
            });
    };
    if (!cuda()) return FindJoinedSections(launch);
    replace(MutationKind::kBarrier, "fu_grid_barrier();", "", "the barrier of the grid is left out");
    replace(MutationKind::kBarrier, "fu_grid_barrier();", "fu_grid_wait(fu_grid_arrive(false));",
            "what the block wrote need not be seen at the barrier of the grid");
    replace(MutationKind::kBarrier, "fu_grid_barrier();", "__syncthreads();",
            "the barrier of the grid is one of the block");
    replace(MutationKind::kBarrier, "fu_parity ^= 1", "fu_parity",
            "a reduction uses the memory of the one before it");
    replace(MutationKind::kBarrier, "fu_cluster_begin();", "", "blocks of a cluster are not waited for");
    if (launch > 0)
      for (const char* begin : {"fu_launch_begin<false>();", "fu_launch_begin<true>();"})
        replace(MutationKind::kBarrier, begin, "", "the launch before is not waited for");
  }
  void FindJoinedSections(size_t launch) {
    const std::string kernel = code_.code.launches[launch].kernel.name;
    for (size_t number = 0; number + 1 < code_.code.launches[launch].kernel.sections.size(); ++number)
      Add(MutationKind::kBarrier, absl::StrCat("blocks go on without the others (number ", number + 1, ")"),
          [kernel, number](MutableCode* code) {
            code->change_text = [=](std::string text) {
              return IsOf(kernel, text) ? JoinSections(std::move(text), number) : text;
            };
          });
  }

  // A changed copy of a function of the device runtime, which the kernels call instead.
  void ChangeRuntime(MutationKind kind, const std::string& function, const std::string& before,
                     const std::string& after, const std::string& what) {
    const std::string text = FunctionText(DeviceRuntime(), function);
    if (!absl::StrContains(text, before)) return;
    bool called = false;
    for (size_t launch = launches_.first; launch < launches_.last && !called; ++launch)
      for (const ir::Kernel& kernel : LaunchableKernels(code_.code.launches[launch]))
        called |= absl::StrContains(TargetOf(target_).Print(kernel), function + "<");
    if (!called) return;
    Add(kind, absl::StrCat(function, ": ", what), [=](MutableCode* code) {
      const std::string changed = function + "_changed";
      code->runtime = absl::StrReplaceAll(ReplaceNumber(text, before, after, 0), {{function, changed}});
      code->change_text = [=](std::string kernels) {
        return absl::StrReplaceAll(kernels, {{function + "<", changed + "<"}});
      };
    });
  }
  void FindInCudaRuntime() {
    using enum MutationKind;
    const std::string group = "fu_group_reduce", many = "fu_group_reduce_many";
    ChangeRuntime(kBarrier, group, "__syncthreads();", "", "without a barrier");
    ChangeRuntime(kLane, group, "THREADS / 2 : 16", "THREADS / 2 : 8", "half of each warp");
    ChangeRuntime(kLane, group, "THREADS / 2 : 16", "THREADS / 4 : 16", "half of a part of a warp");
    ChangeRuntime(kLane, group, "(THREADS + 31) / 32", "(THREADS + 31) / 32 - 1", "without the last warp");
    ChangeRuntime(kLane, group, "(THREADS + 31) / 32 ?", "(THREADS + 31) / 32 && (threadIdx.x & 31) != 0 ?",
                  "without the first warp");
    ChangeRuntime(kBarrier, many, "__syncthreads();", "", "without a barrier");
    ChangeRuntime(kLane, many, "warp + part < warps", "warp + part < warps - 1", "without the last warp");
    ChangeRuntime(kLane, many, "int mask = kLanes / 2", "int mask = kLanes / 4", "half of the warps");
    ChangeRuntime(kLane, many, "int mask = 16 / COUNT", "int mask = 8 / COUNT", "half of each warp");
    for (const std::string& cluster :
         {std::string("fu_cluster_reduce"), std::string("fu_cluster_reduce_many")}) {
      ChangeRuntime(kBarrier, cluster, "fu_cluster_barrier();", "", "without a barrier");
      ChangeRuntime(kBarrier, cluster, "fu_cluster_barrier();", "__syncthreads();",
                    "with a barrier of the block alone");
      ChangeRuntime(kLane, cluster, "mask = 16", "mask = 8", "half of each warp");
      ChangeRuntime(kLane, cluster, "lane < BLOCKS)", "lane < BLOCKS - 1)", "the last block gets no parts");
      ChangeRuntime(kLane, cluster, "first + lane < BLOCKS * warps", "first + lane < BLOCKS * warps - 1",
                    "without the last warp");
      ChangeRuntime(kLane, cluster, "first + lane < parts", "first + lane < parts - 1",
                    "without the last warp");
    }
  }
  void FindInHostRuntime() {
    const std::string reduce = "fu_lanes_reduce";
    ChangeRuntime(MutationKind::kLane, reduce, "int lane = 0;", "int lane = 1;", "lane 0 gets nothing");
    ChangeRuntime(MutationKind::kLane, reduce, "lane < count - rest", "lane < count - rest - 1",
                  "a lane of each step is left out");
    ChangeRuntime(MutationKind::kLane, reduce, "while (count > 1)", "while (count > 2)", "the last step is");
    ChangeRuntime(MutationKind::kBound, reduce, "(count + 1) / 2", "count / 2 + count % 4 / 3",
                  "an odd number of lanes is halved wrongly");
  }

  MutableCode code_;
  v1::Target target_;
  Launches launches_;
  std::vector<Mutation> found_;
};

}  // namespace

const char* NameOf(MutationKind kind) {
  switch (kind) {
    case MutationKind::kBound:
      return "bound";
    case MutationKind::kGuard:
      return "guard";
    case MutationKind::kBarrier:
      return "barrier";
    case MutationKind::kStride:
      return "stride";
    case MutationKind::kInitial:
      return "initial";
    case MutationKind::kLane:
      return "lane";
  }
  return "";
}

const char* WhyEquivalent(MutationKind kind, v1::Target target) {
  switch (kind) {
    case MutationKind::kBound:
      return "a guard behind the bound stops what is beyond it, or no index reaches it at these sizes";
    case MutationKind::kGuard:
      return "the condition holds at these sizes for all that get there, or another guard follows";
    case MutationKind::kBarrier:
      return target == v1::HOST
                 ? "what follows reads nothing that other lanes or blocks write in front of it"
                 : "lanes read what they wrote themselves or their warp did, or another barrier lies "
                   "between, or the time between the two is always long enough on this device";
    case MutationKind::kStride:
      return "the index that is multiplied is always 0, or the loop has one step, at these sizes; or it is "
             "where parts lie, for those who write and who read them alike";
    case MutationKind::kInitial:
      return "it is overwritten before it is read, or belongs to a lane whose part is never taken";
    case MutationKind::kLane:
      return "the lanes or groups have nothing to do at these sizes";
  }
  return "";
}

std::vector<Mutation> MutationsOf(const FusionCode& code, v1::Target target, size_t first_launch,
                                  size_t last_launch) {
  return Finder(code, target, {first_launch, last_launch}).Find();
}

MutableCode Unchanged(const FusionCode& code) {
  MutableCode unchanged{.code = code};
  for (const ElementaryFunction* function : code.functions)
    absl::StrAppend(&unchanged.routines, function->source, "\n");
  return unchanged;
}

std::string PrintKernels(MutableCode* code, v1::Target target, const std::string& name,
                         const SizeValues& sizes) {
  std::string text;
  for (KernelLaunch& launch : code->code.launches) {
    const ir::Kernel kernel = LaunchedKernel(launch, LaunchesWhole(launch, sizes));
    std::string printed = TargetOf(target).Print(kernel);
    if (code->change_text) printed = code->change_text(std::move(printed));
    const std::string own = absl::StrCat(name, "_", launch.kernel.name);
    // Its own name ends at the bracket; other launches' names and comments may begin alike.
    absl::StrAppend(
        &text, "\n",
        absl::StrReplaceAll(
            printed, {{kernel.name + "(", own + kernel.name.substr(launch.kernel.name.size()) + "("}}));
    launch.kernel.name = own;
  }
  return absl::StrCat(code->routines, "\n", code->runtime, "\n", text);
}

}  // namespace fusion::testing
