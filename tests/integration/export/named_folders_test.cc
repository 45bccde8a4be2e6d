// Exported folders of several graphs, each with a name of its own, go into one program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/temporary_directory.h"
#include "tests/example_source.h"
#include "tests/integration/export/best_predicted.h"
#include "tests/integration/exported_folder_build.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NamedFoldersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
  }
  // Writes the folder of y = function(x), or of the sum of x, under the name.
  void Export(const std::string& name, const std::string& call, v1::Target target) {
    v1::SubmitRequest request;
    *request.mutable_source() =
        TextSource(absl::StrCat("size n = 1000;\nvector[n] x, y;\nscalar y_sum;\ninput x;\n", call));
    request.set_code_name(name);
    const auto checked = CheckSubmission(request, *Catalog::BuiltIn());
    ASSERT_TRUE(checked.ok()) << checked.status();
    WriteBestPredicted(*checked, target, Path(name));
  }
  void ExportThree(v1::Target target) {
    Export("exp_all", "y = exp(x);\nreturn y;\n", target);
    Export("Squares2", "y = square(x);\nreturn y;\n", target);
    Export("total", "y_sum = sum(x);\nreturn y_sum;\n", target);
  }
  std::string Path(const std::string& name) const { return absl::StrCat(directory_->path(), "/", name); }
  void Write(const std::string& name, const std::string& content) { std::ofstream(Path(name)) << content; }
  std::string Content(const std::string& name) const {
    std::ifstream stream(Path(name));
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  // Runs a command in the folder of all.
  CommandResult Run(const std::string& command) const {
    return RunCommand(absl::StrCat("cd '", directory_->path(), "' && ", command));
  }
  std::unique_ptr<TemporaryDirectory> directory_;
};

TEST_F(NamedFoldersTest, OfTheHostGoIntoOneProgram) {
  ASSERT_NO_FATAL_FAILURE(ExportThree(v1::HOST));
  for (const char* file : {"exp_all/exp_all.h", "exp_all/exp_all.cc", "exp_all/example.cc",
                           "exp_all/CMakeLists.txt", "exp_all/README.md"}) {
    EXPECT_THAT(Content(file), HasSubstr("exp_all")) << file;
    EXPECT_THAT(Content(file), Not(HasSubstr("fused_"))) << file;
    EXPECT_THAT(Content(file), Not(HasSubstr("FUSED_"))) << file;
    EXPECT_THAT(Content(file), Not(HasSubstr("fused."))) << file;
  }
  EXPECT_THAT(Content("exp_all/reference.cc"), HasSubstr("\nint exp_all_reference("));
  Write("main.cc", R"(
#include "Squares2/Squares2.h"
#include "exp_all/exp_all.h"
#include "total/total.h"
alignas(256) static char memory[1 << 16];
int main() {
  const float x[3] = {0, 1, 3};
  float y[3], sum;
  if (exp_all_launch(x, y, 3, memory, sizeof memory) != EXP_ALL_OK || y[0] != 1) return 1;
  if (Squares2_launch(x, y, 3, memory, sizeof memory) != SQUARES2_OK || y[2] != 9) return 2;
  if (total_launch(x, &sum, 3, memory, sizeof memory) != TOTAL_OK || sum != 4) return 3;
  return total_launch(x, &sum, -1, memory, sizeof memory) == TOTAL_INVALID_ARGUMENT ? 0 : 4;
})");
  const CommandResult built =
      Run("g++ -std=c++17 -O1 -fopenmp -Wall -Werror main.cc */Squares2.cc */exp_all.cc */total.cc -o main");
  ASSERT_EQ(built.exit_code, 0) << built.output;
  const CommandResult ran = Run("./main");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  const CommandResult by_cmake =
      Run("cmake -S exp_all -B build && cmake --build build && build/example n=77 --once");
  EXPECT_EQ(by_cmake.exit_code, 0) << by_cmake.output;
  // And installed.
  Write("CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.18)
project(user LANGUAGES CXX)
foreach(name exp_all Squares2 total)
  find_package(${name} REQUIRED)
  list(APPEND libraries ${name}::${name})
endforeach()
add_executable(user installed.cc)
target_link_libraries(user PRIVATE ${libraries})
)");
  std::string main = Content("main.cc");
  for (const char* name : {"exp_all", "Squares2", "total"})
    main = absl::StrReplaceAll(main, {{absl::StrCat(name, "/", name, ".h"), absl::StrCat(name, ".h")}});
  Write("installed.cc", main);
  const CommandResult installed =
      Run("for name in exp_all Squares2 total; do cmake -S $name -B build_$name "
          "-DCMAKE_INSTALL_PREFIX=$PWD/prefix "
          "&& cmake --build build_$name && cmake --install build_$name || exit 1; done; "
          "cmake -S . -B user -DCMAKE_PREFIX_PATH=$PWD/prefix && cmake --build user && user/user");
  EXPECT_EQ(installed.exit_code, 0) << installed.output;
}

TEST_F(NamedFoldersTest, HeadersSayTheLicence) {
  ASSERT_NO_FATAL_FAILURE(Export("total", "y_sum = sum(x);\nreturn y_sum;\n", v1::CUDA));
  for (const char* file :
       {"total.h", "total.cu", "example.cu", "fusion_device.h", "reference.cc", "verification.h"})
    EXPECT_THAT(Content(absl::StrCat("total/", file)),
                ::testing::StartsWith("// SPDX-License-Identifier: Apache-2.0\n"))
        << file;
}

TEST_F(NamedFoldersTest, OfCudaGoIntoOneProgram) {
  const std::string nvcc = FindNvcc();
  if (nvcc.empty()) GTEST_SKIP() << "SKIP: no nvcc on the PATH or in /usr/local/cuda/bin";
  ASSERT_NO_FATAL_FAILURE(ExportThree(v1::CUDA));
  Write("main.cu", R"(
#include "Squares2/Squares2.h"
#include "exp_all/exp_all.h"
#include "total/total.h"
int main() {
  const float x[3] = {0, 1, 3};
  float *d_x, *d_y, y[3];
  void* memory;
  if (cudaMalloc(&d_x, sizeof x) || cudaMalloc(&d_y, sizeof x) || cudaMalloc(&memory, 1 << 20)) return 1;
  cudaMemcpy(d_x, x, sizeof x, cudaMemcpyHostToDevice);
  const auto result = [&](int i) { return cudaMemcpy(y, d_y, sizeof x, cudaMemcpyDeviceToHost) ? -1.0f : y[i]; };
  if (exp_all_launch(d_x, d_y, 3, memory, 1 << 20, 0) != EXP_ALL_OK || result(0) != 1) return 2;
  if (Squares2_launch(d_x, d_y, 3, memory, 1 << 20, 0) != SQUARES2_OK || result(2) != 9) return 3;
  if (total_launch(d_x, d_y, 3, memory, 1 << 20, 0) != TOTAL_OK || result(0) != 4) return 4;
  cudaGraphExec_t graph;
  if (total_graph(d_x, d_y, 3, memory, 1 << 20, 2, &graph) != TOTAL_OK) return 5;
  return 0;
})");
  const CommandResult built = Run(
      absl::StrCat(nvcc, " -std=c++17 -arch=sm_90 main.cu */Squares2.cu */exp_all.cu */total.cu -o main"));
  ASSERT_EQ(built.exit_code, 0) << built.output;
  EXPECT_THAT(built.output, Not(HasSubstr("warning")));
  if (HasGpu()) {
    EXPECT_EQ(Run("./main").exit_code, 0);
  }
}

TEST_F(NamedFoldersTest, ANameThatIsNoneIsRefused) {
  v1::SubmitRequest request;
  *request.mutable_source() = TextSource("size n = 8;\nvector[n] x, y;\ninput x;\ny = exp(x);\nreturn y;\n");
  request.set_code_name("my graph");
  const absl::Status refused = CheckSubmission(request, *Catalog::BuiltIn()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the exported code cannot be called \"my graph\""));
}

}  // namespace
}  // namespace fusion::testing
