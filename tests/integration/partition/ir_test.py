#!/usr/bin/env python3
"""LLVM's own language goes through fusion-cc like C: a loop of a .ll file is partitioned, and one that fusion-cc has already
written is left as it is. The programs print the same, run as written and on the simulated device. The report for programs has
each loop of two C files.

  ir_test.py --cc PATH_OF_fusion-cc [--plain clang-19]
"""

import json
import pathlib
import sys

import partition_runs as runs

SOURCE = """
#include <stdio.h>
void scale(double* a, const double* b, int n) {
  for (int i = 0; i < n; i++) a[i] = 3 * b[i] + 1;
}
int main(void) {
  static double a[1000], b[1000];
  for (int i = 0; i < 1000; i++) b[i] = i * 0.37;
  scale(a, b, 1000);
  double last = 0;
  for (int i = 0; i < 1000; i++) last = last * 0.5 + a[i];
  printf("%a\\n", last);
}
"""


def partitioned(compiler, arguments):
    """Compiles; returns how many loops were partitioned."""
    return runs.partitioned_loops(runs.call_compiler([compiler, "-O2", "-Rpass=fusion", *arguments]))


def reported(compiler, sources, file):
    """Compiles C files with one report; returns its rows as (file, line, whether the loop was partitioned)."""
    runs.call_compiler([compiler, "-O2", "-shared", "-fPIC", *sources, "-o", file.with_suffix(".so"), f"-fusion-report={file}"])
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [(pathlib.Path(row["file"]).name, row["line"], row["partitioned"]) for row in rows]


def output(program):
    status, text = runs.run_program([program], "0.4")
    if status != 0:
        sys.exit(f"{program} ended with {status}")
    return text


def check(arguments, folder):
    """Returns what is wrong, one text each."""
    source, plain, first, second = (folder / name for name in ("scale.c", "plain.ll", "first.ll", "second.ll"))
    source.write_text(SOURCE, encoding="utf-8")
    runs.call_compiler([arguments.plain, "-O2", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", source, "-o", plain])
    runs.call_compiler([arguments.plain, "-O2", source, "-o", folder / "plain"])
    wrong = []
    if partitioned(arguments.compiler, ["-S", "-emit-llvm", plain, "-o", first]) == 0:
        wrong.append("no loop of the .ll file was partitioned")
    if partitioned(arguments.compiler, ["-S", "-emit-llvm", first, "-o", second]) != 0:
        wrong.append("loops were partitioned twice")
    for number, text in enumerate((plain, first, second)):
        program = folder / f"program{number}"
        partitioned(arguments.compiler, [text, "-o", program])
        if output(program) != output(folder / "plain"):
            wrong.append(f"{text.name} prints something else")
    lines = [number for number, line in enumerate(SOURCE.splitlines(), 1) if "for (" in line]
    other = folder / "other.c"
    other.write_text(SOURCE.replace("main(", "other_main(").replace("scale(", "other_scale("), encoding="utf-8")
    rows = reported(arguments.compiler, [source, other], folder / "report.json")
    expected = {(file.name, line, line != lines[-1]) for file in (source, other) for line in lines}
    if reported(arguments.compiler, [source, other], folder / "report.json") != rows:
        wrong.append("a second report has the loops of the first")
    if set(rows) != expected:
        wrong.append(f"the report has {rows}, not {sorted(expected)}")
    return wrong


runs.main(__doc__, check)
