// Random serial nests, of which some may run in another order and others may not: their kernels beside the C
// that they were made from, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/property/loop_kernels/random_programs.h"

namespace fusion {
namespace {

// FUSION_RANDOM_NESTS=10000 runs more, of another seed.
int Nests() {
  const char* asked = std::getenv("FUSION_RANDOM_NESTS");
  return asked == nullptr ? 200 : std::max(100, std::atoi(asked));
}
constexpr int kNestsTogether = 100;  // that a compiler sees at once

// Nests of two or three loops that change an array in place. Indices stay in the arrays for n and m up to 10.
class NestGenerator {
 public:
  explicit NestGenerator(std::mt19937* random) : random_(*random) {}

  std::string Text() {
    std::string text = "int n, m, k;\nint a[80], b[20][20], c[20][20];\n#pragma fusion parametric\n";
    outer_ = Below(3) > 0;
    crossed_ = Below(4) == 0;
    if (outer_) absl::StrAppend(&text, "for (int t = 0; t < ", Below(2) == 0 ? "3" : "n", "; t++)\n");
    const bool dependent = Below(4) == 0;
    Loop("i", "0", Size(), &text);
    if (dependent)
      Loop("j", Below(2) == 0 ? "i" : "i + 1", "n", &text);
    else
      Loop("j", "0", Size(), &text);
    text += " {\n";
    const int statements = 1 + Below(4) / 3;
    for (int i = 0; i < statements; ++i) Statement(&text);
    return text + "}\n";
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }
  std::string Size() { return Below(2) == 0 ? "n" : "m"; }

  void Loop(const std::string& counter, const std::string& low, const std::string& end, std::string* text) {
    if (Below(4) == 0)
      absl::StrAppend(text, "for (int ", counter, " = ", end, " - 1; ", counter, " >= ", low, "; ", counter,
                      "--)\n");
    else
      absl::StrAppend(text, "for (int ", counter, " = ", low, "; ", counter, " < ", end, "; ", counter,
                      "++)\n");
  }

  std::string Near(const std::string& counter) { return absl::StrCat(counter, " + ", 3 + Below(3)); }
  // `inner`: a loop over k is around it.
  std::string Entry(bool inner) {
    const std::string array = Below(6) == 0 ? "c[" : "b[", own = absl::StrCat("b[", Near("i"), "]["),
                      split = outer_ ? "t" : "n";
    if (crossed_ && Below(8) > 0) {
      const std::string at = absl::StrCat("[", split, " + ", Below(8) > 0 ? 4 : 5, "]");
      return Below(2) == 0 ? absl::StrCat("b[i + 4]", at) : absl::StrCat("b", at, "[j + 4]");
    }
    switch (Below(inner ? 15 : 11)) {
      case 0:
        return absl::StrCat("a[", Near(Below(2) == 0 ? "i" : "i + j"), Below(3) == 0 ? " + 2 * j]" : "]");
      case 1:
        return absl::StrCat(array, Near("j"), "][", Near("i"), "]");
      case 2:
        return Below(2) == 0 ? absl::StrCat(own, split, " + 4]")
                             : absl::StrCat("b[", split, " + 4][", Near("j"), "]");
      case 10:
        return "b[14 - i][14 - j]";
      case 11:
      case 12:
        return absl::StrCat(own, Near("k"), "]");
      case 13:
      case 14:
        return absl::StrCat("b[", Near("k"), "][", Near("j"), "]");
      default:
        return absl::StrCat(array, Near("i"), "][", Near("j"), "]");
    }
  }
  void Statement(std::string* text) {
    const std::string target = Below(8) == 0 ? "c[i + 4][j + 4]" : "b[i + 4][j + 4]";
    if (Below(5) == 0)
      absl::StrAppend(text, "  if (", Below(2) == 0 ? "i < j" : "i + j < n", " + ", Below(3), ")\n");
    const bool inner = Below(4) == 0;
    if (inner) {
      const char* const ends[] = {"k = i + 1; k < j", "k = 0; k < j", "k = 0; k < 3", "k = i; k < n"};
      absl::StrAppend(text, "  for (", ends[Below(4)], "; k++)\n");
    }
    std::string value = absl::StrCat(Entry(inner), " % 97 * ", 2 + Below(4), " + ", Entry(inner), " % 89");
    if (Below(2) == 0) absl::StrAppend(&value, " - min(i + ", target, " % 83, ", Entry(inner), ")");
    if (Below(4) == 0)
      absl::StrAppend(text, "  { int y = ", value, "; ", target, " = y / 2 + ", Near("j"), "; }\n");
    else
      absl::StrAppend(text, "  ", target, " = ", value, ";\n");
  }

  std::mt19937& random_;
  bool outer_ = false;    // a loop over t is around the nest
  bool crossed_ = false;  // rows and columns that are the same for all iterations, as Floyd and Warshall's
};

TEST(RearrangedLoopsTest, AnotherOrderComputesTheSame) {
  const int nests = Nests();
  std::mt19937 random(nests == 200 ? 21 : 22);
  int rearranged = 0, serial = 0;
  for (int first = 0; first < nests; first += kNestsTogether) {
    std::vector<testing::RandomProgram> programs;
    for (int i = 0; i < kNestsTogether; ++i) {
      const std::string text = NestGenerator(&random).Text();
      programs.push_back(testing::MakeProgramOf(text, random, first + i, {.most_iterations = 10}));
      ASSERT_FALSE(::testing::Test::HasFailure());
      rearranged += programs.back().rearranged;
      serial += !programs.back().rearranged && programs.back().parallel == 0;
    }
    testing::CompareWithC(programs, first);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  // Both occur.
  EXPECT_GT(rearranged, nests / 8);
  EXPECT_GT(serial, nests / 20);
}

}  // namespace
}  // namespace fusion
