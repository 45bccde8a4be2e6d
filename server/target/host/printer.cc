#include "server/target/printer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/target/host/host_target.h"

namespace fusion {
namespace {

class HostPrinter {
 public:
  explicit HostPrinter(const ir::Kernel& kernel) : kernel_(kernel) {}

  std::string Print() {
    if (kernel_.asserted)
      absl::StrAppend(&out_, "extern \"C\" { const long long* ", kernel_.name, "_order = nullptr; }\n");
    absl::StrAppend(&out_, "// ", kernel_.comment, "\nextern \"C\" void ", kernel_.name,
                    "(long long grid, void* const* arguments) {\n");
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      const ir::Parameter& parameter = kernel_.parameters[i];
      Line(1, absl::StrCat("const auto a_", i, " = *(", Unqualified(parameter.type), " const*)arguments[", i,
                           "];"));
    }
    // Shared memory and variables of the kernel outlive a section, so the blocks of a cooperative kernel have
    // all theirs at once.
    if (blocks_have_memory()) {
      for (size_t i = 0; i < kernel_.parameters.size(); ++i)
        if (kernel_.parameters[i].type == "fu_index")
          Line(1, absl::StrCat("const fu_index ", kernel_.parameters[i].name, " = a_", i, "; (void)",
                               kernel_.parameters[i].name, ";"));
      Line(1, absl::StrCat("const fu_index shared_bytes = (", kernel_.kept_bytes, " + ",
                           kernel_.uses_shared ? kernel_.shared_bytes : "0", " + 63) / 64 * 64;"));
      std::string block_bytes = "shared_bytes";
      for (const ir::LaneVariable& variable : kernel_.lane_variables)
        absl::StrAppend(&block_bytes, " + (", kernel_.threads * variable.entries, " * sizeof(", variable.type,
                        ") + 63) / 64 * 64");
      Line(1, absl::StrCat("const fu_index block_bytes = ", block_bytes, ";"));
      Line(1, "char* const all_blocks = (char*)fu_host_shared<__LINE__>(grid * block_bytes);");
    }
    PrintZeros();
    for (const ir::Section& section : kernel_.sections) Print(section);
    absl::StrAppend(&out_, "}\n");
    return std::move(out_);
  }

 private:
  bool blocks_have_memory() const {
    return kernel_.cooperative() && (kernel_.has_shared_memory() || !kernel_.lane_variables.empty());
  }
  // Without the restrict qualifier, for the cast.
  static std::string Unqualified(std::string type) {
    const std::string restrict_word = " FUSION_RESTRICT";
    if (absl::EndsWith(type, restrict_word)) type.resize(type.size() - restrict_word.size());
    return type;
  }
  void Line(int depth, const std::string& text) {
    absl::StrAppend(&out_, std::string(2 * depth, ' '), text, "\n");
  }
  void Lines(int depth, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Line(depth, SubstituteLaneVariables(line, "[lane]"));
  }

  void PrintParameters(int depth) {
    for (size_t i = 0; i < kernel_.parameters.size(); ++i)
      Line(depth, absl::StrCat(kernel_.parameters[i].type, " ", kernel_.parameters[i].name, " = a_", i, ";"));
  }
  void PrintZeros() {
    if (kernel_.zeroed.empty()) return;
    Line(1, "{");
    PrintParameters(2);
    for (const ir::Zeroed& zeroed : kernel_.zeroed)
      Line(2, absl::StrCat("for (fu_index i = 0; i < ", zeroed.count, "; ++i) ", zeroed.pointer,
                           "[i] = ", zeroed.value, ";"));
    Line(1, "}");
  }

  // The end of a parallel loop is the barrier of the grid.
  void Print(const ir::Section& section) {
    const int groups_per_block = kernel_.threads / section.group_threads, cluster = kernel_.cluster_blocks;
    Line(1, "{");
    Line(1, cluster > 1 ? absl::StrCat("const fu_index groups = grid / ", cluster, ";")
                        : absl::StrCat("const fu_index groups = grid * ", groups_per_block, ";"));
    // Groups of one block share nothing, so each is an iteration of its own.
    Line(1, "#pragma omp parallel for schedule(static)");
    // Kernels whose order is asked for have one group a block.
    const bool asks = kernel_.asserted && groups_per_block == 1 && cluster == 1;
    const char* const counter = asks ? "turn" : "group";
    Line(1, absl::StrCat("for (fu_index ", counter, " = 0; ", counter, " < groups; ++", counter, ") {"));
    if (asks)
      Line(2, absl::StrCat("const fu_index group = ", kernel_.name,
                           "_order == nullptr ? turn : ", kernel_.name, "_order[turn];"));
    Line(2, cluster > 1 ? absl::StrCat("const fu_index block = group * ", cluster, ";")
                        : absl::StrCat("const fu_index block = group / ", groups_per_block, ";"));
    PrintParameters(2);
    Line(2, absl::StrCat("const int lanes = ", section.group_threads, ";"));
    Line(2, "(void)lanes; (void)block;");
    if (kernel_.kept_bytes > 0) Line(2, "char* const kept = all_blocks + block * block_bytes;");
    if (kernel_.uses_shared)
      Line(2, kernel_.cooperative()
                  ? absl::StrCat("char* const shared = all_blocks + block * block_bytes + ",
                                 kernel_.kept_bytes, ";")
                  : absl::StrCat("char* const shared = (char*)fu_host_shared<__LINE__>(",
                                 cluster > 1 ? absl::StrCat(cluster, " * (", kernel_.shared_bytes, ")")
                                             : kernel_.shared_bytes,
                                 ");"));
    if (!kernel_.lane_variables.empty())
      Line(2, "char* lane_memory = all_blocks + block * block_bytes + shared_bytes;");
    for (const ir::LaneVariable& variable : kernel_.lane_variables) {
      const std::string dimensions = absl::StrCat("[", kernel_.threads, "]", variable.extents);
      Line(2, absl::StrCat(variable.type, " (&", variable.name, ")", dimensions, " = *(", variable.type,
                           " (*)", dimensions, ")lane_memory; (void)", variable.name, ";"));
      Line(2, absl::StrCat("lane_memory += (sizeof ", variable.name, " + 63) / 64 * 64;"));
    }
    for (const ir::LaneVariable& variable : section.lane_variables) {
      Line(2, absl::StrCat("alignas(64) ", variable.type, " ", variable.name, "[", section.group_threads, "]",
                           variable.extents, ";"));
      if (!variable.initial.empty()) {
        std::string first = "[0]";
        for (char c : variable.extents)
          if (c == '[') first += "[0]";
        Line(2, absl::StrCat("for (int i = 0; i < ", section.group_threads * variable.entries, "; ++i) (&",
                             variable.name, first, ")[i] = ", variable.initial, ";"));
      }
    }
    for (const ir::Statement& statement : section.body) Print(statement, 2);
    Line(1, "}");
    Line(1, "}");
  }

  void Print(const ir::Statement& statement, int depth) {
    switch (statement.kind) {
      case ir::Statement::Kind::kText:
        Line(depth, statement.text);
        break;
      case ir::Statement::Kind::kLoop:
      case ir::Statement::Kind::kIf:
        Line(depth, statement.kind == ir::Statement::Kind::kLoop
                        ? absl::StrCat(statement.text, " {")
                        : absl::StrCat("if (", statement.text, ") {"));
        for (const ir::Statement& inner : statement.body) Print(inner, depth + 1);
        Line(depth, "}");
        break;
      case ir::Statement::Kind::kVersions:
        for (const std::vector<std::string>& head : VersionHeads(statement)) {
          for (const std::string& line : head) Line(depth, line);
          for (const ir::Statement& inner : statement.body) Print(inner, depth + 1);
        }
        Line(depth, "}");
        break;
      case ir::Statement::Kind::kLanePhase:
        if (statement.collective) {
          Line(depth, "{");
          Line(depth + 1, "const int lane = 0;");
        } else {
          Line(depth, "#pragma GCC ivdep");
          if (statement.strided)
            Line(depth, absl::StrCat("for (int item = 0, item_end = ", statement.items,
                                     "; item < item_end; ++item) {"));
          else
            Line(depth, absl::StrCat("for (int lane = 0, lane_end = (int)(",
                                     statement.items.empty() ? "lanes" : statement.items,
                                     "); lane < lane_end; ++lane) {"));
        }
        Lines(depth + 1, statement.lines);
        Line(depth, "}");
        break;
      case ir::Statement::Kind::kLeader:
        Line(depth, "{");
        Line(depth + 1, "const int lane = 0; (void)lane;");
        Lines(depth + 1, statement.lines);
        Line(depth, "}");
        break;
      case ir::Statement::Kind::kReduce:
        if (statement.count > 1) {
          Line(depth, absl::StrCat(statement.monoid, "::Acc ", statement.target, "[", statement.count, "];"));
          Line(depth, absl::StrCat("for (int r = 0; r < ", statement.count, "; ++r) ", statement.target,
                                   "[r] = fu_lanes_reduce<", statement.monoid, ", ", statement.count, ">(&",
                                   statement.source, "[0][r], lanes);"));
          break;
        }
        Line(depth,
             absl::StrCat("const ", statement.monoid, "::Acc ", statement.target, " = fu_lanes_reduce<",
                          statement.monoid, ">(", statement.source, ", lanes);"));
        break;
      case ir::Statement::Kind::kZeroWait:
      case ir::Statement::Kind::kBarrier:
        break;
    }
  }

  const ir::Kernel& kernel_;
  std::string out_;
};

}  // namespace

std::string PrintHost(const ir::Kernel& kernel) { return HostPrinter(kernel).Print(); }

}  // namespace fusion
