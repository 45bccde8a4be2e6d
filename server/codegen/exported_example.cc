#include "server/codegen/exported_example.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "library/verification/input_rules.h"
#include "server/codegen/exported_launch.h"
#include "server/codegen/verification.h"
#include "server/target/exported_code.h"

namespace fusion {
namespace {

constexpr double kDefaultTolerance = 1e-4;
// The data of one lane after the other may take so many seconds.
constexpr double kClassSeconds = 2;

class ExamplePrinter {
 public:
  ExamplePrinter(const Graph& graph, const ExportRequest& request)
      : graph_(graph),
        request_(request),
        names_(request.names),
        exported_(request.target.exported()),
        words_(exported_.words()) {
    DescribeBuffers(graph, request.sizes, &session_);
  }

  std::string Print() {
    PrintHead();
    PrintArguments();
    PrintBuffers();
    PrintData();
    PrintChecks();
    out_ += exported_.Runs(names_, Arguments(), IsInPlace());
    PrintOtherData();
    Text("  return good ? 0 : 1;\n}");
    return std::move(out_);
  }

 private:
  template <class... Parts>
  void Text(const Parts&... parts) {
    absl::StrAppend(&out_, parts..., "\n");
  }
  std::string TypeOf(ValueId id) const { return DataTypeCName(graph_.value(id).type.data_type); }
  const std::string& NameOf(ValueId id) const { return graph_.value(id).name; }
  // Input scalars are passed by value, so that there is one entry on the host alone.
  bool IsScalar(ValueId id) const { return graph_.value(id).is_input && graph_.value(id).type.is_scalar(); }
  // The arrays that kernels use. An input that is overwritten stays as it is: its values are copied into the
  // array of the output before a run.
  std::vector<ValueId> Arrays() const {
    std::vector<ValueId> arrays;
    for (const auto* list : {&graph_.inputs(), &graph_.outputs()})
      for (ValueId id : *list)
        if (!IsScalar(id) && !graph_.value(id).overwritten_by) arrays.push_back(id);
    return arrays;
  }
  bool IsInPlace() const {
    return std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                       [&](ValueId id) { return graph_.value(id).memory_of.has_value(); });
  }
  ExportedArray ArrayOf(ValueId id) const {
    return {.name = NameOf(id),
            .type = TypeOf(id),
            .bytes = absl::StrCat("h_", NameOf(id), ".size() * sizeof(", TypeOf(id), ")")};
  }
  // Returns the arguments of fused_launch and fused_graph, up to the workspace.
  std::string Arguments() const {
    std::vector<std::string> arguments;
    for (ValueId id : graph_.inputs())
      arguments.push_back(IsScalar(id)
                              ? absl::StrCat("h_", NameOf(id), "[0]")
                              : exported_.Argument(NameOf(graph_.value(id).overwritten_by.value_or(id))));
    for (ValueId id : graph_.outputs())
      if (!graph_.value(id).memory_of) arguments.push_back(exported_.Argument(NameOf(id)));
    arguments.push_back(SizeList(graph_));
    arguments.push_back("workspace, workspace_bytes");
    return absl::StrJoin(arguments, ", ");
  }

  void PrintHead() {
    Text(
        "// Runs the fused code on several kinds of data, compares it with the f64 reference, and times "
        "it.\n",
        "// Usage: example [size=value]... [--once] [--random]", words_.options,
        "   --once: no more calls than verification needs; --random: on random data alone",
        words_.options_comment,
        "; sizes: ", absl::StrJoin(graph_.sizes(), ", ", [&](std::string* out, const Size& size) {
          absl::StrAppend(out, size.name, "=", request_.sizes.at(size.name));
        }));
    Text(
        "#include <algorithm>\n#include <chrono>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n"
        "#include <cstring>\n#include <vector>\n\n",
        names_.In("#include \"fused.h\"\n"), "#include \"verification.h\"\n");
    out_ += words_.example_includes;
    Text(names_.In("int fused_reference("), ReferenceParameters(graph_), ");\n");
    Text(
        "// False: no whole number from 0.\n"
        "inline bool ParseSize(const char* text, int64_t* size) {\n  char* end = nullptr;\n"
        "  *size = std::strtoll(text, &end, 10);\n  return end != text && *end == 0 && *size >= 0;\n}\n");
  }

  void PrintArguments() {
    Text("int main(int argc, char** argv) {");
    for (const Size& size : graph_.sizes())
      Text("  int64_t n_", size.name, " = ", request_.sizes.at(size.name), ";");
    out_ += words_.option_variables;
    Text(
        "  int runs = 10;\n  bool random_alone = false;\n  for (int i = 1; i < argc; ++i) {\n"
        "    const char* equals = std::strchr(argv[i], '=');\n"
        "    const size_t length = equals ? (size_t)(equals - argv[i]) : 0;\n"
        "    bool known = !std::strcmp(argv[i], \"--once\");\n    if (known) runs = 1;\n"
        "    if (!std::strcmp(argv[i], \"--random\")) known = random_alone = true;");
    out_ += words_.option_parsing;
    for (const Size& size : graph_.sizes())
      Text("    if (equals && length == ", size.name.size(), " && !std::strncmp(argv[i], \"", size.name,
           "\", length)) known = ParseSize(equals + 1, &n_", size.name, ");");
    Text("    if (!known) {\n      std::fprintf(stderr, \"argument %s: unknown, or no size; usage: %s ",
         absl::StrJoin(
             graph_.sizes(), " ",
             [](std::string* out, const Size& size) { absl::StrAppend(out, "[", size.name, "=SIZE]"); }),
         " [--once] [--random]", words_.options, "\\n\", argv[i], argv[0]);\n      return 2;\n    }\n  }");
    for (const std::string& condition : ShortRows(graph_))
      Text("  if (", condition, ") {\n    std::fprintf(stderr, \"", condition,
           ": a leading dimension must not be smaller than its rows are long\\n\");\n    return 2;\n  }");
  }

  void PrintBuffers() {
    for (ValueId id : graph_.inputs())
      Text("  std::vector<", TypeOf(id), "> h_", NameOf(id), "(", EntriesText(graph_.value(id)),
           ");\n  std::vector<double> d_", NameOf(id), ";");
    for (ValueId id : graph_.outputs())
      Text("  std::vector<", TypeOf(id), "> h_", NameOf(id), "(", EntriesText(graph_.value(id)), ");");
    Text("  const size_t workspace_bytes = ", names_.In("fused_workspace_bytes("), SizeList(graph_), ");");
    std::vector<ExportedArray> arrays;
    for (ValueId id : Arrays()) arrays.push_back(ArrayOf(id));
    out_ += exported_.Allocate(arrays);
  }

  // Rows, columns and entries from one row to the next, as MakeBuffer and RuleOf have them.
  std::string ShapeText(ValueId id) const {
    const Value& value = graph_.value(id);
    std::vector<std::string> shape;
    for (int extent : value.type.element_shape) shape.push_back(absl::StrCat(extent));
    if (!value.type.mapped)
      for (const Extent& extent : value.type.extents) shape.push_back(ExtentText(extent));
    if (shape.empty()) shape.push_back(EntriesText(value));
    const std::string stride =
        shape.size() > 1 && value.leading_dimension ? ExtentText(*value.leading_dimension) : shape.back();
    return absl::StrCat("{", shape.size() > 1 ? shape[0] : "1", ", ", shape.back(), ", ", stride, "}");
  }

  static std::string Number(double number) { return absl::StrFormat("%.17g", number); }

  // An initialiser of InputRule; `phase`: its last member.
  std::string RuleText(size_t input, const DataPattern& pattern, const std::string& phase) const {
    const InputRule rule = RuleOf(session_.inputs(static_cast<int>(input)), pattern);
    const std::string shape = absl::StrCat("shapes[", input, "]");
    // Roots of parts of the columns, whose number is known at run time.
    const bool of_columns = rule.kind == v1::InputValues::UNIT_ROWS;
    const auto bound = [&](double number, const char* of_one) {
      return of_columns ? absl::StrCat("std::sqrt(", of_one, " / (double)", shape, "[1])") : Number(number);
    };
    return absl::StrCat("{", rule.kind, ", ", rule.bits, ", ", bound(rule.lower, "2.0"), ", ",
                        bound(rule.upper, "1.0"), ", ", Number(rule.unit), ", ", rule.nonzero, ", ", shape,
                        "[0], ", shape, "[1], ", shape, "[2], ", rule.peaks, ", ", Number(rule.peak_lower),
                        ", ", Number(rule.peak_upper), ", ", rule.step, ", ", phase, "}");
  }
  std::string DataText(const DataPattern& pattern, const std::string& phase) const {
    const bool whole =
        pattern.kind == DataPattern::Kind::kWhole || pattern.kind == DataPattern::Kind::kNegative;
    std::vector<std::string> rules;
    for (size_t i = 0; i < graph_.inputs().size(); ++i) rules.push_back(RuleText(i, pattern, phase));
    return absl::StrCat("{\"", fusion::NameOf(pattern.kind), pattern.small ? ", far below 0" : "", "\", ",
                        whole ? "true" : "false", ", {", absl::StrJoin(rules, ",\n         "), "}}");
  }

  void PrintData() {
    std::vector<std::string> shapes;
    for (ValueId id : graph_.inputs()) shapes.push_back(ShapeText(id));
    Text("\n  // Of each input: rows, columns, entries from one row to the next.\n  int64_t shapes[][3] = {",
         absl::StrJoin(shapes, ", "), "};");
    Text(
        "  for (auto& shape : shapes)\n    for (int64_t& extent : shape) extent = std::max<int64_t>(extent, "
        "1);");
    Text(
        "  // The first is what is timed. Numbers are those of InputRule, by input.\n"
        "  const std::vector<fusion::ExampleData> kinds = {");
    std::vector<DataPattern> patterns = {{}};
    for (const DataPattern& pattern : PatternsOf(session_)) patterns.push_back(pattern);
    for (const DataPattern& pattern : patterns) Text("      ", DataText(pattern, "0"), ",");
    Text("  };");
  }

  void PrintChecks() {
    Text("\n  uint64_t key = 0;");
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      if (const ValueId id = graph_.inputs()[i]; IsScalar(id))
        Text("  fusion::FillInput(kinds[0].rules[", i, "], ", i, ", &h_", NameOf(id), ", &d_", NameOf(id),
             ");");
    Text("  const auto fill = [&](const fusion::ExampleData& data) {\n    ++key;\n    (void)data;");
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId id = graph_.inputs()[i];
      if (IsScalar(id)) continue;
      Text("    fusion::FillInput(data.rules[", i, "], 1000 * key + ", i, ", &h_", NameOf(id), ", &d_",
           NameOf(id), ");");
      if (!graph_.value(id).overwritten_by) out_ += exported_.CopyIn(ArrayOf(id));
    }
    Text("    return 0;\n  };");
    Text("  // All outputs are NaN before: one that is not written cannot pass.",
         IsInPlace() ? " Those in the memory of inputs are these inputs." : "",
         "\n  const auto poison = [&] {");
    for (ValueId id : graph_.outputs()) {
      const std::optional<ValueId> input = graph_.value(id).memory_of;
      out_ += input ? exported_.Restore(ArrayOf(id), NameOf(*input)) : exported_.Poison(ArrayOf(id));
    }
    Text("    return 0;\n  };");
    PrintReference();
    Text("  bool good = true;\n  const auto judge = [&](const fusion::ExampleData& data, bool quiet) {");
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const std::string& name = NameOf(graph_.outputs()[i]);
      out_ += exported_.CopyOut(ArrayOf(graph_.outputs()[i]));
      Text("    good = reference.Judge(", i, ", h_", name, ", data, quiet) && good;");
    }
    Text("    return 0;\n  };");
    Text(names_.In(
        "  const auto begin = [&](const fusion::ExampleData& data) {\n"
        "    if (fill(data) != 0 || poison() != 0) return 1;\n    if (reference.Renew(data)) return 0;\n"
        "    std::fprintf(stderr, \"fused_reference failed\\n\");\n    return 1;\n  };"));
    Text("  const auto launch = [&] {\n    const int code = ", names_.In("fused_launch("), Arguments(),
         words_.last_argument,
         names_.In(");\n    if (code != FUSED_OK) std::fprintf(stderr, \"fused_launch: %s\\n\", "
                   "fused_error_string(code));\n"
                   "    return code;\n  };"));
    Text("  if (begin(kinds[0]) != 0) return 1;");
  }

  void PrintReference() {
    std::vector<std::string> outputs, arguments;
    for (ValueId id : graph_.inputs())
      arguments.push_back(absl::StrCat("d_", NameOf(id), IsScalar(id) ? "[0]" : ".data()"));
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Value& value = graph_.value(graph_.outputs()[i]);
      const double tolerance = i < request_.tolerances.size() ? request_.tolerances[i] : kDefaultTolerance;
      outputs.push_back(absl::StrCat("{\"", value.name, "\", ", EntriesText(value), ", ",
                                     value.type.data_type == v1::F64 ? "false" : "true", ", ",
                                     absl::StrFormat("%.3g", tolerance), ", ",
                                     session_.whole_outputs(static_cast<int>(i)) ? "true" : "false", "}"));
      arguments.push_back(absl::StrCat("(*results)[", i, "].data()"));
    }
    arguments.push_back(SizeList(graph_));
    arguments.push_back("trial");
    Text(
        "  // Name, entries, whether in f32, tolerance, whether whole where the inputs are.\n"
        "  fusion::ExampleReference reference(\n      {",
        absl::StrJoin(outputs, ",\n       "),
        "},\n      [&](int trial, fusion::ExampleReference::Results* results) {\n        return ",
        names_.In("fused_reference("), absl::StrJoin(arguments, ", "), ") == 0;\n      });");
  }

  void PrintOtherData() {
    Text(names_.In(
        "  // Data in which each part of the computation shows: a tolerance cannot hide it.\n"
        "  const auto run_on = [&](const fusion::ExampleData& data) {\n"
        "    return begin(data) == 0 && launch() == FUSED_OK && judge(data, true) == 0;\n  };\n"
        "  if (random_alone) return good ? 0 : 1;\n"
        "  for (size_t kind = 1; kind < kinds.size(); ++kind)\n    if (!run_on(kinds[kind])) return 1;\n"
        "  std::printf(\"%d other kinds of data: %s\\n\", (int)kinds.size() - 1, good ? \"OK\" : "
        "\"WRONG\");"));
    int64_t lanes = 0;
    for (const FusionCode* code : request_.fusions)
      for (const KernelLaunch& launch : code->launches)
        lanes = std::max<int64_t>(lanes, launch.kernel.threads);
    const std::vector<DataPattern> classes = ClassPatterns(session_, lanes);
    if (classes.empty()) return;
    const size_t runs = classes.size() / 2;  // each with large entries and with small ones
    Text(
        "  // Where results are chosen among many entries: those of one lane after the other dominate.\n"
        "  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(",
        static_cast<int>(kClassSeconds * 1000), ");\n  for (int64_t run = 0; run < ", runs,
        " && std::chrono::steady_clock::now() < until; ++run) {\n    const int64_t phase = run * ",
        runs > 1 ? classes[2].phase : 0, " % ", classes[0].step,
        ";\n    for (const fusion::ExampleData& data :\n         std::vector<fusion::ExampleData>{",
        DataText(classes[0], "phase"), ",\n             ", DataText(classes[1], "phase"),
        "})\n      if (!run_on(data)) return 1;\n  }");
  }

  const Graph& graph_;
  const ExportRequest& request_;
  const ExportedNames& names_;
  const ExportedCode& exported_;
  const ExportedWords& words_;
  v1::Session session_;
  std::string out_;
};

}  // namespace

std::string PrintExample(const Graph& graph, const ExportRequest& request) {
  return ExamplePrinter(graph, request).Print();
}

}  // namespace fusion
