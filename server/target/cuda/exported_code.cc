// Launches through the CUDA runtime.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/target/cuda/cuda_target.h"

namespace fusion {
namespace {

constexpr ExportedWords kCudaWords = {
    .includes = "#include <cuda_runtime_api.h>\n",
    .memory = "device",
    .invalid_argument = "repetitions below 1, ",
    .device_error = " or the capture of a graph failed; cudaGetLastError tells",
    .launch_comment = "// Launches everything on the stream and returns without waiting.\n",
    .last_parameter = ", cudaStream_t stream",
    .last_argument = ", (cudaStream_t)0",
    .argument_qualifier = "",
    .package_dependencies = "set(dependencies \"find_dependency(CUDAToolkit)\")\n",
    .launch_includes = "#include <atomic>\n#include <mutex>\n\n",
    .multiprocessors =
        "  // By device: it is asked once, since asking takes as long as a launch.\n"
        "  static std::atomic<int> counts[64];\n"
        "  int device = 0;\n  cudaGetDevice(&device);\n"
        "  int count = device < 64 ? counts[device].load(std::memory_order_relaxed) : 0;\n"
        "  if (count > 0) return count;\n"
        "  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);\n"
        "  if (count < 1) return 1;\n"
        "  if (device < 64) counts[device].store(count, std::memory_order_relaxed);\n"
        "  return count;\n",
    .launch_support =
        "// Permits a kernel so much shared memory on the current device. `permitted`: what it has, by "
        "device.\n"
        "[[maybe_unused]] static bool FusedPermit(const void* kernel, size_t shared, std::atomic<size_t>* "
        "permitted) {\n"
        "  int device = 0;\n"
        "  if (cudaGetDevice(&device) != cudaSuccess) return false;\n"
        "  if (device < 64 && shared <= permitted[device].load(std::memory_order_acquire)) return true;\n"
        "  static std::mutex mutex;\n"
        "  const std::lock_guard<std::mutex> lock(mutex);\n"
        "  if (device < 64 && shared <= permitted[device].load(std::memory_order_relaxed)) return true;\n"
        "  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared) != "
        "cudaSuccess) return "
        "false;\n"
        "  if (device < 64) permitted[device].store(shared, std::memory_order_release);\n"
        "  return true;\n}\n"
        "// From sm_90 on the kernels wait themselves for what is before them in the stream "
        "(fu_launch_begin), so that each may be\n"
        "// brought to the device before the one before has ended.\n"
        "static constexpr bool FusedKernelsWait() {\n"
        "#ifdef __CUDA_ARCH_LIST__\n"
        "  for (int arch : {__CUDA_ARCH_LIST__})\n"
        "    if (arch < 900) return false;\n"
        "  return true;\n"
        "#else\n"
        "  return false;\n"
        "#endif\n}\n"
        "// `cooperative`: all blocks are on the device at once, the kernel waits for all of them.\n"
        "static bool FusedStart(const void* kernel, int64_t grid, int threads, size_t shared, bool "
        "cooperative, void** arguments,\n"
        "                        cudaStream_t stream) {\n"
        "  cudaLaunchAttribute attributes[2] = {};\n"
        "  unsigned count = 0;\n"
        "  if (cooperative) {\n"
        "    attributes[count].id = cudaLaunchAttributeCooperative;\n"
        "    attributes[count++].val.cooperative = 1;\n"
        "  }\n"
        "  if (FusedKernelsWait()) {\n"
        "    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;\n"
        "    attributes[count++].val.programmaticStreamSerializationAllowed = 1;\n"
        "  }\n"
        "  cudaLaunchConfig_t config = {};\n"
        "  config.gridDim = dim3((unsigned)grid);\n"
        "  config.blockDim = dim3((unsigned)threads);\n"
        "  config.dynamicSmemBytes = shared;\n"
        "  config.stream = stream;\n"
        "  config.attrs = attributes;\n"
        "  config.numAttrs = count;\n"
        "  return cudaLaunchKernelExC(&config, kernel, arguments) == cudaSuccess;\n}\n"
        "\n",
    .workspace_support =
        "// Memory of the stream, which its launches may use until this is gone.\n"
        "struct FusedWorkspace {\n"
        "  FusedWorkspace(size_t bytes, cudaStream_t of) : stream(of) {\n"
        "    if (cudaMallocAsync(&memory, bytes, stream) != cudaSuccess) memory = nullptr;\n  }\n"
        "  ~FusedWorkspace() {\n    if (memory != nullptr) cudaFreeAsync(memory, stream);\n  }\n"
        "  FusedWorkspace(const FusedWorkspace&) = delete;\n"
        "  FusedWorkspace& operator=(const FusedWorkspace&) = delete;\n\n"
        "  cudaStream_t stream;\n  void* memory = nullptr;\n};\n\n",
    .invalid_argument_text = ", repetitions is below 1,",
    .device_error_text = " or the capture of a CUDA graph",
    .code_remark =
        "; `fused_graph` captures calls into a\n"
        "  CUDA graph, for sizes where launching costs more than the work\n",
    .run_remark = ", directly and as a CUDA graph,",
    .binary_remark =
        "- `binary/`, where it was measured: the same kernels, for loading without a compiler "
        "through the driver API:\n  `program.json` (fusion.v1.LoadableProgram as JSON) lists the "
        "launches with "
        "their arguments for one device and the\n  sizes measured, `*.cubin` is the device code; memory "
        "from `cudaMalloc` has the alignment that it asks for\n\n",
    .option_remark = ", `--misaligned` from addresses that are no multiples of 16",
    .options = " [--misaligned]",
    .options_comment = "; --misaligned: pointers one entry behind those of cudaMalloc",
    .example_includes =
        "#include <cuda_runtime.h>\n#define CHECK(call)                                        \\\n"
        "  do {                                                     \\\n"
        "    cudaError_t e = (call);                                \\\n"
        "    if (e != cudaSuccess) {                                \\\n"
        "      std::fprintf(stderr, \"%s\\n\", cudaGetErrorString(e)); \\\n"
        "      return 1;                                            \\\n"
        "    }                                                      \\\n"
        "  } while (0)\n"
        "\n",
    .option_variables = "  size_t shift = 0;\n",
    .option_parsing = "    if (!std::strcmp(argv[i], \"--misaligned\")) known = true, shift = 1;\n",
};

constexpr char kGraphSupport[] =
    "\n// Before a capture, which must not wait for the device: the first use of a kernel loads it, "
    "which may.\n"
    "[[maybe_unused]] static bool FusedLoad(const void* kernel) {\n"
    "  cudaFuncAttributes attributes;\n"
    "  return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;\n}\n\n"
    "// Launches `repetitions` times on a stream of its own that captures, and instantiates what came of "
    "it.\n"
    "template <class Launch>\n"
    "static int FusedCapture(Launch launch, int repetitions, cudaGraphExec_t* graph_exec) {\n"
    "  cudaStream_t stream = nullptr;\n"
    "  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return "
    "FUSED_DEVICE_ERROR;\n"
    "  cudaGraph_t graph = nullptr;\n"
    "  int code = FUSED_DEVICE_ERROR;\n"
    "  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess) {\n"
    "    code = FUSED_OK;\n"
    "    for (int i = 0; i < repetitions && code == FUSED_OK; ++i) code = launch(stream);\n"
    "    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess && code == FUSED_OK) code = "
    "FUSED_DEVICE_ERROR;\n"
    "  }\n"
    "  cudaGraphExec_t exec = nullptr;\n"
    "  if (code == FUSED_OK && cudaGraphInstantiateWithFlags(&exec, graph, 0) != cudaSuccess) code = "
    "FUSED_DEVICE_ERROR;\n"
    "  if (graph != nullptr) cudaGraphDestroy(graph);\n"
    "  cudaStreamDestroy(stream);\n"
    "  if (code == FUSED_OK) *graph_exec = exec;\n"
    "  return code;\n}\n";

// Behind those of fused_launch but for the stream.
constexpr char kGraphParameters[] = ", int repetitions, cudaGraphExec_t* graph_exec";

class CudaExported final : public ExportedCode {
 public:
  const ExportedWords& words() const override { return kCudaWords; }

  // Before project(), which takes the compiler's default otherwise: an old one, without the copies, clusters
  // and waits that a kernel may be made of.
  std::string BuildFile(const std::string& arch) const override {
    return absl::StrCat(
        "cmake_minimum_required(VERSION 3.18)\n"
        "if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})\n"
        "  set(CMAKE_CUDA_ARCHITECTURES ",
        absl::StripPrefix(arch, "sm_"),
        ")\nendif()\n"
        "project(fused LANGUAGES CXX CUDA)\nset(CMAKE_CXX_STANDARD 17)\nset(CMAKE_CUDA_STANDARD 17)\nif(NOT "
        "CMAKE_BUILD_TYPE)\n"
        "  set(CMAKE_BUILD_TYPE Release)\nendif()\nadd_library(fused STATIC "
        "fused.cu)\nfind_package(CUDAToolkit REQUIRED)\n"
        "target_link_libraries(fused PUBLIC CUDA::cudart_static)\n"
        "add_executable(example example.cu reference.cc)\ntarget_link_libraries(example PRIVATE fused)\n"
        "find_package(OpenMP)\nif(OpenMP_CXX_FOUND)\n"
        "  set_source_files_properties(reference.cc PROPERTIES COMPILE_OPTIONS \"${OpenMP_CXX_FLAGS}\")\n"
        "  target_link_libraries(example PRIVATE OpenMP::OpenMP_CXX)\nendif()\n");
  }
  std::string CompileCommand(const std::string& arch) const override {
    return absl::StrCat("nvcc -O3 -std=c++17 -arch=", arch, " fused.cu example.cu reference.cc -o example");
  }

  std::string Launch(const ExportedNames& names, const ExportedLaunch& launch) const override {
    std::string text = absl::StrCat("    const void* const kernel = (const void*)", launch.kernel, ";\n");
    if (launch.uses_shared)
      absl::StrAppend(&text, "    static std::atomic<size_t> permitted[64];\n    if (!FusedPermit(kernel, ",
                      launch.shared_bytes, names.In(", permitted)) return FUSED_SIZE_TOO_LARGE;\n"));
    absl::StrAppend(&text, "    if (!FusedStart(kernel, ", launch.grid, ", ", launch.threads, ", ",
                    launch.shared_bytes, ", ", launch.cooperative ? "true" : "false",
                    names.In(", arguments, stream)) return FUSED_DEVICE_ERROR;\n"));
    return text;
  }

  std::string GraphDeclaration(const ExportedNames& names, const std::string& parameters) const override {
    return absl::StrCat(names.In("// Captures `repetitions` (at least 1) calls of fused_launch, one "
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
                                 "int fused_graph("),
                        parameters, kGraphParameters, ");\n\n");
  }

  std::string Graph(const ExportedNames& names, const std::string& parameters,
                    const std::vector<std::string>& kernels, const std::string& arguments) const override {
    std::string text = absl::StrCat(
        names.In(kGraphSupport), names.In("\nextern \"C\" int fused_graph("), parameters, kGraphParameters,
        names.In(") {\n"
                 "  if (graph_exec == nullptr) return FUSED_INVALID_ARGUMENT;\n  *graph_exec = nullptr;\n"
                 "  if (repetitions < 1) return FUSED_INVALID_ARGUMENT;\n"));
    for (const std::string& kernel : kernels)
      absl::StrAppend(&text, "  if (!FusedLoad((const void*)", kernel,
                      names.In(")) return FUSED_DEVICE_ERROR;\n"));
    absl::StrAppend(
        &text,
        names.In("  return FusedCapture(\n      [=](cudaStream_t stream) {\n        return fused_launch("),
        arguments,
        ", workspace_memory, workspace_bytes, stream);\n      },\n"
        "      repetitions, graph_exec);\n}\n");
    return text;
  }

  std::string Allocate(const std::vector<ExportedArray>& arrays) const override {
    std::string text;
    for (const ExportedArray& array : arrays)
      absl::StrAppend(&text, "  ", array.type, "* g_", array.name, ";\n  CHECK(cudaMalloc((void**)&g_",
                      array.name, ", std::max<size_t>((h_", array.name, ".size() + shift) * sizeof(",
                      array.type, "), 16)));\n  g_", array.name, " += shift;\n");
    absl::StrAppend(
        &text,
        "  void* workspace;\n  CHECK(cudaMalloc(&workspace, std::max<size_t>(workspace_bytes, 16)));\n");
    return text;
  }
  std::string Argument(const std::string& name) const override { return absl::StrCat("g_", name); }
  std::string CopyIn(const ExportedArray& array) const override {
    return absl::StrCat("    CHECK(cudaMemcpy(g_", array.name, ", h_", array.name, ".data(), ", array.bytes,
                        ", cudaMemcpyHostToDevice));\n");
  }
  std::string Poison(const ExportedArray& array) const override {
    return absl::StrCat("    CHECK(cudaMemset(g_", array.name, ", 0xFF, ", array.bytes, "));\n");
  }
  std::string Restore(const ExportedArray& array, const std::string& from) const override {
    return absl::StrCat("    CHECK(cudaMemcpy(g_", array.name, ", h_", from, ".data(), ", array.bytes,
                        ", cudaMemcpyHostToDevice));\n");
  }
  std::string CopyOut(const ExportedArray& array) const override {
    return absl::StrCat("    CHECK(cudaMemcpy(h_", array.name, ".data(), g_", array.name, ", ", array.bytes,
                        ", cudaMemcpyDeviceToHost));\n");
  }
  // The code does the same twice: with calls of fused_launch, and with as many in one CUDA graph.
  std::string Runs(const ExportedNames& names, const std::string& arguments, bool in_place) const override {
    return absl::StrCat(
        "  const int calls = ", in_place ? "1" : "2 * runs",
        names.In(";\n  cudaGraphExec_t graph_exec;\n  const int captured = fused_graph("), arguments,
        names.In(absl::StrCat(
            ", calls, &graph_exec);\n  if (captured != FUSED_OK) {\n"
            "    std::fprintf(stderr, \"fused_graph: %s\\n\", fused_error_string(captured));\n    return "
            "1;\n  "
            "}\n"
            "  cudaEvent_t start, stop;\n  CHECK(cudaEventCreate(&start));\n  "
            "CHECK(cudaEventCreate(&stop));\n"
            "  for (const bool as_graph : {false, true}) {\n",
            in_place ? "" : "    if (poison() != 0) return 1;\n",
            "    float best = INFINITY;\n    for (int run = 0; run < runs; ++run) {\n",
            in_place ? "      if (poison() != 0) return 1;\n" : "",
            "      CHECK(cudaEventRecord(start));\n"
            "      if (as_graph) CHECK(cudaGraphLaunch(graph_exec, (cudaStream_t)0));\n"
            "      for (int call = 0; call < calls && !as_graph; ++call)\n        if (launch() != FUSED_OK) "
            "return 1;\n"
            "      CHECK(cudaEventRecord(stop));\n      CHECK(cudaEventSynchronize(stop));\n      float ms;\n"
            "      CHECK(cudaEventElapsedTime(&ms, start, stop));\n      best = std::min(best, ms);\n    }\n"
            "    std::printf(\"%d %s, best of %d runs: %.3f us a call\\n\", calls,\n"
            "                as_graph ? \"calls in one CUDA graph\" : \"direct calls\", runs, best * 1e3 / "
            "calls);\n"
            "    if (judge(kinds[0], false) != 0) return 1;\n  }\n  CHECK(cudaGraphExecDestroy(graph_exec));"
            "\n")));
  }
};

}  // namespace

const ExportedCode& CudaExportedCode() {
  static const CudaExported* const code = new CudaExported();
  return *code;
}

}  // namespace fusion
