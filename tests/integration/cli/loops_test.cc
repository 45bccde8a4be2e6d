// Loops in C as jobs: submit x.c, from the text to a folder that verifies itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/integration/exported_folder_build.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class LoopsTest : public ::testing::Test {
 protected:
  static std::string Listing(const std::string& name) { return SourceFolder() + "/examples/loops/" + name; }
  std::string folder() const { return client_.folder() + "/code"; }

  // Runs a job on this machine that has to succeed, and returns its result.
  json Submitted(const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"submit", file,       "--target", "host",   "--quick",
                                          "--json", "--output", folder(),   "--force"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const json parsed = json::parse(result.out, nullptr, false);
    EXPECT_EQ(parsed["state"], "SUCCEEDED") << result.out;
    for (const json& candidate : parsed["candidates"])
      EXPECT_EQ(candidate["outcome"], "OK") << candidate.dump();
    return parsed;
  }
  std::string Error(const std::vector<std::string>& arguments, int exit_code) {
    const ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.out;
    return result.err;
  }
  ClientProgram client_;
};

TEST_F(LoopsTest, ParametersAreChosenAndTheFolderVerifiesItself) {
  const json result = Submitted(Listing("matmul.c"), {"--size", "N=96"});
  ASSERT_GE(result["candidates"].size(), 2u);
  const json& first = result["candidates"][0];
  EXPECT_THAT(first["description"].get<std::string>(), AllOf(HasSubstr("B0="), HasSubstr("s=")));
  EXPECT_LE(first["max_relative_error"], first["tolerance"]);
  ASSERT_EQ(CompileHostFolder(folder()).exit_code, 0) << CompileHostFolder(folder()).output;
  EXPECT_THAT(RunExample(folder(), "--once").output, HasSubstr("OK"));
  // Sizes that the fastest tiles do not divide have other variants.
  EXPECT_THAT(RunExample(folder(), "N=97 --once").output, HasSubstr("OK"));
}

TEST_F(LoopsTest, TheFolderTunesItself) {
  Submitted(Listing("matmul.c"), {"--size", "N=64"});
  const std::string library = BuildFolder() + "/lib";
  const CommandResult built = RunCommand("cd '" + folder() + "' && g++ -O1 -fopenmp -std=c++20 -I'" +
                                         SourceFolder() + "' tuned.cc fused.cc -L'" + library +
                                         "' -lfusion_tuner -Wl,-rpath,'" + library + "' -o tuned");
  ASSERT_EQ(built.exit_code, 0) << built.output;
  const CommandResult tuned = RunCommand("cd '" + folder() + "' && FUSION_DATA_DIR='" + client_.folder() +
                                         "/tuned' OMP_NUM_THREADS=2 ./tuned seconds=60");
  EXPECT_EQ(tuned.exit_code, 0) << tuned.output;
  EXPECT_THAT(tuned.output, HasSubstr("converged after"));
  EXPECT_THAT(tuned.output, ::testing::Not(HasSubstr("not converged")));
}

TEST_F(LoopsTest, SumsAreSharedOut) {
  const std::string sum =
      client_.Write("sum.c",
                    "int n;\nfloat a[n], b[n], s;\n#pragma omp parallel for reduction(+: s)\n"
                    "for (int i = 0; i < n; i++)\n  s += a[i] * b[i];\n");
  const json result = Submitted(sum, {"--size", "n=100000"});
  EXPECT_GT(result["candidates"][0]["parameters"]["G"], 0);
  EXPECT_EQ(result["candidates"][0]["kernels"].size(), 2u);
  ASSERT_EQ(CompileHostFolder(folder()).exit_code, 0) << CompileHostFolder(folder()).output;
  for (const char* const size : {"n=1", "n=31", "n=99999"})
    EXPECT_THAT(RunExample(folder(), std::string(size) + " --once").output, HasSubstr("OK"));
}

TEST_F(LoopsTest, ArraysThatOverlapAreRefusedAtTheLaunch) {
  const std::string turn = client_.Write("turn.c",
                                         "int n;\nfloat a[n], b[n];\n#pragma omp parallel for\n"
                                         "for (int i = 0; i < n; i++)\n  a[i] = b[n - 1 - i];\n");
  Submitted(turn, {"--size", "n=1000"});
  client_.Write("code/overlap.cc",
                "#include \"fused.h\"\n#include <stdio.h>\nstatic float x[300];\nint main() {\n"
                "  printf(\"%d%d%d%d\", fused_launch(100, x, x + 100), fused_launch(100, x + 100, x), "
                "fused_launch(100, x, x + 99), fused_launch(100, x, x));\n}\n");
  const CommandResult built =
      RunCommand("cd '" + folder() + "' && g++ -O1 -fopenmp -std=c++17 overlap.cc fused.cc -o overlap");
  ASSERT_EQ(built.exit_code, 0) << built.output;
  EXPECT_EQ(RunCommand(folder() + "/overlap").output, "0011");
}

TEST_F(LoopsTest, TheFolderChoosesAmongItsVariants) {
  const json result = Submitted(Listing("matmul.c"), {"--size", "N=64"});
  ASSERT_EQ(CompileHostFolder(folder()).exit_code, 0) << CompileHostFolder(folder()).output;
  // At the sizes of the job the fastest case is chosen.
  const std::string own = RunExample(folder(), "--variants").output;
  EXPECT_THAT(own, HasSubstr("us, chosen  " + result["candidates"][0]["description"].get<std::string>()));
  // Few tiles divide a prime.
  const std::string prime = RunExample(folder(), "N=97 --variants --once").output;
  EXPECT_THAT(prime, AllOf(HasSubstr(", chosen"), ::testing::Not(HasSubstr("B=2"))));
}

TEST_F(LoopsTest, IntegersAreExactAndLoopsOfTheHostLaunchKernels) {
  const json result = Submitted(Listing("jacobi.c"), {"--size", "N=1026", "--size", "T=7"});
  EXPECT_EQ(result["candidates"][0]["max_relative_error"], 0.0);
  ASSERT_EQ(CompileHostFolder(folder()).exit_code, 0);
  EXPECT_EQ(RunExample(folder(), "N=2050 T=3 --once").exit_code, 0);
}

TEST_F(LoopsTest, NumbersThatTheTextDefinesMayBeGiven) {
  Submitted(Listing("lu.c"), {"--size", "N=48"});
  ASSERT_EQ(CompileHostFolder(folder()).exit_code, 0);
  EXPECT_EQ(RunExample(folder(), "N=65 --once").exit_code, 0);
}

TEST_F(LoopsTest, WhatNothingButAPragmaSaysIsMarkedAndMayComeOutWrong) {
  const std::string right =
      client_.Write("right.c",
                    "int n;\nint k[n];\nfloat a[n], b[n];\n#pragma omp parallel for\n"
                    "for (int i = 0; i < n; i++)\n  b[i] = a[k[i]] + b[i * i / (i + 1) * 0 + i];\n");
  const json result = Submitted(right, {"--size", "n=20000"});
  EXPECT_EQ(result["candidates"][0]["asserted"], "i at 5:1");
  // Only verified kernels look for an order of their blocks, not those that are taken away.
  EXPECT_EQ(RunCommand("grep -c _order '" + folder() + "/fused.cc'").output, "0\n");
  // Half of the entries that an iteration may read are written by another thread, whoever is first.
  const std::string wrong =
      client_.Write("wrong.c",
                    "int n;\nint k[n], a[n];\n#pragma omp parallel for\nfor (int i = 0; i < n; i++)\n"
                    "  a[i] = a[k[i]] + 1;\n");
  EXPECT_THAT(Error({"submit", wrong, "--size", "n=2000000", "--target", "host", "--quick"}, 1),
              AllOf(HasSubstr("nothing but a pragma says that the iterations of i at 4:1 are independent"),
                    HasSubstr("should be")));
}

// On one thread each iteration finds what the one before it has left; nothing proves that it does not.
TEST_F(LoopsTest, WhatIsRightInOneOrderOfBlocksAloneComesOutWrong) {
  client_.SetEnvironment("OMP_NUM_THREADS", "1");
  const std::string wrong = client_.Write("wrong.c",
                                          "int n;\nfloat a[n];\n#pragma omp parallel for\n"
                                          "for (int i = 1; i < n; i++)\n"
                                          "  a[i] = a[(i * i - 1) / (i + 1)] + 1;\n");
  const std::string error = Error({"submit", wrong, "--size", "n=20000", "--target", "host", "--quick"}, 1);
  EXPECT_THAT(error,
              AllOf(HasSubstr("nothing but a pragma says that the iterations of i at 4:1 are independent"),
                    HasSubstr("a run of its blocks backwards: output a: entry ")));
}

// This machine's processor is a kind of device once a job has run on it.
TEST_F(LoopsTest, ChoicesAreForAKindOfDevice) {
  const json result = Submitted(Listing("reversal.c"), {"--size", "N=4096", "--quick"});
  const std::string name = result["device"]["name"];
  const ProcessResult choices = client_.Run(
      {"cases", Listing("reversal.c"), "--select", "N=4096", "--target", "host", "--device", name, "--json"});
  EXPECT_EQ(choices.exit_code, 0) << choices.err;
  EXPECT_EQ(json::parse(choices.out, nullptr, false)["device"], name);
  EXPECT_THAT(Error({"cases", Listing("reversal.c"), "--select", "N=4096", "--device", "no such"}, 2),
              HasSubstr("no device that is called no such was ever here"));
}

TEST_F(LoopsTest, ModelsOfComputationArePrinted) {
  const ProcessResult formulas = client_.Run({"cases", Listing("matmul.c"), "--models"});
  EXPECT_EQ(formulas.exit_code, 0) << formulas.err;
  EXPECT_THAT(formulas.out, AllOf(HasSubstr("blocks      dim0*dim1 of B0*B1 threads"),
                                  HasSubstr("a thread    2*s*B*dim operations"),
                                  HasSubstr("MCM (Haque, Moreno Maza and Xie 2015): T_P <="),
                                  HasSubstr("vertices       dim0*dim1")));
  const ProcessResult numbers =
      client_.Run({"cases", Listing("matmul.c"), "--models", "--select", "N=64", "--json"});
  EXPECT_EQ(numbers.exit_code, 0) << numbers.err;
  const json parsed = json::parse(numbers.out, nullptr, false);
  EXPECT_TRUE(parsed["choices"][0]["parameters"].contains("B0")) << numbers.out;
  ASSERT_EQ(parsed["models"]["models"].size(), 4u) << numbers.out;
  EXPECT_EQ(parsed["models"]["models"][3]["measures"]["work"], 2 * 64 * 64 * 64);
  EXPECT_EQ(parsed["models"]["parameters"], parsed["choices"][0]["parameters"]);
  EXPECT_TRUE(parsed["models"]["preferred_granularity"].contains("s"));
}

TEST_F(LoopsTest, BadInputIsNamed) {
  const std::string matmul = Listing("matmul.c");
  EXPECT_THAT(Error({"submit", matmul, "--size", "M=64"}, 2),
              AllOf(HasSubstr("the loops have no size or parameter M"),
                    HasSubstr("N has no value; give one: --size N=1024")));
  EXPECT_THAT(Error({"submit", matmul, "--size", "N=0"}, 2), HasSubstr("at these sizes a has no entries"));
  EXPECT_THAT(Error({"submit", matmul, "--size", "N=4294967296"}, 2),
              HasSubstr("N = 4294967296 needs more than 32 bits"));
  EXPECT_THAT(Error({"submit", matmul, "--size", "N=100000"}, 2),
              HasSubstr("a would have 10000000000 entries"));
  EXPECT_THAT(Error({"explain", matmul, "--size", "N=64"}, 2), HasSubstr("explain reads graphs"));
  const std::string carried = client_.Write(
      "carried.c",
      "int n;\nfloat a[n];\n#pragma omp parallel for\nfor (int i = 1; i < n; i++)\n  a[i] = a[i-1];\n");
  EXPECT_THAT(Error({"submit", carried, "--size", "n=64"}, 2),
              AllOf(HasSubstr("so the pragma at 4:1 is wrong"), HasSubstr("both touch a[")));
  const std::string pointer = client_.Write(
      "pointer.c", "int n;\nfloat *a;\n#pragma omp parallel for\nfor (int i = 0; i < n; i++)\n  a[i] = 1;\n");
  EXPECT_THAT(Error({"submit", pointer, "--size", "n=64"}, 2),
              HasSubstr("how many entries a has is not said"));
}

}  // namespace
}  // namespace fusion::testing
