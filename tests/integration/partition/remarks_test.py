#!/usr/bin/env python3
"""What the compiler says of each loop of remarks.cc is, word for word, the comment that stands before it.

  remarks_test.py --cxx PATH_OF_fusion-c++ [--keep DIR]
"""

import pathlib

import partition_runs as runs

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCE = ROOT / "tests/integration/partition/programs/remarks.cc"


def check(arguments, folder):
    """Returns what is wrong, one text each."""
    remarks = runs.call_compiler([arguments.compiler, "-O2", "-std=c++20", "-I", ROOT, "-Rpass=fusion", "-Rpass-missed=fusion", "-c", SOURCE,
                                  "-o", folder / "remarks.o"])
    return runs.other_remarks(SOURCE, remarks)


runs.main(__doc__, check, "--cxx")
