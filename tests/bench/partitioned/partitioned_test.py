#!/usr/bin/env python3
"""Checks of the scripts that measure partitioned programs: sizes, texts, what is compared and what the tables say.

    tests/bench/partitioned/partitioned_test.py
"""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

import openmp_kernels
import partition_device
import partition_tables
import programs
import write_benchmarks

KERNELS = programs.polybench.KERNELS


def run(call, whole=None, calls=1, bits="same", sample=1.0):
    return {"whole": whole or call, "calls": [call] * calls, "hashes": [bits], "sample": sample}


def entry(name, **runs):
    made = {"kernel": name, "sizes": [1], "set": "MINI", "runs": {mode.replace("_", " "): found for mode, found in runs.items()}}
    partition_device.judge(made)
    return made


class ProgramsTest(unittest.TestCase):
    def test_all_kernels_have_sizes_and_large_ones_are_those_of_the_tests(self):
        self.assertEqual(set(programs.SIZES), set(KERNELS))
        self.assertEqual(set(partition_device.SECONDS), set(KERNELS))
        for name, kernel in KERNELS.items():
            self.assertEqual(programs.sizes_of(name, "LARGE"), list(kernel.values("large").values()), name)

    def test_kernels_with_marked_loops_have_directives(self):
        self.assertEqual(set(openmp_kernels.BODIES), {name for name, kernel in KERNELS.items() if kernel.marked})
        for name in openmp_kernels.BODIES:
            self.assertIn(openmp_kernels.LOOP, programs.openmp_text(KERNELS[name]))

    def test_arrays_that_are_stored_to(self):
        self.assertEqual(programs.written(KERNELS["gemm"]), ["C"])
        self.assertEqual(programs.written(KERNELS["gesummv"]), ["tmp", "y"])
        self.assertEqual(programs.written(KERNELS["2mm"]), ["tmp", "D"])
        self.assertEqual(programs.written(KERNELS["heat-3d"]), ["A", "B"])
        self.assertEqual(programs.written(KERNELS["floyd-warshall"]), ["path"])

    def test_shapes_are_in_the_order_of_parameters(self):
        self.assertEqual([" ".join([name, *map(str, sizes)]) for name, sizes in partition_device.SHAPES], list(partition_tables.SHAPES))
        self.assertEqual(list(KERNELS["syrk"].sizes), ["m", "n"])


class BitsTest(unittest.TestCase):
    def test_other_bits_are_wrong_unless_openmp_is_close(self):
        made = entry("gemm", sequential=[run(1)], auto=[run(1), run(1, bits="other")], openmp=[run(1, bits="other"), run(1, bits="other", sample=1.1)])
        self.assertEqual([one["bits"] for one in made["runs"]["auto"]], ["same", "wrong"])
        self.assertEqual([one["bits"] for one in made["runs"]["openmp"]], ["close", "wrong"])
        self.assertEqual(len(partition_tables.good(made, "auto")), 1)


class TablesTest(unittest.TestCase):
    def document(self):
        shape = {"sequential": [run(2.0)], "one_thread": [run(2.1)], "auto": [{**run(0.01), "calls": [2.0, 0.5, 0.0104, 0.01, 0.01, 0.01, 0.01]}],
                 "device": [run(0.02, calls=3)], "openmp": [run(0.04, calls=3)]}
        return {"date": "2026-01-02", "device": "Test GPU", "processors": 16, "compiler": "clang", "flags": ["-O3"], "at_most_side_by_side": 4,
                "seed": {"gesummv 2000": entry("gesummv", **shape)},
                "polybench": {"mvt": entry("mvt", sequential=[run(1.0)], auto=[run(0.1)], openmp=[run(0.2)]),
                              "trisolv": entry("trisolv", sequential=[run(1.0)], auto=[run(1.25)])},
                "small": {"mvt": entry("mvt", sequential=[run(0.010), run(0.011)], auto=[run(0.012), run(0.013)])}}

    def test_what_the_section_says(self):
        text = "\n".join(partition_tables.paragraphs(self.document(), {"cases": []}, write_benchmarks.table))
        self.assertIn("| gesummv 2000 | 2 | 0.39 | 0.95 | 0.39 | 200 | 10 | 1.00 | 3 | 100 | 50.0 | - |", text)
        self.assertIn("| mvt | 1 | 10.0 | 10.0 | - | 2.00 |", text)
        self.assertIn("| trisolv | 1 | 0.80 | 0.80 | - | - |", text)
        self.assertIn("| the six shapes | 1 of 1 met |", text)
        self.assertIn("| EXTRALARGE, geometric mean over 2 | 2.83 | 10 |", text)
        self.assertIn("| EXTRALARGE, worst | 0.80, trisolv | 0.97 |", text)
        self.assertIn("| MINI, 1 kernels: mean; worst; most above 1.03 times | 1.20; 1.20, mvt; 1.7 ms, mvt | 1 ms |", text)

    def test_wrong_results_are_named_and_not_counted(self):
        document = self.document()
        document["polybench"]["mvt"] = entry("mvt", sequential=[run(1.0)], auto=[run(0.1, bits="other")])
        text = "\n".join(partition_tables.paragraphs(document, {"cases": []}, write_benchmarks.table))
        self.assertIn("but for mvt auto", text)
        self.assertIn("| mvt | 1 | - | - | - | - |", text)


if __name__ == "__main__":
    unittest.main()
