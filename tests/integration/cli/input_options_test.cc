// submit with values of inputs: asked for in the file, read from files, with tolerances.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class InputOptionsTest : public ::testing::Test {
 protected:
  // An f32 array, as numpy.save writes it.
  std::string WriteArray(const std::string& name, const std::string& shape,
                         const std::vector<float>& entries) {
    std::string header = absl::StrCat("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, ", }");
    header += std::string(63 - (header.size() + 10) % 64, ' ') + "\n";
    std::string content("\x93NUMPY\x01\x00", 8);
    content += static_cast<char>(header.size() & 0xff);
    content += static_cast<char>(header.size() >> 8);
    content += header;
    content.append(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(float));
    return client_.Write(name, content);
  }
  ProcessResult Submit(const std::string& source, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"submit", client_.Write("graph.fuse", source), "--target", "host"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return client_.Run(arguments);
  }
  ClientProgram client_;
};

constexpr char kMatrixSource[] =
    "size m = 3, n = 2;\nmatrix[m,n] A;  vector[n] x;  vector[m] y;  scalar a;\n"
    "input A, x in (0.5, 2), a;\ny = gemv(a, A, x);\nreturn y;\n";

TEST_F(InputOptionsTest, ValuesFromFilesAndTolerancesAreMeasuredWithAndToldOf) {
  const std::string matrix = WriteArray("A.npy", "(3, 2)", {1, 2, 3, 4, 5, 6});
  const std::string scalar = WriteArray("a.npy", "(1,)", {2});
  const ProcessResult submitted = Submit(kMatrixSource, {"--candidates", "2", "--input", "A=" + matrix,
                                                         "--input", "a=" + scalar, "--tolerance", "y=1e-2"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_THAT(
      submitted.out,
      AllOf(HasSubstr("note: values of inputs: A from a file, x in (0.5, 2.0), a from a file, as asked\n"),
            HasSubstr("note: tolerance of y: 0.01, as asked\n"), HasSubstr("allowed 1.0e-02")));
  const ProcessResult jobs = client_.Run({"jobs", "list", "--json"});
  const std::string job = json::parse(jobs.out)["jobs"][0]["job"];
  EXPECT_THAT(client_.Run({"jobs", "show", job}).out, HasSubstr("note: tolerance of y: 0.01, as asked\n"));
}

TEST_F(InputOptionsTest, FilesThatDoNotFitAreToldTogetherBeforeAnythingIsSent) {
  const std::string transposed = WriteArray("A.npy", "(2, 3)", {1, 2, 3, 4, 5, 6});
  const std::string vector = WriteArray("a.npy", "(3,)", {1, 2, 3});
  const ProcessResult refused =
      Submit(kMatrixSource, {"--input", "A=" + transposed, "--input", "a=" + vector, "--input", "X=" + vector,
                             "--input", "x=" + client_.folder() + "/none.npy"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(
      refused.err,
      AllOf(HasSubstr("--input A: " + transposed +
                      ": has the shape (2, 3), but A has (3, 2) at these sizes; save its transpose: a.T"),
            HasSubstr("--input X: the graph has no such input (did you mean x?)"),
            HasSubstr("--input a: " + vector + ": has the shape (3,), but a is a scalar: one entry"),
            HasSubstr("--input x: " + client_.folder() + "/none.npy: cannot be read")));
  EXPECT_EQ(json::parse(client_.Run({"jobs", "list", "--json"}).out)["jobs"].size(), 0u);
}

TEST_F(InputOptionsTest, FaultsOfTheGraphComeFirstAtTheirPlaces) {
  const std::string vector = WriteArray("x.npy", "(2,)", {1, 2});
  const ProcessResult refused = Submit(
      "size n = 2; matrix[n,3] A; vector[n] x, y; input A = spd, x in (2, 1);\ny = gemtv(1.0, A, x); return "
      "y;\n",
      {"--input", "x=" + vector});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("error: spd takes square matrices"),
                                 HasSubstr("the lower bound must be less"), Not(HasSubstr("--input"))));
}

TEST_F(InputOptionsTest, OptionsThatAreNoPairsAreRefused) {
  for (const auto& [option, value, message] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--input", "A", "must be NAME=FILE"},
           {"--input", "=a.npy", "must be NAME=FILE"},
           {"--tolerance", "y", "must be NAME=NUMBER"},
           {"--tolerance", "y=0", "must be a finite number greater than 0"},
           {"--tolerance", "y=-1e-3", "must be a finite number greater than 0"},
           {"--tolerance", "y=inf", "must be a finite number greater than 0"},
           {"--tolerance", "y=small", "must be a finite number greater than 0"},
           {"--tolerance", "z=0.1", "the graph has no output z"}}) {
    const ProcessResult refused = Submit(kMatrixSource, {option, value});
    EXPECT_EQ(refused.exit_code, 2) << option << " " << value;
    EXPECT_THAT(refused.err, HasSubstr(message)) << option << " " << value;
  }
  const ProcessResult twice = Submit(kMatrixSource, {"--tolerance", "y=1e-2", "--tolerance", "y=1e-3"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("y is given twice"));
}

TEST_F(InputOptionsTest, WhatIsAskedOfInputsSurvivesThePrintedForms) {
  const std::string graph =
      "size n = 40; matrix[n,n] A; vector[n] x, p, y, z; input A = spd, x = signed, p = probabilities;\n"
      "y = gemv(1.0, A, x); z = add(y, p); return z;\n";
  const std::string printed = client_.Run({"check", client_.Write("g.fuse", graph), "--print", "json"}).out;
  EXPECT_THAT(printed, AllOf(HasSubstr("POSITIVE_DEFINITE"), HasSubstr("PROBABILITIES")));
  const ProcessResult again = client_.Run({"check", client_.Write("g.json", printed), "--print", "fuse"});
  EXPECT_THAT(again.out, HasSubstr("input A = spd, x in (-1.0, 1.0), p = probabilities;\n")) << again.err;
}

}  // namespace
}  // namespace fusion::testing
