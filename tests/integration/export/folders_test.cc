// The exported folder of the best predicted cover of every example compiles alone: for CUDA with nvcc for
// sm_80 and sm_90, for the host with g++. The example of a host folder runs and verifies itself; that of a
// CUDA folder too where there is a GPU. fused_graph of one CUDA folder is checked against a fake runtime.
#include "tests/folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/temporary_directory.h"
#include "client/cli/artifact_folder.h"
#include "server/optimize/cover_export.h"
#include "server/optimize/plans.h"
#include "tests/integration/export/best_predicted.h"
#include "tests/integration/export/examples.h"
#include "tests/integration/exported_folder_build.h"

namespace fusion::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTakenNames[] = "taken_names", kKernelNames[] = "kernel_names", kOurNames[] = "our_names",
               kWordNames[] = "word_names", kOwnFunctions[] = "own_functions", kClusters[] = "clusters",
               kPadded[] = "padded";  // in testdata

class FolderTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    folder_ = absl::StrCat(directory_->path(), "/folder");
    const bool test_data = std::set<std::string>{kTakenNames,   kKernelNames, kOurNames, kWordNames,
                                                 kOwnFunctions, kClusters,    kPadded}
                               .contains(GetParam());
    auto checked = CheckExample(GetParam(), test_data ? "tests/integration/export/testdata" : "examples");
    ASSERT_TRUE(checked.ok()) << checked.status();
    submission_ = *std::move(checked);
  }

  void Export(v1::Target target) { WriteBestPredicted(submission_, target, folder_); }

  // Arguments of the example that give the sizes of the graph, in turn, these values.
  std::string Sizes(std::vector<int64_t> values) const {
    std::string arguments;
    size_t next = 0;
    for (const Size& size : submission_.graph->sizes())
      absl::StrAppend(&arguments, size.name, "=", values[next++ % values.size()], " ");
    return arguments;
  }

  void ExpectVerified(const std::string& arguments) const {
    const CommandResult run = RunExample(folder_, arguments);
    EXPECT_EQ(run.exit_code, 0) << arguments << "\n" << run.output;
    for (ValueId output : submission_.graph->outputs())
      EXPECT_THAT(run.output,
                  HasSubstr(absl::StrCat(submission_.graph->value(output).name, ": largest relative error")));
    EXPECT_THAT(run.output, Not(HasSubstr("WRONG")));
  }

  std::string Content(const std::string& file) const {
    std::ifstream stream(absl::StrCat(folder_, "/", file));
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::string folder_;
  Submission submission_;
};

TEST_P(FolderTest, HostFolderCompilesAloneAndItsExampleVerifies) {
  ASSERT_NO_FATAL_FAILURE(Export(v1::HOST));
  EXPECT_THAT(Content("fused.h"), HasSubstr("int fused_launch("));
  for (const char* file : {"fused.h", "fused.cc", "example.cc", "README.md"})
    EXPECT_THAT(Content(file),
                AllOf(Not(HasSubstr("fused_graph(")), Not(HasSubstr("CUDA")), Not(HasSubstr("cudaGraph"))))
        << file;
  const CommandResult compiled = CompileHostFolder(folder_);
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  ExpectVerified(Sizes({131, 517}));
  ExpectVerified(Sizes({33, 1}));
  ExpectVerified(Sizes({0}));
  ExpectVerified(Sizes({1}));
  EXPECT_EQ(RunExample(folder_, "no_such_size=3").exit_code, 2);
  EXPECT_EQ(RunExample(folder_, Sizes({131, 517}) + "x").exit_code, 2) << "the last size is no number";
}

using OwnFunctionsTest = FolderTest;

TEST_P(OwnFunctionsTest, TheFolderHasTheGraphWithThem) {
  absl::StatusOr<std::shared_ptr<const Catalog>> catalog = Catalog::BuiltIn();
  ASSERT_TRUE(catalog.ok());
  ASSERT_NO_FATAL_FAILURE(Export(v1::HOST));
  EXPECT_EQ(Content("graph.fuse"), "") << "the language has no words for them";
  const auto again = CheckSource(TextSource(Content("graph.json")), *catalog);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->summary.hash(), submission_.summary.hash());
}

using PaddedTest = FolderTest;

TEST_P(PaddedTest, RowsThatOverlapAreRefused) {
  ASSERT_NO_FATAL_FAILURE(Export(v1::HOST));
  const CommandResult compiled = CompileHostFolder(folder_);
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  ExpectVerified("m=7 n=100 lda=100");
  const CommandResult refused = RunExample(folder_, "m=7 n=100 lda=99");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, HasSubstr("n_lda < n_n"));
  std::ofstream(folder_ + "/caller.cc") << R"(
#include "fused.h"
int main() {
  float A[4] = {1, 2, 3, 4}, x[2] = {1, 1}, y[2] = {0, 0};
  return 10 * fused_launch(A, x, y, 2, 2, 2, nullptr, 0) + fused_launch(A, x, y, 2, 2, 1, nullptr, 0);
})";
  const CommandResult called = RunCommand(absl::StrCat(
      "cd '", folder_, "' && g++ -O1 -fopenmp -std=c++17 fused.cc caller.cc -o caller && ./caller"));
  EXPECT_EQ(called.exit_code, 1) << "FUSED_OK and FUSED_INVALID_ARGUMENT expected; " << called.output;
}

TEST_P(FolderTest, CudaFolderCompilesAloneForAmpereAndHopper) {
  const std::string nvcc = FindNvcc();
  if (nvcc.empty()) GTEST_SKIP() << "SKIP: no nvcc on the PATH or in /usr/local/cuda/bin";
  ASSERT_NO_FATAL_FAILURE(Export(v1::CUDA));
  EXPECT_THAT(Content("fused.h"), HasSubstr("\nint fused_graph("));
  EXPECT_THAT(Content("fused.cu"), HasSubstr("extern \"C\" int fused_graph("));
  EXPECT_THAT(Content("example.cu"), AllOf(HasSubstr("fused_graph("), HasSubstr("cudaGraphLaunch(")));
  const CommandResult compiled = RunCommand(absl::StrCat(
      "cd '", folder_, "' && ", nvcc,
      " -std=c++17 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]"
      " fused.cu example.cu reference.cc -o example"));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  EXPECT_THAT(compiled.output, Not(HasSubstr("warning")));
  ASSERT_EQ(access((folder_ + "/example").c_str(), X_OK), 0);
  if (!HasGpu()) return;
  for (const std::string& sizes : {Sizes({131, 517}), Sizes({33, 1})}) {
    ExpectVerified(sizes);
    EXPECT_THAT(RunExample(folder_, sizes).output,
                AllOf(HasSubstr("20 direct calls"), HasSubstr("20 calls in one CUDA graph")));
  }
}

using ClustersTest = FolderTest;

TEST_P(ClustersTest, CompileForHopperAndSayWhatTheyNeedOtherwise) {
  const std::string nvcc = FindNvcc();
  if (nvcc.empty()) GTEST_SKIP() << "SKIP: no nvcc on the PATH or in /usr/local/cuda/bin";
  ASSERT_NO_FATAL_FAILURE(Export(v1::CUDA));
  ASSERT_THAT(Content("fused.cu"), HasSubstr("__cluster_dims__(2, 1, 1)"));
  const std::string compile =
      absl::StrCat("cd '", folder_, "' && ", nvcc, " -std=c++17 fused.cu example.cu reference.cc -o example");
  const CommandResult compiled = RunCommand(compile + " -arch=sm_90");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  EXPECT_THAT(compiled.output, Not(HasSubstr("warning")));
  // As its README says: for what it was made for, whatever CMake or the compiler would take by itself.
  const std::string cmake = absl::StrCat("cd '", folder_, "' && export CUDACXX=", nvcc,
                                         " && cmake -B build && cmake --build build --target fused");
  const CommandResult built = RunCommand(cmake);
  EXPECT_EQ(built.exit_code, 0) << built.output;
  EXPECT_THAT(Content("README.md"), HasSubstr("-arch=sm_90 "));
  const CommandResult older = RunCommand(compile + " -arch=sm_80");
  EXPECT_NE(older.exit_code, 0);
  EXPECT_THAT(older.output, HasSubstr("clusters of blocks need sm_90"));
}

using GraphTest = FolderTest;

// Every function that a capture needs fails once, at each of its calls.
TEST_P(GraphTest, FailuresAreReportedAndLeaveNothingOpen) {
  const std::string nvcc = FindNvcc();
  if (nvcc.empty()) GTEST_SKIP() << "SKIP: no nvcc on the PATH or in /usr/local/cuda/bin";
  ASSERT_NO_FATAL_FAILURE(Export(v1::CUDA));
  // The linker takes the functions of the check before those of the CUDA runtime.
  const CommandResult compiled = RunCommand(absl::StrCat(
      "cd '", folder_, "' && ", nvcc, " -std=c++17 -arch=sm_90 -Xlinker -zmuldefs -I. fused.cu '",
      testing::SourceFolder(), "/tests/integration/export/capture/capture_check.cc' -o capture_check"));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  const CommandResult run = RunCommand(absl::StrCat("'", folder_, "/capture_check'"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("failures reported"));
}

INSTANTIATE_TEST_SUITE_P(Examples, GraphTest, ::testing::Values("axpydot"), ExampleTestName);
INSTANTIATE_TEST_SUITE_P(Examples, FolderTest, ::testing::ValuesIn(ExampleNames()), ExampleTestName);
INSTANTIATE_TEST_SUITE_P(LeadingDimensions, PaddedTest, ::testing::Values(kPadded), ExampleTestName);
INSTANTIATE_TEST_SUITE_P(Names, FolderTest,
                         ::testing::Values(kTakenNames, kKernelNames, kOurNames, kWordNames),
                         ExampleTestName);
INSTANTIATE_TEST_SUITE_P(OwnFunctions, FolderTest, ::testing::Values(kOwnFunctions), ExampleTestName);
INSTANTIATE_TEST_SUITE_P(Files, OwnFunctionsTest, ::testing::Values(kOwnFunctions), ExampleTestName);
INSTANTIATE_TEST_SUITE_P(Files, ClustersTest, ::testing::Values(kClusters), ExampleTestName);

}  // namespace
}  // namespace fusion::testing
