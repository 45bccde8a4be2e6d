#include "server/loop_kernels/exported_loops.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/codegen/device_runtime.h"
#include "server/loop_kernels/device_text.h"
#include "server/loops/build_c.h"
#include "server/loops/nest.h"
#include "server/target/exported_code.h"

namespace fusion {
namespace {

constexpr char kLicence[] = "// SPDX-License-Identifier: Apache-2.0\n";

class FolderPrinter {
 public:
  FolderPrinter(const LoopsExport& request, const LoopCode& code)
      : request_(request), code_(code), interface_(request.interface), words_(request.target.exported().words()) {}

  v1::Artifact Print() {
    const std::string suffix = request_.target.suffix(), name = request_.names.name();
    Add("CMakeLists.txt", request_.names.In(request_.target.exported().BuildFile(request_.arch)), false);
    Add("README.md", Readme(), false);
    Add("example." + suffix, Example());
    Add(absl::StrCat(name, ".", suffix), Source());
    Add(name + ".h", Header());
    Add("fusion_device.h", DeviceRuntime());
    Add("reference.cc", absl::StrCat("// The loops as they were written, one iteration after the other, in f64: the reference of the example.\n#include <math.h>\n#include <stdlib.h>\n\n",
                                     PrintSerial(request_.program, interface_, request_.parameters, request_.names.In("fused_reference"), true)));
    Add("loops.c", request_.text, false);
    return std::move(artifact_);
  }

 private:
  void Add(const std::string& path, std::string content, bool licence = true) {
    v1::ArtifactFile* file = artifact_.add_files();
    file->set_path(path);
    file->set_content(licence ? kLicence + content : std::move(content));
  }

  // "int n, float alpha, const float* a, float* c".
  std::string Parameters() const {
    std::vector<std::string> parameters;
    for (const std::string& integer : interface_.integers) parameters.push_back("int " + DeviceName(integer));
    for (const CVariable& scalar : interface_.scalars) parameters.push_back(absl::StrCat(DeviceType(scalar.type, false), " ", DeviceName(scalar.name)));
    for (const LoopArray& array : interface_.arrays)
      parameters.push_back(absl::StrCat(array.writes ? "" : "const ", DeviceType(array.variable.type, false), "* ", DeviceName(array.variable.name)));
    return absl::StrJoin(parameters, ", ");
  }

  std::string Header() const {
    std::string arrays;
    for (const LoopArray& array : interface_.arrays) {
      std::string extents;
      for (const CExpressionPtr& extent : array.variable.extents) absl::StrAppend(&extents, "[", CText(*extent), "]");
      absl::StrAppend(&arrays, "//   ", DeviceName(array.variable.name), extents, array.writes ? ", read and written" : ", read", "\n");
    }
    return absl::StrCat(
        "// ", request_.file_name, ": ", request_.description, "\n// ", request_.verified, "\n// Pointers are to ", words_.memory,
        " memory, whose arrays do not overlap; rows lie one behind the other.\n", arrays,
        request_.names.In("#ifndef FUSED_H_\n#define FUSED_H_\n\n#include <stddef.h>\n#include <stdint.h>\n"), words_.includes,
        request_.names.In(absl::StrCat("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\nenum {\n  FUSED_OK = 0,\n"
                                       "  FUSED_INVALID_ARGUMENT = 1,  // a null pointer, an array without entries, or sizes that tiles do not divide\n"
                                       "  FUSED_SIZE_TOO_LARGE = 2,    // an array of 2^31 entries or more, or shared memory is short\n"
                                       "  FUSED_DEVICE_ERROR = 4       // a launch",
                                       words_.device_error, "\n};\n\n// A text for a code; static storage.\nconst char* fused_error_string(int code);\n\n")),
        words_.launch_comment, request_.names.In("int fused_launch("), Parameters(), words_.last_parameter,
        ");\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
  }

  std::string Text(const CExpression& expression) const { return CText(*DeviceExpression(expression, false)); }

  // With 64 bits.
  static std::string Wide(const CExpression& expression) {
    std::set<std::string> names;
    AddNames(expression, &names);
    CExpressionPtr wide = std::make_shared<CExpression>(expression);
    for (const std::string& name : names) wide = Replaced(wide, name, CName(absl::StrCat("(int64_t)", DeviceName(name))));
    return CText(*wide);
  }

  // --- The launching code ---
  std::string Source() {
    std::string text = absl::StrCat(request_.names.In("#include \"fused.h\"\n\n#include \"fusion_device.h\"\n"));
    for (const LoopKernel& kernel : code_.kernels) absl::StrAppend(&text, "\n", request_.target.Print(kernel.kernel));
    absl::StrAppend(&text, "\n", words_.launch_includes, request_.names.In(words_.launch_support),
                    request_.names.In(absl::StrCat("extern \"C\" const char* fused_error_string(int code) {\n  switch (code) {\n    case FUSED_OK:\n      return \"no error\";\n"
                                                   "    case FUSED_INVALID_ARGUMENT:\n      return \"a pointer is null, an array has no entries, or tiles do not divide a size\";\n"
                                                   "    case FUSED_SIZE_TOO_LARGE:\n      return \"an array has 2^31 entries or more, or shared memory is short\";\n"
                                                   "    case FUSED_DEVICE_ERROR:\n      return \"a kernel launch",
                                                   words_.device_error_text, " failed\";\n  }\n  return \"unknown code\";\n}\n\n")),
                    request_.names.In("extern \"C\" int fused_launch("), Parameters(), words_.last_parameter, ") {\n");
    absl::StrAppend(&text, ConstantsText(interface_, request_.parameters));
    std::set<std::string> told;
    const auto check = [&](const std::string& condition, const char* code) {
      if (told.insert(condition).second) absl::StrAppend(&text, "  if (", condition, request_.names.In(absl::StrCat(") return ", code, ";\n")));
    };
    for (const LoopArray& array : interface_.arrays) {
      check(absl::StrCat(DeviceName(array.variable.name), " == nullptr"), "FUSED_INVALID_ARGUMENT");
      std::vector<std::string> factors;
      for (const CExpressionPtr& extent : array.variable.extents) {
        check(absl::StrCat(Wide(*extent), " < 1"), "FUSED_INVALID_ARGUMENT");
        factors.push_back(absl::StrCat("(double)(", Wide(*extent), ")"));
      }
      check(absl::StrCat(absl::StrJoin(factors, " * "), " >= 2147483648.0"), "FUSED_SIZE_TOO_LARGE");
    }
    for (const std::string& condition : WholeTiles()) check(condition, "FUSED_INVALID_ARGUMENT");
    for (const RegionSteps& region : code_.regions) {
      absl::StrAppend(&text, "  {\n");
      for (const HostStep& step : region.steps) Step(step, 2, &text);
      absl::StrAppend(&text, "  }\n");
    }
    absl::StrAppend(&text, request_.names.In("  return FUSED_OK;\n}\n"));
    return text;
  }

  // Divisions by parameters that would leave something out.
  std::vector<std::string> WholeTiles() const {
    std::vector<std::string> conditions;
    const auto has = [&](const Polynomial& polynomial) {
      const std::set<std::string> symbols = polynomial.Symbols();
      return std::any_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) { return request_.parameters.count(symbol) > 0; });
    };
    for (const CRegion& region : request_.mapped.program.regions) {
      ErrorList scratch("");
      const std::unique_ptr<Nest> nest = BuildNest(request_.mapped.program, region, &scratch);
      for (const NestQuotient& quotient : nest->quotients) {
        if (!has(quotient.denominator) || !has(quotient.numerator - (quotient.denominator - 1))) continue;
        const std::string condition = absl::StrCat("(", quotient.numerator.ToString(), ") % (", quotient.denominator.ToString(), ") != 0");
        if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end()) conditions.push_back(condition);
      }
    }
    return conditions;
  }

  void Step(const HostStep& step, int depth, std::string* text) const {
    const std::string indent(2 * depth, ' ');
    switch (step.kind) {
      case HostStep::Kind::kLet:
        absl::StrAppend(text, indent, "const ", DeviceType(step.statement->variable.type, false), " ", DeviceName(step.statement->variable.name), " = ", Text(*step.statement->value), ";\n");
        break;
      case HostStep::Kind::kIf:
        absl::StrAppend(text, indent, "if (", Text(*step.statement->value), ") {\n");
        for (const HostStep& inner : step.body) Step(inner, depth + 1, text);
        if (!step.otherwise.empty()) {
          absl::StrAppend(text, indent, "} else {\n");
          for (const HostStep& inner : step.otherwise) Step(inner, depth + 1, text);
        }
        absl::StrAppend(text, indent, "}\n");
        break;
      case HostStep::Kind::kLoop: {
        const CStatement& loop = *step.statement;
        const std::string counter = DeviceName(loop.variable.name);
        absl::StrAppend(text, indent, "for (", DeviceType(loop.variable.type, false), " ", counter, " = ", Text(*loop.start), "; ", counter, " ", loop.relation, " ", Text(*loop.bound), "; ", counter,
                        loop.down ? " -= " : " += ", Text(*loop.step), ") {\n");
        for (const HostStep& inner : step.body) Step(inner, depth + 1, text);
        absl::StrAppend(text, indent, "}\n");
        break;
      }
      case HostStep::Kind::kLaunch:
        Launch(code_.kernels[step.kernel], indent, text);
        break;
    }
  }

  void Launch(const LoopKernel& kernel, const std::string& indent, std::string* text) const {
    std::vector<std::string> positive, factors;
    for (const CExpressionPtr& extent : kernel.blocks) {
      positive.push_back(absl::StrCat("(", Text(*extent), ") > 0"));
      factors.push_back(absl::StrCat("(int64_t)(", Text(*extent), ")"));
    }
    absl::StrAppend(text, indent, "if (", absl::StrJoin(positive, " && "), ") {\n");
    std::vector<std::string> addresses;
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
      const LoopArgument& argument = kernel.arguments[i];
      const std::string own = DeviceName(argument.name);
      switch (argument.kind) {
        case LoopArgument::Kind::kArray:
          absl::StrAppend(text, indent, "  ", argument.writes ? "" : "const ", DeviceType(argument.type, false), "* argument_", i, " = ", own, ";\n");
          break;
        case LoopArgument::Kind::kScalar:
          absl::StrAppend(text, indent, "  ", DeviceType(argument.type, false), " argument_", i, " = ", own, ";\n");
          break;
        case LoopArgument::Kind::kInteger:
          absl::StrAppend(text, indent, "  fu_index argument_", i, " = ", own, ";\n");
          break;
      }
      addresses.push_back(absl::StrCat("(void*)&argument_", i));
    }
    absl::StrAppend(text, indent, "  void*", words_.argument_qualifier, " arguments[] = {", absl::StrJoin(addresses, ", "), "};\n");
    absl::StrAppend(text, request_.target.exported().Launch(request_.names, {.kernel = kernel.kernel.name,
                                                                             .grid = absl::StrJoin(factors, " * "),
                                                                             .shared_bytes = absl::StrCat("(size_t)", kernel.shared_bytes),
                                                                             .threads = kernel.kernel.threads,
                                                                             .uses_shared = kernel.kernel.has_shared_memory(),
                                                                             .cooperative = false}));
    absl::StrAppend(text, indent, "}\n");
  }

  // --- The example ---
  const v1::Buffer& BufferOf(const std::string& name) const {
    for (const v1::Buffer& buffer : request_.session.inputs())
      if (buffer.name() == name) return buffer;
    return request_.session.inputs(0);
  }
  double ToleranceOf(const std::string& name) const {
    for (int i = 0; i < request_.session.outputs_size(); ++i)
      if (request_.session.outputs(i).name() == name) return request_.session.tolerances(i);
    return 0;
  }
  // How the example fills an array: a name of Fill's.
  static const char* KindOf(const v1::Buffer& buffer) {
    if (buffer.data_type() == v1::I32) return buffer.values().lower() > 0 ? "kNatural" : "kWhole";
    if (buffer.values().kind() == v1::InputValues::POSITIVE_DEFINITE) return "kDefinite";
    return buffer.domain() == v1::POSITIVE ? "kPositive" : "kAny";
  }

  std::string Example() const {
    const ExportedCode& exported = request_.target.exported();
    std::string text = absl::StrCat(
        "// Runs the loops on random data, compares them with the serial program, and times them.\n// Usage: example [size=value]... [--once]   sizes: ",
        absl::StrJoin(interface_.integers, ", ", [&](std::string* out, const std::string& name) { absl::StrAppend(out, name, "=", request_.sizes.at(name)); }),
        "\n#include <algorithm>\n#include <chrono>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <random>\n#include <vector>\n\n",
        request_.names.In("#include \"fused.h\"\n"), words_.example_includes);
    std::vector<std::string> reference;
    for (const std::string& integer : interface_.integers) reference.push_back("int " + DeviceName(integer));
    for (const CVariable& scalar : interface_.scalars) reference.push_back(absl::StrCat(DeviceType(scalar.type, true), " ", DeviceName(scalar.name)));
    for (const LoopArray& array : interface_.arrays) reference.push_back(absl::StrCat(array.writes ? "" : "const ", DeviceType(array.variable.type, true), "* ", DeviceName(array.variable.name)));
    absl::StrAppend(&text, request_.names.In("void fused_reference("), absl::StrJoin(reference, ", "), ");\n", R"(
enum Kind { kAny, kPositive, kDefinite, kWhole, kNatural };
// kDefinite: a square matrix that is symmetric and positive definite.
template <class T, class W>
static void Fill(Kind kind, unsigned seed, std::vector<T>* entries, std::vector<W>* wide) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> any(-0.5, 1), positive(0.25, 1.25);
  std::uniform_int_distribution<int> whole(kind == kNatural ? 1 : -1000, 1000);
  const size_t side = (size_t)std::llround(std::sqrt((double)entries->size()));
  for (size_t i = 0; i < entries->size(); ++i) {
    double entry = kind == kWhole || kind == kNatural ? whole(random) : kind == kPositive ? positive(random) : any(random);
    if (kind == kDefinite && side * side == entries->size()) {
      const size_t row = i / side, column = i % side;
      if (column < row) entry = (double)(*entries)[column * side + row];
      else entry = row == column ? 2 + entry : entry / (double)side;
    }
    (*entries)[i] = (T)entry;
  }
  wide->assign(entries->begin(), entries->end());
}
template <class T, class W>
static bool Judge(const char* name, const std::vector<T>& got, const std::vector<W>& reference, double tolerance) {
  double squares = 0, largest = 0;
  for (W entry : reference) squares += (double)entry * (double)entry;
  const double scale = std::sqrt(squares / (double)std::max<size_t>(reference.size(), 1));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs((double)got[i] - (double)reference[i]) / std::max({std::abs((double)reference[i]), scale, 1e-300});
    if (!(error <= largest)) largest = error;
  }
  const bool good = largest <= tolerance;
  std::printf("%s: largest relative error %.3g, %.3g is allowed: %s\n", name, largest, tolerance, good ? "OK" : "WRONG");
  return good;
}

int main(int argc, char** argv) {
)");
    for (const std::string& integer : interface_.integers) absl::StrAppend(&text, "  int ", DeviceName(integer), " = ", request_.sizes.at(integer), ";\n");
    absl::StrAppend(&text, absl::StrContains(exported.Allocate({}), "shift") || std::string(words_.option_variables).empty() ? "" : "  size_t shift = 0;\n  (void)shift;\n",
                    "  int runs = 10;\n  for (int i = 1; i < argc; ++i) {\n    bool known = !std::strcmp(argv[i], \"--once\");\n    if (known) runs = 1;\n");
    for (const std::string& integer : interface_.integers)
      absl::StrAppend(&text, "    if (!std::strncmp(argv[i], \"", integer, "=\", ", integer.size() + 1, ")) known = (", DeviceName(integer), " = std::atoi(argv[i] + ", integer.size() + 1, ")) > 0;\n");
    absl::StrAppend(&text, "    if (!known) {\n      std::fprintf(stderr, \"argument %s: unknown, or no size\\n\", argv[i]);\n      return 2;\n    }\n  }\n",
                    ConstantsText(interface_, request_.parameters));
    std::vector<ExportedArray> arrays;
    std::vector<std::string> launch, serial;
    for (const std::string& integer : interface_.integers) launch.push_back(DeviceName(integer)), serial.push_back(DeviceName(integer));
    for (const CVariable& scalar : interface_.scalars) {
      absl::StrAppend(&text, "  const ", DeviceType(scalar.type, false), " h_", DeviceName(scalar.name), " = 1.5;\n");
      launch.push_back("h_" + DeviceName(scalar.name)), serial.push_back("h_" + DeviceName(scalar.name));
    }
    int seed = 0;
    for (const LoopArray& array : interface_.arrays) {
      const std::string name = DeviceName(array.variable.name), type = DeviceType(array.variable.type, false);
      std::vector<std::string> factors;
      for (const CExpressionPtr& extent : array.variable.extents) factors.push_back(absl::StrCat("(size_t)(", Text(*extent), ")"));
      absl::StrAppend(&text, "  std::vector<", type, "> h_", name, "(", absl::StrJoin(factors, " * "), ");\n  std::vector<", DeviceType(array.variable.type, true), "> d_", name, ";\n  Fill(",
                      KindOf(BufferOf(array.variable.name)), ", ", ++seed, ", &h_", name, ", &d_", name, ");\n  const std::vector<", type, "> first_", name, " = h_", name, ";\n  (void)first_", name, ";\n");
      arrays.push_back({.name = name, .type = type, .bytes = absl::StrCat("h_", name, ".size() * sizeof(", type, ")")});
      launch.push_back(exported.Argument(name)), serial.push_back(absl::StrCat("d_", name, ".data()"));
    }
    absl::StrAppend(&text, "  const size_t workspace_bytes = 0;\n", exported.Allocate(arrays), "  (void)workspace;\n  const auto restore = [&] {\n");
    for (size_t i = 0; i < arrays.size(); ++i)
      absl::StrAppend(&text, interface_.arrays[i].writes ? absl::StrReplaceAll(exported.Restore(arrays[i], "FROM"), {{"h_FROM", "first_" + arrays[i].name}}) : exported.CopyIn(arrays[i]));
    absl::StrAppend(&text, "    return 0;\n  };\n  const auto launch = [&] {\n    const int code = ", request_.names.In("fused_launch("), absl::StrJoin(launch, ", "), words_.last_argument,
                    request_.names.In(");\n    if (code != FUSED_OK) std::fprintf(stderr, \"fused_launch: %s\\n\", fused_error_string(code));\n    return code;\n  };\n"),
                    "  if (restore() != 0 || launch() != 0) return 1;\n", request_.names.In("  fused_reference("), absl::StrJoin(serial, ", "), ");\n  bool good = true;\n  const auto fetch = [&] {\n");
    for (size_t i = 0; i < arrays.size(); ++i)
      if (interface_.arrays[i].writes) absl::StrAppend(&text, exported.CopyOut(arrays[i]));
    absl::StrAppend(&text, "    return 0;\n  };\n  if (fetch() != 0) return 1;\n");
    for (size_t i = 0; i < arrays.size(); ++i)
      if (interface_.arrays[i].writes)
        absl::StrAppend(&text, "  good = Judge(\"", arrays[i].name, "\", h_", arrays[i].name, ", d_", arrays[i].name, ", ", absl::StrFormat("%.3g", ToleranceOf(interface_.arrays[i].variable.name)), ") && good;\n");
    absl::StrAppend(&text, "  double best = INFINITY;\n  for (int run = 0; run < runs; ++run) {\n    if (restore() != 0) return 1;\n    const auto start = std::chrono::steady_clock::now();\n"
                           "    if (launch() != 0) return 1;\n",
                    std::string(words_.example_includes).empty() ? "" : "    CHECK(cudaDeviceSynchronize());\n",
                    "    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());\n  }\n"
                    "  std::printf(\"best of %d runs: %.3f us\\n\", runs, best * 1e6);\n  return good ? 0 : 1;\n}\n");
    return text;
  }

  std::string Readme() const {
    const char* const suffix = request_.target.suffix();
    return absl::StrCat("# ", request_.file_name, "\n\n", request_.description, "\n\n", request_.verified, "\n\n- `", request_.names.name(), ".h`, `", request_.names.name(), ".", suffix,
                        "`: the code, with `fusion_device.h` beside it\n- `example.", suffix, "`: runs it and compares with `reference.cc`, the loops of `loops.c` one iteration after the other in f64\n\n    ",
                        request_.names.In(request_.target.exported().CompileCommand(request_.arch)),
                        " && ./example\n\nor `cmake -B build && cmake --build build && build/example`. `NAME=SIZE` sets a size (", absl::StrJoin(interface_.integers, ", "),
                        "), `--once` runs once.\nAll files may be used under the Apache License, version 2.0; `loops.c` is yours.\n");
  }

  const LoopsExport& request_;
  const LoopCode& code_;
  const LoopInterface& interface_;
  const ExportedWords& words_;
  v1::Artifact artifact_;
};

}  // namespace

absl::StatusOr<v1::Artifact> ExportLoops(const LoopsExport& request) {
  ErrorList errors(request.file_name);
  const LoopCode code = LowerLoops(request.mapped, {.constants = request.parameters, .cached = request.cached, .prefix = request.names.name() + "_k"}, &errors);
  if (!errors.empty()) return errors.ToStatus();
  return FolderPrinter(request, code).Print();
}

}  // namespace fusion
