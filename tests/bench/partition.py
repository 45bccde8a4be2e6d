#!/usr/bin/env python3
"""Measures what fusion-cc makes of whole programs: PolyBench's kernels, in plain C with arrays of variable length, beside plain clang.

  tests/bench/partition.py --cc fusion-cc [--plain clang-19] [--quick] [--kernels NAME,...] [--runs N] [--seconds S] [--threads N]
                           [--json FILE] [--keep DIR]

Both compilers get the same options. Each kernel gets the size at which the plain program computes for about the time --seconds says, at
most PolyBench's LARGE; where one call is shorter, it is repeated on fresh copies of the input. Programs run in turn, plain before each of
the others, and the least of N runs counts:

  one thread   FUSION_PARTITION=host with one thread: what partitioning itself costs, seconds of the kernel
  off          FUSION_PARTITION=off: the loops as written, seconds of the kernel
  auto         nothing set: seconds of the whole program with its start and end
  compile      seconds to compile the file of the kernel

A ratio is time over that of the plain program: above 1 is slower. Results have to be the same bits. A loop too short to be worth a
call is measured by itself: nanoseconds a call at n = 4. --quick takes five kernels. JSON and a table for a document; exits 1 where
bits differ or a program fails.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration" / "partition"))
sys.path.insert(0, str(ROOT / "tests" / "bench" / "peers"))

import polybench_kernels as polybench
from summary import geometric_mean

FLAGS = ["-std=gnu11", "-O3", "-march=x86-64-v3", "-fno-math-errno"]
QUICK = ["gemm", "gesummv", "syrk", "jacobi-2d", "atax"]
RUN_LIMIT = 300
# Environments of the partitioned program; "" is the plain one.
MODES = {"one thread": {"FUSION_PARTITION": "host", "FUSION_PARTITION_THREADS": "1"}, "off": {"FUSION_PARTITION": "off"}, "auto": {}}

# Sizes, and how often the kernel runs, are arguments of the program: nothing of them is known to the compilers.
DRIVER_HEAD = polybench.DRIVER_START + r"""static uint64_t hash(uint64_t so_far, const void *memory, size_t bytes)
{
  for (size_t k = 0; k + 4 <= bytes; k += 4) {
    uint32_t word;
    memcpy(&word, (const char *)memory + k, 4);
    so_far = (so_far ^ word) * 1099511628211u;
  }
  return so_far;
}

static void *allocate(size_t bytes)
{
  void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == NULL) exit(2);
  return memory;
}
"""

REFUSED = """
void scale(long n, double *a, const double *b)
{
  for (long i = 0; i < n; i++) a[i] = 2 * b[i];
}
"""
REFUSED_DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
void scale(long n, double *a, const double *b);
int main(int count, char **arguments)
{
  const long n = atol(arguments[1]), calls = atol(arguments[2]);
  double a[16] = {0}, b[16] = {0};
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long call = 0; call < calls; call++) scale(n, a, b);
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.9f %a\\n", end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) * 1e-9, a[0]);
}
"""


def array_lines(kernel):
    """C that allocates and fills the arrays of a kernel: NAME is computed in, NAME_input stays."""
    lines = []
    for array, dimensions in kernel.arrays.items():
        wish = kernel.inputs.get(array)
        value = f"{1e-4 if wish == 'tiny' else 1} * (.5 + uniform())"
        if kernel.type == "int":
            value = f"(int)({4 if wish == 'bases' else 1000} * uniform())"
        lines += [f"  const size_t {array}_count = (size_t){' * '.join(dimensions)};",
                  f"  {kernel.type} *{array} = allocate(sizeof(*{array}) * {array}_count);",
                  f"  {kernel.type} *{array}_input = allocate(sizeof(*{array}) * {array}_count);",
                  f"  for (size_t k = 0; k < {array}_count; k++) {array}_input[k] = {value};"]
        if wish == "dominant":
            size = dimensions[0]
            lines.append(f"  for (size_t k = 0; k < {size}; k++) {array}_input[k * {size} + k] = 2. * {size} + uniform();")
    return lines


def driver_text(kernel):
    """The program around a kernel: arguments are its sizes and the number of calls; prints the seconds of the calls, and a hash."""
    types = ["int"] * len(kernel.sizes) + [kernel.type] * len(kernel.scalars) + ["void *"] * len(kernel.arrays)
    scalars = [value if value in kernel.sizes else repr(value) for value in kernel.scalars.values()]
    lines = [DRIVER_HEAD, f"void {kernel.function}({', '.join(types)});", "int main(int count, char **arguments)", "{",
             f"  if (count != {len(kernel.sizes) + 2}) return 2;"]
    lines += [f"  const int {size} = atoi(arguments[{at}]);" for at, size in enumerate(kernel.sizes, 1)]
    lines += [f"  const int calls = atoi(arguments[{len(kernel.sizes) + 1}]);"] + array_lines(kernel)
    lines += ["  double total_seconds = 0;", "  for (int call = 0; call < calls; call++) {"]
    lines += [f"    memcpy({array}, {array}_input, sizeof(*{array}) * {array}_count);" for array in kernel.arrays]
    lines += ["    const double call_start = now();", f"    {kernel.function}({', '.join([*kernel.sizes, *scalars, *kernel.arrays])});",
              "    total_seconds += now() - call_start;", "  }", "  uint64_t hash_of_all = 14695981039346656037u;"]
    lines += [f"  hash_of_all = hash(hash_of_all, {array}, sizeof(*{array}) * {array}_count);" for array in kernel.arrays]
    lines += ['  printf("%.9f %016llx\\n", total_seconds, (unsigned long long)hash_of_all);', "  return 0;", "}", ""]
    return "\n".join(lines)


def compile_seconds(command):
    """Runs a compiler, and ends the measurement where it fails. Returns how long it took."""
    start = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{done.stderr[-4000:]}")
    return time.monotonic() - start


def run(program, arguments, mode):
    """(seconds that the program measured, seconds of its process, what it computed)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FUSION_PARTITION")} | mode
    start = time.monotonic()
    done = subprocess.run([program, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=RUN_LIMIT, check=False)
    whole = time.monotonic() - start
    if done.returncode != 0:
        raise RuntimeError(f"{program.name} ended with status {done.returncode}: {done.stderr[-300:].strip()}")
    seconds, result = done.stdout.split()
    return float(seconds), whole, result


def in_turn(plain, tested, arguments, runs, threads):
    """Least seconds of the plain program and of each mode, the plain one before each of the others."""
    least, results = {}, {}

    def keep(name, measured):
        seconds, whole, result = measured
        known = least.get(name, (seconds, whole))
        least[name] = min(known[0], seconds), min(known[1], whole)
        results.setdefault(name, result)

    for _ in range(runs):
        for name, mode in MODES.items():
            if name == "auto" and threads:
                mode = mode | {"FUSION_PARTITION_THREADS": str(threads)}
            keep("plain", run(plain, arguments, {}))
            keep(name, run(tested, arguments, mode))
    wrong = [name for name, result in results.items() if result != results["plain"]]
    return least, wrong


def arguments_for(kernel, program, seconds):
    """The sizes and the number of calls at which the plain program computes for about that long."""
    scale = 1 / 16
    while True:
        sizes = {name: max(small, int(large * scale)) for name, (small, large) in kernel.sizes.items()}
        taken, _, _ = run(program, [*sizes.values(), 1], {})
        if taken >= seconds:
            return sizes, 1
        if scale >= 1:  # the first call is the slowest
            taken, _, _ = run(program, [*sizes.values(), 3], {})
            return sizes, max(1, round(3 * seconds / max(taken, 1e-6)))
        # Most kernels take time by the cube of the scale, and none may become much too long.
        scale = min(1, scale * min(2, max(1.2, (1.2 * seconds / max(taken, 1e-6)) ** (1 / 3))))


def measure_kernel(options, folder, name):
    """The row of a kernel."""
    kernel = polybench.KERNELS[name]
    source, driver = folder / f"{name}.c", folder / f"{name}_driver.c"
    source.write_text(polybench.text("vla", "large", [name]))
    driver.write_text(driver_text(kernel))
    compile_seconds([options.plain, "-std=gnu11", "-O2", "-c", driver, "-o", folder / "driver.o"])
    compiled = {}
    for _ in range(options.runs):
        for side, compiler in (("plain", options.plain), ("tested", options.cc)):
            taken = compile_seconds([compiler, *FLAGS, "-c", source, "-o", folder / f"{side}.o"])
            compiled[side] = min(taken, compiled.get(side, taken))
    programs = {}
    for side, compiler in (("plain", options.plain), ("tested", options.cc)):
        programs[side] = folder / f"{name}_{side}"
        compile_seconds([compiler, folder / "driver.o", folder / f"{side}.o", "-lm", "-o", programs[side]])
    sizes, calls = arguments_for(kernel, programs["plain"], options.seconds)
    least, wrong = in_turn(programs["plain"], programs["tested"], [*sizes.values(), calls], options.runs, options.threads)
    seconds = {mode: {"kernel": taken[0], "whole": taken[1]} for mode, taken in least.items()}
    ratios = {"one thread": least["one thread"][0] / least["plain"][0], "off": least["off"][0] / least["plain"][0],
              "auto": least["auto"][1] / least["plain"][1], "compile": compiled["tested"] / compiled["plain"]}
    return {"kernel": name, "sizes": sizes, "calls": calls, "seconds": seconds, "compile_seconds": compiled, "ratios": ratios,
            "wrong": wrong}


def measure_refused(options, folder):
    """Nanoseconds a call of a loop of 4 iterations, which is not worth the run time."""
    (folder / "refused.c").write_text(REFUSED)
    (folder / "refused_driver.c").write_text(REFUSED_DRIVER)
    programs = {}
    for side, compiler in (("plain", options.plain), ("tested", options.cc)):
        programs[side] = folder / f"refused_{side}"
        compile_seconds([compiler, *FLAGS, "-c", folder / "refused.c", "-o", folder / f"{side}.o"])
        compile_seconds([options.plain, "-O2", "-c", folder / "refused_driver.c", "-o", folder / "driver.o"])
        compile_seconds([compiler, folder / "driver.o", folder / f"{side}.o", "-o", programs[side]])
    calls = 10 ** 7 if options.quick else 10 ** 8
    least = {}
    for _ in range(options.runs):
        for side, program in programs.items():
            taken, _, _ = run(program, [4, calls], {})
            least[side] = min(taken, least.get(side, taken))
    return {"calls": calls, "plain_ns": least["plain"] / calls * 1e9, "tested_ns": least["tested"] / calls * 1e9}


def table(document):
    """Markdown: a row for each kernel, the geometric means, and the worst."""
    columns = ["one thread", "off", "auto", "compile"]
    lines = ["| kernel | sizes | calls | plain (ms) | " + " | ".join(columns) + " |", "| --- | --- |" + " ---: |" * (2 + len(columns))]
    for row in document["rows"]:
        sizes = " ".join(str(size) for size in row["sizes"].values())
        cells = [f"{row['seconds']['plain']['kernel'] * 1e3:.1f}"] + [f"{row['ratios'][column]:.2f}" for column in columns]
        lines.append(f"| {row['kernel']} | {sizes} | {row['calls']} | " + " | ".join(cells) + " |")
    for title, of in (("geometric mean", geometric_mean), ("worst", max)) if document["rows"] else ():
        cells = [f"{of([row['ratios'][column] for row in document['rows']]):.2f}" for column in columns]
        lines.append(f"| {title} | | | | " + " | ".join(cells) + " |")
    refused = document["refused"]
    lines += ["", f"A loop of 4 iterations: {refused['plain_ns']:.2f} ns a call, partitioned {refused['tested_ns']:.2f} ns."]
    return "\n".join(lines)


def measure(options, folder):
    """Returns 1 where a result has other bits, or a program fails."""
    names = options.kernels.split(",") if options.kernels else QUICK if options.quick else list(polybench.KERNELS)
    unknown = [name for name in names if name not in polybench.KERNELS]
    if unknown:
        sys.exit(f"partition.py: there is no {', '.join(unknown)}")
    document = {"machine": platform.processor() or platform.machine(), "processors": len(os.sched_getaffinity(0)),
                "load_at_start": os.getloadavg()[0], "flags": FLAGS, "runs": options.runs, "threads": options.threads,
                "refused": measure_refused(options, folder), "rows": []}
    failed = 0
    for name in names:
        try:
            row = measure_kernel(options, folder, name)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed += 1
            continue
        document["rows"].append(row)
        if row["wrong"]:
            print(f"{name}: other bits in {', '.join(row['wrong'])}", file=sys.stderr)
            failed += 1
        print(f"{name}: " + ", ".join(f"{column} {ratio:.2f}" for column, ratio in row["ratios"].items()), file=sys.stderr, flush=True)
        document["load_at_end"] = os.getloadavg()[0]
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(document, indent=1) + "\n")
    print(table(document))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", required=True, help="the compiler that partitions")
    parser.add_argument("--plain", default="clang-19")
    parser.add_argument("--quick", action="store_true", help="five kernels, fewer calls of the short loop")
    parser.add_argument("--kernels", help="names, with commas")
    parser.add_argument("--runs", type=int, default=5, help="of each program and each compile")
    parser.add_argument("--seconds", type=float, default=.1, help="how long a plain kernel computes, about")
    parser.add_argument("--threads", type=int, help="the host's threads in auto; by default all")
    parser.add_argument("--json", help="a file for all figures")
    parser.add_argument("--keep", help="a folder for sources and programs, kept afterwards")
    options = parser.parse_args()
    if options.keep:
        folder = pathlib.Path(options.keep).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return measure(options, folder)
    with tempfile.TemporaryDirectory() as temporary:
        return measure(options, pathlib.Path(temporary))


if __name__ == "__main__":
    sys.exit(main())
