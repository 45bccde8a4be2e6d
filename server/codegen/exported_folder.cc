#include "server/codegen/exported_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "library/catalog/embedded_files.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/exported_example.h"
#include "server/codegen/exported_launch.h"
#include "server/codegen/kernel_versions.h"
#include "server/target/exported_code.h"

namespace fusion {
namespace {

constexpr char kLicence[] = "// SPDX-License-Identifier: Apache-2.0\n";

// Behind what the target builds: `cmake --install`, and find_package(NAME) of what was installed, which gives
// the target NAME::NAME.
std::string InstallText(const ExportedWords& words) {
  return absl::StrCat(
      "set_target_properties(fused PROPERTIES POSITION_INDEPENDENT_CODE ON)\n"
      "target_include_directories(fused PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> "
      "$<INSTALL_INTERFACE:include>)\n"
      "\n# After `cmake --install`, find_package(${PROJECT_NAME}) gives ${PROJECT_NAME}::${PROJECT_NAME}.\n"
      "set(package ${CMAKE_CURRENT_BINARY_DIR}/${PROJECT_NAME}Config.cmake)\n",
      words.package_dependencies,
      "file(WRITE ${package}\n  \"include(CMakeFindDependencyMacro)\\n${dependencies}\\n\"\n"
      "  \"include(\\${CMAKE_CURRENT_LIST_DIR}/${PROJECT_NAME}Targets.cmake)\\n\")\n"
      "install(TARGETS ${PROJECT_NAME} EXPORT ${PROJECT_NAME} ARCHIVE DESTINATION lib)\n"
      "install(FILES ${PROJECT_NAME}.h DESTINATION include)\n"
      "install(FILES ${package} DESTINATION lib/cmake/${PROJECT_NAME})\n"
      "install(EXPORT ${PROJECT_NAME} FILE ${PROJECT_NAME}Targets.cmake NAMESPACE ${PROJECT_NAME}:: "
      "DESTINATION "
      "lib/cmake/${PROJECT_NAME})\n");
}

// Says which sizes the kernels were specialised for.
std::string LimitsText(const ExportRequest& request) {
  std::set<std::string> limits;
  for (const FusionCode* code : request.fusions)
    for (const FusionCode::ExtentLimit& limit : code->limits)
      limits.insert(absl::StrCat(ExtentText(limit.extent), " at most ", limit.limit));
  return limits.empty() ? "any sizes" : absl::StrJoin(limits, ", ");
}

std::string Header(const Graph& graph, const ExportRequest& request) {
  const ExportedWords& words = request.target.exported().words();
  const ExportedNames& names = request.names;
  std::string inputs, outputs;
  for (ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    absl::StrAppend(
        &inputs, "//   ", ParameterName(value), "  ", DeclaredType(value),
        value.type.is_scalar() ? ", by value" : "",
        value.overwritten_by ? absl::StrCat(", becomes ", graph.value(*value.overwritten_by).name) : "",
        "\n");
  }
  for (ValueId id : graph.outputs()) {
    const Value& value = graph.value(id);
    absl::StrAppend(
        &outputs, "//   ", value.memory_of ? value.name : ParameterName(value), "  ", DeclaredType(value),
        value.memory_of ? absl::StrCat(", in the memory of ", ParameterName(graph.value(*value.memory_of)))
                        : "",
        "\n");
  }
  return absl::StrCat(
      "// ", graph.name(), ": ", request.description,
      request.verified.empty() ? "" : absl::StrCat("\n// ", request.verified),
      "\n// Matrices are row major: ld entries from one row to the next, or without padding. "
      "MATRIXrxc, VECTORn and SCALAR are\n"
      "// lists of n_elements small elements, each stored contiguously. Pointers are to ",
      words.memory, " memory and must not overlap.\n// Inputs:\n", inputs, "// Outputs:\n", outputs,
      names.In("#ifndef FUSED_H_\n#define FUSED_H_\n\n#include <stddef.h>\n#include <stdint.h>\n"),
      words.includes,
      names.In(
          absl::StrCat("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                       "enum {\n"
                       "  FUSED_OK = 0,\n"
                       "  FUSED_INVALID_ARGUMENT = 1,     // a negative size, ",
                       ShortRows(graph).empty() ? "" : "a leading dimension smaller than its rows are long, ",
                       words.invalid_argument,
                       "or a null pointer to data that is not empty\n"
                       "  FUSED_SIZE_TOO_LARGE = 2,       // these kernels were specialised for fewer "
                       "columns, or shared memory is short\n"
                       "  FUSED_WORKSPACE_TOO_SMALL = 3,  // less than fused_workspace_bytes\n"
                       "  FUSED_DEVICE_ERROR = 4          // a launch",
                       words.device_error,
                       "\n};\n\n"
                       "// A text for a code; static storage.\n"
                       "const char* fused_error_string(int code);\n\n"
                       "// Returns FUSED_OK for the sizes that these kernels are for (",
                       LimitsText(request),
                       "), else the code of fused_launch, which may\n// find shared memory short besides.\n"
                       "int fused_check_sizes(",
                       SizeList(graph, "int64_t "),
                       ");\n\n"
                       "// Bytes of workspace (intermediate results) for these sizes on the current device.\n"
                       "size_t fused_workspace_bytes(")),
      SizeList(graph, "int64_t "), ");\n\n", words.launch_comment, names.In("int fused_launch("),
      LaunchParameters(graph), words.last_parameter, ");\n\n",
      request.target.exported().GraphDeclaration(names, LaunchParameters(graph)),
      "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

std::string Source(const Graph& graph, const ExportRequest& request) {
  std::string source =
      absl::StrCat(request.names.In("#include \"fused.h\"\n\n"), "#include \"fusion_device.h\"\n");
  std::set<std::string> done;
  for (const FusionCode* code : request.fusions)
    for (const ElementaryFunction* function : code->functions)
      if (done.insert(function->name).second)
        absl::StrAppend(&source, "\n// ", function->name, "\n", function->source);
  for (const FusionCode* code : request.fusions)
    for (const KernelLaunch& launch : code->launches)
      for (const ir::Kernel& kernel : LaunchableKernels(launch))
        absl::StrAppend(&source, "\n", request.target.Print(kernel));
  absl::StrAppend(
      &source, "\n",
      PrintLaunchCode(graph, request.fusions, {.target = request.target, .names = request.names}));
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
      std::string text = TargetOf(v1::HOST).Print(kernel);
      absl::StrAppend(&source, "\n", absl::StrReplaceAll(text, {{"extern \"C\" void", "static void"}}));
    }
  absl::StrAppend(
      &source, "\n",
      PrintLaunchCode(
          graph, request.reference,
          {.target = TargetOf(v1::HOST), .force_f64 = true, .reference = true, .names = request.names}));
  return source;
}

std::string Readme(const Graph& graph, const ExportRequest& request) {
  const ExportedWords& words = request.target.exported().words();
  const char* const suffix = request.target.suffix();
  return absl::StrCat(
      "# ", graph.name(), "\n\n", request.description, "\n\n",
      request.verified.empty() ? "" : absl::StrCat(request.verified, "\n\n"), "- `", request.names.name(),
      ".h`, `", request.names.name(), ".", suffix, "`: the code, with `fusion_device.h` beside it",
      request.names.In(words.code_remark), "- `example.", suffix, "`: runs it", words.run_remark,
      " and compares with `reference.cc`, which computes the same in f64, on random data and on data in "
      "which each\n"
      "  part of the computation shows (`verification.h`)\n",
      words.binary_remark, "    ", request.names.In(request.target.exported().CompileCommand(request.arch)),
      " && ./example\n\nor `cmake -B build && cmake --build build && build/example`. `NAME=SIZE` sets a size "
      "(",
      absl::StrJoin(graph.sizes(), ", ", [](std::string* out, const Size& size) { out->append(size.name); }),
      "), `--once` runs once, `--random` on random data alone", words.option_remark,
      ".\n\nInstalled with `cmake --install build --prefix DIR`, another project finds it: `find_package(",
      request.names.name(), ")`, then link `", request.names.name(), "::", request.names.name(),
      "`.\nAll files may be used under the Apache License, version 2.0.\n");
}

}  // namespace

v1::Artifact ExportFolder(const Graph& graph, const ExportRequest& request) {
  const std::string suffix = request.target.suffix();
  v1::Artifact artifact;
  auto add = [&](const std::string& path, std::string content) {
    v1::ArtifactFile* file = artifact.add_files();
    file->set_path(path);
    file->set_content(std::move(content));
  };
  add("CMakeLists.txt", request.names.In(absl::StrCat(request.target.exported().BuildFile(request.arch),
                                                      InstallText(request.target.exported().words()))));
  add("README.md", Readme(graph, request));
  add("example." + suffix, PrintExample(graph, request));
  add(absl::StrCat(request.names.name(), ".", suffix), Source(graph, request));
  add(request.names.name() + ".h", Header(graph, request));
  add("fusion_device.h", DeviceRuntime());
  add("reference.cc", Reference(graph, request));
  add("verification.h",
      absl::StrReplaceAll(EmbeddedFiles().at("verification/exported_checks.h"),
                          {{"#include \"library/verification/entry_operations.h\"\n\n",
                            absl::StrReplaceAll(EmbeddedFiles().at("verification/entry_operations.h"),
                                                {{"#pragma once\n\n", ""}})}}));
  for (v1::ArtifactFile& file : *artifact.mutable_files())
    if (file.path() != "CMakeLists.txt" && file.path() != "README.md")
      file.set_content(kLicence + file.content());
  return artifact;
}

}  // namespace fusion
