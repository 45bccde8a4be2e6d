#include "tests/property/loop_kernels/random_programs.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/loops/rearranged.h"
#include "tests/property/loop_kernels/host_run.h"

namespace fusion::testing {
namespace {

// Texts of loops over arrays of one type, whose indices stay in them for n and m up to most_iterations.
class Generator {
 public:
  Generator(std::mt19937* random, const RandomProgramOptions& options)
      : random_(*random),
        whole_(options.type == CType::kInt),
        float_(options.type == CType::kFloat),
        most_(options.most_iterations) {}

  std::string Text() {
    const int vector = 9 * (most_ + 1) + 150, side = 6 * (most_ + 1) + 20;
    std::string text = absl::StrCat("int n, m;\n", TypeName(), " a[", vector, "], b[", vector, "], c[", side,
                                    "][", side, "];\n");
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
  const char* TypeName() const { return whole_ ? "int" : float_ ? "float" : "double"; }

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

  // At most 3 * 3 * (most_ + 1) + 5 with three counters.
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
  // Entries of any size become small ones.
  std::string WholeValue() {
    std::string value = absl::StrCat(Entry(), " % 97 * ", 1 + Below(5), " + ", Entry(), " % 89");
    if (Below(4) == 0) absl::StrAppend(&value, " - min(", Counter(Below(depth_)), ", ", Entry(), ")");
    return value;
  }
  // Stays below 10 where entries do. What is added is so small a part of it that thousands of additions are
  // none that overflow.
  std::string RealValue(bool added) {
    const std::string suffix = float_ ? "f" : "";
    std::string value =
        absl::StrCat(Entry(), " * 0.", 1 + Below(4), "37", suffix, Below(2) == 0 ? " + " : " - ", Entry(),
                     " * 0.", 1 + Below(4), "19", suffix);
    if (Below(4) == 0)
      absl::StrAppend(&value, " - (", Entry(), " < ", Entry(), " ? 0.25", suffix, " : 0.0", 1 + Below(9),
                      suffix, ")");
    if (Below(4) == 0) absl::StrAppend(&value, " + 0.0", 1 + Below(2), suffix, " * ", Counter(Below(depth_)));
    return added ? absl::StrCat("(", value, ") * 0.0001", suffix) : value;
  }
  void Statement(std::string* text, int level) {
    const std::string indent(2 * level, ' ');
    std::string guard;
    if (Below(4) == 0)
      guard = absl::StrCat("if (", Counter(Below(depth_)), " < n - ", Below(3),
                           host_ && Below(2) == 0 ? " && t % 2" : "", ") ");
    const std::string target = Entry();
    const bool local = Below(3) == 0, added = !local && Below(2) == 1;
    const std::string value = whole_ ? WholeValue() : RealValue(added);
    if (local) {
      absl::StrAppend(
          text, indent, guard, "{ ", TypeName(), " y = ", value, "; ", target, " = ",
          whole_ ? "y / 2 + " + Counter(Below(depth_)) : std::string(float_ ? "y * 0.7f" : "y * 0.7"),
          "; }\n");
    } else {
      absl::StrAppend(text, indent, guard, target, added ? " += " : " = ", value, ";\n");
    }
  }

  std::mt19937& random_;
  const bool whole_, float_;
  const int most_;
  int depth_ = 0;
  bool host_ = false;
};

}  // namespace

RandomProgram MakeProgramOf(const std::string& text, std::mt19937& random, int number,
                            const RandomProgramOptions& options) {
  RandomProgram made;
  ErrorList errors("x.c");
  made.text = text;
  auto checked = CheckLoops(made.text, "x.c");
  EXPECT_TRUE(checked.ok()) << checked.status() << "\n" << made.text;
  if (!checked.ok()) return made;
  for (const CheckedLoop& loop : checked->loops)
    made.parallel += loop.verdict.verdict == Verdict::kIndependent;
  made.rearranged = Rearranged(*checked).has_value();
  const MappedLoops mapped = MapLoops(*checked, {}, &errors);
  made.interface = InterfaceOf(mapped.program, &errors);
  for (const char* size : {"n", "m"})
    made.sizes[size] = 1 + static_cast<int64_t>(random() % options.most_iterations);
  IntegerValues constants;
  for (const CParameter& shape : mapped.shapes) {
    const int most = absl::StartsWith(shape.name, "B") ? options.most_threads : 4;
    constants[shape.name] = 1 + static_cast<int64_t>(random() % most);
  }
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

RandomProgram MakeRandomProgram(std::mt19937& random, int number, const RandomProgramOptions& options) {
  for (;;) {
    RandomProgram made = MakeProgramOf(Generator(&random, options).Text(), random, number, options);
    // Threads add up in an order of their own, which rounds reals otherwise.
    if (options.type == CType::kInt || made.code.workspaces.empty()) return made;
  }
}

void CompareWithC(const std::vector<RandomProgram>& programs, int first) {
  std::string serial, kernels = HostRuntime();
  for (size_t i = 0; i < programs.size(); ++i) {
    serial += SerialSource(programs[i].program, programs[i].interface, absl::StrCat("serial", first + i));
    kernels += KernelSource(programs[i].code, i % 2 == 1);
  }
  const auto c = SharedObject::Compile(serial, true), device = SharedObject::Compile(kernels, false);
  ASSERT_TRUE(c != nullptr && device != nullptr);
  for (size_t i = 0; i < programs.size(); ++i) {
    const RandomProgram& one = programs[i];
    ArrayBytes expected = RandomArrays(one.interface, one.sizes, first + i), got = expected;
    RunSerial(*c, absl::StrCat("serial", first + i), one.interface, one.sizes, &expected);
    RunKernels(*device, one.code, one.interface, one.sizes, &got);
    for (size_t array = 0; array < expected.size(); ++array)
      ASSERT_EQ(expected[array], got[array])
          << one.interface.arrays[array].variable.name << " of " << one.text << "\n"
          << KernelSource(one.code);
  }
}

}  // namespace fusion::testing
