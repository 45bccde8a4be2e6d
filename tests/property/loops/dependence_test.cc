// Random nests of loops, judged by polynomials, beside all of their iterations for small sizes.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/loops/check.h"

namespace fusion {
namespace {

// A term: coefficient times n^a times m^b times one of the counters (or none).
struct Term {
  int coefficient = 1, n = 0, m = 0, counter = -1;
};
using Sum = std::vector<Term>;

struct Touch {
  bool writes = false;
  int array = 0;
  std::vector<Sum> index;
};

struct RandomNest {
  std::vector<Sum> bounds;     // counters are below, from 0
  std::vector<int> steps;      // of each loop
  std::vector<Touch> touches;  // of the one statement; the write comes last
  Sum guard;                   // at least 0; empty: none
};

int64_t ValueOf(const Sum& sum, const std::vector<int64_t>& counters, int64_t n, int64_t m) {
  int64_t value = 0;
  for (const Term& term : sum) {
    int64_t product = term.coefficient;
    for (int i = 0; i < term.n; ++i) product *= n;
    for (int i = 0; i < term.m; ++i) product *= m;
    value += term.counter < 0 ? product : product * counters[term.counter];
  }
  return value;
}

std::string TextOf(const Sum& sum) {
  std::string text = "0";
  for (const Term& term : sum) {
    absl::StrAppend(&text, " + ", term.coefficient);
    for (int i = 0; i < term.n; ++i) absl::StrAppend(&text, "*n");
    for (int i = 0; i < term.m; ++i) absl::StrAppend(&text, "*m");
    if (term.counter >= 0) absl::StrAppend(&text, "*x", term.counter);
  }
  return text;
}

constexpr int kDimensions[] = {1, 1, 2};  // of the arrays a, b and c

RandomNest AnyNest(std::mt19937& random) {
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  RandomNest nest;
  const int depth = 1 + below(3);
  for (int loop = 0; loop < depth; ++loop) {
    const int kind = below(6);
    if (kind == 0) nest.bounds.push_back({{.coefficient = 2 + below(3)}});
    if (kind == 1 || kind == 2) nest.bounds.push_back({{.n = 1}});
    if (kind == 3 || kind == 4 || (kind == 5 && loop == 0)) nest.bounds.push_back({{.m = 1}});
    if (kind == 5 && loop > 0) nest.bounds.push_back({{.counter = loop - 1}, {.coefficient = below(2)}});
    nest.steps.push_back(below(8) == 0 ? 2 : 1);
  }
  // An index as a tiled program has it, of counters and the extents of inner loops; now and then with a slip.
  const auto flat = [&] {
    Sum sum;
    int n = 0, m = 0, constant = 1;
    for (int loop = depth - 1; loop >= 0; --loop) {
      if (below(5) > 0) sum.push_back({.coefficient = constant, .n = n, .m = m, .counter = loop});
      const Term& bound = nest.bounds[loop][0];
      n += bound.n, m += bound.m;
      if (bound.counter >= 0) ++n;
      if (bound.n + bound.m == 0 && bound.counter < 0) constant *= bound.coefficient;
      if (below(12) == 0 && constant > 1) --constant;
      if (n > 2) n = 2;
      if (m > 2) m = 2;
    }
    if (below(2) == 0) sum.push_back({.coefficient = below(4) - 1, .n = below(2)});
    return sum;
  };
  const auto simple = [&] {
    Sum sum;
    if (below(6) > 0) sum.push_back({.counter = below(depth)});
    if (below(3) == 0) sum.push_back({.coefficient = below(3)});
    return sum;
  };
  const int reads = 1 + below(2);
  for (int i = 0; i <= reads; ++i) {
    Touch touch{.writes = i == reads, .array = below(3), .index = {}};
    if (i == reads && below(2) == 0)
      touch = {.writes = true, .array = nest.touches[0].array, .index = nest.touches[0].index};
    if (touch.index.empty())
      for (int dimension = 0; dimension < kDimensions[touch.array]; ++dimension)
        touch.index.push_back(kDimensions[touch.array] == 1 ? flat() : simple());
    nest.touches.push_back(std::move(touch));
  }
  if (below(4) == 0)
    nest.guard = {{.n = 1}, {.coefficient = -1, .counter = below(depth)}, {.coefficient = -1 - below(2)}};
  return nest;
}

std::string TextOf(const RandomNest& nest) {
  std::string text =
      "int n, m;\nfloat a[n*n*m*m*64], b[n*n*m*m*64], c[100][100];\n#pragma fusion parametric\n";
  for (size_t loop = 0; loop < nest.bounds.size(); ++loop)
    absl::StrAppend(&text, "for (int x", loop, " = 0; x", loop, " < ", TextOf(nest.bounds[loop]), "; x", loop,
                    " += ", nest.steps[loop], ")\n");
  if (!nest.guard.empty()) absl::StrAppend(&text, "if (", TextOf(nest.guard), " >= 0)\n");
  const auto access = [](const Touch& touch) {
    std::string entry(1, "abc"[touch.array]);
    for (const Sum& index : touch.index) absl::StrAppend(&entry, "[", TextOf(index), "]");
    return entry;
  };
  absl::StrAppend(&text, access(nest.touches.back()), " = 1");
  for (size_t i = 0; i + 1 < nest.touches.size(); ++i) absl::StrAppend(&text, " + ", access(nest.touches[i]));
  return text + ";\n";
}

// Returns whether two iterations of the loop, of equal outer counters, touch one entry that one of them
// writes.
bool Conflicts(const RandomNest& nest, size_t judged, int64_t n, int64_t m) {
  struct Seen {
    int64_t iteration = -1;
    bool several = false, written = false;
  };
  std::map<std::vector<int64_t>, Seen> seen;  // by outer counters, array and index
  bool found = false;
  std::vector<int64_t> counters(nest.bounds.size());
  const auto run = [&](auto&& self, size_t loop) -> void {
    if (loop < nest.bounds.size()) {
      const int64_t bound = ValueOf(nest.bounds[loop], counters, n, m);
      for (counters[loop] = 0; counters[loop] < bound; counters[loop] += nest.steps[loop])
        self(self, loop + 1);
      return;
    }
    if (!nest.guard.empty() && ValueOf(nest.guard, counters, n, m) < 0) return;
    for (const Touch& touch : nest.touches) {
      std::vector<int64_t> key(counters.begin(), counters.begin() + judged);
      key.push_back(touch.array);
      for (const Sum& index : touch.index) key.push_back(ValueOf(index, counters, n, m));
      Seen& entry = seen[key];
      if (entry.iteration >= 0 && entry.iteration != counters[judged]) entry.several = true;
      entry.iteration = counters[judged];
      entry.written |= touch.writes;
      found |= entry.several && entry.written;
    }
  };
  run(run, 0);
  return found;
}

TEST(RandomLoopsTest, WhatIsProvedHoldsForSmallSizes) {
  std::mt19937 random(5);
  int proved = 0, harmless = 0, refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const RandomNest nest = AnyNest(random);
    const std::string text = TextOf(nest);
    const auto program = CheckLoops(text, "x.c");
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    const std::vector<CheckedLoop>& loops = program->loops;
    ASSERT_EQ(loops.size(), nest.bounds.size()) << text;
    for (size_t loop = 0; loop < loops.size(); ++loop) {
      bool conflicts = false;
      for (int64_t n = 1; n <= 5; ++n)
        for (int64_t m = 1; m <= 5; ++m) conflicts |= Conflicts(nest, loop, n, m);
      const CheckedLoop& checked = loops[loop];
      harmless += !conflicts;
      if (checked.verdict.verdict == Verdict::kIndependent) {
        ++proved;
        ASSERT_FALSE(conflicts) << text << LoopText(checked, "x.c");
      } else if (checked.verdict.verdict != Verdict::kUnknown) {
        ++refused;
        // A distance of many iterations shows with larger sizes alone.
        if (!conflicts)
          for (int64_t n : {8, 40})
            for (int64_t m : {8, 40}) conflicts |= Conflicts(nest, loop, n, m);
        EXPECT_TRUE(conflicts || absl::StrContains(checked.verdict.witness, "200"))
            << text << LoopText(checked, "x.c");
      }
    }
  }
  EXPECT_GT(proved, harmless * 3 / 4)
      << "of " << harmless << " loops without a conflict; " << refused << " have a witness";
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace fusion
