// Random loops: their kernels, in random shapes, beside the C that they were made from, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/property/loop_kernels/host_run.h"

namespace fusion {
namespace {

using testing::ArrayBytes;
using testing::SharedObject;

// FUSION_RANDOM_LOOPS=10000 runs more, of another seed.
int Programs() {
  const char* asked = std::getenv("FUSION_RANDOM_LOOPS");
  return asked == nullptr ? 300 : std::max(100, std::atoi(asked));
}
constexpr int kTogether = 100;  // that a compiler sees at once

// Texts of loops over arrays of int, whose indices stay in them for n and m below 8.
class Generator {
 public:
  explicit Generator(std::mt19937* random) : random_(*random) {}

  std::string Text() {
    std::string text = "int n, m;\nint a[300], b[300], c[100][100];\n";
    const int regions = 1 + Below(2);
    const bool host = Below(4) == 0;
    if (host) absl::StrAppend(&text, "for (int t = 0; t < 3; t++) {\n");
    host_ = host;
    for (int i = 0; i < regions; ++i) {
      absl::StrAppend(&text, "#pragma fusion parametric\n");
      depth_ = 0;
      Loop(&text, 0);
    }
    if (host) text += "}\n";
    return text;
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }
  std::string Counter(int level) const { return absl::StrCat("x", level); }

  void Loop(std::string* text, int level) {
    const std::string x = Counter(level), indent(2 * level, ' ');
    std::string low = "0", high = Below(2) == 0 ? "n" : "m";
    switch (Below(8)) {
      case 0:
        high = absl::StrCat(2 + Below(6));
        break;
      case 1:
        if (level > 0) high = Counter(level - 1) + " + 1";
        break;
      case 2:
        if (level > 0) low = Counter(level - 1);
        break;
      case 3:
        low = "1";
        high += " - 1";
        break;
    }
    const int step = Below(6) == 0 ? 2 : 1;
    if (Below(8) == 0)
      absl::StrAppend(text, indent, "for (int ", x, " = ", high, " - 1; ", x, " >= ", low, "; ", x,
                      " -= ", step, ") {\n");
    else
      absl::StrAppend(text, indent, "for (int ", x, " = ", low, "; ", x, " < ", high, "; ", x, " += ", step,
                      ") {\n");
    depth_ = level + 1;
    const int parts = level == 0 ? 1 + Below(3) / 2 : 1 + Below(4) / 3;
    for (int part = 0; part < parts; ++part) {
      if (level < 2 && Below(3) > 0) {
        Loop(text, level + 1);
        depth_ = level + 1;
      } else {
        Statement(text, level + 1);
      }
    }
    absl::StrAppend(text, indent, "}\n");
  }

  // At most 3 * 3 * 8 + 5 in all.
  std::string Index(int most_counters) {
    std::string index = absl::StrCat(Below(6));
    for (int level = 0, used = 0; level < depth_ && used < most_counters; ++level) {
      if (Below(3) == 0) continue;
      const int coefficient = 1 + Below(10) / 8 + Below(10) / 9;
      absl::StrAppend(&index, " + ", coefficient > 1 ? absl::StrCat(coefficient, " * ") : "", Counter(level));
      ++used;
    }
    return index;
  }
  std::string Entry() {
    switch (Below(3)) {
      case 0:
        return absl::StrCat("a[", Index(3), "]");
      case 1:
        return absl::StrCat("b[", Index(3), " + ", Below(2) == 0 ? "100" : "0", "]");
      default:
        return absl::StrCat("c[", Index(2), "][", Index(2), "]");
    }
  }
  void Statement(std::string* text, int level) {
    const std::string indent(2 * level, ' ');
    std::string guard;
    if (Below(4) == 0)
      guard = absl::StrCat("if (", Counter(Below(depth_)), " < n - ", Below(3),
                           host_ && Below(2) == 0 ? " && t % 2" : "", ") ");
    const std::string target = Entry();
    std::string value = absl::StrCat(Entry(), " % 97 * ", 1 + Below(5), " + ", Entry(), " % 89");
    if (Below(4) == 0) absl::StrAppend(&value, " - min(", Counter(Below(depth_)), ", ", Entry(), ")");
    if (Below(3) == 0) {
      absl::StrAppend(text, indent, guard, "{ int y = ", value, "; ", target, " = y / 2 + ",
                      Counter(Below(depth_)), "; }\n");
    } else {
      absl::StrAppend(text, indent, guard, target, Below(2) == 0 ? " = " : " += ", value, ";\n");
    }
  }

  std::mt19937& random_;
  int depth_ = 0;
  bool host_ = false;
};

struct Program {
  std::string text;
  CProgram program;
  LoopInterface interface;
  LoopCode code;
  IntegerValues sizes;
  size_t parallel = 0;
};

Program MakeProgram(std::mt19937& random, int number) {
  Program made;
  ErrorList errors("x.c");
  // A text may be refused, with two iterations that touch the same entry, as nobody has claimed anything:
  // never here.
  made.text = Generator(&random).Text();
  auto checked = CheckLoops(made.text, "x.c");
  EXPECT_TRUE(checked.ok()) << checked.status() << "\n" << made.text;
  if (!checked.ok()) return made;
  for (const CheckedLoop& loop : checked->loops)
    made.parallel += loop.verdict.verdict == Verdict::kIndependent;
  const MappedLoops mapped = MapLoops(*checked, {}, &errors);
  made.interface = InterfaceOf(mapped.program, &errors);
  made.sizes = {{"n", 1 + static_cast<int64_t>(random() % 7)}, {"m", 1 + static_cast<int64_t>(random() % 7)}};
  IntegerValues constants;
  for (const CParameter& shape : mapped.shapes)
    constants[shape.name] = 1 + static_cast<int64_t>(random() % 4);
  made.code = LowerLoops(mapped,
                         {.constants = constants,
                          .cached = random() % 2 == 0,
                          .reuse = random() % 4 != 0,
                          .prefix = absl::StrCat("k", number, "_")},
                         &errors);
  EXPECT_TRUE(errors.empty()) << errors.ToStatus() << "\n" << made.text;
  made.sizes.insert(constants.begin(), constants.end());
  made.program = std::move(checked->program);
  return made;
}

TEST(RandomProgramsTest, KernelsComputeWhatTheTextDoes) {
  const int programs_in_all = Programs();
  std::mt19937 random(programs_in_all == 300 ? 11 : 12);
  size_t parallel = 0, cached = 0;
  for (int first = 0; first < programs_in_all; first += kTogether) {
    std::vector<Program> programs;
    std::string serial, kernels = testing::HostRuntime();
    for (int i = 0; i < kTogether; ++i) {
      programs.push_back(MakeProgram(random, first + i));
      ASSERT_FALSE(::testing::Test::HasFailure());
      serial += testing::SerialSource(programs.back().program, programs.back().interface,
                                      absl::StrCat("serial", first + i));
      kernels += testing::KernelSource(programs.back().code);
      parallel += programs.back().parallel;
      for (const LoopKernel& kernel : programs.back().code.kernels) cached += !kernel.cached.empty();
    }
    const auto c = SharedObject::Compile(serial, true), device = SharedObject::Compile(kernels, false);
    ASSERT_TRUE(c != nullptr && device != nullptr);
    for (int i = 0; i < kTogether; ++i) {
      const Program& one = programs[i];
      ArrayBytes expected = testing::RandomArrays(one.interface, one.sizes, first + i), got = expected;
      testing::RunSerial(*c, absl::StrCat("serial", first + i), one.interface, one.sizes, &expected);
      testing::RunKernels(*device, one.code, one.interface, one.sizes, &got);
      for (size_t array = 0; array < expected.size(); ++array)
        ASSERT_EQ(expected[array], got[array])
            << one.interface.arrays[array].variable.name << " of " << one.text << "\n"
            << testing::KernelSource(one.code);
    }
  }
  EXPECT_GT(parallel, static_cast<size_t>(programs_in_all) / 2);
  EXPECT_GT(cached, static_cast<size_t>(programs_in_all) / 20);
}

}  // namespace
}  // namespace fusion
