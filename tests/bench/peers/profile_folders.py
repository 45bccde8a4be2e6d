#!/usr/bin/env python3
"""What Nsight Compute says of the kernels of exported folders, a line each. Needs nvcc and ncu, and a driver that lets them count.

    tests/bench/peers/peers_bench.py --client bin/fusion-client --only black_scholes --sets large --peers ours --folders kept --output rows.json
    tests/bench/peers/profile_folders.py kept/*

Exit status: 0 all profiled, 1 some not, 2 bad usage.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import sys

# Title, what the metric is called, its factor, decimals.
COLUMNS = [
    ("us", "gpu__time_duration.sum", None, 1),
    ("DRAM %", "dram__throughput.avg.pct_of_peak_sustained_elapsed", 1, 0),
    ("MB read", "dram__bytes_read.sum", 1e-6, 1),
    ("MB written", "dram__bytes_write.sum", 1e-6, 1),
    ("L2 hit %", "lts__t_sector_hit_rate.pct", 1, 0),
    ("issue %", "smsp__issue_active.avg.pct_of_peak_sustained_active", 1, 0),
    ("FMA %", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", 1, 0),
    ("FP64 %", "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active", 1, 0),
    ("XU %", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", 1, 0),
    ("ALU %", "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", 1, 0),
    ("LSU %", "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active", 1, 0),
    ("warps %", "sm__warps_active.avg.pct_of_peak_sustained_active", 1, 0),
    ("registers", "launch__registers_per_thread", 1, 0),
    ("threads", "launch__block_size", 1, 0),
    ("blocks", "launch__grid_size", 1, 0),
]
STALL = "smsp__average_warps_issue_stalled_"
TIME_UNITS = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6}
BYTE_UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def run(command, folder):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def profile(folder):
    """The rows of ncu's page "raw" for each kernel, as {metric: (unit, text)}."""
    run(["nvcc", "-arch=native", "-o", "example", "example.cu", "fused.cu", "reference.cc"], folder)
    # These alone: each kernel runs again for every few metrics, with its memory as it was.
    metrics = ",".join(metric for _, metric, _, _ in COLUMNS)
    text = run(["ncu", "--section", "LaunchStats", "--section", "WarpStateStats", "--metrics", metrics, "--clock-control", "none",
                "--page", "raw", "--csv", "./example", "--once", "--random"], folder)
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise RuntimeError(f"ncu printed no table: {text.strip()[-600:]}")
    titles, units, *rows = list(csv.reader(io.StringIO("\n".join(lines[start:]))))
    return [{title: (unit, value) for title, unit, value in zip(titles, units, row)} for row in rows]


def number(row, metric):
    unit, text = row.get(metric, ("", ""))
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value * TIME_UNITS.get(unit, BYTE_UNITS.get(unit, 1))


def line(row):
    cells = []
    for _, metric, factor, decimals in COLUMNS:
        value = number(row, metric)
        cells.append("" if value is None else f"{value * (factor or 1):.{decimals}f}")
    stalls = []
    for metric in row:
        if metric.startswith(STALL) and metric.endswith("_per_issue_active.ratio") and number(row, metric) is not None:
            stalls.append((number(row, metric), metric[len(STALL):-len("_per_issue_active.ratio")]))
    stalls.sort(reverse=True)
    cells.append(", ".join(f"{name} {value:.1f}" for value, name in stalls[:3]))
    return "| " + " | ".join([row["Kernel Name"][1][:40], *cells]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    titles = ["kernel", *(title for title, *_ in COLUMNS), "stalls (warps a issue)"]
    print("| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles))
    failed = False
    for folder in options.folders:
        print(f"| **{folder.name}** |", flush=True)
        try:
            for row in profile(folder):
                print(line(row), flush=True)
        except (RuntimeError, OSError) as error:
            failed = True
            print(f"profile_folders.py: {folder}: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
