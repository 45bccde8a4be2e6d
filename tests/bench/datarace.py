#!/usr/bin/env python3
"""What `fusion-client check` says of the loops of DataRaceBench, of which the names say whether they have a data race.

    tests/bench/datarace.py DATARACEBENCH/micro-benchmarks [--client build/release/bin/fusion-client] [--list]

Counted are the C programs with "parallel for" or "target" and none of tasks, critical sections, atomics, barriers, sections and locks, which are
not loops that a device could run. A race is found where the loop is refused with two iterations that touch the same memory; a loop is accepted
where it is proved parallel, or where nothing but the pragma says so, with the mark that the check gives it.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

LEFT_OUT = re.compile(r"#pragma\s+omp[^\n]*\b(task|taskloop|critical|atomic|barrier|sections|section|single|master|ordered|flush|taskwait)\b|omp_\w*_lock")
COUNTED = re.compile(r"#pragma\s+omp[^\n]*\b(parallel\s+for|target)\b")


def verdict(client, path):
    done = subprocess.run([client, "check", str(path)], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 0:
        return ("asserted" if "says so" in done.stdout or not re.search("parallel: proved", done.stdout) else "proved"), done.stdout
    if re.search(r"error: iterations of \w+ share", done.stderr):
        return "refused with a witness", done.stderr
    return ("nothing marked" if "no loops are marked" in done.stderr else "not read"), done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--client", default="build/release/bin/fusion-client")
    parser.add_argument("--list", action="store_true", help="print each program with its verdict")
    arguments = parser.parse_args()
    counts = {"yes": collections.Counter(), "no": collections.Counter()}
    for path in sorted(arguments.folder.glob("*.c")):
        race = re.search(r"-(yes|no)\.c$", path.name)
        text = path.read_text(errors="replace")
        if not race or not COUNTED.search(text) or LEFT_OUT.search(text):
            continue
        found, said = verdict(arguments.client, path)
        counts[race.group(1)][found] += 1
        if arguments.list:
            print(f"{path.name}: {found}: {said.strip().splitlines()[0] if said.strip() else ''}")
    for name, meaning in (("yes", "with a race"), ("no", "without")):
        total = sum(counts[name].values())
        print(f"{total} programs {meaning}: " + ", ".join(f"{count} {found}" for found, count in counts[name].most_common()))
    if counts["yes"]["proved"]:
        sys.exit("a loop with a race was proved to be parallel")


if __name__ == "__main__":
    main()
