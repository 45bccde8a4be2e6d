#include "server/codegen/exported_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "library/catalog/embedded_files.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/exported_example.h"
#include "server/codegen/exported_launch.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/printer.h"

namespace fusion {
namespace {

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
                      SizeList(graph, "int64_t "), ");\n\n",
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
      "#include <stddef.h>\n#include <stdint.h>\n\n#include <vector>\n\n#include "
      "\"fusion_device.h\"\n#include "
      "\"verification.h\"\n";
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
      "- `example.", cuda ? "cu" : "cc", "`: runs it", cuda ? ", directly and as a CUDA graph," : "",
      " and compares with `reference.cc`, which computes the same in f64, on random data and on data in "
      "which each\n"
      "  part of the computation shows (`verification.h`)\n",
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
      "), `--once` runs once, `--random` on random data alone",
      cuda ? ", `--misaligned` from addresses that are no multiples of 16" : "", ".\n");
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
  add(cuda ? "example.cu" : "example.cc", PrintExample(graph, request));
  add(cuda ? "fused.cu" : "fused.cc", Source(graph, request));
  add("fused.h", Header(graph, request));
  add("fusion_device.h", DeviceRuntime());
  add("reference.cc", Reference(graph, request));
  add("verification.h",
      absl::StrReplaceAll(EmbeddedFiles().at("verification/exported_checks.h"),
                          {{"#include \"library/verification/entry_operations.h\"\n\n",
                            absl::StrReplaceAll(EmbeddedFiles().at("verification/entry_operations.h"),
                                                {{"#pragma once\n\n", ""}})}}));
  return artifact;
}

}  // namespace fusion
