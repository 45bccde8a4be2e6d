#!/usr/bin/env python3
"""How well folders of loops choose among their variants at sizes that no job was run for.

  tests/bench/loops_choice.py [--client PATH] [--target cuda|host] [--tuner DIR] [--small] [--json FILE]

Each job runs at one size; its folder is compiled and times all of its variants at others (`example --variants`). The regret is the time of the
chosen variant over that of the fastest. What a choice takes is measured with `fused_choose` alone. With --tuner, the folder of a package of
fusion, `tuned` runs too, and the time of what it settles on is compared with that of the choice.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Sizes of the job, and of calls.
EXAMPLES = {
    "gemm": ({"ni": 1024, "nj": 1024, "nk": 1024}, [{"ni": 256, "nj": 256, "nk": 256}, {"ni": 3000, "nj": 3000, "nk": 1000}, {"ni": 64, "nj": 8192, "nk": 512}]),
    "matmul": ({"N": 1024}, [{"N": 256}, {"N": 512}, {"N": 2048}]),
    "row_sums": ({"n": 4096, "m": 4096}, [{"n": 300, "m": 100000}, {"n": 100000, "m": 300}, {"n": 20000, "m": 5000}]),
    "stencil": ({"n": 1000, "T": 20}, [{"n": 200, "T": 20}, {"n": 3000, "T": 20}, {"n": 8000, "T": 20}]),
    "transpose": ({"n": 4096, "m": 4096}, [{"n": 500, "m": 700}, {"n": 10000, "m": 3000}, {"n": 16384, "m": 16384}]),
    "reversal_serial": ({"N": 1 << 23}, [{"N": 10000}, {"N": 1000003}, {"N": 1 << 26}]),
}
CLOCK = """
#include <chrono>
#include <cstdio>
#include "fused.h"
int main() {
  long sum = 0;
  const auto first = std::chrono::steady_clock::now();
  sum += fused_choose(FIRST);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 1; i <= 1000000; ++i) sum += fused_choose(LATER);
  const auto end = std::chrono::steady_clock::now();
  std::printf("%.3f %.1f %ld\\n", std::chrono::duration<double>(start - first).count() * 1e6,
              std::chrono::duration<double>(end - start).count() * 1e9 / 1e6, sum);
}
"""


def run(command, folder):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, shell=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def given(sizes):
    return " ".join(f"{size}={value}" for size, value in sizes.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default=str(ROOT / "build/release/bin/fusion-client"))
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--tuner")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    compiler = f"nvcc -O3 -arch={arguments.arch}" if arguments.target == "cuda" else "g++ -O3 -march=native -fopenmp"
    suffix = "cu" if arguments.target == "cuda" else "cc"
    table, regrets = {"rows": []}, []
    print("| loops | job | call | variants | chosen (us) | fastest (us) | regret |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, (own, calls) in EXAMPLES.items():
        if arguments.small:
            own = {size: 64 for size in own}
            calls = [{size: 48 for size in own}]
        with tempfile.TemporaryDirectory() as folder:
            sizes = " ".join(f"--size {size}={value}" for size, value in own.items())
            run(f"{arguments.client} submit {ROOT}/examples/loops/{name}.c --target {arguments.target} {sizes} --force --output {folder}", ROOT)
            run(f"{compiler} -std=c++17 -o example example.{suffix} fused.{suffix} reference.cc", folder)
            for call in [own, *calls]:
                times = re.findall(r"variant \d+: ([\d.]+) us(, chosen)?", run(f"./example {given(call)} --variants", folder))
                fastest = min(float(time) for time, _ in times)
                chosen = [float(time) for time, mark in times if mark]
                if len(chosen) != 1:
                    sys.exit(f"{name} {call}: {times}")
                regrets.append(chosen[0] / fastest)
                table["rows"].append({"name": name, "own": own, "call": call, "variants": len(times), "chosen_us": chosen[0], "fastest_us": fastest})
                print(f"| {name} | {given(own)} | {given(call)} | {len(times)} | {chosen[0]:.1f} | {fastest:.1f} | {chosen[0] / fastest:.2f} |", flush=True)
            clock = CLOCK.replace("FIRST", ", ".join(["1000"] * len(own))).replace("LATER", ", ".join(["1000 + i % 5000"] * len(own)))
            (pathlib.Path(folder) / f"clock.{suffix}").write_text(clock)
            run(f"{compiler} -std=c++17 -o clock clock.{suffix} fused.{suffix}", folder)
            first, later, _ = run("./clock", folder).split()
            print(f"{name}: the first choice takes {first} us, a later one {later} ns", flush=True)
            row = table["rows"][-1]
            row["first_choice_us"], row["later_choice_ns"] = float(first), float(later)
            if arguments.tuner:
                run(f"{compiler} -std=c++20 -o tuned tuned.{suffix} fused.{suffix} -I{arguments.tuner}/include -L{arguments.tuner}/lib -lfusion_tuner", folder)
                row["tuned"] = run(f"LD_LIBRARY_PATH={arguments.tuner}/lib FUSION_DATA_DIR={folder}/data ./tuned seconds=20", folder).strip()
                print(f"{name}: {row['tuned']}", flush=True)
            if arguments.json:
                pathlib.Path(arguments.json).write_text(json.dumps(table, indent=1) + "\n")
    print(f"\nregret, geometric mean: {math.exp(sum(map(math.log, regrets)) / len(regrets)):.3f}; worst: {max(regrets):.2f}")


if __name__ == "__main__":
    main()
