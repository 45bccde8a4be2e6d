#!/usr/bin/env python3
"""Functions in which partitioned loops and other code alternate give the same bytes as plain clang -O0: what stays on the device between
loops is back on the host wherever the program looks.

  random_sequences.py --cxx fusion-c++ [--plain clang++-19] [--count 60] [--seed 1] [--splits 0.4,1] [--keep DIR]

Exits 1 when a result differs, when the compiler partitioned no loop, and when no loop ran on the device.
"""

import random
import re
import sys

import partition_runs

SIZES = (2, 3, 9, 17)
LENGTH = 17 * 17 + 64  # elements of an array
FLAGS = ["-std=c++20", "-ffp-contract=off", "-w"]

HEADER = """#include <string.h>
#include <utility>
void touch(double *x, int n);
void may_throw(double *x, int n);
int look(const double *x, int n);
"""

# Compiled by the plain compiler: nobody sees into it.
CALLED = """#include <string.h>
void touch(double *x, int n) { for (int i = 0; i < n; i++) x[i] = x[i] * 0.5 + 1; }
void may_throw(double *x, int n) { x[0] += 1; if (x[n] > 3) throw n; x[n] += 2; }
int look(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s > n; }
"""

MAIN = """#include <stdio.h>
#include <string.h>
static double first[4][LENGTH], second[4][LENGTH];
static void fill(double (*arrays)[LENGTH]) {
  for (int k = 0; k < 4; k++) for (int i = 0; i < LENGTH; i++) arrays[k][i] = (i * 37 + k * 11) % 64 / 16.0;
}
typedef void Function(int, double *, double *, double *, double *);
static int run(const char *name, Function *reference, Function *tested) {
  const int sizes[] = {SIZES}, places[][3] = {{0, 1, 2}, {2, 0, 1}, {0, 0, 1}, {1, 2, 1}};
  for (int n : sizes) for (auto &place : places) {
    fill(first), fill(second);
    reference(n, first[place[0]], first[place[1]], first[place[2]], first[3]);
    tested(n, second[place[0]], second[place[1]], second[place[2]], second[3]);
    if (memcmp(first, second, sizeof(first)) != 0) { printf("DIFFERS %s n=%d places %d %d %d\\n", name, n, place[0], place[1], place[2]); return 1; }
  }
  return 0;
}
"""


class Sequence:
    """A random function of matrices x[n][n], some of whose loops are parallel."""

    def __init__(self, choose, name):
        self.choose = choose
        self.name = name
        self.variables = 0

    def two(self):
        return self.choose.sample(("a", "b", "c"), 2)

    def parallel(self):
        x, y = self.two()
        return self.choose.choice((
            f"for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {y}[i * n + j] = {x}[i * n + j] * 0.75 + 1;",
            f"for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) {y}[i * n + j] = 0.25 * ({x}[i * n + j - 1] + "
            f"{x}[i * n + j + 1] + {x}[i * n - n + j] + {x}[i * n + n + j]);",
            f"for (int j = 0; j < n; j++) for (int i = 0; i < n / 2; i++) {y}[i * n + j] += {x}[i * n + j];",
            f"for (int i = 0; i < n * n; i++) if ({x}[i] > 2) {y}[i] = -{x}[i];",
            f"for (int i = 0; i < n; i++) {y}[i * n + i] = {x}[i] - 0.5;",
            f"for (int i = 0; i < n; i++) {{ double s = 0; for (int j = 0; j < n; j++) s += {x}[i * n + j]; {y}[i] = s / n; }}",
        ))

    def other(self):
        x, y = self.two()
        k = self.choose.randrange(4)
        return self.choose.choice((
            f"out[{k}] = {x}[n * n / 2];",
            f"{x}[n] = out[{k}] + 1;",
            f"for (int i = 1; i < n * n; i++) {x}[i] = {x}[i - 1] * 0.5 + {y}[i];",
            f"{{ double s = 0; for (int i = 0; i < n; i++) s += {x}[i]; out[{k}] = s / n; }}",
            f"touch({x}, n);",
            f'asm volatile("addq $1, (%0)" : : "r"({x} + n) : "cc");',
            f"memcpy({x}, {y} + n, n * sizeof(double));",
            f"if (out[{k}] > 3.5) return;",
            f"if (look({x}, n)) out[{k}] *= 0.5;",
            f"try {{ may_throw({x}, n); }} catch (int m) {{ {y}[m] -= 1; }}",
            f"for (int i = 0; i < n && {x}[i] < 3; i++) out[{k}] += 0.125;",
        ))

    def local(self):
        self.variables += 1
        x, y = self.two()
        name = f"l{self.variables}"
        return (f"{{ double {name}[{17 * 17}]; for (int i = 0; i < n * n; i++) {name}[i] = {x}[i] * 3; {self.block(0, 1)} "
                f"for (int i = 0; i < n * n; i++) {y}[i] = {name}[i] - {y}[i]; }}")

    def statement(self, depth):
        kind = self.choose.random()
        if kind < 0.55:
            return self.parallel()
        if kind < 0.75 or depth == 0:
            return self.other()
        if kind < 0.85:
            self.variables += 1
            t = f"t{self.variables}"
            return f"for (int {t} = 0; {t} < {self.choose.randint(1, 4)}; {t}++) {{ {self.block(depth - 1, 3)} }}"
        if kind < 0.9:
            return f"if ({self.choose.choice(('n > 8', 'out[1] > 1', 'n % 2'))}) {{ {self.block(depth - 1, 2)} }} else {{ {self.block(0, 1)} }}"
        if kind < 0.95:
            return self.local()
        x, y = self.two()
        return f"std::swap({x}, {y});"

    def block(self, depth, most):
        return "\n  ".join(self.statement(depth) for _ in range(self.choose.randint(1, most)))

    def text(self, prefix):
        return f"void {prefix}{self.name}(int n, double *a, double *b, double *c, double *out) {{\n  {self.block(2, 7)}\n}}\n"


def build(arguments, folder):
    """The program, and the remarks of the compiler that is tested."""
    names = [f"f{k}" for k in range(arguments.count)]
    texts = {prefix: HEADER + "".join(Sequence(random.Random(f"{arguments.seed} {name}"), name).text(prefix) for name in names)
             for prefix in ("reference_", "tested_")}
    main = f"#define LENGTH {LENGTH}\n#define SIZES {', '.join(map(str, SIZES))}\n" + MAIN
    for name in names:
        for prefix in ("reference_", "tested_"):
            main += f"void {prefix}{name}(int, double *, double *, double *, double *);\n"
    calls = " + ".join(f'run("{name}", reference_{name}, tested_{name})' for name in names)
    main += f'int main() {{ int wrong = {calls}; printf("%d functions differ\\n", wrong); return wrong != 0; }}\n'
    sources = {"called": CALLED, "main": main, "reference": texts["reference_"], "tested": texts["tested_"]}
    objects, remarks = [], ""
    for name, text in sources.items():
        source, target = folder / f"{name}.cc", folder / f"{name}.o"
        source.write_text(text, encoding="utf-8")
        compiler = [arguments.compiler, "-O2", "-Rpass=fusion"] if name == "tested" else [arguments.plain, "-O0"]
        said = partition_runs.call_compiler([*compiler, *FLAGS, "-c", source, "-o", target])
        remarks += said if name == "tested" else ""
        objects.append(target)
    partition_runs.call_compiler([arguments.compiler, *objects, "-o", folder / "sequences"])
    return folder / "sequences", remarks


def test(arguments, folder):
    program, remarks = build(arguments, folder)
    loops, problems = partition_runs.partitioned_loops(remarks), 0
    for split in partition_runs.splits_of(arguments):
        report = folder / f"report-{split}"
        report.unlink(missing_ok=True)
        status, out = partition_runs.run_program([program], split, report)
        calls = sum(int(count) for count in re.findall(r": calls (\d+), split [1-9]", report.read_text(encoding="utf-8")))
        print(f"random_sequences.py: {arguments.count} functions of seed {arguments.seed}, {loops} loops partitioned, split {split}: "
              f"{calls} calls with a part on the device, status {status}")
        if status != 0 or loops == 0 or calls == 0:
            print(out)
            problems += 1
    return 1 if problems else 0


def main():
    parser = partition_runs.options(__doc__, compiler_option="--cxx", plain="clang++-19", splits="0.4,1")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    return partition_runs.in_folder(arguments.keep, lambda folder: test(arguments, folder))


if __name__ == "__main__":
    sys.exit(main())
