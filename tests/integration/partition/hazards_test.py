#!/usr/bin/env python3
"""Calls with overlaps, odd sizes, wrap-around and memory that is not there give the same bytes as with plain clang -O0, at every split.

  hazards_test.py --cc fusion-cc [--plain clang-19] [--splits 0,0.3,0.7,1] [--keep DIR]
  hazards_test.py --cc clang-19 --self-check         the calls themselves: plain -O2 agrees with -O0

Exits 1 when a call differs or crashes, and when the compiler partitioned no loop.
"""

import pathlib
import re
import sys

import partition_runs

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests/integration/partition/programs"
REORDERED = 3  # nests
FLAGS = ["-ffp-contract=off", "-I", ROOT]


def build(arguments, folder):
    """Returns the program, how many loops were partitioned, and how many nests reordered."""
    reference, tested, driver = folder / "reference.o", folder / "tested.o", folder / "driver.o"
    source = PROGRAMS / "hazards.c"
    partition_runs.call_compiler([arguments.plain, "-O0", *FLAGS, "-DREFERENCE", "-c", source, "-o", reference])
    remarks = partition_runs.call_compiler([arguments.compiler, "-O2", *FLAGS, "-Rpass=fusion", "-c", source, "-o", tested])
    partition_runs.call_compiler([arguments.plain, "-O1", *FLAGS, "-c", PROGRAMS / "hazards_driver.c", "-o", driver])
    program = folder / "hazards"
    partition_runs.call_compiler([arguments.compiler, driver, reference, tested, "-o", program])
    return program, partition_runs.partitioned_loops(remarks), remarks.count(": loop reordered: ")


def run_group(program, name, split, report):
    """(calls, differences) of one group; prints those that differ."""
    status, out = partition_runs.run_program([program, name], split, report)
    totals = re.search(r"CALLS (\d+), (\d+) differ", out)
    lines = [line for line in out.splitlines() if not line.startswith("CALLS")]
    for line in lines:
        print(f"split {split}, {name}: {line}")
    if totals is None:
        print(f"split {split}, {name}: ended with status {status}")
        return 0, 1
    return int(totals[1]), int(totals[2])


def test(arguments, folder):
    program, loops, nests = build(arguments, folder)
    names = partition_runs.run_program([program], "0")[1].split()
    calls, different = 0, 0
    for split in partition_runs.splits_of(arguments):
        for name in names:
            more = run_group(program, name, split, folder / "hazards.report")
            calls, different = calls + more[0], different + more[1]
    print(f"hazards_test.py: {len(names)} groups, {loops} loops partitioned, {nests} nests reordered, {calls} calls compared, {different} differ")
    ran = sum(bool(re.search(r"hazards\.c:.*: reordered [1-9]", line)) for line in (folder / "hazards.report").read_text().splitlines())
    if not arguments.self_check and not (loops and nests == REORDERED and ran >= REORDERED):
        print(f"hazards_test.py: the compiler partitioned nothing, or reordered {nests} nests, which ran so {ran} times, not {REORDERED}")
        return 1
    return 1 if different or not calls else 0


def main():
    parser = partition_runs.options(__doc__, splits="0,0.3,0.7,1")
    parser.add_argument("--self-check", action="store_true", help="the compiler need not partition")
    arguments = parser.parse_args()
    return partition_runs.in_folder(arguments.keep, lambda folder: test(arguments, folder))


if __name__ == "__main__":
    sys.exit(main())
