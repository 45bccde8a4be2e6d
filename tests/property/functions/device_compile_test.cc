// Every routine compiles as CUDA device code, in f32 and f64, whose sums and products no compiler contracts.
// Needs nvcc; without it, SKIP.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "library/catalog/catalog.h"
#include "tests/folders.h"

namespace fusion {
namespace {

// The kernels of a program: for each routine and data type one that calls it, with 3 for each static
// parameter.
class Program {
 public:
  explicit Program(const Catalog& catalog) {
    for (const ElementaryFunction* function : catalog.functions()) {
      absl::StrAppend(&sources_, function->source);
      for (const Overload& overload : function->overloads) {
        Add(*function, overload.routine, Entries(overload.operands.size()));
        Add(*function, overload.finish_routine, Entries(2 + overload.finish_operands.size()));
        Add(*function, overload.part_routine, Entries(2 + overload.finish_operands.size()));
        Add(*function, overload.term_routine, Entries(overload.term_operands.size()), "sum");
        for (const Implementation& implementation : overload.implementations)
          Add(*function, implementation.routine, ElementArguments(overload, implementation), "element",
              static_cast<int>(overload.static_parameters.size()));
      }
    }
  }
  std::string Text() const {
    return absl::StrCat("#include \"library/device/fusion_device.h\"\n", sources_, kernels_);
  }
  // Of each kernel.
  const std::map<std::string, const ElementaryFunction*>& functions() const { return functions_; }

 private:
  static std::vector<std::string> Entries(size_t count) {
    std::vector<std::string> arguments;
    for (size_t i = 0; i < count; ++i) arguments.push_back(absl::StrCat("in[", i, "]"));
    return arguments;
  }
  static std::vector<std::string> ElementArguments(const Overload& overload,
                                                   const Implementation& implementation) {
    std::vector<std::string> arguments;
    if (implementation.granularity != v1::THREAD) arguments.push_back("threadIdx.x");
    for (size_t i = 0; i < overload.operands.size(); ++i)
      arguments.push_back(overload.operands[i].pattern.shape.empty() ? absl::StrCat("in[", i, "]")
                                                                     : absl::StrCat("in + 64 * ", i));
    arguments.push_back("out");
    return arguments;
  }
  void Add(const ElementaryFunction& function, const std::string& routine,
           const std::vector<std::string>& arguments, const std::string& kind = "",
           int static_parameters = 0) {
    if (routine.empty()) return;
    for (const std::string type : {"float", "double"}) {
      const std::string kernel = absl::StrCat("use_", routine, "_", type);
      if (!functions_.emplace(kernel, &function).second) continue;
      std::string call = absl::StrCat(routine, "<", type);
      for (int i = 0; i < static_parameters; ++i) absl::StrAppend(&call, ", 3");
      absl::StrAppend(&call, ">(", absl::StrJoin(arguments, ", "), ")");
      const std::string sum = absl::StrCat("fu_sum<", type, ">");
      absl::StrAppend(
          &kernels_, "extern \"C\" __global__ void ", kernel, "(const ", type, "* in, ", type, "* out) { ",
          kind == "element" ? call
          : kind == "sum"
              ? absl::StrCat("out[0] = ", sum, "::combine(in[63], ", sum, "::lift(", call, ", 0))")
              : absl::StrCat("out[0] = ", call),
          "; }\n");
    }
  }

  std::string sources_, kernels_;
  std::map<std::string, const ElementaryFunction*> functions_;
};

class DeviceCompileTest : public ::testing::Test {
 protected:
  // The PTX of the program, with what the compiler says in *log.
  std::string Compile(const Program& program, std::string* log) {
    const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "device_compile_test";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "all.cu") << program.Text();
    const std::string command =
        absl::StrCat("'", FUSION_NVCC_PATH, "' -std=c++17 -ptx -arch=sm_80 -fmad=true -diag-suppress 177 -I'",
                     testing::SourceFolder(), "' -o '", (folder / "all.ptx").string(), "' '",
                     (folder / "all.cu").string(), "' > '", (folder / "log").string(), "' 2>&1");
    const int status = std::system(command.c_str());
    std::ostringstream said, ptx;
    said << std::ifstream(folder / "log").rdbuf();
    ptx << std::ifstream(folder / "all.ptx").rdbuf();
    *log = said.str();
    EXPECT_EQ(status, 0) << *log;
    std::filesystem::remove_all(folder);
    return ptx.str();
  }
};

// PTX: "mul/add sequences with no rounding modifiers may be optimized to use fused-multiply-add".
TEST_F(DeviceCompileTest, EveryRoutineIsDeviceCodeThatIsNotContracted) {
  if (std::string(FUSION_NVCC_PATH).empty())
    GTEST_SKIP() << "nvcc was not found when the build was configured";
  const Program program(*Catalog::BuiltIn().value());
  std::string log;
  const std::string ptx = Compile(program, &log);
  EXPECT_EQ(log, "");  // no warnings
  std::string kernel;
  int rounded = 0;
  for (const absl::string_view line : absl::StrSplit(ptx, '\n')) {
    if (absl::StrContains(line, ".entry ")) {
      kernel = std::string(line.substr(line.find(".entry ") + 7));
      kernel.resize(kernel.find('('));
    }
    // A function that is called is the CUDA library's own: routines are inlined.
    if (absl::StrContains(line, ".func ")) {
      EXPECT_TRUE(absl::StrContains(line, " __internal_") || absl::StrContains(line, "__nv_")) << line;
      kernel.clear();
    }
    if (kernel.empty()) continue;
    for (const char* operation : {"add", "sub", "mul"})
      for (const char* type : {"f32", "f64"}) {
        rounded += absl::StrContains(line, absl::StrCat("\t", operation, ".rn.", type, " "));
        if (!absl::StrContains(line, absl::StrCat("\t", operation, ".", type, " "))) continue;
        // The code inside of these is the CUDA library's own.
        const std::string& source = program.functions().at(kernel)->source;
        const bool library = absl::StrContains(source, "fu_exp(") || absl::StrContains(source, "fu_log(") ||
                             absl::StrContains(source, "fu_tanh(") || absl::StrContains(source, "fu_erf(") ||
                             absl::StrContains(source, "sinf(") || absl::StrContains(source, "cosf(") ||
                             absl::StrContains(source, "powf(");
        EXPECT_TRUE(library) << kernel << ": " << line;
      }
  }
  EXPECT_GT(rounded, 200);
}

}  // namespace
}  // namespace fusion
