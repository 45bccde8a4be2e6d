// What verification sees: programs with one fault each, which random data alone do not show, and right
// programs that rounding keeps far from f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/build/host_builder.h"
#include "worker/measure/host_backend.h"
#include "worker/measure/timing.h"

namespace fusion {
namespace {

constexpr int kOutput = 100;

class VerificationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto builder = HostBuilder::Create();
    ASSERT_TRUE(builder.ok()) << builder.status();
    builder_ = *std::move(builder);
    v1::MeasurementMethod* method = task_.mutable_method();
    method->set_minimum_samples(2);
    method->set_maximum_samples(2);
    method->set_cold_alone(true);
    method->set_thorough(true);
  }
  void SetMatrix(int id, const std::string& name, int64_t rows, int64_t columns, v1::Buffer* buffer) {
    buffer->set_id(id);
    buffer->set_name(name);
    buffer->set_data_type(v1::F32);
    buffer->set_rows(rows);
    buffer->set_columns(columns);
    buffer->set_row_stride(columns);
    buffer->set_count(std::max<int64_t>(rows, 1) * columns);
  }
  v1::Buffer* AddInput(const std::string& name, int64_t rows, int64_t columns) {
    v1::Session* session = task_.mutable_session();
    SetMatrix(session->inputs_size(), name, rows, columns, session->add_inputs());
    return session->mutable_inputs(session->inputs_size() - 1);
  }
  void SetOutput(const std::string& name, int64_t columns, double tolerance) {
    SetMatrix(kOutput, name, 0, columns, task_.mutable_session()->add_outputs());
    task_.mutable_session()->add_tolerances(tolerance);
  }
  // A kernel for each body, one after the other. A body says T for the type of entries, and has a pointer to
  // each input, to the output and, for what one kernel leaves to the next, to `t`, which is as long as the
  // output.
  v1::Program Compute(const std::string& name, const std::vector<std::string>& bodies,
                      bool is_reference = false) {
    constexpr int kTemporary = 50;
    const v1::Session& session = task_.session();
    v1::Program program;
    program.set_name(name);
    if (bodies.size() > 1) {
      *program.add_temporaries() = session.outputs(0);
      program.mutable_temporaries(0)->set_id(kTemporary);
      if (is_reference) program.mutable_temporaries(0)->set_data_type(v1::F64);
    }
    for (size_t k = 0; k < bodies.size(); ++k) {
      const std::string kernel = absl::StrCat(name, k);
      std::string source =
          absl::StrCat("#include <cmath>\n#include <limits>\ntypedef ", is_reference ? "double" : "float",
                       " T;\nextern \"C\" void ", kernel, "(long long, void* const* arguments) {\n");
      v1::Launch* launch = program.add_launches();
      launch->set_kernel(kernel);
      launch->set_grid(1);
      launch->set_threads(64);
      const auto add_pointer = [&](int id, const std::string& type, const std::string& variable) {
        absl::StrAppend(&source, type, "* ", variable, " = *(", type, "**)arguments[",
                        launch->arguments_size(), "];\n");
        launch->add_arguments()->set_buffer(id);
      };
      for (const v1::Buffer& input : session.inputs()) add_pointer(input.id(), "const T", input.name());
      add_pointer(kOutput, "T", session.outputs(0).name());
      if (bodies.size() > 1) add_pointer(kTemporary, "T", "t");
      absl::StrAppend(&source, bodies[k], "}\n");
      if (is_reference && rounds_) launch->add_results(k + 1 < bodies.size() ? kTemporary : kOutput);
      v1::BuildTask build;
      build.set_target(v1::HOST);
      build.set_arch(HostArch());
      build.set_source(source);
      // A source is built once, however many tests' programs use it.
      const auto [built, is_new] = outputs_.try_emplace(source);
      if (is_new) built->second = builder_->Build(build);
      const BuildOutput& output = built->second;
      EXPECT_EQ(output.result.outcome(), v1::OK) << output.result.log();
      binaries_[output.result.binary()] = output.binary;
      launch->set_binary(output.result.binary());
    }
    return program;
  }
  // Measures `candidate` beside what is right.
  v1::TimeResult Measure(const std::vector<std::string>& right, const std::vector<std::string>& candidate) {
    v1::Session* session = task_.mutable_session();
    *session->mutable_reference() = Compute("reference", right, /*is_reference=*/true);
    *session->mutable_unfused() = Compute("plain", right);
    task_.clear_programs();
    *task_.add_programs() = Compute("candidate", candidate);
    auto backend = HostBackend::Open();
    auto activity = ActivityPage::Create();
    EXPECT_TRUE(backend.ok() && activity.ok());
    auto data = SessionData::Create(backend->get(), task_.session(), binaries_, activity->get());
    EXPECT_TRUE(data.ok()) << data.status();
    auto result = MeasurePrograms(backend->get(), data->get(), task_, binaries_, 0, activity->get(),
                                  [](int, const v1::ProgramMeasurement&) {});
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->unfused().outcome(), v1::OK) << result->unfused().message();
    return *std::move(result);
  }
  void ExpectCaught(const std::string& right, const std::string& from, const std::string& to) {
    const std::string wrong = absl::StrReplaceAll(right, {{from, to}});
    ASSERT_NE(right, wrong);
    const v1::TimeResult result = Measure({right}, {wrong});
    EXPECT_EQ(result.programs(0).outcome(), v1::WRONG_RESULT) << wrong;
  }
  void ExpectRight(const std::string& right) {
    const v1::TimeResult result = Measure({right}, {right});
    EXPECT_EQ(result.programs(0).outcome(), v1::OK) << result.programs(0).message();
  }

  std::unique_ptr<Builder> builder_;
  v1::TimeTask task_;
  BinaryMap binaries_;
  bool rounds_ = true;                          // what is computed
  std::map<std::string, BuildOutput> outputs_;  // by source
};

// Lanes of 64 that each sum every 64th term, as generated code does.
constexpr char kDot[] =
    "T lanes[64] = {};\n"
    "for (int i = 0; i < 1000003; ++i) lanes[i % 64] += x[i] * y[i];\n"
    "T sum = 0; for (int lane = 0; lane < 64; ++lane) sum += lanes[lane]; s[0] = sum;\n";

TEST_F(VerificationTest, ALongDotProductThatLosesItsTailIsCaught) {
  AddInput("x", 0, 1000003);
  AddInput("y", 0, 1000003);
  SetOutput("s", 1, 1e-3);  // what random data need is larger than what 67 of a million entries are
  ExpectRight(kDot);
  ExpectCaught(kDot, "i < 1000003", "i < 1000003 - 67");
  ExpectCaught(kDot, "i < 1000003", "i < 1000002");
  ExpectCaught(kDot, "int i = 0", "int i = 1");
  ExpectCaught(kDot, "lane < 64", "lane < 63");
}

TEST_F(VerificationTest, AResultThatIsWrongNowAndThenIsCaught) {
  AddInput("x", 0, 1000);
  SetOutput("s", 1, 1e-3);
  const std::string right = "T sum = 0; for (int i = 0; i < 1000; ++i) sum += x[i]; s[0] = sum;\n";
  const v1::TimeResult result =
      Measure({right}, {right + "static int calls = 0; if (++calls % 20 == 0) s[0] = sum - x[7];\n"});
  EXPECT_EQ(result.programs(0).outcome(), v1::WRONG_RESULT);
}

constexpr char kArgmax[] =
    "int best = 0; for (int i = 1; i < 10007; ++i) if (x[i] > x[best]) best = i; s[0] = best;\n";

TEST_F(VerificationTest, AnIndexThatIsOffByAFewIsCaught) {
  // Few enough that the runs with each lane's entries raised end within their time on any machine.
  AddInput("x", 0, 10007);
  SetOutput("s", 1, 0);
  rounds_ = false;
  task_.mutable_session()->set_choosing_entries(1);
  ExpectRight(kArgmax);
  ExpectCaught(kArgmax, "s[0] = best", "s[0] = best + 9 * (best % 2)");
  ExpectCaught(kArgmax, "i < 10007", "i < 10006");
  ExpectCaught(kArgmax, "if (x", "if (i / 4 % 64 != 17 && x");  // a lane's part
  ExpectCaught(kArgmax, "x[i] > x[best]", "x[i] >= x[best]");   // of equal ones the first
}

constexpr char kColmax[] =
    "for (int j = 0; j < 37; ++j) { T most = -std::numeric_limits<T>::infinity();\n"
    "for (int i = 0; i < 803; ++i) if (A[i * 37 + j] > most) most = A[i * 37 + j]; y[j] = most; }\n";

TEST_F(VerificationTest, AMaximumThatSkipsRowsOrKeepsAValueIsCaught) {
  AddInput("A", 803, 37);
  SetOutput("y", 37, 0);
  rounds_ = false;
  task_.mutable_session()->set_choosing_entries(37);
  ExpectRight(kColmax);
  ExpectCaught(kColmax, "if (A", "if (i % 8 != 5 && A");
  ExpectCaught(kColmax, "-std::numeric_limits<T>::infinity()", "0");
  ExpectCaught(kColmax, "i < 803", "i < 802");
  ExpectCaught(kColmax, "j < 37; ++j) { T most = -std::numeric_limits<T>::infinity();",
               "j < 37; ++j) { static T most; if (j == 0) most = -std::numeric_limits<T>::infinity();");
}

constexpr char kNorm[] =
    "double sum = 0; for (int i = 0; i < 1000003; ++i) sum += x[i] * x[i]; s[0] = std::sqrt(sum);\n";

TEST_F(VerificationTest, ANormThatLosesItsLastEntryIsCaught) {
  AddInput("x", 0, 1000003);
  SetOutput("s", 1, 1e-4);
  ExpectCaught(kNorm, "i < 1000003", "i < 1000002");
}

TEST_F(VerificationTest, SumsOfWholeNumbersAreExact) {
  AddInput("x", 0, 1000);
  SetOutput("s", 1, 1e-2);
  task_.mutable_session()->add_whole_outputs(true);
  // A thousandth of the sum of this many numbers is within the tolerance, but one entry counts twice.
  const std::string sum = "T sum = 0; for (int i = 0; i < 1000; ++i) sum += x[i] * x[i]; s[0] = sum;\n";
  ExpectRight(sum);
  ExpectCaught(sum, "s[0] = sum", "s[0] = sum + x[500] * x[500]");
}

TEST_F(VerificationTest, TheToleranceThatIsToldGoesWithTheLargestError) {
  AddInput("x", 0, 1000);
  AddInput("y", 0, 1000);
  SetOutput("s", 1, 1e-3);
  task_.mutable_session()->add_whole_outputs(true);
  const std::string right = "T sum = 0; for (int i = 0; i < 1000; ++i) sum += x[i] * y[i]; s[0] = sum;\n";
  for (const bool thorough : {false, true}) {
    task_.mutable_method()->set_thorough(thorough);
    const v1::TimeResult result = Measure({right}, {right});
    EXPECT_GT(result.programs(0).max_relative_error(), 0);
    EXPECT_EQ(result.programs(0).tolerance(), 1e-3) << "and not that of whole numbers, which are exact";
  }
}

TEST_F(VerificationTest, AZeroThatRoundingKeepsFromF64IsNoError) {
  AddInput("x", 0, 1000);
  SetOutput("y", 1000, 1e-6);
  const std::string third = "for (int i = 0; i < 1000; ++i) t[i] = x[i] / 3;\n",
                    times = "for (int i = 0; i < 1000; ++i) y[i] = t[i] * 3 - x[i];\n";
  const v1::TimeResult result = Measure({third, times}, {"for (int i = 0; i < 1000; ++i) y[i] = 0;\n"});
  EXPECT_EQ(result.programs(0).outcome(), v1::OK) << result.programs(0).message();
  EXPECT_EQ(result.programs(0).max_relative_error(), 0);
  // As large a value as rounding never gives is an error all the same.
  EXPECT_EQ(Measure({third, times}, {"for (int i = 0; i < 1000; ++i) y[i] = i == 500 ? 1e-3f : 0;\n"})
                .programs(0)
                .outcome(),
            v1::WRONG_RESULT);
}

TEST_F(VerificationTest, AnEntryThatF32CannotTellIsExcusedAndRemarkedOn) {
  AddInput("a", 0, 100003);
  AddInput("b", 0, 100003);
  SetOutput("y", 100003, 1e-6);
  const std::string body = "for (int i = 0; i < 100003; ++i) y[i] = 1 / (a[i] - b[i]);\n";
  // Another order of the same operations: as good, not the same.
  const std::string other = "for (int i = 0; i < 100003; ++i) { T d = a[i] * 3 - b[i] * 3; y[i] = 3 / d; }\n";
  const v1::TimeResult result = Measure({body}, {other});
  EXPECT_EQ(result.programs(0).outcome(), v1::OK) << result.programs(0).message();
  ASSERT_EQ(result.unfused().remarks_size(), 1);
  EXPECT_THAT(result.unfused().remarks(0),
              ::testing::HasSubstr("y is ill-conditioned on these data: f32 keeps"));
  // What is wrong is still caught.
  ExpectCaught(body, "1 / (a[i] - b[i])", "1 / (a[i] - b[i]) * T(1.001)");
}

TEST_F(VerificationTest, ResultsThatAreNoNumbersAreRemarkedOn) {
  AddInput("x", 0, 1000);
  SetOutput("y", 1000, 1e-6);
  const std::string body = "for (int i = 0; i < 1000; ++i) y[i] = std::sqrt(-1 - x[i] * x[i]);\n";
  const v1::TimeResult result = Measure({body}, {body});
  EXPECT_EQ(result.programs(0).outcome(), v1::OK);
  ASSERT_EQ(result.unfused().remarks_size(), 1);
  EXPECT_THAT(result.unfused().remarks(0), ::testing::HasSubstr("no entry of y is finite"));
}

}  // namespace
}  // namespace fusion
