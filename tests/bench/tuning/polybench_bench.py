#!/usr/bin/env python3
"""gemm, gesummv and syrk of PolyBench as partitioned loops (examples/tuning/polybench): the GPU test, then six shapes measured.

  tests/bench/tuning/polybench_bench.py --quick                 from a build or from the package, about two minutes
  tests/bench/tuning/polybench_bench.py --output polybench.json all samples, less than six minutes
  ... --server ADDRESS                                          tuned by that server instead of one in the process
  ... --only syrk                                               some of the routines

For each shape: the sequential loop, all processors alone, the GPU alone, and split as the tuner found, the last three in turn; then
the ratios 0, 0.1 ... 1. Transfers are part of every time. Checks that results are right and that what the tuner found is not slower
than the faster of the two ends by more than 3 %.
Exit status: 0 measured and so, 1 not so, 77 there is no GPU or no program (what can be measured without is still printed).
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
# The shapes of Baier 2016, chapter 6.
CASES = [
    ("gemm", [2000, 2300, 2600]),
    ("gemm", [1000000, 100, 100]),
    ("gesummv", [2000]),
    ("gesummv", [10000]),
    ("syrk", [2600, 2000]),
    ("syrk", [10000, 100]),
]
MOST_OVER_FASTER_END = 1.03


def program(name):
    for folder in (ROOT / "tests", ROOT / "build/release/tests"):
        if (folder / name).is_file():
            return folder / name
    return None


def processors():
    """Those that may be used: a container can be given fewer than its threads may run on."""
    count = len(os.sched_getaffinity(0))
    try:
        quota, period = pathlib.Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            count = min(count, max(1, math.floor(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return count


def run_gpu_test():
    """True: passed; False: failed; None: skipped or not there."""
    test = program("gpu_partitioned_loop_test")
    if test is None:
        print("GPU test: SKIP, gpu_partitioned_loop_test is not there")
        return None
    done = subprocess.run([test], capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != 0:
        print(done.stdout[-6000:], done.stderr[-2000:])
        print("GPU test: FAILED")
        return False
    if "[  PASSED  ] 0 tests" in done.stdout:
        reason = next((line for line in done.stdout.splitlines() if line.startswith("SKIP")), "SKIP")
        print(f"GPU test: {reason}")
        return None
    print("GPU test:", next(line for line in done.stdout.splitlines() if "[  PASSED  ]" in line).replace("[  PASSED  ]", "").strip(),
          "passed")
    return True


def measure(tuned, routine, sizes, arguments, environment, seconds):
    command = [tuned, routine, *map(str, sizes)]
    if arguments.quick:
        command += ["--sequential", "0", "--rounds", "15"]
    else:
        command += ["--sequential", "10", "--rounds", "31"]
    for option in ("server", "strategy", "evaluations"):
        value = getattr(arguments, option)
        if value is not None:
            command += [f"--{option}", str(value)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        return None, f"no result in {seconds:.0f} s: {(error.stderr or b'')[-500:]}"
    if done.returncode != 0:
        return None, f"exit status {done.returncode}: {done.stderr[-1000:]}"
    return json.loads(done.stdout), done.stderr


def milliseconds(row, key):
    return f"{row[key]['median_seconds'] * 1e3:9.3f}" if key in row else f"{'-':>9}"


def print_row(row):
    name = f"{row['routine']} {'x'.join(str(size) for size in row['sizes'].values())}"
    line = f"{name:22} {milliseconds(row, 'sequential')} {milliseconds(row, 'cpu_alone')} {milliseconds(row, 'gpu_alone')}"
    if "tuned" in row:
        search, found = row["search"], row["found"]
        line += (f" {milliseconds(row, 'tuned')}  {found['ratio']:6.3f} {found['chunks']:6d} {search['evaluations']:5d}"
                 f"{' ' if search['converged'] else '+' if search['settled'] else '?'} {row['tuned_over_faster_end']:7.3f} {row['speedup']['tuned']:8.1f}")
    else:
        line += " " * 40
    line += f" {row['seed']['best_speedup']:6.2f}" if "seed" in row else ""
    print(line, flush=True)


def print_sweep(row):
    if "sweep" in row:
        print(f"  {row['routine']} {list(row['sizes'].values())}, ms at ratios 0, 0.1 ... 1:",
              " ".join(f"{point['median_seconds'] * 1e3:.2f}" for point in row["sweep"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the sequential loops once, 15 rounds")
    parser.add_argument("--full", action="store_true", help="the default")
    parser.add_argument("--only", help="names of routines, with commas")
    parser.add_argument("--output", type=pathlib.Path, help="where the JSON goes")
    parser.add_argument("--server", help="of the tuner; default: embedded")
    parser.add_argument("--strategy", help="of the search")
    parser.add_argument("--evaluations", type=int, help="the loop settles after so many runs that explored")
    parser.add_argument("--time-limit", type=float, default=350, help="seconds; no case starts later")
    arguments = parser.parse_args()
    start = time.monotonic()

    tuned = program("polybench_tuned")
    if tuned is None:
        print("SKIP: polybench_tuned was not built (no nvcc)")
        return 77
    tested = run_gpu_test()
    environment = dict(os.environ)
    environment.setdefault("OMP_NUM_THREADS", str(processors()))

    print(f"{'ms':22} {'sequent.':>9} {'CPU':>9} {'GPU':>9} {'tuned':>9}  {'ratio':>6} {'chunks':>6} {'runs':>5}  {'/faster':>7} "
          f"{'speed-up':>8} {'seed':>6}")
    rows, wrong = [], [] if tested is not False else ["the GPU test failed"]
    for routine, sizes in CASES:
        if arguments.only and routine not in arguments.only.split(","):
            continue
        left = arguments.time_limit - (time.monotonic() - start)
        if left <= 0:
            wrong.append(f"{routine} {sizes}: left out, the time limit is reached")
            continue
        row, message = measure(tuned, routine, sizes, arguments, environment, left + 60)
        if row is None:
            wrong.append(f"{routine} {sizes}: {message}")
            continue
        rows.append(row)
        print_row(row)
        if row.get("tuned_over_faster_end", 0) > MOST_OVER_FASTER_END:
            wrong.append(f"{routine} {sizes}: tuned is {row['tuned_over_faster_end']:.3f} of the faster end")
        if arguments.output:
            document = {"schema": "fusion.polybench_bench/1", "quick": arguments.quick, "gpu_test": tested, "cases": rows}
            arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print_sweep(row)
    if rows:
        row = rows[0]
        print(f"{row['device'] or 'no GPU: ' + row['without_gpu']}; {row['host_threads']} threads, {row['host_instructions']}; "
              f"{time.monotonic() - start:.0f} s")
    for line in wrong:
        print("NOT SO:", line)
    if wrong:
        return 1
    return 0 if any("tuned" in row for row in rows) else 77


if __name__ == "__main__":
    sys.exit(main())
