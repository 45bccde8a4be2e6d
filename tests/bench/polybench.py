#!/usr/bin/env python3
"""What `fusion-client check` says of the loops of PolyBench/C: how many of them are proved parallel, and how long the check takes.

    tests/bench/polybench.py POLYBENCH [--client build/release/bin/fusion-client] [--list]

POLYBENCH is the folder with `utilities` in it. A program counts once: where a loop is proved parallel as it is written, or else in another order of its
iterations, or else where the check says that a loop adds up.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--client", default="build/release/bin/fusion-client")
    parser.add_argument("--list", action="store_true", help="print the answer for each program")
    arguments = parser.parse_args()
    programs = sorted(path for path in arguments.folder.rglob("*.c")
                      if path.stem == path.parent.name and "#pragma scop" in path.read_text(errors="replace"))
    if not programs:
        sys.exit(f"{arguments.folder}: no programs with #pragma scop")
    environment = dict(os.environ, CPATH=str(arguments.folder / "utilities"))
    kinds = {r":\d+: \w+ is parallel: proved": [], "; in another order it is parallel: proved": [], " adds up ": []}
    seconds = []
    for path in programs:
        start = time.monotonic()
        done = subprocess.run([arguments.client, "check", str(path)], capture_output=True, text=True, env=environment, check=False)
        seconds.append(time.monotonic() - start)
        for said, found in kinds.items():
            if re.search(said, done.stdout):
                found.append(path.stem)
                break
        if arguments.list:
            print(f"{path.name}: {seconds[-1]:.2f} s\n{done.stdout}{done.stderr}")
    written, reordered, sums = kinds.values()
    print(f"{len(written)} of {len(programs)} programs have a loop that is proved parallel; {len(reordered)} more ({', '.join(reordered)}) have one "
          f"that is in another order, and {len(sums)} more ({', '.join(sums)}) one that adds up. A check takes {statistics.median(seconds):.2f} s in "
          f"the median, {max(seconds):.2f} s at most, with the preprocessor")


if __name__ == "__main__":
    main()
