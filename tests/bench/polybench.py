#!/usr/bin/env python3
"""What `fusion-client check` says of the loops of PolyBench/C: how many of them are proved parallel, and how long the check takes.

    tests/bench/polybench.py POLYBENCH [--client build/release/bin/fusion-client] [--list]

POLYBENCH is the folder with `utilities` in it. A program counts where at least one of its loops could be a kernel.
"""
import argparse
import os
import pathlib
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
    programs = sorted(path for path in arguments.folder.rglob("*.c") if "#pragma scop" in path.read_text(errors="replace"))
    if not programs:
        sys.exit(f"{arguments.folder}: no programs with #pragma scop")
    environment = dict(os.environ, CPATH=str(arguments.folder / "utilities"))
    kernels, seconds = 0, []
    for path in programs:
        start = time.monotonic()
        done = subprocess.run([arguments.client, "check", str(path)], capture_output=True, text=True, env=environment, check=False)
        seconds.append(time.monotonic() - start)
        kernels += ": proved" in done.stdout
        if arguments.list:
            print(f"{path.name}: {seconds[-1]:.2f} s\n{done.stdout}{done.stderr}")
    print(f"{kernels} of {len(programs)} programs have a loop that is proved parallel; a check takes {statistics.median(seconds):.2f} s in the median, "
          f"{max(seconds):.2f} s at most, with the preprocessor")


if __name__ == "__main__":
    main()
