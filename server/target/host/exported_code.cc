// Calls of functions that compute with OpenMP threads.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/target/host/host_target.h"

namespace fusion {
namespace {

constexpr ExportedWords kHostWords = {
    .includes = "",
    .memory = "host",
    .invalid_argument = "",
    .device_error = " failed",
    .launch_comment = "// Computes everything with OpenMP threads.\n",
    .last_parameter = "",
    .last_argument = "",
    .argument_qualifier = " const",
    .package_dependencies =
        "if(OpenMP_CXX_FOUND)\n  set(dependencies \"find_dependency(OpenMP)\")\nendif()\n",
    .launch_includes = "#ifdef _OPENMP\n#include <omp.h>\n#endif\n\n",
    .multiprocessors = "#ifdef _OPENMP\n  return omp_get_max_threads();\n#else\n  return 1;\n#endif\n",
    .launch_support = "",
    .workspace_support =
        "#include <cstdlib>\n\nstruct FusedWorkspace {\n"
        "  explicit FusedWorkspace(size_t bytes) : memory(std::malloc(bytes)) {}\n"
        "  ~FusedWorkspace() { std::free(memory); }\n"
        "  FusedWorkspace(const FusedWorkspace&) = delete;\n"
        "  FusedWorkspace& operator=(const FusedWorkspace&) = delete;\n\n"
        "  void* memory;\n};\n\n",
    .invalid_argument_text = "",
    .device_error_text = "",
    .code_remark = "\n",
    .run_remark = "",
    .binary_remark = "\n",
    .option_remark = "",
    .options = "",
    .options_comment = "",
    .example_includes = "",
    .option_variables = "",
    .option_parsing = "",
};

class HostExported final : public ExportedCode {
 public:
  const ExportedWords& words() const override { return kHostWords; }

  std::string BuildFile(const std::string&) const override {
    return "cmake_minimum_required(VERSION 3.18)\nproject(fused LANGUAGES CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
           "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
           "add_compile_options(-O3 -march=native -fno-math-errno -fno-trapping-math)\nfind_package(OpenMP)\n"
           "add_library(fused STATIC fused.cc)\nadd_executable(example example.cc reference.cc)\n"
           "target_link_libraries(example PRIVATE fused)\nif(OpenMP_CXX_FOUND)\n"
           "  target_link_libraries(fused PUBLIC OpenMP::OpenMP_CXX)\nendif()\n";
  }
  std::string CompileCommand(const std::string&) const override {
    return "g++ -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp -std=c++17 fused.cc example.cc "
           "reference.cc -o example";
  }

  std::string Launch(const ExportedNames&, const ExportedLaunch& launch) const override {
    return absl::StrCat("    ", launch.kernel, "(", launch.grid, ", arguments);\n");
  }
  std::string GraphDeclaration(const ExportedNames&, const std::string&) const override { return ""; }
  std::string Graph(const ExportedNames&, const std::string&, const std::vector<std::string>&,
                    const std::string&) const override {
    return "";
  }

  // Kernels read the vectors of the example themselves.
  std::string Allocate(const std::vector<ExportedArray>&) const override {
    return "  std::vector<char> workspace_memory(workspace_bytes + 256);\n"
           "  void* workspace = (void*)(((uintptr_t)workspace_memory.data() + 255) / 256 * 256);\n";
  }
  std::string Argument(const std::string& name) const override { return absl::StrCat("h_", name, ".data()"); }
  std::string CopyIn(const ExportedArray&) const override { return ""; }
  std::string Poison(const ExportedArray& array) const override {
    return absl::StrCat("    std::fill(h_", array.name, ".begin(), h_", array.name, ".end(), (", array.type,
                        ")NAN);\n");
  }
  std::string Restore(const ExportedArray& array, const std::string& from) const override {
    return absl::StrCat("    h_", array.name, " = h_", from, ";\n");
  }
  std::string CopyOut(const ExportedArray&) const override { return ""; }
  std::string Runs(const ExportedNames& names, const std::string&, bool in_place) const override {
    return names.In(absl::StrCat(
        "  double best = INFINITY;\n  for (int run = 0; run < runs; ++run) {\n",
        in_place ? "    if (poison() != 0) return 1;\n" : "",
        "    const auto start = std::chrono::steady_clock::now();\n    if (launch() != FUSED_OK) return "
        "1;\n"
        "    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;\n"
        "    best = std::min(best, time.count());\n  }\n  judge(kinds[0], false);\n"
        "  std::printf(\"best of %d runs: %.3f us\\n\", runs, best * 1e6);"
        "\n"));
  }
};

}  // namespace

const ExportedCode& HostExportedCode() {
  static const HostExported* const code = new HostExported();
  return *code;
}

}  // namespace fusion
