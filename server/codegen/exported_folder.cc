#include "server/codegen/exported_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/exported_launch.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/printer.h"

namespace fusion {
namespace {

std::string SizeArguments(const Graph& graph, const std::string& type) {
  std::string text;
  for (const Size& size : graph.sizes()) absl::StrAppend(&text, type, "n_", size.name, ", ");
  return text;
}

std::string Header(const Graph& graph, const ExportRequest& request) {
  const bool cuda = request.language == Language::kCuda;
  std::string inputs, outputs;
  for (ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    absl::StrAppend(&inputs, "//   ", ParameterName(value), "  ", DeclaredType(value),
                    value.type.is_scalar() ? ", by value" : "", "\n");
  }
  for (ValueId id : graph.outputs())
    absl::StrAppend(&outputs, "//   ", ParameterName(graph.value(id)), "  ", DeclaredType(graph.value(id)),
                    "\n");
  return absl::StrCat("// ", graph.name(), ": ", request.description,
                      "\n// Matrices are row major: ld entries from one row to the next, or without padding. "
                      "MATRIXrxc, VECTORn and SCALAR are\n"
                      "// lists of n_elements small elements, each stored contiguously. Pointers are to ",
                      cuda ? "device" : "host", " memory and must not overlap.\n// Inputs:\n", inputs,
                      "// Outputs:\n", outputs,
                      "#ifndef FUSED_H_\n#define FUSED_H_\n\n#include <stddef.h>\n#include <stdint.h>\n",
                      cuda ? "#include <cuda_runtime_api.h>\n" : "",
                      "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                      "enum {\n"
                      "  FUSED_OK = 0,\n"
                      "  FUSED_INVALID_ARGUMENT = 1,     // a negative size, ",
                      ShortRows(graph).empty() ? "" : "a leading dimension smaller than its rows are long, ",
                      cuda ? "repetitions below 1, " : "",
                      "or a null pointer to data that is not empty\n"
                      "  FUSED_SIZE_TOO_LARGE = 2,       // these kernels were specialised for fewer "
                      "columns, or shared memory is short\n"
                      "  FUSED_WORKSPACE_TOO_SMALL = 3,  // less than fused_workspace_bytes\n"
                      "  FUSED_DEVICE_ERROR = 4          // a launch",
                      cuda ? " or the capture of a graph failed; cudaGetLastError tells" : " failed",
                      "\n};\n\n"
                      "// A text for a code; static storage.\n"
                      "const char* fused_error_string(int code);\n\n"
                      "// Bytes of workspace (intermediate results) for these sizes on the current device.\n"
                      "size_t fused_workspace_bytes(",
                      TrimComma(SizeArguments(graph, "int64_t ")), ");\n\n",
                      cuda ? "// Launches everything on the stream and returns without waiting.\n"
                           : "// Computes everything with OpenMP threads.\n",
                      "int fused_launch(", LaunchParameters(graph, cuda), ");\n\n",
                      cuda ? absl::StrCat("// Captures `repetitions` (at least 1) calls of fused_launch, one "
                                          "after the other, into one CUDA graph, for\n"
                                          "// sizes where launching costs more than the work. Runs nothing: "
                                          "cudaGraphLaunch(*graph_exec, stream) runs the\n"
                                          "// calls, as often as wanted. Pointers, scalars and sizes are "
                                          "baked in. The memory, workspace included, must\n"
                                          "// outlive the graph; each run reads what it then holds, and runs "
                                          "that share any of it must not overlap. The\n"
                                          "// graph is for the current device; the caller destroys it with "
                                          "cudaGraphExecDestroy. Codes are those of\n"
                                          "// fused_launch; after any but FUSED_OK *graph_exec is null.\n"
                                          "int fused_graph(",
                                          GraphParameters(graph), ");\n\n")
                           : "",
                      "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

std::string Source(const Graph& graph, const ExportRequest& request) {
  const bool cuda = request.language == Language::kCuda;
  std::string source = absl::StrCat("#include \"fused.h\"\n\n#include \"fusion_device.h\"\n");
  std::set<std::string> done;
  for (const FusionCode* code : request.fusions)
    for (const ElementaryFunction* function : code->functions)
      if (done.insert(function->name).second)
        absl::StrAppend(&source, "\n// ", function->name, "\n", function->source);
  for (const FusionCode* code : request.fusions)
    for (const KernelLaunch& launch : code->launches)
      for (const ir::Kernel& kernel : LaunchableKernels(launch))
        absl::StrAppend(&source, "\n", cuda ? PrintCuda(kernel) : PrintHost(kernel));
  absl::StrAppend(&source, "\n", PrintLaunchCode(graph, request.fusions, {.cuda = cuda}));
  return source;
}

std::string Reference(const Graph& graph, const ExportRequest& request) {
  std::string source =
      "// The same computation in f64, one function after the other, on the host: the reference of the "
      "example.\n"
      "#include <stddef.h>\n#include <stdint.h>\n\n#include <vector>\n\n#include \"fusion_device.h\"\n";
  std::set<std::string> done;
  for (const FusionCode* code : request.reference)
    for (const ElementaryFunction* function : code->functions)
      if (done.insert(function->name).second)
        absl::StrAppend(&source, "\n// ", function->name, "\n", function->source);
  for (const FusionCode* code : request.reference)
    for (const KernelLaunch& launch : code->launches) {
      ir::Kernel kernel = LaunchedKernel(launch, false);
      kernel.name = "reference_" + kernel.name;
      std::string text = PrintHost(kernel);
      absl::StrAppend(&source, "\n", absl::StrReplaceAll(text, {{"extern \"C\" void", "static void"}}));
    }
  absl::StrAppend(
      &source, "\n",
      PrintLaunchCode(graph, request.reference, {.cuda = false, .force_f64 = true, .reference = true}));
  return source;
}

// Of the example: every output compared with the reference.
std::string VerifyOutputs(const Graph& graph, const ExportRequest& request, const std::string& indent) {
  std::string text;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string& name = graph.value(graph.outputs()[i]).name;
    const double tolerance = i < request.tolerances.size() ? request.tolerances[i] : 1e-4;
    absl::StrAppend(&text, indent, "good = Verify(\"", name, "\", h_", name, ", d_", name, ", ",
                    absl::StrFormat("%.3g", tolerance), ") && good;\n");
  }
  return text;
}

// Of the example: the timed runs, and the verification of what they gave. `arguments`: of fused_launch.
std::string RunsOnHost(const std::string& arguments, const std::string& verify) {
  return absl::StrCat(
      "  double best = INFINITY;\n"
      "  for (int run = 0; run < runs; ++run) {\n"
      "    const auto start = std::chrono::steady_clock::now();\n"
      "    const int code = fused_launch(",
      arguments,
      ");\n"
      "    if (code != FUSED_OK) {\n"
      "      std::fprintf(stderr, \"fused_launch: %s\\n\", fused_error_string(code));\n"
      "      return 1;\n"
      "    }\n"
      "    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;\n"
      "    best = std::min(best, time.count());\n"
      "  }\n",
      verify, "  std::printf(\"best of %d runs: %.3f us\\n\", runs, best * 1e6);\n");
}

// The same twice: calls of fused_launch, and as many in one CUDA graph. `arguments`: without the stream.
std::string RunsOnDevice(const Graph& graph, const std::string& arguments, const std::string& verify) {
  std::string poison, copy;
  for (ValueId id : graph.outputs()) {
    const Value& value = graph.value(id);
    const std::string bytes =
        absl::StrCat("h_", value.name, ".size() * sizeof(", DataTypeCName(value.type.data_type), ")");
    absl::StrAppend(&poison, "    CHECK(cudaMemset(g_", value.name, ", 0xFF, ", bytes, "));\n");
    absl::StrAppend(&copy, "    CHECK(cudaMemcpy(h_", value.name, ".data(), g_", value.name, ", ", bytes,
                    ", cudaMemcpyDeviceToHost));\n");
  }
  return absl::StrCat(
      "  const int calls = 2 * runs;\n"
      "  cudaGraphExec_t graph_exec;\n"
      "  int code = fused_graph(",
      arguments,
      ", calls, &graph_exec);\n"
      "  if (code != FUSED_OK) {\n"
      "    std::fprintf(stderr, \"fused_graph: %s\\n\", fused_error_string(code));\n"
      "    return 1;\n"
      "  }\n"
      "  cudaEvent_t start, stop;\n"
      "  CHECK(cudaEventCreate(&start));\n"
      "  CHECK(cudaEventCreate(&stop));\n"
      "  for (const bool as_graph : {false, true}) {\n"
      "    // All outputs are NaN before: one that is not written cannot pass.\n",
      poison,
      "    float best = INFINITY;\n"
      "    for (int run = 0; run < runs; ++run) {\n"
      "      CHECK(cudaEventRecord(start));\n"
      "      if (as_graph) CHECK(cudaGraphLaunch(graph_exec, (cudaStream_t)0));\n"
      "      for (int call = 0; call < calls && !as_graph && code == FUSED_OK; ++call)\n"
      "        code = fused_launch(",
      arguments,
      ", (cudaStream_t)0);\n"
      "      if (code != FUSED_OK) {\n"
      "        std::fprintf(stderr, \"fused_launch: %s\\n\", fused_error_string(code));\n"
      "        return 1;\n"
      "      }\n"
      "      CHECK(cudaEventRecord(stop));\n"
      "      CHECK(cudaEventSynchronize(stop));\n"
      "      float ms;\n"
      "      CHECK(cudaEventElapsedTime(&ms, start, stop));\n"
      "      best = std::min(best, ms);\n"
      "    }\n"
      "    std::printf(\"%d %s, best of %d runs: %.3f us a call\\n\", calls,\n"
      "                as_graph ? \"calls in one CUDA graph\" : \"direct calls\", runs, best * 1e3 / "
      "calls);\n",
      copy, verify,
      "  }\n"
      "  CHECK(cudaGraphExecDestroy(graph_exec));\n");
}

std::string Example(const Graph& graph, const ExportRequest& request) {
  const bool cuda = request.language == Language::kCuda;
  std::string text = absl::StrCat(
      "// Runs the fused code on random data, compares with the f64 reference, and times it.\n"
      "// Usage: example [size=value]... [--once]",
      cuda ? " [--misaligned]" : "", "   --once: no more calls than verification needs",
      cuda ? "; --misaligned: pointers one entry behind those of cudaMalloc" : "", "; sizes: ",
      absl::StrJoin(graph.sizes(), ", ",
                    [&](std::string* out, const Size& size) {
                      absl::StrAppend(out, size.name, "=", request.sizes.at(size.name));
                    }),
      "\n#include <algorithm>\n#include <chrono>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n"
      "#include <cstring>\n#include <random>\n#include <vector>\n\n#include \"fused.h\"\n\n");
  if (cuda)
    absl::StrAppend(
        &text,
        "#include <cuda_runtime.h>\n#define CHECK(call)                                        \\\n"
        "  do {                                                     \\\n"
        "    cudaError_t e = (call);                                \\\n"
        "    if (e != cudaSuccess) {                                \\\n"
        "      std::fprintf(stderr, \"%s\\n\", cudaGetErrorString(e)); \\\n"
        "      return 1;                                            \\\n"
        "    }                                                      \\\n"
        "  } while (0)\n\n");
  absl::StrAppend(
      &text, "int fused_reference(", ReferenceParameters(graph), ");\n\n",
      "template <class T>\nstd::vector<T> Random(int64_t n, double low, double high, unsigned seed) {\n"
      "  std::mt19937 engine(seed);\n  std::uniform_real_distribution<double> draw(low, high);\n"
      "  std::vector<T> values(n);\n  for (T& value : values) value = (T)draw(engine);\n  return values;\n}\n"
      "template <class T>\nstd::vector<double> Widen(const std::vector<T>& values) {\n"
      "  return std::vector<double>(values.begin(), values.end());\n}\n"
      "// Largest |out - reference| / max(|reference|, rms(reference)); infinite when a value is not "
      "finite.\n"
      "template <class T>\ndouble RelativeError(const std::vector<T>& out, const std::vector<double>& "
      "reference) {\n"
      "  double square = 0, count = 0, error = 0;\n"
      "  for (double r : reference)  // what lies between the rows of a matrix stays NaN\n"
      "    if (!std::isnan(r)) square += r * r, ++count;\n"
      "  const double rms = count > 0 ? std::sqrt(square / count) : 0;\n"
      "  for (size_t i = 0; i < out.size(); ++i) {\n"
      "    if (std::isnan(reference[i]) && std::isnan((double)out[i])) continue;\n"
      "    const double difference = std::fabs(out[i] - reference[i]);\n"
      "    if (difference == 0) continue;\n"
      "    const double relative = difference / std::max(std::fabs(reference[i]), rms);\n"
      "    if (!(relative <= error)) error = std::isnan(relative) ? INFINITY : relative;\n  }\n  return "
      "error;\n}\n"
      "template <class T>\nbool Verify(const char* name, const std::vector<T>& out, const "
      "std::vector<double>& reference, "
      "double bound) {\n  const double error = RelativeError(out, reference);\n"
      "  std::printf(\"%s: largest relative error %.3g, bound %.3g: %s\\n\", name, error, bound,\n"
      "              error <= bound ? \"OK\" : \"WRONG\");\n  return error <= bound;\n}\n"
      "// False: no whole number from 0.\n"
      "inline bool ParseSize(const char* text, int64_t* size) {\n  char* end = nullptr;\n  *size = "
      "std::strtoll(text, &end, 10);\n"
      "  return end != text && *end == 0 && *size >= 0;\n}\n\n"
      "int main(int argc, char** argv) {\n");
  for (const Size& size : graph.sizes())
    absl::StrAppend(&text, "  int64_t n_", size.name, " = ", request.sizes.at(size.name), ";\n");
  absl::StrAppend(&text, cuda ? "  size_t shift = 0;\n" : "",
                  "  int runs = 10;\n  for (int i = 1; i < argc; ++i) {\n    const char* equals = "
                  "std::strchr(argv[i], '=');\n"
                  "    const size_t length = equals ? (size_t)(equals - argv[i]) : 0;\n    bool known = "
                  "!std::strcmp(argv[i], \"--once\");\n"
                  "    if (known) runs = 1;\n",
                  cuda ? "    if (!std::strcmp(argv[i], \"--misaligned\")) known = true, shift = 1;\n" : "");
  for (const Size& size : graph.sizes())
    absl::StrAppend(&text, "    if (equals && length == ", size.name.size(), " && !std::strncmp(argv[i], \"",
                    size.name, "\", length)) known = ParseSize(equals + 1, &n_", size.name, ");\n");
  absl::StrAppend(
      &text, "    if (!known) {\n      std::fprintf(stderr, \"argument %s: unknown, or no size; usage: %s ",
      absl::StrJoin(
          graph.sizes(), " ",
          [](std::string* out, const Size& size) { absl::StrAppend(out, "[", size.name, "=SIZE]"); }),
      " [--once]", cuda ? " [--misaligned]" : "", "\\n\", argv[i], argv[0]);\n      return 2;\n    }\n  }\n");
  for (const std::string& condition : ShortRows(graph))
    absl::StrAppend(
        &text, "  if (", condition, ") {\n    std::fprintf(stderr, \"", condition,
        ": a leading dimension must not be smaller than its rows are long\\n\");\n    return 2;\n  }\n");
  std::vector<std::string> launch, reference;
  int seed = 1;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    const std::string type = DataTypeCName(value.type.data_type), name = value.name;
    const bool positive = i < request.positive_inputs.size() && request.positive_inputs[i];
    absl::StrAppend(&text, "  std::vector<", type, "> h_", name, " = Random<", type, ">(", EntriesText(value),
                    ", ", positive ? "0.25, 1.25" : "-0.5, 1.0", ", ", seed++, ");\n  std::vector<double> d_",
                    name, " = Widen(h_", name, ");\n");
    if (value.type.is_scalar()) {
      launch.push_back(absl::StrCat("h_", name, "[0]"));
      reference.push_back(absl::StrCat("d_", name, "[0]"));
    } else {
      launch.push_back(absl::StrCat(cuda ? "g_" : "h_", name, cuda ? "" : ".data()"));
      reference.push_back(absl::StrCat("d_", name, ".data()"));
    }
  }
  for (ValueId id : graph.outputs()) {
    const Value& value = graph.value(id);
    const std::string type = DataTypeCName(value.type.data_type), name = value.name;
    absl::StrAppend(&text, "  std::vector<", type, "> h_", name, "(", EntriesText(value), ", (", type,
                    ")NAN);\n  std::vector<double> d_", name, "(", EntriesText(value), ", NAN);\n");
    launch.push_back(absl::StrCat(cuda ? "g_" : "h_", name, cuda ? "" : ".data()"));
    reference.push_back(absl::StrCat("d_", name, ".data()"));
  }
  const std::string sizes = TrimComma(SizeArguments(graph, ""));
  absl::StrAppend(&text, "  const size_t workspace_bytes = fused_workspace_bytes(", sizes, ");\n");
  if (cuda) {
    for (const auto* list : {&graph.inputs(), &graph.outputs()})
      for (ValueId id : *list) {
        const Value& value = graph.value(id);
        if (value.is_input && value.type.is_scalar()) continue;
        const std::string type = DataTypeCName(value.type.data_type), name = value.name;
        absl::StrAppend(&text, "  ", type, "* g_", name, ";\n  CHECK(cudaMalloc((void**)&g_", name,
                        ", std::max<size_t>((h_", name, ".size() + shift) * sizeof(", type, "), 16)));\n  g_",
                        name, " += shift;\n  CHECK(cudaMemcpy(g_", name, ", h_", name, ".data(), h_", name,
                        ".size() * sizeof(", type, "), cudaMemcpyHostToDevice));\n");
      }
    absl::StrAppend(
        &text,
        "  void* workspace;\n  CHECK(cudaMalloc(&workspace, std::max<size_t>(workspace_bytes, 16)));\n");
  } else {
    absl::StrAppend(&text,
                    "  std::vector<char> workspace_memory(workspace_bytes + 256);\n"
                    "  void* workspace = (void*)(((uintptr_t)workspace_memory.data() + 255) / 256 * 256);\n");
  }
  launch.push_back(sizes);
  launch.push_back("workspace, workspace_bytes");
  reference.push_back(sizes);
  absl::StrAppend(
      &text, "  if (fused_reference(", absl::StrJoin(reference, ", "),
      ") != 0) {\n"
      "    std::fprintf(stderr, \"fused_reference failed\\n\");\n    return 1;\n  }\n  bool good = true;\n");
  const std::string arguments = absl::StrJoin(launch, ", ");
  const std::string verify = VerifyOutputs(graph, request, cuda ? "    " : "  ");
  absl::StrAppend(&text, cuda ? RunsOnDevice(graph, arguments, verify) : RunsOnHost(arguments, verify),
                  "  return good ? 0 : 1;\n}\n");
  return text;
}

std::string BuildFile(const ExportRequest& request) {
  if (request.language == Language::kCuda)
    // Before project(), which takes the compiler's default otherwise: an old one, without the copies,
    // clusters and waits that a kernel may be made of.
    return absl::StrCat(
        "cmake_minimum_required(VERSION 3.18)\n"
        "if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})\n"
        "  set(CMAKE_CUDA_ARCHITECTURES ",
        absl::StripPrefix(request.arch, "sm_"),
        ")\nendif()\n"
        "project(fused LANGUAGES CXX CUDA)\nset(CMAKE_CXX_STANDARD 17)\nset(CMAKE_CUDA_STANDARD 17)\nif(NOT "
        "CMAKE_BUILD_TYPE)\n"
        "  set(CMAKE_BUILD_TYPE Release)\nendif()\nadd_library(fused STATIC fused.cu)\n"
        "add_executable(example example.cu reference.cc)\ntarget_link_libraries(example PRIVATE fused)\n"
        "find_package(OpenMP)\nif(OpenMP_CXX_FOUND)\n"
        "  set_source_files_properties(reference.cc PROPERTIES COMPILE_OPTIONS \"${OpenMP_CXX_FLAGS}\")\n"
        "  target_link_libraries(example PRIVATE OpenMP::OpenMP_CXX)\nendif()\n");
  return "cmake_minimum_required(VERSION 3.18)\nproject(fused LANGUAGES CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
         "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
         "add_compile_options(-O3 -march=native -fno-math-errno -fno-trapping-math)\nfind_package(OpenMP)\n"
         "add_library(fused STATIC fused.cc)\nadd_executable(example example.cc reference.cc)\n"
         "target_link_libraries(example PRIVATE fused)\nif(OpenMP_CXX_FOUND)\n"
         "  target_link_libraries(fused PUBLIC OpenMP::OpenMP_CXX)\nendif()\n";
}

std::string Readme(const Graph& graph, const ExportRequest& request) {
  const bool cuda = request.language == Language::kCuda;
  return absl::StrCat(
      "# ", graph.name(), "\n\n", request.description, "\n\n- `fused.h`, `", cuda ? "fused.cu" : "fused.cc",
      "`: the code, with `fusion_device.h` beside it",
      cuda ? "; `fused_graph` captures calls into a\n"
             "  CUDA graph, for sizes where launching costs more than the work\n"
           : "\n",
      "- `example.", cuda ? "cu" : "cc", "`: runs it on random data",
      cuda ? ", directly and as a CUDA graph," : "",
      " and compares with `reference.cc`, which computes the same in f64\n",
      cuda ? "- `binary/`, where it was measured: the same kernels, for loading without a compiler "
             "through the driver API:\n  `program.json` (fusion.v1.LoadableProgram as JSON) lists the "
             "launches with "
             "their arguments for one device and the\n  sizes measured, `*.cubin` is the device code; memory "
             "from `cudaMalloc` has the alignment that it asks for\n\n"
           : "\n",
      cuda ? absl::StrCat("    nvcc -O3 -std=c++17 -arch=", request.arch,
                          " fused.cu example.cu reference.cc -o example && ./example\n")
           : "    g++ -O3 -march=native -fopenmp -std=c++17 fused.cc example.cc reference.cc -o example && "
             "./example\n",
      "\nor `cmake -B build && cmake --build build && build/example`. `NAME=SIZE` sets a size (",
      absl::StrJoin(graph.sizes(), ", ", [](std::string* out, const Size& size) { out->append(size.name); }),
      "), `--once` runs once", cuda ? ", `--misaligned` from addresses that are no multiples of 16" : "",
      ".\n");
}

}  // namespace

v1::Artifact ExportFolder(const Graph& graph, const ExportRequest& request) {
  const bool cuda = request.language == Language::kCuda;
  v1::Artifact artifact;
  auto add = [&](const std::string& path, std::string content) {
    v1::ArtifactFile* file = artifact.add_files();
    file->set_path(path);
    file->set_content(std::move(content));
  };
  add("CMakeLists.txt", BuildFile(request));
  add("README.md", Readme(graph, request));
  add(cuda ? "example.cu" : "example.cc", Example(graph, request));
  add(cuda ? "fused.cu" : "fused.cc", Source(graph, request));
  add("fused.h", Header(graph, request));
  add("fusion_device.h", DeviceRuntime());
  add("reference.cc", Reference(graph, request));
  return artifact;
}

}  // namespace fusion
