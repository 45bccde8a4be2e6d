#!/usr/bin/env python3
"""Sums of integers over a loop's iterations are those of plain clang -O0, on any number of threads and in mode check; each loop of
sums.c has the remark that stands before it.

  sums_test.py --cc PATH_OF_fusion-cc [--plain clang-19] [--keep DIR]
"""

import pathlib
import re
import subprocess

import partition_runs as runs

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests/integration/partition/programs"
WAYS = [{"FUSION_PARTITION": "off"}, {"FUSION_PARTITION": "check"}, {"FUSION_PARTITION": "auto", "FUSION_PARTITION_THREADS": "1"},
        {"FUSION_PARTITION_SPLIT": "1"}] + [
            {"FUSION_PARTITION": "host", "FUSION_PARTITION_THREADS": threads} for threads in "1237"]


def build(arguments, folder):
    """Returns the program and what the compiler said of sums.c."""
    plain, tested, program = folder / "plain.o", folder / "tested.o", folder / "sums"
    source = PROGRAMS / "sums.c"
    runs.call_compiler([arguments.plain, "-O0", "-I", ROOT, "-DPLAIN", "-c", source, "-o", plain])
    remarks = runs.call_compiler([arguments.compiler, "-O2", "-I", ROOT, "-Rpass=fusion", "-Rpass-missed=fusion", "-c", source, "-o", tested])
    runs.call_compiler([arguments.compiler, "-O0", "-I", ROOT, PROGRAMS / "sums_driver.c", plain, tested, "-o", program])
    return program, remarks


def run(program, way, loops):
    """Returns what is wrong with one run of the program, one text each."""
    done = subprocess.run([program], env=dict(runs.environment("0.4"), **way), capture_output=True, text=True, timeout=runs.RUN_LIMIT,
                          check=False)
    wrong = [f"{way}: {line}" for line in done.stdout.splitlines() if not line.startswith("CALLS")]
    if done.returncode != 0 or "CALLS" not in done.stdout:
        wrong.append(f"{way}: ended with {done.returncode}")
    if "wrong results" in done.stderr:
        wrong.append(f"{way}: {done.stderr}")
    ran = len(re.findall(r"sums\.c:\d+:\d+ \w+: calls [1-9]", done.stderr))
    if ran != (0 if way.get("FUSION_PARTITION") == "off" else loops):
        wrong.append(f"{way}: {ran} of {loops} loops were run by the library")
    return wrong


def may_be_hoisted(arguments, folder):
    """Returns true when LLVM knows that a function of sums only reads, as it does without the plugin."""
    text = folder / "sums.ll"
    runs.call_compiler([arguments.compiler, "-O2", "-I", ROOT, "-S", "-emit-llvm", PROGRAMS / "sums.c", "-o", text])
    lines = text.read_text(encoding="utf-8")
    group = re.search(r"^define .*@added\(.* (#\d+)", lines, re.MULTILINE)[1]
    return "memory(argmem: read)" in re.search(rf"^attributes {group} = (.*)$", lines, re.MULTILINE)[1]


def check(arguments, folder):
    program, remarks = build(arguments, folder)
    wrong = [] if may_be_hoisted(arguments, folder) else ["a sum is not known to read only"]
    wrong += runs.other_remarks(PROGRAMS / "sums.c", remarks)
    for way in WAYS:
        wrong += run(program, way, runs.partitioned_loops(remarks))
    return wrong


runs.main(__doc__, check)
