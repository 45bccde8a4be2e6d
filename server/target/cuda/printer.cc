#include "server/target/printer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/target/cuda/cuda_target.h"

namespace fusion {

namespace {

class CudaPrinter {
 public:
  explicit CudaPrinter(const ir::Kernel& kernel) : kernel_(kernel) {}

  std::string Print() {
    std::vector<std::string> parameters;
    for (const ir::Parameter& parameter : kernel_.parameters)
      parameters.push_back(absl::StrCat(parameter.type, " ", parameter.name));
    if (clusters())
      absl::StrAppend(
          &out_, "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900\n",
          "#error \"clusters of blocks need sm_90 or later: compile with -arch=sm_90\"\n#endif\n");
    absl::StrAppend(&out_, "// ", kernel_.comment, "\nextern \"C\" __global__ void __launch_bounds__(",
                    kernel_.threads, ", ", kernel_.minimum_blocks, ")",
                    clusters() ? absl::StrCat(" __cluster_dims__(", kernel_.cluster_blocks, ", 1, 1)") : "",
                    "\n", kernel_.name, "(", absl::StrJoin(parameters, ", "), ") {\n");
    Line(1, "const fu_index block = blockIdx.x, grid = gridDim.x;");
    if (kernel_.has_shared_memory()) {
      Line(1, "extern __shared__ __align__(128) unsigned char fu_shared[];");
      if (kernel_.kept_bytes > 0) Line(1, "char* kept = (char*)fu_shared;");
      if (kernel_.uses_shared)
        Line(1, absl::StrCat("char* shared = (char*)fu_shared",
                             kernel_.kept_bytes > 0 ? absl::StrCat(" + ", kernel_.kept_bytes) : "", ";"));
    }
    if (const int count = MostReduced(); count > 0) {
      Line(1, absl::StrCat("__shared__ double2 fu_scratch[2][", 32 * count * kernel_.cluster_blocks, "];"));
      Line(1, "int fu_parity = 0;");
    }
    for (const ir::LaneVariable& variable : kernel_.lane_variables)
      Line(1, absl::StrCat(variable.type, " ", variable.name, variable.extents, ";"));
    if (clusters()) Line(1, "fu_cluster_begin();");
    // All blocks of a cooperative launch are on the device at once: those of the next one take no places
    // away.
    Line(1, kernel_.cooperative() ? "fu_launch_begin<true>();" : "fu_launch_begin<false>();");
    PrintZeros();
    for (const ir::Section& section : kernel_.sections) {
      if (kernel_.sections.size() == 1) {
        Print(section, 1);
        break;
      }
      if (&section != &kernel_.sections.front()) Line(1, "fu_grid_barrier();");
      Line(1, "{");
      Print(section, 2);
      Line(1, "}");
    }
    absl::StrAppend(&out_, "}\n");
    return std::move(out_);
  }

 private:
  bool clusters() const { return kernel_.cluster_blocks > 1; }
  static std::string FirstEntry(const std::string& extents) {
    std::string first;
    for (char c : extents)
      if (c == '[') first += "[0]";
    return first;
  }
  // The most values that one reduction of the kernel takes from each lane.
  int MostReduced() const {
    int most = 0;
    for (const ir::Section& section : kernel_.sections) most = std::max(most, MostReduced(section.body));
    return most;
  }
  static int MostReduced(const std::vector<ir::Statement>& body) {
    int most = 0;
    for (const ir::Statement& statement : body)
      most = std::max({most, statement.kind == ir::Statement::Kind::kReduce ? statement.count : 0,
                       MostReduced(statement.body)});
    return most;
  }
  // All blocks set a part; each waits for the others where it first needs the zeros, or at the end of the
  // first section.
  void PrintZeros() {
    if (kernel_.zeroed.empty()) return;
    for (const ir::Zeroed& zeroed : kernel_.zeroed)
      Line(1, absl::StrCat("for (fu_index i = block * ", kernel_.threads, " + threadIdx.x; i < ",
                           zeroed.count, "; i += grid * ", kernel_.threads, ") ", zeroed.pointer,
                           "[i] = ", zeroed.value, ";"));
    for (const ir::Statement& statement : kernel_.sections.front().body) {
      if (statement.kind != ir::Statement::Kind::kZeroWait) continue;
      std::vector<std::string> counts;
      for (const ir::Zeroed& zeroed : kernel_.zeroed)
        counts.push_back(absl::StrCat("block * ", kernel_.threads, " < ", zeroed.count));
      Line(1, absl::StrCat("const unsigned fu_zeros = fu_grid_arrive(", absl::StrJoin(counts, " || "), ");"));
    }
  }
  void Line(int depth, const std::string& text) {
    absl::StrAppend(&out_, std::string(2 * depth, ' '), text, "\n");
  }
  void Lines(int depth, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Line(depth, SubstituteLaneVariables(line, ""));
  }

  void Print(const ir::Section& section, int depth) {
    group_threads_ = section.group_threads;
    const int groups = kernel_.threads / group_threads_, cluster = kernel_.cluster_blocks;
    Line(depth, clusters() ? absl::StrCat("const int lane = (int)(block % ", cluster, ") * ", kernel_.threads,
                                          " + threadIdx.x;")
                : groups == 1 ? "const int lane = threadIdx.x;"
                              : absl::StrCat("const int lane = threadIdx.x % ", group_threads_, ";"));
    Line(depth, absl::StrCat("const int lanes = ", group_threads_, ";"));
    Line(depth, clusters()    ? absl::StrCat("const fu_index group = block / ", cluster, ", groups = grid / ",
                                             cluster, ";")
                : groups == 1 ? "const fu_index group = block, groups = grid;"
                              : absl::StrCat("const fu_index group = block * ", groups, " + threadIdx.x / ",
                                             group_threads_, ", groups = grid * ", groups, ";"));
    Line(depth, "(void)lanes; (void)grid; (void)group; (void)groups;");
    for (const ir::LaneVariable& variable : section.lane_variables) {
      Line(depth, absl::StrCat(variable.type, " ", variable.name, variable.extents, ";"));
      if (variable.initial.empty()) continue;
      if (variable.extents.empty()) {
        Line(depth, absl::StrCat(variable.name, " = ", variable.initial, ";"));
      } else {
        Line(depth, "FUSION_UNROLL");
        Line(depth, absl::StrCat("for (int i = 0; i < ", variable.entries, "; ++i) (&", variable.name,
                                 FirstEntry(variable.extents), ")[i] = ", variable.initial, ";"));
      }
    }
    for (const ir::Statement& statement : section.body) Print(statement, depth);
  }

  void Print(const ir::Statement& statement, int depth) {
    switch (statement.kind) {
      case ir::Statement::Kind::kText:
        Line(depth, statement.text);
        break;
      case ir::Statement::Kind::kLoop:
        if (kernel_.rolled) Line(depth, "FUSION_NO_UNROLL");
        [[fallthrough]];
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
        if (statement.strided)
          Line(depth, absl::StrCat("for (int item = lane; item < ", statement.items, "; item += lanes) {"));
        else
          Line(depth, statement.items.empty() ? "{" : absl::StrCat("if (lane < ", statement.items, ") {"));
        Lines(depth + 1, statement.lines);
        Line(depth, "}");
        break;
      case ir::Statement::Kind::kLeader:
        Line(depth, "if (lane == 0) {");
        Lines(depth + 1, statement.lines);
        Line(depth, "}");
        break;
      case ir::Statement::Kind::kReduce:
        if (statement.count > 1) {
          Line(depth, absl::StrCat(statement.monoid, "::Acc ", statement.target, "[", statement.count, "];"));
          Line(depth, absl::StrCat(Collective("reduce_many"), statement.monoid, ", ", CollectiveThreads(),
                                   ", ", statement.count, ">(", statement.source, ", ", statement.target,
                                   ", (", statement.monoid, "::Acc*)fu_scratch[fu_parity ^= 1]);"));
          break;
        }
        Line(depth,
             absl::StrCat("const ", statement.monoid, "::Acc ", statement.target, " = ", Collective("reduce"),
                          statement.monoid, ", ", CollectiveThreads(), ">(", statement.source, ", (",
                          statement.monoid, "::Acc*)fu_scratch[fu_parity ^= 1]);"));
        break;
      case ir::Statement::Kind::kZeroWait:
        Line(depth, "fu_grid_wait(fu_zeros);");
        break;
      case ir::Statement::Kind::kBarrier:
        Line(depth, absl::StrCat("fu_group_barrier<", group_threads_, ">();"));
        break;
    }
  }

  // A collective of the device runtime for the lanes of a group, as far as its own template arguments.
  std::string Collective(const char* name) const {
    return absl::StrCat(clusters() ? "fu_cluster_" : "fu_group_", name, "<");
  }
  std::string CollectiveThreads() const {
    return clusters() ? absl::StrCat(kernel_.threads, ", ", kernel_.cluster_blocks)
                      : absl::StrCat(group_threads_);
  }

  const ir::Kernel& kernel_;
  int group_threads_ = 0;
  std::string out_;
};

}  // namespace

std::string PrintCuda(const ir::Kernel& kernel) { return CudaPrinter(kernel).Print(); }

}  // namespace fusion
