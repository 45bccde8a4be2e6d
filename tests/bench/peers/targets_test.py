#!/usr/bin/env python3
"""Checks of the targets of the comparison: that the worst row is found, that what misses is listed with its reason, and that the
stored results have a reason for all that misses and for nothing else.

    tests/bench/peers/targets_test.py
"""
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import report
import sequences
import targets
import write_benchmarks


def row_of(case, ours, peers, floor=100.0):
    """A row; times in microseconds, `peers` by name."""
    timed = {peer: {"seconds": {"median": value * 1e-6}} for peer, value in {"ours": ours, **peers}.items()}
    return {"sequence": case.sequence, "set": case.set, "type": case.type, "side": case.side, "floor_seconds": floor * 1e-6,
            "results": timed, "date": "2026-01-02T03:04:05"}


def rows_at_target():
    """All cases, at the floor in 100 us, with peers that take 2000 us."""
    return [row_of(case, 100.0, {"eager": 2500.0, "compile": 2000.0}) for case in sequences.cases(sequences.SETS, sequences.TYPES)]


def change(rows, name, **results):
    """Sets times (microseconds) of the row of that name."""
    row = next(row for row in rows if targets.row_name(row) == name)
    for peer, value in results.items():
        row["results"][peer] = {"seconds": {"median": value * 1e-6}}
    return row


def line(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


class TableTest(unittest.TestCase):
    def table(self, rows):
        return targets.table(targets.judgements(rows))

    def test_all_met(self):
        text = self.table(rows_at_target())
        self.assertNotIn("MISSED", text)
        self.assertNotIn("measured:", text)
        self.assertIn("met: of the 10 lines above 10 met, 0 missed, 0 not or not wholly measured", text)
        self.assertIn("| at least 1.35 | met: 20.00 | |", text)
        self.assertEqual(targets.missed_list(targets.judgements(rows_at_target()), {}), "Nothing that was measured misses a target.\n")

    def test_worst_row_is_the_largest_over_the_floor_and_the_smallest_ratio(self):
        rows = rows_at_target()
        change(rows, "BiCGK, large, f32", ours=104.0)
        change(rows, "GEMVER, large, f32", ours=106.0)
        change(rows, "CG step 3072, fit, f64", ours=1600.0)
        text = self.table(rows)
        self.assertIn("MISSED by 1 of 4: worst 1.06, GEMVER | met: worst 1.00, BiCGK |", line(text, "| SGEMV, GESUMMV"))
        self.assertIn("| met: worst 20.00, SGEMVT 2048 | MISSED by 1 of 6: worst 1.25, CG step 3072 |", line(text, "| SGEMVT, CG step"))
        self.assertIn("of the 10 lines above 9 met, 1 missed", text)

    def test_every_target_asks_of_sequences_that_there_are(self):
        for target in targets.TARGETS:
            for condition in target.conditions:
                self.assertLessEqual(set(condition.sequences), set(sequences.BY_NAME), target.case)
                self.assertTrue(targets.judge(condition, [], "f32" if condition.set else None).asked, target.case)

    def test_best_peer_counts_cuda_graphs_and_inductor_only_torch_compile(self):
        rows = rows_at_target()
        change(rows, "GEMVER 2048, fit, f32", compile_graphs=140.0)
        change(rows, "Function I, small, f32", compile_products=300.0)
        text = self.table(rows)
        self.assertIn("MISSED by 1 of 6: worst 1.40, GEMVER 2048", line(text, "| SGEMVT, CG step"))
        self.assertIn("| met: worst 20.00, Function I |", line(text, "|  | Function I and II at least 10 times"))
        change(rows, "Function I, small, f32", compile_graphs=900.0)
        self.assertIn("MISSED by 1 of 2: worst 9.00, Function I |", line(self.table(rows), "|  | Function I and II at least 10 times"))

    def test_digits_tell_on_which_side_of_the_bound_a_figure_is(self):
        rows = rows_at_target()
        change(rows, "SSCAL, large, f32", compile=99.93)
        change(rows, "VADD, large, f32", ours=103.2)
        text = self.table(rows)
        self.assertIn("MISSED by 1 of 7: worst 0.999, SSCAL", line(text, "|  | never slower"))
        self.assertIn("MISSED by 1 of 7: worst 1.032, VADD", line(text, "| Function I, II; VADD"))

    def test_what_was_not_measured_is_said(self):
        rows = [row for row in rows_at_target() if targets.row_name(row) != "ATAX, large, f32" and row["sequence"] != "mapped_product_8"]
        rows = [row for row in rows if row["type"] == "f32" or not row["sequence"].startswith("mapped_product")]
        text = self.table(rows)
        self.assertIn("| met where measured: worst 1.00, softmax (2 of 3 rows measured) |", line(text, "| ATAX"))
        self.assertIn("(4 of 5 rows measured) | not measured |", line(text, "| mapped products"))
        self.assertIn("of the 10 lines above 7 met, 0 missed, 3 not", text)

    def test_ours_wrong_or_not_run_misses(self):
        rows = rows_at_target()
        change(rows, "softmax, large, f32")["results"]["ours"] = {"wrong": "relative error 0.5"}
        change(rows, "ATAX, small, f64")["error"] = "data: out of memory"
        text = self.table(rows)
        self.assertIn("MISSED by 1 of 3: worst failed, softmax", line(text, "| ATAX, softmax"))
        listed = targets.missed_list(targets.judgements(rows), {})
        self.assertIn("ATAX, small, f64: failed (at least 1); failed (at least 1.5)", listed)

    def test_a_peer_that_failed_is_no_miss_of_ours(self):
        rows = rows_at_target()
        change(rows, "Function I, small, f64")["results"]["compile"] = {"error": "no answer"}
        self.assertIn("| met where measured: worst 20.00, Function II (1 of 2 rows measured) |",
                      line(self.table(rows), "|  | Function I and II at least 10"))

    def test_the_mean_over_all_rows_is_that_of_the_report(self):
        rows = rows_at_target()
        change(rows, "SGEMVT 3072, fit, f32", ours=5.0)
        self.assertIn(f"met: {report.markdown(rows).split('rows: ')[-1].split('.')[0]}.", line(self.table(rows), "| geometric mean"))


class ReasonsTest(unittest.TestCase):
    def rows(self):
        rows = rows_at_target()
        change(rows, "softmax, large, f64", ours=110.0)
        change(rows, "GESUMMV, small, f32", compile=136.0)
        change(rows, "GESUMMV, small, f64", compile=137.0)
        return rows

    def listed(self, reasons):
        return targets.missed_list(targets.judgements(self.rows()), targets.read_reasons(reasons))

    def test_names_above_one_text_share_it(self):
        text = self.listed("# Title\n\n## softmax, large, f64\n\nExponentials.\nMany.\n\n## GESUMMV, small, f32\n## GESUMMV, small, f64\nL2.\n")
        self.assertEqual(text, "- **softmax, large, f64: 1.10 (at most 1.08).**\n  Exponentials.\n  Many.\n"
                               "- **GESUMMV, small, f32: 1.36 (at least 1.5); GESUMMV, small, f64: 1.37 (at least 1.5).**\n  L2.\n")

    def test_a_missed_row_without_a_reason_is_said(self):
        reasons = "## softmax, large, f64\nExponentials.\n## GESUMMV, small, f64\nL2.\n"
        self.assertIn("- **GESUMMV, small, f32: 1.36 (at least 1.5).**\n  No reason recorded.\n", self.listed(reasons))
        self.assertEqual(targets.without_reason(targets.judgements(self.rows()), targets.read_reasons(reasons)), ["GESUMMV, small, f32"])

    def test_a_reason_of_a_row_that_is_met_is_stale(self):
        reasons = "## softmax, large, f32\nNo longer.\n"
        self.assertIn("- Stale, reasons of what is met now: softmax, large, f32.\n", self.listed(reasons))
        self.assertEqual(targets.stale(targets.judgements(self.rows()), targets.read_reasons(reasons)), ["softmax, large, f32"])

    def test_unknown_names_and_missing_texts_are_errors(self):
        with self.assertRaisesRegex(ValueError, "'softmaxx, large, f32', which no row is called"):
            self.listed("## softmaxx, large, f32\nText.\n")
        with self.assertRaisesRegex(ValueError, "no reason stands below 'softmax, large, f64'"):
            self.listed("## GESUMMV, small, f32\nL2.\n## softmax, large, f64\n\n")
        with self.assertRaisesRegex(ValueError, "'softmax, large, f64' has two reasons"):
            self.listed("## softmax, large, f64\nA.\n## softmax, large, f64\nB.\n")

    def test_means_that_miss_have_names(self):
        rows = rows_at_target()
        for row in rows:
            if row["set"] == "small" and row["type"] == "f64":
                change(rows, targets.row_name(row), compile=140.0)
        judged = targets.judgements(rows)
        self.assertIn("geometric mean, small, f64", targets.missed_names(judged))
        self.assertNotIn("geometric mean, small, f64",
                         targets.without_reason(judged, targets.read_reasons("## geometric mean, small, f64\nPeers.\n")))


class StoredResultsTest(unittest.TestCase):
    def test_all_that_misses_has_a_reason_and_nothing_else_has(self):
        judged, reasons = targets.judgements(write_benchmarks.read("peers-h200.json")["rows"]), write_benchmarks.reasons()
        self.assertEqual(targets.without_reason(judged, reasons), [])
        self.assertEqual(targets.stale(judged, reasons), [])

    def test_the_page_is_what_the_results_say_and_short(self):
        text = write_benchmarks.page()
        self.assertEqual((write_benchmarks.ROOT / "BENCHMARKS.md").read_text(), text)
        self.assertLessEqual(len(text.encode()), write_benchmarks.MOST_BYTES)

    def test_conditions(self):
        document = {"device": {"name": "Test GPU", "arch": "sm_90"}, "versions": {"cuda": "13.0"}, "date": "2026-01-02",
                    "conditions_after": {"driver_version": "555.1", "clocks.sm": "1980 MHz", "clocks.mem": "2619 MHz"}, "rows": rows_at_target()}
        self.assertIn("Test GPU; rows of 2026-01-02; driver 555.1; CUDA 13.0; clocks 1980 MHz (multiprocessors), 2619 MHz (memory).",
                      targets.conditions(document["rows"], [document]))


if __name__ == "__main__":
    unittest.main()
