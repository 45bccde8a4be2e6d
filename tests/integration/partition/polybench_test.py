#!/usr/bin/env python3
"""PolyBench's kernels in plain C: the compiler finds their parallel loops, and split loops give the bits of the sequential program.

  polybench_test.py --cc FUSION_CC [--plain clang-19] [--spellings vla,flat] [--splits 0,0.3,0.7,1] [--chunks 1,4] [--all]
                    [--kernels gemm,...] [--detect-only] [--peers] [--keep DIR]
  polybench_test.py --verify      checks the kernels themselves with the plain compiler, without FUSION_CC

For each spelling all kernels are compiled by both compilers and run on copies of the same random input, on the simulated device, at each
split and number of chunks. Fails when a marked loop is not found, when an array differs in any bit (or around it: arrays have margins),
when no loop of a kernel with marked loops ran on the device (of some: on several threads), and when a nest that can be reordered was
not. --all: six spellings, splits 0, 0.3, 0.7, 1, chunks 1, 4, 16.
--detect-only compiles and prints the table. --peers adds in how many kernels gcc and Polly make parallel regions, at the sizes of the
LARGE data set.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import polybench_kernels as polybench

FLAGS = ["-std=gnu11", "-O3", "-g", "-fno-math-errno"]
REMARKS = ["-Rpass=fusion", "-Rpass-missed=fusion"]
RUN_SECONDS = 300  # one run of all kernels; a simulated device takes far less
PEER_SECONDS = 60  # one kernel by one peer

Detection = collections.namedtuple("Detection", "found missing others reasons")  # sets of lines, and {line: why a loop was not partitioned}
# Kernels whose first nest runs in another order.
REORDERED = ("cholesky", "lu", "ludcmp")

# The number of results, messages about wrong ones, names of kernels that never ran on the device, lines of marked loops that did not.
Outcome = collections.namedtuple("Outcome", "compared wrong idle resting")

# The part of the driver that is the same for all kernels. MARGIN entries before and after each array must stay as they are.
DRIVER_HEAD = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 32 };

struct array {
  const char *name;
  char type;
  size_t count;
  void *input, *ref, *par;
};

static uint64_t state;

static uint32_t next_random(void)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

static size_t entry_bytes(const struct array *a)
{
  return a->type == 'd' ? sizeof(double) : a->type == 'f' ? sizeof(float) : sizeof(int);
}

static size_t all_bytes(const struct array *a)
{
  return (a->count + 2 * MARGIN) * entry_bytes(a);
}

static void *entries(const struct array *a, void *memory)
{
  return (char *)memory + MARGIN * entry_bytes(a);
}

static void set(const struct array *a, size_t index, double value)
{
  if (a->type == 'd')
    ((double *)a->input)[index] = value;
  else if (a->type == 'f')
    ((float *)a->input)[index] = (float)value;
  else
    ((int *)a->input)[index] = (int)value;
}

static void *allocate(size_t bytes)
{
  return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
}

static void make(struct array *a, double scale, int below)
{
  a->input = allocate(all_bytes(a));
  a->ref = allocate(all_bytes(a));
  a->par = allocate(all_bytes(a));
  for (size_t k = 0; k < a->count + 2 * MARGIN; k++)
    set(a, k, a->type == 'i' ? next_random() % below : scale * (0.5 + next_random() / 2147483648.0));
}

static void make_dominant(struct array *a, size_t rows)
{
  for (size_t k = 0; k < rows; k++)
    set(a, MARGIN + k * rows + k, 2.0 * rows + next_random() / 2147483648.0);
}

static void copy_input(struct array *a)
{
  memcpy(a->ref, a->input, all_bytes(a));
  memcpy(a->par, a->input, all_bytes(a));
}

static int is_finite(const struct array *a)
{
  for (size_t k = 0; k < a->count; k++)
    if ((a->type == 'd' && !isfinite(((double *)a->ref)[MARGIN + k]))
        || (a->type == 'f' && !isfinite(((float *)a->ref)[MARGIN + k])))
      return 0;
  return 1;
}

static uint64_t hash(uint64_t so_far, const struct array *a)
{
  for (size_t k = 0; k < all_bytes(a); k++)
    so_far = (so_far ^ ((unsigned char *)a->ref)[k]) * 1099511628211u;
  return so_far;
}

static int print_hashes;

static void judge(const char *kernel, struct array *arrays, size_t count)
{
  uint64_t sum = 14695981039346656037u;
  const char *wrong = NULL, *infinite = NULL;
  for (size_t k = 0; k < count; k++) {
    sum = hash(sum, &arrays[k]);
    if (!wrong && memcmp(arrays[k].ref, arrays[k].par, all_bytes(&arrays[k])))
      wrong = arrays[k].name;
    if (!is_finite(&arrays[k]))
      infinite = arrays[k].name;
    free(arrays[k].input);
    free(arrays[k].ref);
    free(arrays[k].par);
  }
  if (wrong)
    printf("%s WRONG %s\n", kernel, wrong);
  else if (infinite)
    printf("%s INFINITE %s\n", kernel, infinite);
  else
    printf("%s same\n", kernel);
  if (print_hashes)
    printf("%s hash %016llx\n", kernel, (unsigned long long)sum);
  fflush(stdout);
}
"""


def product(values, dimensions):
    result = 1
    for dimension in dimensions:
        result *= values[dimension]
    return result


def prototype(kernel, spelling, prefix):
    """The declaration of a kernel in the driver: an array is an address in every spelling."""
    types = [] if spelling == "const" else ["int"] * len(kernel.sizes)
    types += [kernel.type] * len(kernel.scalars) + ["void *"] * len(kernel.arrays)
    return f"void {prefix}{kernel.function}({', '.join(types)});"


def call(kernel, spelling, side):
    """The call of a kernel on the arrays of one side, ref or par."""
    arguments = [] if spelling == "const" else [str(value) for value in kernel.values("small").values()]
    arguments += [repr(float(value)) for value in kernel.scalar_values("small")]
    arguments += [f"entries(&a[{k}], a[{k}].{side})" for k in range(len(kernel.arrays))]
    return f"  {side}_{kernel.function}({', '.join(arguments)});"


def driver_function(kernel, spelling, seed):
    """A C function that runs one kernel by both compilers and compares."""
    values = kernel.values("small")
    lines = [f"static void run_{kernel.function}(void)", "{", f"  state = {seed};", "  struct array a[] = {"]
    lines += [f"    {{.name = \"{array}\", .type = '{kernel.type[0]}', .count = {product(values, dimensions)}}},"
              for array, dimensions in kernel.arrays.items()] + ["  };"]
    for k, (array, dimensions) in enumerate(kernel.arrays.items()):
        wish = kernel.inputs.get(array)
        lines.append(f"  make(&a[{k}], {'1e-4' if wish == 'tiny' else '1.0'}, {4 if wish == 'bases' else 1000});")
        if wish == "dominant":
            lines.append(f"  make_dominant(&a[{k}], {values[dimensions[0]]});")
        lines.append(f"  copy_input(&a[{k}]);")
    lines += [call(kernel, spelling, "ref"), call(kernel, spelling, "par")]
    return "\n".join(lines + [f"  judge(\"{kernel.name}\", a, {len(kernel.arrays)});", "}", ""])


def driver_text(names, spelling):
    """The driver in C: one line for each kernel, and with --hash one more that tells spellings with other results apart."""
    kernels = [polybench.KERNELS[name] for name in names]
    prototypes = [prototype(kernel, spelling, prefix) for kernel in kernels for prefix in ("ref_", "par_")]
    functions = [driver_function(kernel, spelling, seed) for seed, kernel in enumerate(kernels, 1)]
    calls = [f"  run_{kernel.function}();" for kernel in kernels]
    main = ["int main(int count, char **arguments)", "{", "  print_hashes = count > 1 && !strcmp(arguments[1], \"--hash\");"]
    return "\n".join([DRIVER_HEAD] + prototypes + [""] + functions + main + calls + ["  return 0;", "}", ""])


def compile_file(command):
    """Runs a compiler; returns what it wrote to stderr, and ends the test when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-4000:]}\npolybench_test.py: the compiler failed with status {done.returncode}")
    return done.stderr


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


def detection_of(remarks, path, source):
    """Which marked loops the compiler found, by the lines of its remarks about a file."""
    name = re.escape(pathlib.Path(path).name)
    found = {int(line) for line in re.findall(rf"{name}:(\d+):\d+: remark: loop partitioned", remarks)}
    reasons = dict(re.findall(rf"{name}:(\d+):\d+: remark: not partitioned: (.*)", remarks))
    marked = polybench.marked_lines(source)
    return Detection(found & marked, marked - found, found - marked, {int(line): reason for line, reason in reasons.items()})


def kernel_at(kernel_lines, line):
    return next((name for name, lines in kernel_lines.items() if line in lines), "?")


def print_detection(spelling, names, source, detection):
    """Prints the row of a spelling, and each loop that was not found with the compiler's reason."""
    lines, text = polybench.kernel_lines(source), source.splitlines()
    marked = [name for name in names if polybench.KERNELS[name].marked]
    complete = [name for name in marked if not any(line in detection.missing for line in lines[name])]
    others = [f"{kernel_at(lines, line)} line {line}" for line in sorted(detection.others)]
    print(f"{spelling:8} loops {len(detection.found)}/{len(detection.found | detection.missing)}  kernels {len(complete)}/{len(marked)}"
          + ("  also: " + ", ".join(others) if others else ""))
    for line in sorted(detection.missing):
        print(f"  NOT FOUND {kernel_at(lines, line)} line {line}: {text[line - 1].strip()}  {detection.reasons.get(line, '(no remark)')}")


def environment(split, chunks):
    """The environment of a run: the simulated device gets a share of each loop, however small the loop is."""
    return dict(os.environ, FUSION_PARTITION="device", FUSION_PARTITION_DEVICE="simulated", FUSION_PARTITION_LEAST_WORK="0",
                FUSION_PARTITION_THREADS="2", FUSION_PARTITION_SPLIT=split, FUSION_PARTITION_CHUNKS=chunks, FUSION_PARTITION_REPORT="1")


def lines_that_ran(report, path, on_host):
    """The lines of loops that ran on the device at all, by the report of a program at its exit; of those in `on_host` the ones that ran
    on several threads."""
    ran = set()
    for line in report.splitlines():
        place = re.search(rf"{re.escape(pathlib.Path(path).name)}:(\d+):", line)
        calls = re.search(r"\bcalls?\D*(\d+)", line)
        split = re.search(r"\bsplit\D*([\d.]+)\s*%", line)
        threads = re.search(r"\bhost threads (\d+)", line)
        if not place or not calls or int(calls[1]) == 0:
            continue
        is_on_device = not split or float(split[1]) > 0
        if (int(threads[1]) > 1 and not is_on_device) if int(place[1]) in on_host else is_on_device:
            ran.add(int(place[1]))
    return ran


def run_driver(program, split, chunks):
    """(stdout, stderr, problem or None) of one run."""
    try:
        done = subprocess.run([program], env=environment(split, chunks), capture_output=True, text=True, errors="replace",
                              timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return "", "", f"ran longer than {RUN_SECONDS} s"
    problem = f"ended with status {done.returncode}: {done.stderr[-300:]}" if done.returncode else None
    return done.stdout, done.stderr, problem


def results_of(output):
    """{kernel: "same", "WRONG array" or "INFINITE array"} of a driver's output."""
    return dict(match.groups() for match in re.finditer(r"^(\S+) (same|WRONG \S+|INFINITE \S+)$", output, re.M))


def compare_runs(arguments, program, path, names, source):
    """Runs the driver at all splits and chunks."""
    compared, wrong, ran = 0, [], set()
    lines = polybench.kernel_lines(source)
    on_host = {line for name in polybench.ON_HOST if name in lines for line in lines[name]}
    for split in arguments.splits:
        for chunks in arguments.chunks:
            output, report, problem = run_driver(program, split, chunks)
            results = results_of(output)
            compared += len(results)
            lost = [name for name in names if name not in results]
            wrong += [f"{name} at split {split}, {chunks} chunks: {results[name]}" for name in results if results[name] != "same"]
            missing = [name for name in names if name in REORDERED and not is_reordered(report, name)]
            wrong += [f"{name} at split {split}, {chunks} chunks: ran in its own order" for name in missing]
            if problem or lost:
                wrong.append(f"the run at split {split}, {chunks} chunks {problem or 'left kernels out'}; first of them: {lost[:1]}")
            if float(split) > 0:
                ran |= lines_that_ran(report, path, on_host)
    return Outcome(compared, wrong, *never_ran(arguments, names, source, ran))


def is_reordered(report, name):
    """Whether a nest of a kernel ran in another order, by the report of a program at its exit."""
    return re.search(rf" par_kernel_{name}: reordered [1-9]", report) is not None


def never_ran(arguments, names, source, ran):
    """(kernels with marked loops of which no loop ran on the device, lines of marked loops that did not); none if no split gave it work."""
    if not any(float(split) > 0 for split in arguments.splits):
        return [], []
    lines = polybench.kernel_lines(source)
    idle = [name for name in names if polybench.KERNELS[name].marked and not ran.intersection(lines[name])]
    resting = polybench.marked_lines(source) - ran
    return idle, sorted(line for line in resting if kernel_at(lines, line) not in REORDERED)


def build_driver(arguments, folder, spelling, names, objects):
    """Compiles the driver and links it by the partitioning compiler, which adds the run-time library."""
    source = write(folder / f"driver_{spelling}.c", driver_text(names, spelling))
    driver, program = str(folder / f"driver_{spelling}.o"), str(folder / f"driver_{spelling}")
    compile_file([arguments.plain, "-std=gnu11", "-O1", "-c", source, "-o", driver])
    compile_file([arguments.cc or arguments.plain, driver, *objects, "-lm", "-o", program])
    return program


def check_spelling(arguments, folder, spelling, names):
    """Detects and runs the kernels in one spelling; returns whether all is as it has to be."""
    source = polybench.text(spelling, "small", names)
    path = write(folder / f"{spelling}.c", source)
    ref, par = str(folder / f"{spelling}_ref.o"), str(folder / f"{spelling}_par.o")
    remarks = compile_file([arguments.cc, *FLAGS, *REMARKS, "-DPREFIX=par_", "-c", path, "-o", par])
    write(folder / f"{spelling}.remarks", remarks)
    detection = detection_of(remarks, path, source)
    print_detection(spelling, names, source, detection)
    if arguments.detect_only:
        return not detection.missing
    compile_file([arguments.plain, *FLAGS, "-DPREFIX=ref_", "-c", path, "-o", ref])
    program = build_driver(arguments, folder, spelling, names, [ref, par])
    outcome = compare_runs(arguments, program, path, names, source)
    print(f"{spelling:8} runs compared {outcome.compared}, wrong {len(outcome.wrong)}, "
          f"kernels that never ran on the device {len(outcome.idle)}")
    lines = polybench.kernel_lines(source)
    refused = [f"{kernel_at(lines, line)} line {line} was found, and never ran on the device" for line in outcome.resting
               if line in detection.found]
    for message in outcome.wrong + [f"{name} never ran on the device" for name in outcome.idle] + refused:
        print(f"  {message}")
    return not (detection.missing or outcome.wrong or outcome.idle)


def peers(plain):
    """{name: command} of the compilers to compare with; Polly is loaded as a plugin where clang has not got it built in."""
    commands = {"gcc": ["gcc", "-ftree-parallelize-loops=4", "-floop-parallelize-all"]}
    polly = ["-mllvm", "-polly", "-mllvm", "-polly-parallel"]
    for load in ([], ["-fplugin=LLVMPolly.so", "-fpass-plugin=LLVMPolly.so"]):
        done = subprocess.run([plain, *load, *polly, "-O3", "-x", "c", "-c", "-o", "/dev/null", "-"], input="int x;", capture_output=True,
                              text=True)
        if done.returncode == 0:
            return {**commands, "polly": [plain, *load, *polly]}
    print("peers: SKIP polly, which cannot be loaded")
    return commands


def has_region(command, path):
    """Whether a compiler makes a parallel region in a file; None when it crashes or takes too long."""
    try:
        done = subprocess.run([*command, "-std=gnu11", "-O3", "-fno-math-errno", "-S", "-o", "-", path], capture_output=True, text=True,
                              timeout=PEER_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode else bool(re.search(r"\b(GOMP_parallel|__kmpc_fork_call)", done.stdout))


def print_peers(commands, folder, spelling, names):
    """Prints in how many kernels each peer makes a parallel region. Each kernel is a file, so that a crash costs one kernel."""
    paths = {name: write(folder / f"{spelling}_{name}.c", polybench.text(spelling, "large", [name])) for name in names}
    for peer, command in commands.items():
        regions = {name: has_region(command, path) for name, path in paths.items()}
        failed = [name for name, region in regions.items() if region is None]
        print(f"{spelling:8} {peer}: a parallel region in {sum(map(bool, regions.values()))}/{len(names)} kernels"
              + (f", failed on {', '.join(failed)}" if failed else ""))


def verify_kernels(arguments, folder, names):
    """The kernels themselves: -O0 and -O3 agree in all bits, all spellings do, and results are finite."""
    hashes, good = {}, True
    for spelling in polybench.SPELLINGS:
        path = write(folder / f"{spelling}.c", polybench.text(spelling, "small", names))
        objects = [str(folder / f"{spelling}_{prefix}.o") for prefix in ("ref_", "par_")]
        for flags, prefix, target in zip((["-O0"], ["-O3", "-ffp-contract=off"]), ("ref_", "par_"), objects):
            compile_file([arguments.plain, "-std=gnu11", "-fno-math-errno", *flags, f"-DPREFIX={prefix}", "-c", path, "-o", target])
        program = build_driver(arguments, folder, spelling, names, objects)
        output = subprocess.run([program, "--hash"], capture_output=True, text=True, check=True).stdout
        bad = [f"{name} {result}" for name, result in results_of(output).items() if result != "same"]
        hashes[spelling] = dict(re.findall(r"^(\S+) hash (\w+)$", output, re.M))
        bad += [f"{name} differs from {polybench.SPELLINGS[0]}" for name in names
                if hashes[spelling].get(name) != hashes[polybench.SPELLINGS[0]].get(name)]
        print(f"{spelling:8} {len(results_of(output))} kernels, -O0 against -O3: {'; '.join(bad) or 'same, finite'}")
        good = good and not bad and len(hashes[spelling]) == len(names)
    return good


def run_all(arguments, folder):
    """Does what the command line asks for, in a folder."""
    unknown = [name for name in arguments.kernels if name not in polybench.KERNELS] + [
        spelling for spelling in arguments.spellings if spelling not in polybench.SPELLINGS]
    if unknown:
        sys.exit(f"polybench_test.py: there is no {', '.join(unknown)}")
    if arguments.verify:
        return verify_kernels(arguments, folder, arguments.kernels)
    commands = peers(arguments.plain) if arguments.peers else {}
    good = True
    for spelling in arguments.spellings:
        good = check_spelling(arguments, folder, spelling, arguments.kernels) and good
        print_peers(commands, folder, spelling, arguments.kernels)
    return good


def parse():
    def names(value):
        return value.split(",")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", help="the partitioning compiler, fusion-cc")
    parser.add_argument("--plain", default="clang-19", help="the compiler that gives the expected results")
    parser.add_argument("--spellings", type=names, default=["vla", "flat"])
    parser.add_argument("--splits", type=names, default=["0", "0.3", "0.7", "1"], help="shares of the iterations for the device")
    parser.add_argument("--chunks", type=names, default=["1", "4"], help="numbers of pieces of the device's share")
    parser.add_argument("--kernels", type=names, default=list(polybench.KERNELS))
    parser.add_argument("--all", action="store_true", help="six spellings, four splits, three numbers of chunks")
    parser.add_argument("--detect-only", action="store_true", help="compile, and print what was found")
    parser.add_argument("--peers", action="store_true", help="count parallel regions of gcc and Polly too")
    parser.add_argument("--verify", action="store_true", help="check the kernels with the plain compiler only")
    parser.add_argument("--keep", help="a folder for sources, programs and remarks, kept afterwards")
    arguments = parser.parse_args()
    if not arguments.cc and not arguments.verify:
        parser.error("--cc is needed, except for --verify")
    if arguments.all:
        arguments.spellings, arguments.splits, arguments.chunks = list(polybench.SPELLINGS), ["0", "0.3", "0.7", "1"], ["1", "4", "16"]
    return arguments


def main():
    arguments = parse()
    if arguments.keep:
        folder = pathlib.Path(arguments.keep).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        good = run_all(arguments, folder)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            good = run_all(arguments, pathlib.Path(temporary))
    print("polybench_test.py: " + ("passed" if good else "FAILED"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
