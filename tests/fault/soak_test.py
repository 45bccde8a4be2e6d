#!/usr/bin/env python3
"""Checks of soak.py: what it reads, how it judges, what it keeps, and that the tests tell the figures that rows ask for."""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import soak
from soak import Row, at_least, at_most, judge, none_of

# The rows that the farm was asked to show, each by a word of it and of the rows of the soak that show it.
ASKED = {"10,000 seeds": 1, "500: job": 1, "200, past their lease": 1, "between each pair of commits": 1, "cut both ways": 1,
         "disk full": 1, "clock|100: recovery": 1, "every sync of the SQLite log": 1, "illegal address": 2, "30 kinds": 2, "60 probes": 1,
         "role x method matrix": 1, "2,000 messages": 1, "10^6 runs": 1, "rapid reset": 1, "1,000 workers": 1, "100 times the rate": 1,
         "one GPU, 8 cores": 1, "1 hour": 1}


def shell(name, script, *conditions, **more):
    return Row(name, "something", ["sh", "-c", script], conditions, **more)


class JudgeTest(unittest.TestCase):
    def test_figures_of_one_name_are_added_or_the_worst_is_taken(self):
        row = shell("x", "", at_least("seeds", 30, 3), at_least("least", 5, 5, "min"), at_most("p99 s", 20), none_of("lost"))
        output = "figure: seeds = 10\nfigure: least = 7\nother\nfigure: p99 s = 3.5\nfigure: lost = 0\n" \
                 "figure: seeds = 20\nfigure: least = 6\nfigure: p99 s = 1e1\nfigure: lost = 0\n"
        self.assertEqual(judge(row, output, 0, True), ("pass", "seeds: 30; least: 6; p99 s: 10; lost: 0"))

    def test_what_misses_is_said_with_its_bound(self):
        row = shell("x", "", at_least("seeds", 30, 3), at_most("p99 s", 20), none_of("lost"))
        verdict, counted = judge(row, "figure: seeds = 29\nfigure: p99 s = 20.5\nfigure: lost = 2\n", 0, True)
        self.assertEqual(verdict, "MISSED: seeds: 29, at least 30 asked; p99 s: 20.5, at most 20 asked; lost: 2, exactly 0 asked")
        self.assertEqual(counted, "seeds: 29; p99 s: 20.5; lost: 2")

    def test_the_short_form_has_bounds_of_its_own(self):
        row = shell("x", "", at_least("seeds", 30, 3), at_most("p99 s", 20))
        self.assertEqual(judge(row, "figure: seeds = 3\nfigure: p99 s = 99\n", 0, False)[0], "pass")
        self.assertEqual(judge(row, "figure: seeds = 2\nfigure: p99 s = 99\n", 0, False)[0], "MISSED: seeds: 2, at least 3 asked")

    def test_a_figure_that_was_not_told_or_is_no_number_is_missed(self):
        row = shell("x", "", at_least("seeds", 30), at_most("p99 s", 20))
        self.assertEqual(judge(row, "figure: seeds = 30\n", 0, True), ("MISSED: p99 s was not told", "seeds: 30"))
        self.assertTrue(judge(row, "figure: seeds = 30\nfigure: p99 s = 5\nfigure: p99 s = nan\n", 0, True)[0].startswith("MISSED: p99 s: nan"))

    def test_failures_are_no_passes_whatever_was_counted(self):
        row = shell("x", "", at_least("seeds", 30))
        self.assertEqual(judge(row, "figure: seeds = 30\n", 1, True)[0], "FAIL (exit status 1)")
        self.assertEqual(judge(row, "", -11, True)[0], "FAIL (killed by signal 11): seeds was not told")
        self.assertEqual(judge(row, "figure: seeds = 3\n", 1, True)[0], "MISSED: seeds: 3, at least 30 asked (exit status 1)")

    def test_what_cannot_be_done_here_is_skipped(self):
        self.assertEqual(judge(shell("x", "", at_least("links", 200)), "SKIP: no namespaces\n", 77, True)[0], "SKIP: no namespaces")

    def test_numbers(self):
        self.assertEqual([soak.number(value) for value in (3, 128500.5, 0.0059, 16.912, float("inf"))],
                         ["3", "128,500", "0.0059", "16.91", "inf"])

    def test_patterns_find_values_and_count(self):
        row = shell("x", "", at_least("certificates", 2), at_most("p99, s", 0.01),
                    patterns={"certificates": r"^\[ +OK \] CertificatesTest\.", "p99, s": r'"submit_p99_seconds": ([\d.e+-]+)'})
        output = '[       OK ] CertificatesTest.A (3 ms)\n[  FAILED  ] CertificatesTest.B (3 ms)\n' \
                 '[       OK ] CertificatesTest.C (3 ms)\n "submit_p99_seconds": 5.9e-03,\n'
        self.assertEqual(judge(row, output, 0, True), ("pass", "certificates: 2; p99, s: 0.0059"))


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_all(self, *rows, only="", gpu=False, long_form=True):
        """(whether it was good, its output)"""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            good = soak.run_all(rows, long_form, only, self.folder, gpu)
        return good, output.getvalue()

    def test_a_row_for_each_with_what_was_counted(self):
        good, text = self.run_all(shell("one", "echo 'figure: n = 5'", at_least("n", 5)), shell("two", "echo 'figure: n = 4'", at_least("n", 5)))
        self.assertFalse(good)
        self.assertRegex(text, r"\| one \| something \| n: 5 \| pass \| \d{4}-\d\d-\d\d \w+ \| 0 s \|")
        self.assertIn("| two | something | n: 4 | MISSED: n: 4, at least 5 asked |", text)

    def test_what_passed_is_not_run_again_and_what_missed_is(self):
        count = shell("a / b, c", f"echo x >>{self.folder}/runs; echo figure: n = 5", at_least("n", 5))
        once_bad = shell("bad", f"echo x >>{self.folder}/bad; echo figure: n = 5; exit 1", at_least("n", 5))
        first, second = self.run_all(count, once_bad)[1], self.run_all(count, once_bad)[1]
        self.assertEqual((self.folder / "runs").read_text(), "x\n")
        self.assertEqual((self.folder / "bad").read_text(), "x\nx\n")
        self.assertIn("before  a / b, c", second)
        line = lambda text: next(line for line in text.splitlines() if line.startswith("| a / b, c |"))
        self.assertEqual(line(first), line(second))
        self.assertEqual((self.folder / "a___b__c.log").read_text(), "figure: n = 5\n")

    def test_the_short_form_is_kept_apart(self):
        row = shell("one", "echo figure: n = $((${FUSION_LONG_TESTS:-0} + 5))", at_least("n", 6, 5))
        self.assertIn("| n: 5 | pass (short form) |", self.run_all(row, long_form=False)[1])
        self.assertIn("| n: 6 | pass |", self.run_all(row)[1])

    def test_only(self):
        rows = shell("storage, full", "true"), shell("storage, cut", "true"), shell("soak", "false")
        good, text = self.run_all(*rows, only="storage")
        self.assertTrue(good)
        self.assertEqual(text.count("| pass |"), 2)
        self.assertNotIn("soak", text.replace(str(self.folder), ""))

    def test_gpu_rows(self):
        row = shell("kernels, GPU", "echo figure: n = 5", at_least("n", 5), needs_gpu=True)
        good, text = self.run_all(row)
        self.assertTrue(good)
        self.assertIn("| kernels, GPU | something |  | needs a GPU |", text)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIn("| n: 5 | pass |", self.run_all(row, gpu=True)[1])

    def test_a_program_that_is_not_there_fails(self):
        good, text = self.run_all(Row("x", "something", ["/no/such/program"], (at_least("n", 1),)))
        self.assertFalse(good)
        self.assertIn("FAIL (exit status 127): n was not told", text)

    def test_a_row_of_the_environment(self):
        row = shell("x", "echo figure: n = $FUSION_LONG_TESTS", none_of("n"), environment=soak.SHORT_FORM)
        self.assertIn("| n: 0 | pass |", self.run_all(row)[1])


class RowsTest(unittest.TestCase):
    def test_every_row_that_was_asked_for_is_there(self):
        rows = soak.rows_of(pathlib.Path("build"), True)
        for words, wanted in ASKED.items():
            self.assertEqual(sum(re.search(words.replace("^", r"\^"), row.asked) is not None for row in rows), wanted, words)
        self.assertEqual(len({row.name for row in rows}), len(rows))
        for row in rows:
            self.assertTrue(row.conditions, row.name)

    def test_bounds_of_the_short_form_are_no_stricter(self):
        for row in soak.rows_of(pathlib.Path("build"), True):
            for condition in row.conditions:
                if condition.quick is not None:
                    self.assertTrue(condition.met(condition.bound, False), f"{row.name}: {condition.figure}")

    def test_the_tests_tell_what_is_judged(self):
        told = "\n".join(path.read_text() for folder in ("fault", "unit/measure", "bench", "fuzz")
                         for path in (soak.ROOT / "tests" / folder).rglob("*")
                         if path.suffix in (".cc", ".h", ".py", ".sh") and not path.name.startswith("soak"))
        for row in soak.rows_of(pathlib.Path("build"), True):
            for condition in row.conditions:
                if condition.figure in row.patterns:
                    continue
                # Of several kinds: the name is put together.
                name = re.sub(r"^(links|runs of) .*", r"figure.*\1 ", condition.figure)
                name = re.sub(r", (cold|cached)", ", {name}", name)
                pattern = name if name.startswith("figure") else re.escape(name)
                self.assertRegex(told, pattern, f"{row.name}: {condition.figure}")

    def test_commands_name_what_there_is(self):
        for row in soak.rows_of(pathlib.Path("build"), True):
            for word in row.command:
                if word.startswith("tests/") or word.startswith("examples/"):
                    self.assertTrue((soak.ROOT / word).exists(), f"{row.name}: {word}")

    def test_usage(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/bin")
            ask = lambda *options: subprocess.run([sys.executable, str(HERE / "soak.py"), *options], capture_output=True, text=True)
            wrong = ask("--only", "no such row", folder)
            self.assertEqual(wrong.returncode, 2)
            self.assertIn("no row's name holds 'no such row'; there are: simulated farm, ", wrong.stderr)
            self.assertIn("has no folder bin: build first", ask(f"{folder}/bin").stderr)


if __name__ == "__main__":
    unittest.main()
