// Loops in C with the options that graphs have: submit x.c --no-measure, --input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "tests/integration/exported_folder_build.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LoopOptionsTest : public ::testing::Test {
 protected:
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static std::string Matmul() { return SourceFolder() + "/examples/loops/matmul.c"; }
  std::string folder() const { return client_.folder() + "/code"; }
  // Runs `submit --no-measure` and checks what holds for any target.
  json Predicted(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"submit", Matmul(), "--no-measure", "--json", "--output", folder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = client_.Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const json parsed = json::parse(result.out, nullptr, false);
    EXPECT_EQ(parsed["state"], "SUCCEEDED");
    EXPECT_EQ(parsed["predicted"], true);
    EXPECT_GE(parsed["candidates"].size(), 2u);
    EXPECT_LE(parsed["candidates"].size(), 5u);
    double before = 0;
    for (const json& candidate : parsed["candidates"]) {
      EXPECT_EQ(candidate["outcome"], "OK") << candidate.dump();
      EXPECT_TRUE(candidate["measured_seconds"].is_null());
      EXPECT_GE(candidate["predicted_seconds"], before);
      before = candidate["predicted_seconds"];
      EXPECT_LE(candidate["max_relative_error"], candidate["tolerance"]);
    }
    EXPECT_THAT(Content(folder() + "/README.md"),
                AllOf(HasSubstr("PREDICTED: nothing was measured"), Not(HasSubstr("Verified on"))));
    return parsed;
  }
  // An array as numpy.save writes it.
  template <class T>
  std::string WriteArray(const std::string& name, const std::string& type, const std::string& shape,
                         const std::vector<T>& entries) {
    std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header += std::string(63 - (header.size() + 10) % 64, ' ') + "\n";
    std::string content("\x93NUMPY\x01\x00", 8);
    content += static_cast<char>(header.size() & 0xff);
    content += static_cast<char>(header.size() >> 8);
    content += header;
    content.append(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(T));
    return client_.Write(name, content);
  }
  ClientProgram client_;
};

TEST_F(LoopOptionsTest, CudaCodeNeedsNoGpu) {
  const json result = Predicted({"--target", "cuda", "--arch", "sm_80", "--size", "N=4096"});
  EXPECT_EQ(result["device"]["arch"], "sm_80");
  EXPECT_THAT(Content(folder() + "/fused.cu"), HasSubstr("__global__"));
  // The kernels for the GPU were computed on this machine, at sizes that their tiles divide.
  EXPECT_GT(result["candidates"][0]["tolerance"], 0.0);
  EXPECT_EQ(json::parse(client_.Run({"jobs", "list", "--json"}).out)["jobs"][0]["best"]["predicted"], true);
}

TEST_F(LoopOptionsTest, HostCodeIsChecked) {
  const json result = Predicted({"--target", "host", "--size", "N=1000"});
  EXPECT_GT(result["candidates"][0]["tolerance"], 0.0);
  EXPECT_EQ(result["remarks"].size(), 0u) << result["remarks"].dump();
  ASSERT_EQ(CompileHostFolder(folder()).exit_code, 0) << CompileHostFolder(folder()).output;
  EXPECT_THAT(RunExample(folder(), "N=96 --once").output, HasSubstr("OK"));
}

TEST_F(LoopOptionsTest, PredictionsNeedNoWorker) {
  ServerProcess server(client_);
  const std::vector<std::string> submit = {"submit",       Matmul(),   "--size",        "N=512",
                                           "--no-measure", "--target", "cuda",          "--arch",
                                           "sm_90",        "--server", server.address()};
  const ProcessResult text = client_.Run(submit);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("PREDICTED: nothing was measured"), HasSubstr("the code was not compiled"),
                    HasSubstr("the results were not checked on a host"), HasSubstr("B0=")));
}

TEST_F(LoopOptionsTest, APredictionThatIsWrongOnTheHostIsNotRanked) {
  client_.SetEnvironment("OMP_NUM_THREADS", "1");
  const std::string wrong = client_.Write("wrong.c",
                                          "int n;\nfloat a[n];\n#pragma omp parallel for\n"
                                          "for (int i = 1; i < n; i++)\n"
                                          "  a[i] = a[(i * i - 1) / (i + 1)] + 1;\n");
  const ProcessResult result =
      client_.Run({"submit", wrong, "--size", "n=20000", "--target", "host", "--no-measure"});
  EXPECT_THAT(result.out + result.err,
              AllOf(HasSubstr("WRONG_RESULT"), HasSubstr("a run of its blocks backwards")));
}

// Iterations write entries that nobody knows but who has the data.
constexpr char kScatter[] =
    "int n;\nint k[n];\nfloat a[n], b[n], s;\n#pragma omp parallel for\n"
    "for (int i = 0; i < n; i++)\n  a[k[i]] = s * b[i];\n";

TEST_F(LoopOptionsTest, ArraysAndScalarsHaveValuesFromFiles) {
  const std::string scatter = client_.Write("scatter.c", kScatter);
  constexpr int kSize = 3000;
  std::vector<int32_t> permutation(kSize);
  for (int i = 0; i < kSize; ++i) permutation[i] = (i * 7 + 3) % kSize;
  const std::string file = WriteArray("k.npy", "<i4", "(3000,)", permutation);
  const std::string half = WriteArray<double>("s.npy", "<f8", "(1,)", {0.5});
  const std::vector<std::string> submit = {"submit",   scatter, "--size",  "n=3000",
                                           "--target", "host",  "--quick", "--json"};
  std::vector<std::string> with = submit;
  with.insert(with.end(), {"--input", "k=" + file, "--input", "s=" + half});
  const ProcessResult submitted = client_.Run(with);
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const json result = json::parse(submitted.out);
  for (const json& candidate : result["candidates"])
    EXPECT_EQ(candidate["outcome"], "OK") << candidate.dump();
  EXPECT_THAT(result["remarks"].dump(),
              HasSubstr("values of inputs: k from a file, s from a file, as asked"));
  // Where two iterations write one entry, it depends on their order.
  permutation.assign(kSize, 5);
  with[with.size() - 3] = "k=" + WriteArray("same.npy", "<i4", "(3000,)", permutation);
  const ProcessResult same = client_.Run(with);
  EXPECT_EQ(same.exit_code, 1) << same.out;
  EXPECT_THAT(same.err,
              HasSubstr("nothing but a pragma says that the iterations of i at 5:1 are independent"));
}

TEST_F(LoopOptionsTest, FilesThatDoNotFitAreToldTogether) {
  const std::string scatter = client_.Write("scatter.c", kScatter);
  const std::string longer = WriteArray<float>("long.npy", "<f4", "(4,)", {1, 2, 3, 4});
  const std::string broken = WriteArray<double>("broken.npy", "<f8", "(3,)", {0, 1.5, 2});
  const ProcessResult refused =
      client_.Run({"submit", scatter, "--size", "n=3", "--target", "host", "--input", "a=" + longer,
                   "--input", "q=" + longer, "--input", "b=" + client_.folder() + "/none.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("--input a: " + longer + ": has the shape (4,), but a has (3,) at these sizes"),
                    HasSubstr("--input q: the loops have no such array"),
                    HasSubstr("--input b: " + client_.folder() + "/none.npy: cannot be read")));
  const ProcessResult half =
      client_.Run({"submit", scatter, "--size", "n=3", "--target", "host", "--input", "k=" + broken});
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.err, HasSubstr("broken.npy: entry [1] is 1.5, which is no whole number of 32 bits"));
  EXPECT_EQ(json::parse(client_.Run({"jobs", "list", "--json"}).out)["jobs"].size(), 0u);
}

}  // namespace
}  // namespace fusion::testing
