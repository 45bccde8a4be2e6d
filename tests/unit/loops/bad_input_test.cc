// Bad input to loops, by the table of the design: each line with the whole message and its position.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/loops/check.h"
#include "server/loops/parser.h"
#include "server/loops/statement_checks.h"

namespace fusion {
namespace {

// The lines of all loops and notes, or the errors.
std::string Answer(const std::string& text) {
  const auto checked = CheckLoops(text, "x.c");
  if (!checked.ok()) return std::string(checked.status().message());
  std::vector<std::string> lines;
  for (const CheckedLoop& loop : checked->loops) lines.push_back(LoopText(loop, "x.c"));
  for (const LoopNote& note : NotesOf(checked->program)) lines.push_back(NoteText(note, "x.c"));
  return absl::StrJoin(lines, "\n");
}

constexpr char kDeclarations[] = "int n, m, k[n];\nfloat a[n], b[n], *p, s;\n";
constexpr char kMoreDeclarations[] = "float c[n][n];\nvolatile float v[n];\nvolatile int stop;\n";
constexpr char kLoop[] = "for (int i = 0; i < n; i++) ";

// A statement in a marked loop, at 5:3.
std::string Body(const std::string& statement) {
  return absl::StrCat(kDeclarations, "#pragma fusion parametric\n", kLoop, "{\n  ", statement, "\n}\n");
}
// A directive of OpenMP, at 3:13, before a loop that is parallel.
std::string Directive(const std::string& directive) {
  return absl::StrCat(kDeclarations, "#pragma omp ", directive, "\n", kLoop, "a[i] = 1;\n");
}
// A directive in a loop, at 6:13.
std::string Inside(const std::string& directive) { return Body("\n#pragma omp " + directive); }
// Loops with more declarations; the first line is 6.
std::string Text(const std::string& text) { return absl::StrCat(kDeclarations, kMoreDeclarations, text); }
std::string Asked(const std::string& loops) { return Text("#pragma fusion parametric\n" + loops); }
std::string Claimed(const std::string& loops) { return Text("#pragma omp parallel for\n" + loops); }

struct BadInput {
  std::string text, answer;
};
void ExpectAnswers(const std::vector<BadInput>& table) {
  for (const BadInput& line : table) EXPECT_EQ(Answer(line.text), line.answer) << line.text;
}

TEST(BadInputTest, WhatHasNoPlaceInLoopsIsRefusedByName) {
  ExpectAnswers({
      {Body("if (a[i] > 1) break;"),
       "x.c:5:17: error: \"break\" has no place in loops for a device; put what it skips into an if"},
      {Body("if (a[i] > 1) continue;"),
       "x.c:5:17: error: \"continue\" has no place in loops for a device; put what it skips into an if"},
      {Body("return;"),
       "x.c:5:3: error: \"return\" has no place in loops for a device; put what it skips into an if"},
      {Body("goto out;"),
       "x.c:5:3: error: \"goto\" has no place in loops for a device; put what it skips into an if"},
      {Body("again: a[i] = 1;"),
       "x.c:5:3: error: the label again has no place in loops for a device; put what goto skips into an if"},
      {Body("while (a[i] < 1) a[i] += 1;"),
       "x.c:5:3: error: \"while\" has no place in loops for a device; write a for that counts"},
      {Body("do a[i] += 1; while (a[i] < 1);"),
       "x.c:5:3: error: \"do\" has no place in loops for a device; write a for that counts"},
      {Body("switch (i) { case 0: a[i] = 1; }"),
       "x.c:5:3: error: \"switch\" has no place in loops for a device; write it as if and else"},
      {Body("a[i] = foo(i);"),
       "x.c:5:10: error: the function foo is not known; functions are not followed, and of C's those of "
       "numbers are: sqrt, exp, fabs ...; write what it does in its place"},
      {Body("foo(i);"),
       "x.c:5:3: error: a call of foo as a statement has no place in loops for a device; write what it does "
       "in its place"},
      {Body("*(p + i) = 1;"), "x.c:5:3: error: pointers are not followed here; write the access as a[i]"},
      {Body("a[i] = *(p + i);"), "x.c:5:10: error: pointers are not followed here; write the access as a[i]"},
      {Body("*p++ = 1;"), "x.c:5:3: error: pointers are not followed here; write the access as a[i]"},
      {Body("p++;"), "x.c:5:3: error: p is an array; assign to its entries"},
      {Body("p = p + i;"),
       "x.c:5:3: error: p is an array; assign to its entries\n"
       "x.c:5:7: error: p is an array; its entries have indices"},
      {Body("float *q = p;"),
       "x.c:5:9: error: pointers are not declared inside of loops for a device; write the access as a[i]"},
      {Body("p = &a[i];"), "x.c:5:7: error: addresses are not taken here; write the access as a[i]"},
      {Body("for (float *q = p; q < p + n; q++) a[i] = 1;"),
       "x.c:5:8: error: the counter of a loop is an integer, not a pointer; write the access as a[i]"},
      {Body("a[i] = z.x;"),
       "x.c:5:10: error: members of structures are not read: z.x; use a variable or an array of its own"},
      {Body("a[i] = p->x;"),
       "x.c:5:10: error: members of structures are not read: p->x; use a variable or an array of its own"},
      {Body("a[i].x = 1;"),
       "x.c:5:3: error: members of structures are not read: a[i].x; use a variable or an array of its own"},
      {Body("volatile float x = 1;"),
       "x.c:5:3: error: volatile has no place in loops for a device; declare the variable without"},
      {Body("static int x = 1;"),
       "x.c:5:3: error: static has no place in loops for a device; declare the variable without"},
      {Body("unsigned x = 1;"),
       "x.c:5:3: error: the type unsigned is not supported; int, long, float and double are"},
      {Body("int x = 010;"), "x.c:5:11: error: \"010\" is octal; write it in decimals"},
      {Body("int x = 99999999999999999999;"),
       "x.c:5:11: error: \"99999999999999999999\" is no whole number of 64 bits"},
  });
}

TEST(BadInputTest, DirectivesInLoopsAreRefusedByName) {
  ExpectAnswers({
      {Inside("barrier"),
       "x.c:6:13: error: OpenMP's barrier has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd; what follows it goes into a loop of its own"},
      {Inside("critical"),
       "x.c:6:13: error: OpenMP's critical has no counterpart here: only target, teams, distribute, "
       "parallel, for and simd; what is only added up wants a reduction clause"},
      {Inside("atomic"),
       "x.c:6:13: error: OpenMP's atomic has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd; what is only added up wants a reduction clause"},
      {Inside("ordered"),
       "x.c:6:13: error: OpenMP's ordered has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd"},
      {Inside("single"),
       "x.c:6:13: error: OpenMP's single has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd"},
      {Inside("master"),
       "x.c:6:13: error: OpenMP's master has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd"},
      {Inside("flush"),
       "x.c:6:13: error: OpenMP's flush has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd"},
      {Inside("taskwait"),
       "x.c:6:13: error: OpenMP's taskwait has no counterpart here: only target, teams, distribute, "
       "parallel, for and simd"},
      {Inside("masked"),
       "x.c:6:13: error: OpenMP 5's masked has no counterpart here: only target, teams, distribute, "
       "parallel, for and simd"},
      {Inside("scan inclusive(s)"),
       "x.c:6:13: error: OpenMP 5's scan has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd"},
      {Inside("nothing"),
       "x.c:6:13: error: OpenMP 5's nothing has no counterpart here: only target, teams, distribute, "
       "parallel, for and simd"},
      {Inside("parallell"), "x.c:6:13: error: OpenMP has no directive parallell (did you mean parallel?)"},
  });
}

TEST(BadInputTest, ClausesAndDirectivesThatAreNotReadAreRefusedByName) {
  ExpectAnswers({
      {Directive("parallel for shedule(static)"),
       "x.c:3:26: error: the clause shedule is unknown (did you mean schedule?)"},
      {Directive("parallel for ordered"),
       "x.c:3:26: error: the clause ordered is not supported; leave it out if the loops mean the same "
       "without"},
      {Directive("parallel for depend(in: a)"),
       "x.c:3:26: error: the clause depend is not supported; leave it out if the loops mean the same "
       "without"},
      {Directive("parallel for is_device_ptr(p)"),
       "x.c:3:26: error: the clause is_device_ptr is not supported; leave it out if the loops mean the same "
       "without"},
      {Directive("parallel for aligned(a)"),
       "x.c:3:26: error: the clause aligned is not supported; leave it out if the loops mean the same "
       "without"},
      {Directive("parallel for defaultmap(tofrom: scalar)"),
       "x.c:3:26: error: the clause defaultmap is not supported; leave it out if the loops mean the same "
       "without"},
      {Directive("parallel for order(concurrent)"),
       "x.c:3:26: error: the clause order is of OpenMP 5, and 4.5 is read here; leave it out"},
      {Directive("parallel for nontemporal(a)"),
       "x.c:3:26: error: the clause nontemporal is of OpenMP 5, and 4.5 is read here; leave it out"},
      {Directive("parallel for allocate(a)"),
       "x.c:3:26: error: the clause allocate is of OpenMP 5, and 4.5 is read here; leave it out"},
      {Directive("parallel for bind(parallel)"),
       "x.c:3:26: error: the clause bind is of OpenMP 5, and 4.5 is read here; leave it out"},
      {Directive("parallel for has_device_addr(a)"),
       "x.c:3:26: error: the clause has_device_addr is of OpenMP 5, and 4.5 is read here; leave it out"},
      {Directive("parallel for in_reduction(+: s)"),
       "x.c:3:26: error: the clause in_reduction is of OpenMP 5, and 4.5 is read here; leave it out"},
      {Directive("parallel for reduction(s)"),
       "x.c:3:36: error: expected an operation, as in reduction(+: x), not \"s\""},
      {Directive("parallel for reduction(inscan, +: s)"),
       "x.c:3:36: error: reduction(inscan, ...) is of OpenMP 5, and 4.5 is read here"},
      {Directive("parallel for map(present, to: a)"),
       "x.c:3:30: error: map(present, ...) is of OpenMP 5, and 4.5 is read here"},
      {Directive("parallel for schedule(statik)"),
       "x.c:3:35: error: expected static, dynamic, guided, auto, runtime in schedule, not \"statik\""},
      {Directive("parallel for map(two: a)"),
       "x.c:3:30: error: expected to, from, tofrom, alloc in map, not \"two\""},
      {Directive("loop"),
       "x.c:3:13: error: OpenMP 5's loop has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd; write parallel for"},
      {Directive("teams loop"),
       "x.c:3:19: error: OpenMP 5's loop has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd; write parallel for"},
      {Directive("parallel loop"),
       "x.c:3:22: error: OpenMP 5's loop has no counterpart here: only target, teams, distribute, parallel, "
       "for and simd; write parallel for"},
      {Directive("parallel masked"),
       "x.c:3:22: error: OpenMP 5's masked has no counterpart here: only target, teams, distribute, "
       "parallel, for and simd"},
      {Directive("metadirective when(a: for)"),
       "x.c:3:13: error: OpenMP 5's metadirective has no counterpart here: only target, teams, distribute, "
       "parallel, for and simd"},
      {Directive("paralel for"), "x.c:3:13: error: OpenMP has no directive paralel (did you mean parallel?)"},
      {Directive("target teams distribute paralel for"),
       "x.c:3:37: error: the clause paralel is unknown (did you mean parallel?)"},
  });
}

TEST(BadInputTest, WhatIsIgnoredIsNoted) {
  ExpectAnswers({
      {Directive("parallel for simd"),
       "x.c:4:1: i is parallel: proved\n"
       "x.c:3:1: note: simd is ignored: threads of a device are its vectors"},
      {Directive("parallel for proc_bind(close)"),
       "x.c:4:1: i is parallel: proved\n"
       "x.c:3:26: note: proc_bind is ignored: a device places its threads itself"},
      {Directive("for nowait"),
       "x.c:4:1: i is parallel: proved\n"
       "x.c:3:17: note: nowait is ignored: kernels run one after another"},
      {Directive("parallel for simd safelen(4) simdlen(4)"),
       "x.c:4:1: i is parallel: proved\n"
       "x.c:3:1: note: simd is ignored: threads of a device are its vectors\n"
       "x.c:3:31: note: safelen is ignored: threads of a device are its vectors\n"
       "x.c:3:42: note: simdlen is ignored: threads of a device are its vectors"},
      {Directive("target teams distribute parallel for device(1)"),
       "x.c:4:1: i is parallel: proved\n"
       "x.c:3:50: note: device is ignored: a job chooses its device"},
  });
}

TEST(BadInputTest, CarriedDependencesHaveAWitness) {
  ExpectAnswers({
      {Asked("for (int i = 0; i < n - 1; i++) a[i] = a[i+1];\n"),
       "x.c:7:1: i is serial: its iterations share a[i] (written here, read at 7:40): n = 3: i = 0 and i = 1 "
       "both touch a[1]"},
      {Claimed("for (int i = 0; i < n - 1; i++) a[i] = a[i+1];\n"),
       "x.c:7:33: error: iterations of i share a[i] (written here, read at 7:40), so the pragma at 7:1 is "
       "wrong: n = 3: i = 0 and i = 1 both touch a[1]"},
      {Asked("for (int i = 0; i < n; i++) for (int j = 1; j < n; j++) c[i][j] = c[i][j-1];\n"),
       "x.c:7:1: i is parallel: proved\n"
       "x.c:7:29: j is serial: its iterations share c[i][j] (written here, read at 7:67): n = 3: j = 1 and j "
       "= 2 both touch c[0][1]"},
      {Text("meta_schedule {\n  meta_for (int i = 1; i < n; i++) a[i] = a[i-1];\n}\n"),
       "x.c:7:36: error: iterations of i share a[i] (written here, read at 7:43), so meta_for at 7:3 is "
       "wrong: n = 3: i = 1 and i = 2 both touch a[1]"},
      {Claimed("for (int i = 0; i < n; i++) s += a[i];\n"),
       "x.c:7:29: error: iterations of i share s (written here, read at 7:29), so the pragma at 7:1 is "
       "wrong: n = 3: i = 0 and i = 1 both touch s; what is only added up wants a reduction clause"},
      {Text("#pragma omp parallel for reduction(*: s)\nfor (int i = 0; i < n; i++) s += a[i];\n"),
       "x.c:7:29: error: s is combined by + here, and its reduction clause says *; let both say the same"},
      {Text("#pragma omp parallel for reduction(-: s)\nfor (int i = 0; i < n; i++) s -= a[i];\n"),
       "x.c:7:1: i is parallel: proved"},
  });
}

TEST(BadInputTest, IndicesThatAreNoPolynomialsAreReadAndNotWritten) {
  ExpectAnswers({
      {Asked("for (int i = 0; i < n; i++) b[i] = a[k[i]];\n"), "x.c:7:1: i is parallel: proved"},
      {Asked("for (int i = 0; i < n; i++) b[i] = a[i % m] + a[i / m];\n"), "x.c:7:1: i is parallel: proved"},
      {Asked("for (int i = 0; i < n; i++) a[k[i]] = b[i];\n"),
       "x.c:7:1: i is serial: not proved to be parallel, because of a[k[i]] (written here)"},
      {Claimed("for (int i = 0; i < n; i++) a[k[i]] = b[i];\n"),
       "x.c:7:1: i is parallel: the pragma says so; not proved, because of a[k[i]] (written here)"},
      {Asked("for (int i = 0; i < n; i++) a[i % m] = b[i];\n"),
       "x.c:7:1: i is serial: not proved to be parallel, because of a[i % m] (written here)"},
      {Claimed("for (int i = 0; i < n; i++) a[i % m] = b[i];\n"),
       "x.c:7:1: i is parallel: the pragma says so; not proved, because of a[i % m] (written here)"},
      {Asked("for (int i = 0; i < n; i++) a[i / m] = b[i];\n"),
       "x.c:7:1: i is serial: not proved to be parallel, because of a[i / m] (written here)"},
      {Claimed("for (int i = 0; i < n; i++) a[i / m] = b[i];\n"),
       "x.c:7:1: i is parallel: the pragma says so; not proved, because of a[i / m] (written here)"},
      {Asked("for (int i = 0; i < n / m; i++) a[i * m + n % m] = b[i];\n"), "x.c:7:1: i is parallel: proved"},
  });
}

TEST(BadInputTest, PointersAreApartUnlessTheTextSaysOtherwise) {
  ExpectAnswers({
      {Text("void f(float *restrict u, float *restrict v) {\n#pragma omp parallel for\nfor (int i = 0; i < "
            "n; i++) u[i] = v[n-1-i];\n}\n"),
       "x.c:8:1: i is parallel: proved"},
      {Text("void f(float *u, float *v) {\n  u = v;\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) "
            "u[i] = v[n-1-i];\n}\n"),
       "x.c:9:1: i is parallel: the pragma says so; not proved, because of v[n - 1 - i] and u[i], which may "
       "be the same memory"},
  });
}

TEST(BadInputTest, RangesAreKnownBeforehand) {
  ExpectAnswers({
      {Claimed("for (int i = 0; i < k[0]; i++) k[i] = 1;\n"),
       "x.c:7:1: error: the range of i is said by k[0], which its iterations write, so the pragma is wrong: "
       "keep the bound in a variable that nothing in the loop writes"},
      {Asked("for (int i = 0; i < k[0]; i++) k[i] = 1;\n"),
       "x.c:7:1: i is serial: not proved to be parallel, because of k[0], which its range is said by and its "
       "iterations write"},
      {Claimed("for (int i = 0; i < n - i; i++) a[i] = 1;\n"),
       "x.c:7:23: error: the range of i is said by i itself; its start, bound and step are values that the "
       "loop finds"},
      {Claimed("for (int i = i; i < n; i++) a[i] = 1;\n"),
       "x.c:7:14: error: the range of i is said by i itself; its start, bound and step are values that the "
       "loop finds"},
      {Claimed("for (int i = 0; a[i] > 0; i++) a[i] = 1;\n"),
       "x.c:7:17: error: a loop compares its counter, as in \"i < n\""},
      {Claimed("for (int i = 0; i < n; i *= 2) a[i] = 1;\n"),
       "x.c:7:26: error: a loop steps as in \"i++\" or \"i += 2\", not by \"*=\""},
      {Asked("for (int i = 0; i < n; i++) if (i < n - m - 1) a[i] = a[i] + 1;\n"),
       "x.c:7:1: i is parallel: proved"},
      {Asked("for (long i = 0; i < 9223372036854775807; i++)\n  a[i * 9223372036854775807 * "
             "9223372036854775807 * 9223372036854775807] = 1;\n"),
       "x.c:7:1: i is serial: not proved to be parallel, because of a[i * 9223372036854775807 * "
       "9223372036854775807 * 9223372036854775807] (written here)"},
  });
}

TEST(BadInputTest, VolatileVariablesAreRefusedWhereTheyAreUsed) {
  ExpectAnswers({
      {Asked("for (int i = 0; i < n; i++) a[i] = v[i];\n"),
       "x.c:7:36: error: v is volatile, which has no place in loops for a device; declare it without"},
      {Asked("for (int i = 0; i < n; i++) a[i] = stop + stop;\n"),
       "x.c:7:36: error: stop is volatile, which has no place in loops for a device; declare it without"},
      {Asked("for (int i = 0; i < n; i++) a[i] = 1;\n"), "x.c:7:1: i is parallel: proved"},
  });
}

TEST(BadInputTest, LimitsAreSaidWhenTheyAreReached) {
  const auto nest = [](int depth) {
    std::string text = "#pragma fusion parametric\n";
    for (int i = 0; i < depth; ++i)
      absl::StrAppend(&text, "for (int i", i, " = 0; i", i, " < 4; i", i, "++)\n");
    return Text(text + "a[i0] = 1;\n");
  };
  EXPECT_THAT(Answer(nest(kDeepestNest)), ::testing::StartsWith("x.c:7:1: i0 is parallel: proved\n"));
  EXPECT_EQ(Answer(nest(kDeepestNest + 1)), "x.c:19:1: error: loops may be 12 deep, not more");

  const auto accesses = [](int count) {
    std::string sum = "1";
    for (int i = 1; i < count; ++i) absl::StrAppend(&sum, " + a[i]");
    return Asked(absl::StrCat(kLoop, "\nb[i] = ", sum, ";\n"));
  };
  EXPECT_EQ(Answer(accesses(kMostAccesses)), "x.c:7:1: i is parallel: proved");
  EXPECT_EQ(Answer(accesses(kMostAccesses + 1)),
            "x.c:7:1: error: these loops have 257 accesses to arrays; 256 are allowed");

  std::string regions = kDeclarations;
  for (int i = 0; i <= kMostRegions; ++i)
    absl::StrAppend(&regions, "#pragma fusion parametric\n", kLoop, "a[i] = 1;\n");
  EXPECT_EQ(Answer(regions), "x.c: error: has 65 marked loops; 64 are allowed");

  const auto repeated = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_EQ(Answer(Body("a[i] = " + repeated("(", 70) + "1" + repeated(")", 70) + ";")),
            "x.c:5:42: error: expressions may be 64 deep, not more");
  EXPECT_EQ(Answer(Body("a[i] = 1" + repeated(" + 1", 1001) + ";")),
            "x.c:5:4012: error: this expression is too long");
  EXPECT_EQ(Answer(Body(repeated("{", 60) + "a[i] = 1;" + repeated("}", 60))),
            "x.c:5:50: error: statements are nested too deeply");
  EXPECT_EQ(Answer(std::string(kMostLoopBytes + 1, ' ')),
            "x.c: error: the text has 65537 bytes; 65536 are allowed");
}

}  // namespace
}  // namespace fusion
