#include "server/codegen/exported_launch.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/verification.h"
#include "server/plan/grid.h"
#include "server/target/exported_code.h"

namespace fusion {
namespace {

// The name of an input or output in a definition. None of our names begins so, nor do words and macros of
// C++.
std::string DefinedName(const Value& value) { return "v_" + value.name; }

// The inputs and outputs that the exported functions have as parameters. An output in the memory of an input
// is that parameter, but for the reference, which has memory of its own for all that it computes.
std::vector<ValueId> ParameterValues(const Graph& graph, bool reference) {
  std::vector<ValueId> values = graph.inputs();
  for (ValueId id : graph.outputs())
    if (reference || !graph.value(id).memory_of) values.push_back(id);
  return values;
}

// The names that inputs and outputs have as parameters: those for people, or those of definitions.
enum class Names { kDeclared, kDefined };

std::string Parameters(const Graph& graph, bool force_f64, Names names) {
  std::string text;
  const auto name = [&](const Value& value) {
    return names == Names::kDeclared ? ParameterName(value) : DefinedName(value);
  };
  auto type = [&](const Value& value) { return force_f64 ? "double" : DataTypeCName(value.type.data_type); };
  for (ValueId id : ParameterValues(graph, force_f64)) {
    const Value& value = graph.value(id);
    const bool by_value = value.is_input && value.type.is_scalar();
    const bool written = !value.is_input || (value.overwritten_by && !force_f64);
    absl::StrAppend(&text, by_value || written ? "" : "const ", type(value), by_value ? " " : "* ",
                    name(value), ", ");
  }
  for (const Size& size : graph.sizes()) absl::StrAppend(&text, "int64_t n_", size.name, ", ");
  return text;
}

std::string WithWorkspace(const std::string& parameters) {
  return absl::StrCat(parameters, "void* workspace_memory, size_t workspace_bytes");
}
std::string DefinedLaunchParameters(const Graph& graph) {
  return WithWorkspace(Parameters(graph, false, Names::kDefined));
}

class LaunchPrinter {
 public:
  LaunchPrinter(const Graph& graph, const std::vector<const FusionCode*>& fusions,
                const LaunchCodeOptions& options)
      : graph_(graph),
        fusions_(fusions),
        options_(options),
        names_(options.names),
        words_(options.target.exported().words()) {
    for (const FusionCode* code : fusions_)
      for (const KernelLaunch& launch : code->launches)
        for (const KernelArgument& argument : launch.arguments) {
          if (argument.kind != KernelArgument::Kind::kPointer) continue;
          const Value& value = graph_.value(argument.value);
          if (value.producer && !value.is_output) temporaries_.insert(argument.value);
        }
  }

  std::string Print() {
    if (!options_.reference) out_ += words_.launch_includes;
    Text("namespace {\n");
    Text("// Where intermediate results lie in the workspace, and the grids.\nstruct FusedLayout {");
    for (ValueId id : temporaries_) Text(absl::StrCat("  size_t t_", graph_.value(id).name, " = 0;"));
    for (size_t f = 0; f < fusions_.size(); ++f) {
      for (size_t k = 0; k < fusions_[f]->launches.size(); ++k)
        Text(absl::StrCat("  int64_t grid_", f, "_", k, " = 1;"));
      for (size_t s = 0; s < fusions_[f]->workspace.size(); ++s)
        Text(absl::StrCat("  size_t w_", f, "_", s, " = 0;"));
    }
    Text("  size_t bytes = 0;\n};\n");
    Text("[[maybe_unused]] size_t FusedAlign(size_t bytes) { return (bytes + 255) / 256 * 256; }\n");
    Text(
        "[[maybe_unused]] int64_t FusedBlocks(int64_t items, int64_t per_block, int64_t most) {\n"
        "  int64_t blocks = (items + per_block - 1) / per_block;\n"
        "  return blocks < 1 ? 1 : blocks < most ? blocks : most;\n}\n"
        "[[maybe_unused]] size_t FusedLarger(size_t a, size_t b) { return a < b ? b : a; }\n");
    Text(absl::StrCat("FusedLayout FusedMakeLayout(int64_t multiprocessors",
                      SizeParameters().empty() ? "" : ", ", SizeParameters(), ") {"));
    Text("  (void)multiprocessors;\n  FusedLayout layout;");
    for (ValueId id : temporaries_) {
      Text(absl::StrCat("  layout.t_", graph_.value(id).name, " = layout.bytes;"));
      Text(absl::StrCat("  layout.bytes += FusedAlign((size_t)(", EntriesText(graph_.value(id)), ") * ",
                        TypeBytes(id), ");"));
    }
    Text(
        "  // Scratch is shared by the fusions, which run one after the other.\n"
        "  const size_t results = layout.bytes;\n  [[maybe_unused]] size_t scratch = results, most = "
        "results;");
    for (size_t f = 0; f < fusions_.size(); ++f) {
      const FusionCode& code = *fusions_[f];
      for (size_t k = 0; k < code.launches.size(); ++k) {
        const GridRule& grid = code.launches[k].grid;
        if (grid.extents.empty()) continue;
        std::string most =
            grid.blocks_per_multiprocessor == 0
                ? absl::StrCat(kMaxGridBlocks)
                : absl::StrCat(MultiprocessorsText(grid), " * ", grid.blocks_per_multiprocessor);
        const std::string cluster = TogetherText(grid);
        if (!cluster.empty())
          most = absl::StrCat("(int64_t)FusedLarger(1, (size_t)(", most, ") / ", cluster, ")");
        Text(absl::StrCat(
            "  layout.grid_", f, "_", k, " = FusedBlocks(",
            absl::StrJoin(grid.extents, " * ",
                          [](std::string* out, const Extent& e) { absl::StrAppend(out, ExtentText(e)); }),
            ", ", grid.items_per_block, ", ", most, ")", cluster.empty() ? "" : " * ", cluster, ";"));
      }
      if (code.workspace.empty()) continue;
      Text("  scratch = results;");
      for (size_t s = 0; s < code.workspace.size(); ++s) {
        const WorkspaceSlot& slot = code.workspace[s];
        Text(absl::StrCat("  layout.w_", f, "_", s, " = scratch;"));
        const std::string groups =
            slot.per_part    ? absl::StrCat(TogetherText(code.launches[slot.launch].grid), " * ")
            : slot.per_group ? absl::StrCat(GroupsText(static_cast<int>(f), slot.launch), " * ")
                             : "";
        Text(absl::StrCat("  scratch += FusedAlign((size_t)(", groups, ExtentText(slot.extent), ") * ",
                          slot.entry_bytes, ");"));
      }
      Text("  most = scratch > most ? scratch : most;");
    }
    Text("  layout.bytes = most;\n  return layout;\n}\n}  // namespace\n");
    if (options_.reference) {
      PrintReference();
    } else {
      out_ += words_.launch_support;
      PrintLaunch();
      PrintGraph();
    }
    return std::move(out_);
  }

 private:
  void Text(const std::string& line) { absl::StrAppend(&out_, line, "\n"); }
  std::string GroupsText(int fusion, int launch) const {
    const GridRule& grid = fusions_[fusion]->launches[launch].grid;
    const std::string together = TogetherText(grid);
    return absl::StrCat("layout.grid_", fusion, "_", launch, together.empty() ? "" : " / " + together, " * ",
                        grid.groups_per_block);
  }
  // GridMultiprocessors.
  static std::string MultiprocessorsText(const GridRule& grid) {
    return grid.cluster_blocks > 2
               ? absl::StrCat("multiprocessors * ", kLargeClusterShare[0], " / ", kLargeClusterShare[1])
               : "multiprocessors";
  }
  // Blocks that the rule counts as one; empty: 1.
  static std::string TogetherText(const GridRule& grid) {
    if (grid.part_entries > 0)
      return absl::StrCat("FusedBlocks(", ExtentText(grid.parts), ", ", grid.part_entries, ", ",
                          kMaxGridBlocks, ")");
    return grid.cluster_blocks > 1 ? absl::StrCat(grid.cluster_blocks) : "";
  }
  std::string SizeParameters() const { return SizeList(graph_, "int64_t "); }
  std::string SizeArguments() const {
    std::string text;
    for (const Size& size : graph_.sizes()) absl::StrAppend(&text, ", n_", size.name);
    return text;
  }
  int TypeBytes(ValueId id) const {
    return options_.force_f64 ? 8 : DataTypeBytes(graph_.value(id).type.data_type);
  }

  void PrintReference() {
    Text(absl::StrCat(names_.In("int fused_reference("), ReferenceParameters(graph_), ") {"));
    Text(absl::StrCat("  const FusedLayout layout = FusedMakeLayout(64", SizeArguments(), ");"));
    Text("  (void)trial;\n  std::vector<double> memory(layout.bytes / sizeof(double) + 32);");
    Text(
        "  char* const workspace = (char*)(((uintptr_t)memory.data() + 255) / 256 * 256);\n  "
        "(void)workspace;");
    PrintLaunches();
    Text("  return 0;\n}");
  }

  void PrintLaunch() {
    Text(names_.In(absl::StrCat(
        "extern \"C\" const char* fused_error_string(int code) {\n  switch (code) {\n    case FUSED_OK:\n    "
        "  return \"ok\";\n"
        "    case FUSED_INVALID_ARGUMENT:\n      return \"a size is negative",
        ShortRows(graph_).empty() ? "" : ", a leading dimension is smaller than its rows are long",
        words_.invalid_argument_text,
        " or a pointer is null\";\n"
        "    case FUSED_SIZE_TOO_LARGE:\n      return \"a size is larger than these kernels were specialised "
        "for\";\n"
        "    case FUSED_WORKSPACE_TOO_SMALL:\n      return \"the workspace is smaller than "
        "fused_workspace_bytes\";\n"
        "    case FUSED_DEVICE_ERROR:\n      return \"a kernel launch",
        words_.device_error_text, " failed\";\n  }\n  return \"unknown code\";\n}\n")));
    Text(absl::StrCat("static int64_t FusedMultiprocessors() {\n", words_.multiprocessors, "}\n"));
    Text(absl::StrCat(names_.In("extern \"C\" size_t fused_workspace_bytes("), SizeParameters(),
                      ") {\n  return FusedMakeLayout(FusedMultiprocessors()", SizeArguments(),
                      ").bytes;\n}\n"));
    Text(absl::StrCat(names_.In("extern \"C\" int fused_check_sizes("), SizeParameters(), ") {"));
    for (const Size& size : graph_.sizes())
      Text(absl::StrCat("  if (n_", size.name, names_.In(" < 0) return FUSED_INVALID_ARGUMENT;")));
    for (const std::string& condition : ShortRows(graph_))
      Text(absl::StrCat("  if (", condition, names_.In(") return FUSED_INVALID_ARGUMENT;")));
    for (const FusionCode* code : fusions_)
      for (const FusionCode::ExtentLimit& limit : code->limits)
        Text(absl::StrCat("  if (", ExtentText(limit.extent), " > ", limit.limit,
                          names_.In(") return FUSED_SIZE_TOO_LARGE;")));
    Text(names_.In("  return FUSED_OK;\n}"));
    Text(absl::StrCat(names_.In("extern \"C\" int fused_launch("), DefinedLaunchParameters(graph_),
                      words_.last_parameter, ") {"));
    Text(names_.In(absl::StrCat("  if (const int code = fused_check_sizes(",
                                absl::StripPrefix(SizeArguments(), ", "),
                                "); code != FUSED_OK) return code;")));
    for (ValueId id : ParameterValues(graph_, false)) {
      const Value& value = graph_.value(id);
      if (value.is_input && value.type.is_scalar()) continue;
      Text(absl::StrCat("  if (", DefinedName(value), " == nullptr && ", EntriesText(value),
                        names_.In(" > 0) return FUSED_INVALID_ARGUMENT;")));
    }
    Text(absl::StrCat("  const FusedLayout layout = FusedMakeLayout(FusedMultiprocessors()", SizeArguments(),
                      ");"));
    Text(names_.In(
        "  if (layout.bytes > 0 && (workspace_memory == nullptr || workspace_bytes < layout.bytes)) return "
        "FUSED_WORKSPACE_TOO_SMALL;\n  char* const workspace = (char*)workspace_memory;\n  "
        "(void)workspace;"));
    PrintLaunches();
    Text(names_.In("  return FUSED_OK;\n}"));
  }

  void PrintGraph() {
    std::set<std::string> kernels;
    for (const FusionCode* code : fusions_)
      for (const KernelLaunch& launch : code->launches)
        for (const ir::Kernel& kernel : LaunchableKernels(launch)) kernels.insert(kernel.name);
    std::vector<std::string> arguments;
    for (ValueId id : ParameterValues(graph_, false)) arguments.push_back(DefinedName(graph_.value(id)));
    for (const Size& size : graph_.sizes()) arguments.push_back(absl::StrCat("n_", size.name));
    out_ +=
        options_.target.exported().Graph(names_, DefinedLaunchParameters(graph_),
                                         {kernels.begin(), kernels.end()}, absl::StrJoin(arguments, ", "));
  }

  std::string ArgumentText(size_t f, const KernelArgument& argument) const {
    switch (argument.kind) {
      case KernelArgument::Kind::kPointer: {
        const Value& value = graph_.value(argument.value);
        if (!temporaries_.count(argument.value))
          return DefinedName(value.memory_of && !options_.reference ? graph_.value(*value.memory_of) : value);
        const std::string type = options_.force_f64 ? "double" : DataTypeCName(value.type.data_type);
        return absl::StrCat("(", type, "*)(workspace + layout.t_", value.name, ")");
      }
      case KernelArgument::Kind::kScalar:
        return DefinedName(graph_.value(argument.value));
      case KernelArgument::Kind::kSize:
        return absl::StrCat("(fu_index)n_", argument.size);
      case KernelArgument::Kind::kWorkspace:
        return absl::StrCat("(", absl::StripSuffix(argument.c_type, " FUSION_RESTRICT"),
                            ")(workspace + layout.w_", f, "_", argument.index, ")");
      case KernelArgument::Kind::kGroups:
        return absl::StrCat("(fu_index)(", GroupsText(f, argument.index), ")");
    }
    return "";
  }

  void PrintLaunches() {
    for (size_t f = 0; f < fusions_.size(); ++f)
      for (size_t k = 0; k < fusions_[f]->launches.size(); ++k) {
        const KernelLaunch& launch = fusions_[f]->launches[k];
        std::vector<std::string> arguments;
        for (const KernelArgument& argument : launch.arguments)
          arguments.push_back(ArgumentText(f, argument));
        Text("  {");
        PrintArguments(launch, arguments, options_.reference && Rounds(*fusions_[f]));
        out_ += options_.target.exported().Launch(names_, {.kernel = KernelText(launch),
                                                           .grid = absl::StrCat("layout.grid_", f, "_", k),
                                                           .shared_bytes = SharedBytesText(launch),
                                                           .threads = launch.kernel.threads,
                                                           .uses_shared = launch.kernel.has_shared_memory(),
                                                           .cooperative = launch.kernel.cooperative()});
        if (options_.reference) PrintChanges(launch);
        Text("  }");
      }
  }

  std::string SharedBytesText(const KernelLaunch& launch) const {
    std::string shared = "(size_t)0";
    for (const SharedRule& rule : launch.shared) {
      std::string bytes = absl::StrCat("(size_t)(", rule.fixed_bytes);
      if (rule.bytes_per_entry > 0)
        absl::StrAppend(&bytes, " + ", rule.bytes_per_entry, " * ", ExtentText(rule.extent));
      bytes += ")";
      shared =
          &rule == &launch.shared.front() ? bytes : absl::StrCat("FusedLarger(", shared, ", ", bytes, ")");
    }
    return shared;
  }

  // ", 3, true": behind the trial, what tells values apart, and how far rounding changes them.
  std::string ChangeText(ValueId id) const {
    const bool any_f32 = std::any_of(graph_.outputs().begin(), graph_.outputs().end(), [&](ValueId output) {
      return graph_.value(output).type.data_type == v1::F32;
    });
    return absl::StrCat(", ", id.value, ", ", any_f32 ? "true" : "false");
  }
  // Returns whether rounding can change anything that the code computes.
  bool Rounds(const FusionCode& code) const {
    return std::any_of(code.launches.begin(), code.launches.end(), [&](const KernelLaunch& launch) {
      return std::any_of(launch.arguments.begin(), launch.arguments.end(),
                         [&](const KernelArgument& of) { return IsRoundedResult(graph_, of); });
    });
  }
  // In trials the reference changes those of its results that rounding can change.
  void PrintChanges(const KernelLaunch& launch) {
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const KernelArgument& argument = launch.arguments[i];
      if (!IsRoundedResult(graph_, argument)) continue;
      Text(absl::StrCat("    fusion::ChangeEntries(argument_", i, ", ",
                        EntriesText(graph_.value(argument.value)), ", trial", ChangeText(argument.value),
                        ");"));
    }
  }

  // The kernel that serves, behind the values of its arguments.
  std::string KernelText(const KernelLaunch& launch) const {
    const std::string prefix = options_.reference ? "reference_" : "";
    const std::string any = prefix + LaunchedName(launch, false);
    if (!launch.whole || options_.reference) return any;
    std::vector<std::string> conditions;
    for (const WholeCondition::OfSize& rule : launch.whole->sizes) {
      const std::string size = ExtentText(rule.extent);
      std::string condition;
      switch (rule.kind) {
        case WholeCondition::OfSize::Kind::kEquals:
          condition = absl::StrCat(size, " == ", rule.number);
          break;
        case WholeCondition::OfSize::Kind::kAtLeast:
          condition = absl::StrCat(size, " >= ", rule.number);
          break;
        case WholeCondition::OfSize::Kind::kMultiple:
          condition = absl::StrCat(size, " > 0 && ", size, " % ", rule.number, " == 0");
          break;
      }
      if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end())
        conditions.push_back(std::move(condition));
    }
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const KernelArgument& argument = launch.arguments[i];
      if (argument.kind == KernelArgument::Kind::kPointer && Contains(launch.whole->aligned, argument.value))
        conditions.push_back(absl::StrCat("(uintptr_t)argument_", i, " % ", kPointerAlignment, " == 0"));
    }
    if (conditions.empty()) return LaunchedName(launch, true);
    return absl::StrCat("(", absl::StrJoin(conditions, " && "), " ? ", LaunchedName(launch, true), " : ", any,
                        ")");
  }

  // `arguments`: the addresses of the values of the kernel's parameters. `changes`: in trials, inputs are
  // changed.
  void PrintArguments(const KernelLaunch& launch, const std::vector<std::string>& values, bool changes) {
    if (changes) Text("    std::vector<std::vector<double>> copies;");
    std::vector<std::string> addresses;
    for (size_t i = 0; i < values.size(); ++i) {
      const KernelArgument& argument = launch.arguments[i];
      const absl::string_view type = absl::StripSuffix(argument.c_type, " FUSION_RESTRICT");
      const bool is_changed =
          changes && argument.kind == KernelArgument::Kind::kPointer && graph_.value(argument.value).is_input;
      const std::string value = is_changed ? absl::StrCat("fusion::ChangedInput(", values[i], ", ",
                                                          EntriesText(graph_.value(argument.value)),
                                                          ", trial", ChangeText(argument.value), ", &copies)")
                                           : values[i];
      Text(absl::StrCat("    ", type, " argument_", i, " = ", value, ";"));
      addresses.push_back(absl::StrCat("(void*)&argument_", i));
    }
    Text(absl::StrCat("    void*", words_.argument_qualifier, " arguments[] = {",
                      absl::StrJoin(addresses, ", "), "};"));
  }

  const Graph& graph_;
  const std::vector<const FusionCode*>& fusions_;
  const LaunchCodeOptions& options_;
  const ExportedNames& names_;
  const ExportedWords& words_;
  std::set<ValueId> temporaries_;
  std::string out_;
};

}  // namespace

std::string ExtentText(const Extent& extent) {
  return extent.name.empty() ? absl::StrCat("INT64_C(", extent.constant, ")") : "n_" + extent.name;
}

std::string SizeList(const Graph& graph, const std::string& before) {
  return absl::StrJoin(graph.sizes(), ", ", [&](std::string* out, const Size& size) {
    absl::StrAppend(out, before, "n_", size.name);
  });
}

std::string ParameterName(const Value& value) {
  static const std::set<absl::string_view> kTaken = {
      // C++20
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case",
      "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "const", "consteval",
      "constexpr", "constinit", "const_cast", "continue", "co_await", "co_return", "co_yield", "decltype",
      "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern",
      "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
      "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public",
      "register", "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static",
      "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true",
      "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
      "wchar_t", "while", "xor", "xor_eq",
      // C, and GNU's
      "restrict", "typeof", "typeof_unqual", "fortran",
      // parameters of the exported functions, and types that they have
      "workspace_memory", "workspace_bytes", "stream", "repetitions", "graph_exec", "size_t", "int64_t",
      "cudaStream_t", "cudaGraphExec_t",
      // macros of C's headers and of compilers, with others below
      "EOF", "NAN", "I", "complex", "imaginary", "noreturn", "errno", "stdin", "stdout", "stderr", "assert",
      "linux", "unix", "i386", "arm", "mips", "sparc"};
  const std::string& name = value.name;
  // INFINITY, NULL, M_PI: macros have no small letters.
  const bool as_macro = name.size() > 2 && std::none_of(name.begin(), name.end(), absl::ascii_islower) &&
                        std::count_if(name.begin(), name.end(), absl::ascii_isupper) > 1;
  // Names like those of sizes get what no size begins with, so that no two become one.
  absl::string_view like_size = name;
  while (absl::ConsumePrefix(&like_size, "v_")) continue;
  if (absl::StartsWith(like_size, "n_")) return "v_" + name;
  const bool taken =
      as_macro || kTaken.count(name) > 0 || absl::StartsWith(name, "FUSED_") || absl::StartsWith(name, "_");
  // Names that end with an underscore get another, so that no two become one.
  return taken || absl::EndsWith(name, "_") ? name + "_" : name;
}

std::string EntriesText(const Value& value) {
  std::vector<std::string> factors;
  for (const Extent& extent : value.type.extents) factors.push_back(ExtentText(extent));
  if (value.leading_dimension) factors.back() = ExtentText(*value.leading_dimension);
  if (value.type.mapped && value.type.element_entries() > 1)
    factors.push_back(absl::StrCat(value.type.element_entries()));
  return factors.empty() ? "1" : absl::StrJoin(factors, " * ");
}

std::vector<std::string> ShortRows(const Graph& graph) {
  std::set<std::string> conditions;
  for (const Value& value : graph.values())
    if (value.leading_dimension && !value.type.extents.empty())
      conditions.insert(
          absl::StrCat(ExtentText(*value.leading_dimension), " < ", ExtentText(value.type.extents.back())));
  return {conditions.begin(), conditions.end()};
}

std::string LaunchParameters(const Graph& graph) {
  return WithWorkspace(Parameters(graph, false, Names::kDeclared));
}
std::string ReferenceParameters(const Graph& graph) {
  return absl::StrCat(Parameters(graph, true, Names::kDefined), "int trial");
}

std::string PrintLaunchCode(const Graph& graph, const std::vector<const FusionCode*>& fusions,
                            const LaunchCodeOptions& options) {
  return LaunchPrinter(graph, fusions, options).Print();
}

}  // namespace fusion
