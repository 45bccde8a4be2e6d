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
#include "server/loop_kernels/launch_checks.h"
#include "server/loops/build_c.h"
#include "server/loops/nest.h"
#include "server/target/exported_code.h"

namespace fusion {
namespace {

// Examples fill arrays and look at results with these functions.
constexpr char kFillText[] = R"(
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
)";
constexpr char kJudgeText[] = R"(template <class T, class W>
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
)";

constexpr char kLicence[] = "// SPDX-License-Identifier: Apache-2.0\n";

class FolderPrinter {
 public:
  FolderPrinter(const LoopsExport& request, const std::vector<LoopCode>& codes)
      : request_(request),
        codes_(codes),
        interface_(request.interface),
        words_(request.target.exported().words()),
        stream_(std::string(words_.last_parameter).empty() ? "" : ", stream") {}

  v1::Artifact Print() {
    const std::string suffix = request_.target.suffix(), name = request_.names.name();
    Add("CMakeLists.txt",
        request_.names.In(absl::StrCat(request_.target.exported().BuildFile(request_.arch), TunedBuild())),
        false);
    Add("tuned." + suffix, Tuned());
    Add("README.md", Readme(), false);
    Add("example." + suffix, Example());
    Add(absl::StrCat(name, ".", suffix), Source());
    Add(name + ".h", Header());
    Add("fusion_device.h", DeviceRuntime());
    Add("reference.cc",
        absl::StrCat("// The loops as they were written, one iteration after the other, in f64: the "
                     "reference of the example.\n#include <math.h>\n#include <stdlib.h>\n\n",
                     PrintSerial(request_.program, interface_, request_.least,
                                 request_.names.In("fused_reference"), true)));
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
    for (const CVariable& scalar : interface_.scalars)
      parameters.push_back(absl::StrCat(DeviceType(scalar.type, false), " ", DeviceName(scalar.name)));
    for (const LoopArray& array : interface_.arrays)
      parameters.push_back(absl::StrCat(array.writes ? "" : "const ", DeviceType(array.variable.type, false),
                                        "* ", DeviceName(array.variable.name)));
    return absl::StrJoin(parameters, ", ");
  }

  std::string SizeArguments() const {  // "n, m"
    return absl::StrJoin(interface_.integers, ", ", [](std::string* out, const std::string& integer) {
      out->append(DeviceName(integer));
    });
  }
  std::string Sizes() const {  // "int n, int m"
    if (interface_.integers.empty()) return "void";
    return absl::StrJoin(interface_.integers, ", ", [](std::string* out, const std::string& integer) {
      absl::StrAppend(out, "int ", DeviceName(integer));
    });
  }
  // The table, and the function that looks at it.
  std::string Choice() const {
    const VariantTable& table = request_.table;
    std::string text = absl::StrCat(
        "// The fastest variants first, at sizes that are powers of two: as predicted by how long the "
        "kernels "
        "took where they were\n// timed.\nstatic const unsigned char FusedOrders[][",
        codes_.size(), "] = {\n");
    for (size_t cell = 0; cell < table.orders.size(); ++cell)
      absl::StrAppend(&text, cell % 8 == 0 ? "    " : " ", "{", absl::StrJoin(table.orders[cell], ","), "}",
                      cell + 1 == table.orders.size() ? "" : ",", cell % 8 == 7 ? "\n" : "");
    absl::StrAppend(
        &text, table.orders.size() % 8 == 0 ? "" : "\n",
        "};\n\n// The nearest power of two: which it is of `count` from 2^first on.\n"
        "[[maybe_unused]] static int FusedPower(int size, int first, int count) {\n  int power = 0;\n"
        "  while (size >> power >> 1 > 0) ++power;\n"
        "  if ((int64_t)size * 128 >= (int64_t)181 << power) ++power;\n"
        "  return power < first ? 0 : power - first < count ? power - first : count - 1;\n}\n\n",
        "extern \"C\" int fused_choose(", Sizes(), ") {\n", Discarded(), "  int fu_cell = 0;\n");
    for (const SizeAxis& axis : table.axes)
      absl::StrAppend(&text, "  fu_cell = fu_cell * ", axis.count, " + FusedPower(", DeviceName(axis.size),
                      ", ", axis.first, ", ", axis.count, ");\n");
    absl::StrAppend(
        &text,
        "  for (const unsigned char variant : FusedOrders[fu_cell])\n    if (fused_variant_fits(variant",
        IntegerParameters(", "), ")) return variant;\n  return -1;\n}\n\n");
    return request_.names.In(text);
  }

  std::string IntegerParameters(const std::string& before) const {
    std::string text;
    for (const std::string& integer : interface_.integers)
      absl::StrAppend(&text, before, DeviceName(integer));
    return text;
  }
  // Names of all parameters of fused_launch.
  std::string Arguments() const {
    std::vector<std::string> names;
    for (const std::string& integer : interface_.integers) names.push_back(DeviceName(integer));
    for (const CVariable& scalar : interface_.scalars) names.push_back(DeviceName(scalar.name));
    for (const LoopArray& array : interface_.arrays) names.push_back(DeviceName(array.variable.name));
    return absl::StrJoin(names, ", ");
  }

  std::string Header() const {
    std::string arrays;
    for (const LoopArray& array : interface_.arrays) {
      std::string extents;
      for (const CExpressionPtr& extent : array.variable.extents)
        absl::StrAppend(&extents, "[", CText(*extent), "]");
      absl::StrAppend(&arrays, "//   ", DeviceName(array.variable.name), extents,
                      array.writes ? ", read and written" : ", read", "\n");
    }
    return absl::StrCat(
        "// ", request_.file_name, ": ", request_.description, "\n// ", request_.verified,
        "\n// Pointers are to ", words_.memory,
        " memory, whose arrays do not overlap; rows lie one behind the other.\n", arrays,
        request_.names.In("#ifndef FUSED_H_\n#define FUSED_H_\n\n#include <stddef.h>\n#include <stdint.h>\n"),
        words_.includes,
        request_.names.In(absl::StrCat(
            "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\nenum {\n  FUSED_OK = 0,\n"
            "  FUSED_INVALID_ARGUMENT = 1,  // a null pointer, an array without entries or that overlaps one "
            "that is "
            "written, or sizes that tiles do not divide\n"
            "  FUSED_SIZE_TOO_LARGE = 2,    // an array of 2^31 entries or more, or shared memory is short\n"
            "  FUSED_DEVICE_ERROR = 4       // a launch",
            words_.device_error,
            "\n};\n\n// A text for a code; static storage.\nconst char* fused_error_string(int code);\n\n")),
        words_.launch_comment,
        request_.names.In("// Of the variants that the sizes permit the one runs that fused_choose names.\n"),
        request_.names.In("int fused_launch("), Parameters(), words_.last_parameter,
        request_.names.In(absl::StrCat(");\n\n// Kernels with other values of the parameters: 0 was the "
                                       "fastest where they were timed.\nenum { FUSED_VARIANTS = ",
                                       codes_.size(),
                                       " };\n// Returns the values; static storage. Null: there is no such "
                                       "variant.\nconst char* fused_variant_text(int variant);\n"
                                       "// Returns whether the sizes permit the variant: tiles divide what "
                                       "the loops do not round up.\nint fused_variant_fits(int variant")),
        IntegerParameters(", int "),
        request_.names.In(");\n// Returns the variant that is predicted to be the fastest at these sizes, of "
                          "those that they permit; "
                          "-1: they permit\n// none.\nint fused_choose("),
        Sizes(),
        request_.names.In(");\n// As fused_launch, of this variant.\nint fused_launch_variant(int variant, "),
        Parameters(), words_.last_parameter, ");\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
  }

  std::string Text(const CExpression& expression) const {
    return CText(*DeviceExpression(expression, false));
  }

  // --- The launching code ---
  std::string Source() {
    std::string text =
        absl::StrCat(request_.names.In("#include \"fused.h\"\n\n#include \"fusion_device.h\"\n"));
    for (const LoopCode& code : codes_)
      for (const LoopKernel& kernel : code.kernels)
        absl::StrAppend(&text, "\n", request_.target.Print(kernel.kernel));
    absl::StrAppend(
        &text, "\n", words_.launch_includes, request_.names.In(words_.launch_support),
        codes_[0].workspaces.empty() ? "" : request_.names.In(words_.workspace_support),
        request_.names.In(absl::StrCat(
            "extern \"C\" const char* fused_error_string(int code) {\n  switch "
            "(code) {\n    case FUSED_OK:\n      return \"no error\";\n"
            "    case FUSED_INVALID_ARGUMENT:\n      return \"a pointer is null, "
            "an array has no entries or overlaps one that is written, or tiles do not divide a size\";\n"
            "    case FUSED_SIZE_TOO_LARGE:\n      return \"an array has 2^31 "
            "entries or more, or shared memory is short\";\n"
            "    case FUSED_DEVICE_ERROR:\n      return \"a kernel launch",
            words_.device_error_text, " failed\";\n  }\n  return \"unknown code\";\n}\n\n")),
        request_.names.In(
            "extern \"C\" const char* fused_variant_text(int variant) {\n  switch (variant) {\n"));
    for (size_t i = 0; i < codes_.size(); ++i)
      absl::StrAppend(&text, "    case ", i, ":\n      return \"", request_.variants[i].text, "\";\n");
    absl::StrAppend(
        &text,
        request_.names.In("  }\n  return nullptr;\n}\n\nextern \"C\" int fused_variant_fits(int variant"),
        IntegerParameters(", int "), ") {\n", Discarded(), "  switch (variant) {\n");
    for (size_t i = 0; i < codes_.size(); ++i) {
      const std::vector<std::string> broken = BrokenTiles(i);
      absl::StrAppend(&text, "    case ", i, ":\n      return ",
                      broken.empty() ? "1" : absl::StrCat("!(", absl::StrJoin(broken, " || "), ")"), ";\n");
    }
    absl::StrAppend(&text, "  }\n  return 0;\n}\n\n", Choice());
    for (size_t i = 0; i < codes_.size(); ++i) Variant(i, &text);
    absl::StrAppend(&text, request_.names.In("extern \"C\" int fused_launch_variant(int variant, "),
                    Parameters(), words_.last_parameter, ") {\n", ConstantsText(interface_, request_.least));
    std::vector<LaunchCheck> checks = LaunchChecks(interface_);
    checks.push_back(
        {absl::StrCat(request_.names.In("!fused_variant_fits(variant"), IntegerParameters(", "), ")"),
         "FUSED_INVALID_ARGUMENT"});
    for (const LaunchCheck& check : checks)
      absl::StrAppend(&text, "  if (", check.condition,
                      request_.names.In(absl::StrCat(") return ", check.code, ";\n")));
    absl::StrAppend(&text, "  switch (variant) {\n");
    for (size_t i = 0; i < codes_.size(); ++i)
      absl::StrAppend(&text, "    case ", i, ":\n      return FusedVariant", i, "(", Arguments(), stream_,
                      ");\n");
    absl::StrAppend(
        &text,
        request_.names.In("  }\n  return FUSED_INVALID_ARGUMENT;\n}\n\nextern \"C\" int fused_launch("),
        Parameters(), words_.last_parameter,
        request_.names.In(") {\n  return fused_launch_variant(fused_choose("), SizeArguments(), "), ",
        Arguments(), stream_, ");\n}\n");
    return text;
  }
  std::string Discarded() const {
    std::string text;
    for (const std::string& integer : interface_.integers)
      absl::StrAppend(&text, "  (void)", DeviceName(integer), ";\n");
    return text;
  }

  // The launches of one variant, whose sizes and pointers were looked at.
  void Variant(size_t number, std::string* text) const {
    absl::StrAppend(text, "static int FusedVariant", number, "(", Parameters(), words_.last_parameter,
                    ") {\n", ConstantsText(interface_, request_.variants[number].parameters));
    for (const CVariable& workspace : codes_[number].workspaces) {
      const std::string name = DeviceName(workspace.name), type = DeviceType(workspace.type, false);
      std::string bytes = absl::StrCat("sizeof(", type, ")");
      for (const CExpressionPtr& extent : workspace.extents)
        absl::StrAppend(&bytes, " * (size_t)(", Text(*extent), ")");
      absl::StrAppend(text, request_.names.In("  const FusedWorkspace "), "fu_memory_", name, "(", bytes,
                      stream_, ");\n  if (fu_memory_", name,
                      request_.names.In(".memory == nullptr) return FUSED_DEVICE_ERROR;\n"), "  ", type,
                      "* const ", name, " = (", type, "*)fu_memory_", name, ".memory;\n");
    }
    for (const RegionSteps& region : codes_[number].regions) {
      absl::StrAppend(text, "  {\n");
      for (const HostStep& step : region.steps) Step(codes_[number], step, 2, text);
      absl::StrAppend(text, "  }\n");
    }
    absl::StrAppend(text, request_.names.In("  return FUSED_OK;\n}\n\n"));
  }

  // Conditions, in integers of the interface, under which the variant would leave something out.
  std::vector<std::string> BrokenTiles(size_t variant) const {
    const IntegerValues& parameters = request_.variants[variant].parameters;
    std::vector<std::string> conditions;
    std::set<std::string> names;
    for (const auto& [name, value] : parameters) names.insert(name);
    const auto known = [&](Polynomial polynomial) {
      for (const auto& [name, value] : parameters)
        polynomial = polynomial.Substitute(name, Polynomial(value));
      return polynomial;
    };
    for (const CRegion& region : request_.mapped.program.regions) {
      ErrorList scratch("");
      const std::unique_ptr<Nest> nest = BuildNest(request_.mapped.program, region, &scratch);
      for (const NestQuotient& quotient : QuotientsThatDrop(*nest, names)) {
        const Polynomial denominator = known(quotient.denominator);
        if (denominator == Polynomial(1)) continue;
        const std::string condition = absl::StrCat("(", known(quotient.numerator).ToString(), ") % (",
                                                   denominator.ToString(), ") != 0");
        if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end())
          conditions.push_back(condition);
      }
    }
    return conditions;
  }

  void Step(const LoopCode& code, const HostStep& step, int depth, std::string* text) const {
    const std::string indent(2 * depth, ' ');
    switch (step.kind) {
      case HostStep::Kind::kLet:
        absl::StrAppend(text, indent, "const ", DeviceType(step.statement->variable.type, false), " ",
                        DeviceName(step.statement->variable.name), " = ", Text(*step.statement->value),
                        ";\n");
        break;
      case HostStep::Kind::kIf:
        absl::StrAppend(text, indent, "if (", Text(*step.statement->value), ") {\n");
        for (const HostStep& inner : step.body) Step(code, inner, depth + 1, text);
        if (!step.otherwise.empty()) {
          absl::StrAppend(text, indent, "} else {\n");
          for (const HostStep& inner : step.otherwise) Step(code, inner, depth + 1, text);
        }
        absl::StrAppend(text, indent, "}\n");
        break;
      case HostStep::Kind::kLoop: {
        const CStatement& loop = *step.statement;
        const std::string counter = DeviceName(loop.variable.name);
        absl::StrAppend(text, indent, "for (", DeviceType(loop.variable.type, false), " ", counter, " = ",
                        Text(*loop.start), "; ", Text(*GoesOn(loop)), "; ", counter,
                        loop.down ? " -= " : " += ", Text(*loop.step), ") {\n");
        for (const HostStep& inner : step.body) Step(code, inner, depth + 1, text);
        absl::StrAppend(text, indent, "}\n");
        break;
      }
      case HostStep::Kind::kLaunch:
        Launch(code.kernels[step.kernel], indent, text);
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
        case LoopArgument::Kind::kWorkspace:
          absl::StrAppend(text, indent, "  ", argument.writes ? "" : "const ",
                          DeviceType(argument.type, false), "* argument_", i, " = ", own, ";\n");
          break;
        case LoopArgument::Kind::kScalar:
          absl::StrAppend(text, indent, "  ", DeviceType(argument.type, false), " argument_", i, " = ", own,
                          ";\n");
          break;
        case LoopArgument::Kind::kInteger:
          absl::StrAppend(text, indent, "  fu_index argument_", i, " = ", own, ";\n");
          break;
      }
      addresses.push_back(absl::StrCat("(void*)&argument_", i));
    }
    absl::StrAppend(text, indent, "  void*", words_.argument_qualifier, " arguments[] = {",
                    absl::StrJoin(addresses, ", "), "};\n");
    absl::StrAppend(text, request_.target.exported().Launch(
                              request_.names, {.kernel = kernel.kernel.name,
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
  // Returns the kind of data, of Fill's enum, that the example fills an array with.
  static const char* KindOf(const v1::Buffer& buffer) {
    if (buffer.data_type() == v1::I32) return buffer.values().lower() > 0 ? "kNatural" : "kWhole";
    if (buffer.values().kind() == v1::InputValues::POSITIVE_DEFINITE) return "kDefinite";
    return buffer.domain() == v1::POSITIVE ? "kPositive" : "kAny";
  }

  // Scalars and arrays of an example's main, with random values.
  void Data(std::vector<ExportedArray>* arrays, std::vector<std::string>* launch,
            std::vector<std::string>* serial, std::string* text) const {
    const ExportedCode& exported = request_.target.exported();
    for (const std::string& integer : interface_.integers)
      launch->push_back(DeviceName(integer)), serial->push_back(DeviceName(integer));
    for (const CVariable& scalar : interface_.scalars) {
      absl::StrAppend(text, "  const ", DeviceType(scalar.type, false), " h_", DeviceName(scalar.name),
                      " = 1.5;\n");
      launch->push_back("h_" + DeviceName(scalar.name)), serial->push_back("h_" + DeviceName(scalar.name));
    }
    int seed = 0;
    for (const LoopArray& array : interface_.arrays) {
      const std::string name = DeviceName(array.variable.name), type = DeviceType(array.variable.type, false);
      std::vector<std::string> factors;
      for (const CExpressionPtr& extent : array.variable.extents)
        factors.push_back(absl::StrCat("(size_t)(", Text(*extent), ")"));
      absl::StrAppend(text, "  std::vector<", type, "> h_", name, "(", absl::StrJoin(factors, " * "),
                      ");\n  std::vector<", DeviceType(array.variable.type, true), "> d_", name, ";\n  Fill(",
                      KindOf(BufferOf(array.variable.name)), ", ", ++seed, ", &h_", name, ", &d_", name,
                      ");\n  const std::vector<", type, "> first_", name, " = h_", name, ";\n  (void)first_",
                      name, ";\n");
      arrays->push_back(
          {.name = name, .type = type, .bytes = absl::StrCat("h_", name, ".size() * sizeof(", type, ")")});
      launch->push_back(exported.Argument(name)), serial->push_back(absl::StrCat("d_", name, ".data()"));
    }
  }

  // "  int n = 1024;": with what the command line says.
  std::string SizesText(const std::string& more) const {
    std::string text;
    for (const std::string& integer : interface_.integers)
      absl::StrAppend(&text, "  int ", DeviceName(integer), " = ", request_.sizes.at(integer), ";\n");
    absl::StrAppend(&text, "  for (int i = 1; i < argc; ++i) {\n    bool known = false;\n", more);
    for (const std::string& integer : interface_.integers)
      absl::StrAppend(&text, "    if (!std::strncmp(argv[i], \"", integer, "=\", ", integer.size() + 1,
                      ")) known = (", DeviceName(integer), " = std::atoi(argv[i] + ", integer.size() + 1,
                      ")) > 0;\n");
    absl::StrAppend(&text,
                    "    if (!known) {\n      std::fprintf(stderr, \"argument %s: unknown, or no size\\n\", "
                    "argv[i]);\n      return 2;\n    }\n  }\n",
                    ConstantsText(interface_, request_.least));
    return text;
  }
  bool IsCuda() const { return !std::string(words_.example_includes).empty(); }

  // The variant is a parameter of a section, which the server tunes.
  std::string Tuned() const {
    const ExportedCode& exported = request_.target.exported();
    std::string text = absl::StrCat(
        "// Runs the loops again and again, and chooses the variant while it does, as the tuner of fusion "
        "proposes.\n// Usage: tuned [size=value]... [seconds=S]\n"
        "#include <algorithm>\n#include <chrono>\n#include <cmath>\n#include <cstdio>\n#include "
        "<cstdlib>\n#include <cstring>\n#include <random>\n#include <string>\n#include <vector>\n\n",
        "#include \"client/tuner/fusion_tuner.hpp\"\n", request_.names.In("#include \"fused.h\"\n"),
        words_.example_includes, kFillText, "\nint main(int argc, char** argv) {\n  double seconds = 10;\n",
        IsCuda() ? "  size_t shift = 0;\n" : "",
        SizesText("    if (!std::strncmp(argv[i], \"seconds=\", 8)) known = (seconds = std::atof(argv[i] + "
                  "8)) > 0;\n"));
    std::vector<ExportedArray> arrays;
    std::vector<std::string> launch, serial;
    Data(&arrays, &launch, &serial, &text);
    absl::StrAppend(&text, "  const size_t workspace_bytes = 0;\n", exported.Allocate(arrays),
                    "  (void)workspace;\n");
    for (const ExportedArray& array : arrays) absl::StrAppend(&text, exported.CopyIn(array));
    std::vector<std::string> values, constraints, sizes;
    for (size_t i = 0; i < codes_.size(); ++i) {
      values.push_back(absl::StrCat("\"v", i, "\""));
      for (const std::string& broken : BrokenTiles(i))
        constraints.push_back(absl::StrCat("\"variant != v", i, " || !(", broken, ")\""));
    }
    for (const std::string& integer : interface_.integers)
      sizes.push_back(absl::StrCat("{\"", integer, "\", ", DeviceName(integer), "}"));
    absl::StrAppend(
        &text, "  fusion::tuner::TunerOptions options;\n  options.program = \"", request_.names.name(),
        "\";\n  const fusion::tuner::Tuner tuner(options);\n  fusion::tuner::SectionOptions of_section;\n  "
        "of_section.sizes = {",
        absl::StrJoin(sizes, ", "), "};\n  of_section.constraints = {",
        absl::StrJoin(constraints, ",\n                            "), "};\n",
        request_.names.In("  const int first = fused_choose("), SizeArguments(),
        ");\n  if (first < 0) return 1;\n",
        "  const fusion::tuner::Section section = tuner.Declare(\n      \"launch\", "
        "{fusion::tuner::Enumeration(\"variant\", {",
        absl::StrJoin(values, ", "),
        "}).Default(first)}, of_section);\n  const auto end = std::chrono::steady_clock::now() + "
        "std::chrono::duration<double>(seconds);\n  long runs = 0;\n"
        "  while (std::chrono::steady_clock::now() < end && !section.Converged()) {\n    const int code = "
        "section.Measure([&](const fusion::tuner::Values& values) {\n      const int launched = ",
        request_.names.In("fused_launch_variant((int)values.Index(0), "), absl::StrJoin(launch, ", "),
        words_.last_argument, ");\n",
        IsCuda() ? "      if (cudaDeviceSynchronize() != cudaSuccess) return -1;\n" : "",
        "      return launched;\n    });\n    if (code != 0) {\n      std::fprintf(stderr, \"code %d\\n\", "
        "code);\n      return 1;\n    }\n    ++runs;\n  }\n"
        "  const int best = (int)section.Best(1)[0].integer;\n  std::printf(\"%s after %ld runs: variant %d, "
        "%s\\n\", section.Converged() ? \"converged\" : \"not converged\", runs, best, ",
        request_.names.In("fused_variant_text(best));\n  tuner.Flush(5);\n  return 0;\n}\n"));
    return text;
  }
  // `cmake -DFUSION_TUNER=DIR`: where include/ and lib/ of fusion are.
  std::string TunedBuild() const {
    return absl::StrCat("if(FUSION_TUNER)\n  add_executable(tuned tuned.", request_.target.suffix(),
                        ")\n  set_target_properties(tuned PROPERTIES CXX_STANDARD 20 CUDA_STANDARD 20)\n"
                        "  target_include_directories(tuned PRIVATE ${FUSION_TUNER}/include)\n"
                        "  target_link_directories(tuned PRIVATE ${FUSION_TUNER}/lib)\n  "
                        "target_link_libraries(tuned PRIVATE fused fusion_tuner)\nendif()\n");
  }

  std::string Example() const {
    const ExportedCode& exported = request_.target.exported();
    std::string text = absl::StrCat(
        "// Runs the loops on random data, compares them with the serial program, and times them.\n// Usage: "
        "example [size=value]... [--once] [--variants]   sizes: ",
        absl::StrJoin(interface_.integers, ", ",
                      [&](std::string* out, const std::string& name) {
                        absl::StrAppend(out, name, "=", request_.sizes.at(name));
                      }),
        "\n#include <algorithm>\n#include <chrono>\n#include <cmath>\n#include <cstdio>\n#include "
        "<cstdlib>\n#include <cstring>\n#include <random>\n#include <vector>\n\n",
        request_.names.In("#include \"fused.h\"\n"), words_.example_includes);
    std::vector<std::string> reference;
    for (const std::string& integer : interface_.integers) reference.push_back("int " + DeviceName(integer));
    for (const CVariable& scalar : interface_.scalars)
      reference.push_back(absl::StrCat(DeviceType(scalar.type, true), " ", DeviceName(scalar.name)));
    for (const LoopArray& array : interface_.arrays)
      reference.push_back(absl::StrCat(array.writes ? "" : "const ", DeviceType(array.variable.type, true),
                                       "* ", DeviceName(array.variable.name)));
    absl::StrAppend(&text, request_.names.In("void fused_reference("), absl::StrJoin(reference, ", "), ");\n",
                    kFillText, kJudgeText, "\nint main(int argc, char** argv) {\n");
    absl::StrAppend(&text, IsCuda() ? "  size_t shift = 0;\n" : "",
                    "  int runs = 10;\n  bool variants = false;\n",
                    SizesText("    if (!std::strcmp(argv[i], \"--once\")) known = true, runs = 1;\n"
                              "    if (!std::strcmp(argv[i], \"--variants\")) known = variants = true;\n"));
    std::vector<ExportedArray> arrays;
    std::vector<std::string> launch, serial;
    Data(&arrays, &launch, &serial, &text);
    absl::StrAppend(&text, "  const size_t workspace_bytes = 0;\n", exported.Allocate(arrays),
                    "  (void)workspace;\n  const auto restore = [&] {\n");
    for (size_t i = 0; i < arrays.size(); ++i)
      absl::StrAppend(&text, interface_.arrays[i].writes
                                 ? absl::StrReplaceAll(exported.Restore(arrays[i], "FROM"),
                                                       {{"h_FROM", "first_" + arrays[i].name}})
                                 : exported.CopyIn(arrays[i]));
    absl::StrAppend(
        &text, "    return 0;\n  };\n",
        request_.names.In(
            "  // A negative number: as fused_launch chooses.\n  const auto launch = [&](int number) {\n"
            "    const int code = number < 0 ? fused_launch("),
        absl::StrJoin(launch, ", "), words_.last_argument,
        request_.names.In(")\n                                : fused_launch_variant(number, "),
        absl::StrJoin(launch, ", "), words_.last_argument,
        request_.names.In(");\n    if (code != FUSED_OK) std::fprintf(stderr, \"fused_launch: %s\\n\", "
                          "fused_error_string(code));\n    return code;\n  };\n"),
        "  double best = INFINITY;\n  const auto timed = [&](int number) {\n    best = INFINITY;\n"
        "    for (int run = 0; run < runs; ++run) {\n      if (restore() != 0) return 1;\n"
        "      const auto start = std::chrono::steady_clock::now();\n      if (launch(number) != 0) return "
        "1;\n",
        IsCuda() ? "      CHECK(cudaDeviceSynchronize());\n" : "",
        "      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - "
        "start).count());\n    }\n    return 0;\n  };\n",
        request_.names.In("  if (variants) {\n    for (int number = 0; number < FUSED_VARIANTS; ++number) {\n"
                          "      if (!fused_variant_fits(number"),
        IntegerParameters(", "),
        request_.names.In(
            ")) continue;\n      if (restore() != 0 || launch(number) != 0 || timed(number) != 0) return 1;\n"
            "      std::printf(\"variant %d: %.3f us%s  %s\\n\", number, best * 1e6, number == "
            "fused_choose("),
        SizeArguments(),
        request_.names.In(
            ") ? \", chosen\" : \"\", fused_variant_text(number));\n    }\n    return 0;\n  }\n"),
        "  if (restore() != 0 || launch(-1) != 0) return 1;\n", request_.names.In("  fused_reference("),
        absl::StrJoin(serial, ", "), ");\n  bool good = true;\n  const auto fetch = [&] {\n");
    for (size_t i = 0; i < arrays.size(); ++i)
      if (interface_.arrays[i].writes) absl::StrAppend(&text, exported.CopyOut(arrays[i]));
    absl::StrAppend(&text, "    return 0;\n  };\n  if (fetch() != 0) return 1;\n");
    for (size_t i = 0; i < arrays.size(); ++i)
      if (interface_.arrays[i].writes)
        absl::StrAppend(
            &text, "  good = Judge(\"", arrays[i].name, "\", h_", arrays[i].name, ", d_", arrays[i].name,
            ", ", absl::StrFormat("%.3g", ToleranceOf(interface_.arrays[i].variable.name)), ") && good;\n");
    absl::StrAppend(
        &text,
        "  if (timed(-1) != 0) return 1;\n  std::printf(\"best of %d runs: %.3f us\\n\", runs, best * "
        "1e6);\n  return good ? 0 : 1;\n}\n");
    return text;
  }

  std::string Readme() const {
    const char* const suffix = request_.target.suffix();
    return absl::StrCat(
        "# ", request_.file_name, "\n\n", request_.description, "\n\n", request_.verified, "\n\n- `",
        request_.names.name(), ".h`, `", request_.names.name(), ".", suffix,
        "`: the code, with `fusion_device.h` beside it\n- `example.", suffix,
        "`: runs it and compares with `reference.cc`, the loops of `loops.c` one iteration after the other "
        "in f64\n\n    ",
        request_.names.In(request_.target.exported().CompileCommand(request_.arch)),
        " && ./example\n\nor `cmake -B build && cmake --build build && build/example`. `NAME=SIZE` sets a "
        "size (",
        absl::StrJoin(interface_.integers, ", "),
        "), `--once` runs once, `--variants` times each variant that the sizes permit.\n\nThe folder has ",
        codes_.size(), " variants of the kernels, with other values of the parameters; `",
        request_.names.In("fused_launch"),
        "` runs the one that is predicted to be the fastest at the sizes of a call. `cmake "
        "-DFUSION_TUNER=DIR`, where DIR has\n`include/` "
        "and `lib/` of a package of fusion, also builds `tuned`, which chooses the variant while it "
        "runs.\nAll files may be used under the Apache License, version 2.0; `loops.c` is yours.\n");
  }

  const LoopsExport& request_;
  const std::vector<LoopCode>& codes_;
  const LoopInterface& interface_;
  const ExportedWords& words_;
  const std::string stream_;  // the last argument of what launches
  v1::Artifact artifact_;
};

}  // namespace

int NearestPower(int64_t size) {
  int power = 0;
  while (size >> (power + 1) > 0) ++power;
  // The middle is at 2^0.5, about 181/128.
  return (size << 7) >= (int64_t{181} << power) ? power + 1 : power;
}

absl::StatusOr<v1::Artifact> ExportLoops(const LoopsExport& request) {
  ErrorList errors(request.file_name);
  std::vector<LoopCode> codes;
  for (size_t i = 0; i < request.variants.size(); ++i)
    codes.push_back(LowerLoops(request.mapped,
                               {.constants = request.variants[i].parameters,
                                .cached = request.variants[i].cached,
                                .prefix = absl::StrCat(request.names.name(), "_v", i, "_k")},
                               &errors));
  if (!errors.empty()) return errors.ToStatus();
  return FolderPrinter(request, codes).Print();
}

}  // namespace fusion
