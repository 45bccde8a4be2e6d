// Every routine compiles as CUDA device code, in f32 and f64. Needs nvcc; without it, SKIP.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "library/catalog/catalog.h"
#include "library/catalog/definition_check.h"
#include "tests/folders.h"

namespace fusion {
namespace {

// A kernel that names every routine, with 3 for each static parameter.
std::string Program(const Catalog& catalog) {
  std::string sources = "#include \"library/device/fusion_device.h\"\n", uses;
  int count = 0;
  for (const ElementaryFunction* function : catalog.functions()) {
    absl::StrAppend(&sources, function->source);
    std::set<std::string> instances;
    for (const Overload& overload : function->overloads) {
      std::string parameters;
      for (size_t p = 0; p < overload.static_parameters.size(); ++p) absl::StrAppend(&parameters, ", 3");
      for (const std::string& routine : RoutineNames(overload)) {
        bool element = !overload.implementations.empty();
        for (const char* type : {"float", "double"}) {
          instances.insert(absl::StrCat(routine, "<", type, element ? parameters : "", ">"));
        }
      }
    }
    for (const std::string& instance : instances) {
      absl::StrAppend(&uses, "  auto use", count++, " = &", instance, ";\n");
    }
  }
  return absl::StrCat(sources, "__global__ void use_all() {\n", uses, "}\n");
}

TEST(DeviceCompileTest, EveryRoutineIsDeviceCode) {
  const std::string nvcc = FUSION_NVCC_PATH;
  if (nvcc.empty()) GTEST_SKIP() << "nvcc was not found when the build was configured";
  std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "device_compile_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "all.cu") << Program(*Catalog::BuiltIn().value());
  std::string command =
      absl::StrCat("'", nvcc, "' -std=c++17 -ptx -arch=sm_80 -diag-suppress 177 -I'", testing::SourceFolder(),
                   "' -o '", (folder / "all.ptx").string(), "' '", (folder / "all.cu").string(), "' > '",
                   (folder / "log").string(), "' 2>&1");
  int status = std::system(command.c_str());
  std::ostringstream log;
  log << std::ifstream(folder / "log").rdbuf();
  EXPECT_EQ(status, 0) << log.str();
  EXPECT_EQ(log.str(), "");  // no warnings
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusion
