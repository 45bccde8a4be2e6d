#!/usr/bin/env python3
"""PolyBench/GPU's hand-written CUDA programs at their best block shapes, against the kernels of the same loops in C.

  tests/bench/polybench_gpu.py build --suite POLYBENCH-ACC --output DIR [--only NAME]... [--arch sm_90] [--jobs 2]
  tests/bench/polybench_gpu.py measure DIR [--client PATH] [--target cuda|host] [--json FILE] [--seconds N] [--only NAME]...
      [--candidates N] [--job-seconds N] [--submit=OPTION]... [--retry] [--small]

`build` needs nvcc and no GPU. It compiles each program of the suite's folder CUDA once: block shapes are values of the host's part alone, so
that one program tries them all (polybench_gpu.cuh). Beside it stands the function that the suite computes its results with on the host, as loops in
C for us: with float constants, as the kernels have them, and sizes by name. DIR has all that `measure` needs, besides fusion.

`measure` takes of the suite's launches the least of several runs for each shape, and of ours the median, as the job says it; both with cold
caches and without copies. A program that fails is a row with a reason; rows that FILE has are not measured again, but for failed ones with --retry.
The regret is the time of the case that was predicted to be the fastest over the least time.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import loops

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Blocks of kernels that look at one counter, and at two.
LINES = [(32, 1), (64, 1), (128, 1), (192, 1), (256, 1), (384, 1), (512, 1), (1024, 1)]
PLANES = [(8, 8), (16, 16), (32, 1), (32, 4), (32, 8), (32, 32), (64, 4), (256, 1)]
REGISTERS = 65536  # of a multiprocessor
# The suite's standard sizes, but for programs that these are too small or have too many launches for.
SIZES = {"gemm": {"NI": 1024, "NJ": 1024, "NK": 1024}, "3mm": {"NI": 1024, "NJ": 1024, "NK": 1024, "NL": 1024, "NM": 1024},
         "doitgen": {"NQ": 256, "NR": 256, "NP": 256}, "3DConvolution": {"NI": 512, "NJ": 512, "NK": 512}, "2DConvolution": {"NI": 8192, "NJ": 8192},
         "jacobi2D": {"TSTEPS": 20, "N": 4096}, "jacobi1D": {"TSTEPS": 1000, "N": 1 << 20}, "adi": {"TSTEPS": 1, "N": 2048},
         "fdtd2d": {"TMAX": 100, "NX": 2048, "NY": 2048}}
SMALL = 64
PROGRAM_SECONDS = 90


def programs(suite, only):
    found = {path.stem: path for path in sorted(suite.glob("CUDA/*/**/*.cu"))}
    if not found:
        sys.exit(f"{suite}: no CUDA/*/**/*.cu")
    for name in only:
        if name not in found:
            sys.exit(f"--only {name}: no such program; there are {', '.join(found)}")
    return {name: path for name, path in found.items() if not only or name in only}


def standard_sizes(header):
    block = re.search(r"#\s*ifdef STANDARD_DATASET(.*?)#\s*endif", header, re.S)
    return {name: int(value) for name, value in re.findall(r"#\s*define\s+(\w+)\s+(\d+)", block.group(1))}


def groups_of(text, header):
    """Names of macros of each group of kernels, with its own shape: (macro of x, macro of y, x, y)."""
    values = dict(re.findall(r"#\s*define\s+(DIM_THREAD_BLOCK\w*)\s+(\d+)", header))
    return [(name, name[:-1] + "Y", int(values[name]), int(values[name[:-1] + "Y"])) for name in values if name.endswith("_X")]


def wrapper(path, text, header, sizes, registers):
    """A program that includes the suite's, and has its macros lead to polybench_gpu.cuh."""
    lines = ["#define POLYBENCH_TIME 1"]
    # Headers of the system come before macros such as N.
    lines += [f"#include <{file}>" for file in [*re.findall(r"#include <(?!polybench)(.*)>", text), "polybench.h"]]
    lines += [f'#include "{ROOT / "tests/bench/polybench_gpu.cuh"}"', *(f"#define {name} {value}" for name, value in sizes.items()),
              f'#include "{path.with_suffix(".cuh")}"']
    groups = []
    for number, (x, y, own_x, own_y) in enumerate(groups_of(text, header)):
        lines += [f"#undef {x}", f"#undef {y}", f"#define {x} bench_block[{number}].x", f"#define {y} bench_block[{number}].y"]
        # Kernels that look at one counter alone would do their work once for each y, in a race.
        plane = own_y > 1 and "threadIdx.y" in text
        shapes = [shape for shape in (PLANES if plane else LINES) if -(-registers // 8) * 8 * shape[0] * shape[1] <= REGISTERS]
        own = (own_x, own_y if plane else 1)
        groups.append(f"{{{{{own[0]}, {own[1]}}}, {{{', '.join(f'{{{a}, {b}}}' for a, b in shapes)}}}}}")
    lines += [f'#include "{path}"', "#undef main", f"std::vector<BenchGroup> bench_groups = {{{', '.join(groups)}}};",
              "int main(int, char** argv) { return BenchMain(argv); }"]
    return "\n".join(lines) + "\n"


def loops_in_c(text):
    """The function that the program calls on the host, as loops that fusion-client reads."""
    call = re.search(r"#ifdef RUN_ON_CPU.*?polybench_start_instruments;\s*(?:/\*.*?\*/|//[^\n]*|\s)*(\w+)\s*\(", text, re.S)
    function = re.search(rf"\bvoid\s+{call.group(1)}\s*\((.*?)\)\s*\n\{{(.*?)\n\}}", text, re.S)
    parameters, body = function.groups()
    declarations, names = [], {}
    for array, extents in re.findall(r"POLYBENCH_\dD\s*\((\w+)\s*,([^()]*)\)", parameters):
        extents = [extent.strip() for extent in extents.split(",")]  # all as macros, then all as variables
        upper, lower = extents[:len(extents) // 2], [extent.lower() for extent in extents[len(extents) // 2:]]
        names.update(zip(upper, lower))
        declarations.append(f"float {array}" + "".join(f"[{extent}]" for extent in lower) + ";")
    scalars = re.sub(r"DATA_TYPE\s+POLYBENCH_\dD\s*\([^()]*\)", "", parameters)
    integers = re.findall(r"\bint\s+(\w+)", scalars)
    declarations[:0] = [f"int {name};" for name in integers] + [f"float {name};" for name in re.findall(r"\bDATA_TYPE\s+(\w+)", scalars)]
    macros = [line for line in re.findall(r"^#define\s+.*$", text, re.M) if not re.match(r"#define\s+(GPU_DEVICE|PERCENT|RUN_ON_CPU|POLYBENCH)", line)]
    start = re.search(r"^[ \t]*(for\b|/\*|//)", body, re.M).start()
    before, body = body[:start], body[start:]
    # Coefficients of stencils are constants, which the kernels have in registers.
    constants = dict(re.findall(r"(\w+)\s*=\s*([-+.\d]+)\s*;", before))
    macros += [f"#define {name} ({value})" for name, value in constants.items()]
    for kind, listed in re.findall(r"\b(int|DATA_TYPE)\s+([^;=]*);", before):
        for name in {name.strip() for name in listed.split(",")} - constants.keys():
            if kind == "int":
                body = re.sub(rf"\bfor\s*\(\s*{name}\b", f"for (int {name}", body)
            else:
                declarations.append(f"float {name};")
    for upper, lower in names.items():
        body = re.sub(rf"\b{upper}\b", lower, body)
    body = re.sub(r"\b_PB_(\w+)", lambda match: match.group(1).lower(), body).replace("(DATA_TYPE)", "(float)")
    macros += ["#define sqrt sqrtf  // as C++ has it for floats"]
    result = "\n".join([*macros, *declarations, "#pragma scop", body.rstrip(), "#pragma endscop"]) + "\n"
    return re.sub(r"(?<![\w.])(\d+\.\d*)(?![\w.])", r"\1f", result), integers


def build_one(arguments, name, path):
    text, header = path.read_text(errors="replace"), path.with_suffix(".cuh").read_text(errors="replace")
    sizes = SIZES.get(name) or standard_sizes(header)
    entry = {"name": name, "sizes": {size.lower(): value for size, value in sizes.items()}}
    try:
        c, integers = loops_in_c(text)
        entry["sizes"] = {size: entry["sizes"][size] for size in integers}
        (arguments.output / f"{name}.c").write_text(c)
    except (AttributeError, KeyError) as error:
        entry["error"] = f"its function on the host is not as expected: {error!r}"
        return entry
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "polybench.c").write_text("")
        source = pathlib.Path(folder) / f"{name}.cu"
        command = [arguments.nvcc, "-O3", "-std=c++17", f"-arch={arguments.arch}", "-w", "-Xptxas=-v", "-Xlinker=-s", f"-I{folder}", f"-I{path.parent}",
                   f"-I{arguments.suite / 'CUDA/utilities'}", "-o", str(arguments.output / name), str(source)]
        registers = 0
        for _ in range(2):  # a second time where large blocks have too many registers
            source.write_text(wrapper(path.resolve(), text, header, sizes, registers))
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                entry["error"] = "nvcc: " + (done.stderr.strip().splitlines() or ["failed"])[0]
                return entry
            used = max(map(int, re.findall(r"Used (\d+) registers", done.stdout + done.stderr)))
            if used <= REGISTERS // 1024:
                break
            registers = used
    return entry


def build(arguments):
    arguments.output.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        entries = list(pool.map(lambda item: build_one(arguments, *item), programs(arguments.suite, arguments.only).items()))
    for entry in entries:
        print(f"{entry['name']}: {entry.get('error', 'built')}")
    (arguments.output / "programs.json").write_text(json.dumps(entries, indent=1) + "\n")
    return 1 if any("error" in entry for entry in entries) else 0


def theirs(folder, name):
    """Of each shape the times of its runs."""
    done = subprocess.run([str(folder / name)], capture_output=True, text=True, check=False, timeout=PROGRAM_SECONDS)
    shapes = []
    for line in re.findall(r"^times (.*)$", done.stdout, re.M):
        words = line.split()
        blocks = [word for word in words if "x" in word]
        shapes.append({"blocks": blocks, "seconds": [float(word) for word in words[len(blocks):]]})
    if done.returncode != 0 or not shapes:
        raise RuntimeError(f"its program: {(done.stderr.strip().splitlines() or ['exit status ' + str(done.returncode)])[-1]}")
    return shapes


def ours(arguments, name, sizes):
    command = [arguments.client, "submit", str(arguments.folder / f"{name}.c"), "--target", arguments.target, "--json",
               "--candidates", str(arguments.candidates)]
    for size, value in sizes.items():
        command += ["--size", f"{size}={value}"]
    done = subprocess.run(command + arguments.submit, capture_output=True, text=True, check=False, timeout=arguments.job_seconds)
    if done.returncode != 0:
        raise RuntimeError("ours: " + (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    result = json.loads(done.stdout)
    if not result["candidates"] or result["candidates"][0]["outcome"] != "OK":
        raise RuntimeError("ours: no case is right")
    return result


def measure_one(arguments, entry):
    row = {"name": entry["name"], "sizes": {size: min(SMALL, value) for size, value in entry["sizes"].items()} if arguments.small else entry["sizes"]}
    try:
        if "error" in entry:
            raise RuntimeError(entry["error"])
        row["shapes"] = theirs(arguments.folder, entry["name"])
        best = min(row["shapes"], key=lambda shape: min(shape["seconds"]))
        row["theirs_seconds"], row["blocks"] = min(best["seconds"]), best["blocks"]
        result = ours(arguments, entry["name"], row["sizes"])
        row["device"] = result["device"]["name"]
        row["candidates"] = result["candidates"]
        row["ours_seconds"] = result["candidates"][0]["measured_seconds"]["median"]
        row["ratio"], row["regret"] = row["theirs_seconds"] / row["ours_seconds"], loops.regret(result["candidates"])
    except subprocess.TimeoutExpired as late:
        row["error"] = f"{pathlib.Path(late.cmd[0]).name}: not done after {late.timeout:.0f} s"
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        row["error"] = str(error) if isinstance(error, RuntimeError) else repr(error)
    return row


def measure(arguments):
    entries = json.loads((arguments.folder / "programs.json").read_text())
    file = pathlib.Path(arguments.json) if arguments.json else None
    rows = json.loads(file.read_text())["rows"] if file and file.exists() else []
    if arguments.retry:
        rows = [row for row in rows if "error" not in row]
    start, left_out = time.monotonic(), []
    print("| program | sizes | theirs (us) | block | ours (us) | theirs / ours | regret |\n| --- | --- | --- | --- | --- | --- | --- |")
    for entry in entries:
        if arguments.only and entry["name"] not in arguments.only:
            continue
        row = next((row for row in rows if row["name"] == entry["name"]), None)
        if row is None:
            if time.monotonic() - start > arguments.seconds:
                left_out.append(entry["name"])
                continue
            row = measure_one(arguments, entry)
            rows.append(row)
            if file:
                file.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
        shown = ", ".join(f"{size}={value}" for size, value in row["sizes"].items())
        if "error" in row:
            print(f"| {row['name']} | {shown} | - | - | - | - | {row['error']} |", flush=True)
        else:
            print(f"| {row['name']} | {shown} | {row['theirs_seconds'] * 1e6:.1f} | {', '.join(row['blocks'])} | {row['ours_seconds'] * 1e6:.1f} | "
                  f"{row['ratio']:.2f} | {row['regret']:.2f} |", flush=True)
    good = [row for row in rows if "error" not in row]
    for name in ("ratio", "regret") if good else ():
        print(f"{name}: geometric mean {math.exp(sum(math.log(row[name]) for row in good) / len(good)):.3f} of {len(good)}, "
              f"least {min(row[name] for row in good):.2f}, largest {max(row[name] for row in good):.2f}")
    if left_out:
        print(f"left out: {', '.join(left_out)}")
    return 1 if left_out or len(good) < len(rows) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    building = verbs.add_parser("build")
    building.add_argument("--suite", type=pathlib.Path, required=True)
    building.add_argument("--output", type=pathlib.Path, required=True)
    building.add_argument("--only", action="append", default=[])
    building.add_argument("--arch", default="sm_90")
    building.add_argument("--nvcc", default="nvcc")
    building.add_argument("--jobs", type=int, default=2)
    measuring = verbs.add_parser("measure")
    measuring.add_argument("folder", type=pathlib.Path)
    measuring.add_argument("--client", default=str(ROOT / "build/release/bin/fusion-client"))
    measuring.add_argument("--target", default="cuda")
    measuring.add_argument("--json")
    measuring.add_argument("--seconds", type=float, default=420, help="no program is started later")
    measuring.add_argument("--only", action="append", default=[])
    measuring.add_argument("--candidates", type=int, default=10)
    measuring.add_argument("--job-seconds", type=float, default=60)
    measuring.add_argument("--submit", action="append", default=[])
    measuring.add_argument("--retry", action="store_true")
    measuring.add_argument("--small", action="store_true", help="ours at small sizes, to see that all is right")
    arguments = parser.parse_args()
    return build(arguments) if arguments.verb == "build" else measure(arguments)


if __name__ == "__main__":
    sys.exit(main())
