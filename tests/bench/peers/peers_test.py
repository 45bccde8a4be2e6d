#!/usr/bin/env python3
"""Checks of the comparison that need no GPU, no torch and no JAX: statistics, tables, plot, the loader of fused programs (with a
driver that only takes notes), sizes and .fuse texts, the dialogue with the measuring process.

    tests/bench/peers/peers_test.py [--cublas-library=PATH]
"""
import ctypes
import json
import os
import pathlib
import re
import sys
import tempfile
import textwrap
import unittest
import xml.dom.minidom

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import case_worker
import fused_program
import peers_bench
import plot
import report
import sequences
import summary
import variants_bench
import write_benchmarks

CUBLAS_LIBRARY = None


def sample_row(sequence="axpydot", set_name="large", data_type="f32", **microseconds):
    sequence = sequences.BY_NAME[sequence]
    side = sequences.SIZES["large" if set_name == "large" else "small"][sequence.kind]
    bytes_ = sequence.floor_bytes(side, data_type, set_name == "large")
    results = {peer: {"seconds": summary.statistics([value * 1e-6] * 5), "protocol": "20 calls in a row" if peer == "jax" else "one graph"}
               for peer, value in microseconds.items()}
    return {"sequence": sequence.name, "set": set_name, "type": data_type, "side": side, "floor_bytes": bytes_,
            "reread": list(sequence.reread) if set_name == "large" else [], "results": results,
            "floor_seconds": bytes_ / 4e12, "copy_bytes_per_second": 4e12, "date": "2026-01-02T03:04:05"}


def sample_document():
    wrong = sample_row("bicgk", "small", ours=10.0, compile=15.0)
    wrong["results"]["eager"] = {"wrong": "relative error 0.5"}
    wrong["results"]["jax"] = {"missing": "JAX cannot be imported: no module"}
    failed = sample_row("madd", "small")
    failed["error"] = "data: out of memory"
    rows = [sample_row("axpydot", ours=280.0, cublas=600.0, compile=305.0), wrong, failed]
    return {"schema": report.SCHEMA, "date": "2026-01-02", "command": "tests/bench/peers/peers_bench.py --output x.json",
            "device": {"name": "Test GPU", "arch": "sm_90"}, "versions": {"torch": "2.0"}, "copy_bytes_per_second": 4e12,
            "conditions_before": {"driver_version": "555.1", "clocks.sm": "1980 MHz"}, "rows": rows, "not_run": []}


class SummaryTest(unittest.TestCase):
    def test_interval_ranks_are_those_of_the_binomial(self):
        # P(Binomial(n, 1/2) <= rank - 1) <= 0.025 < P(Binomial(n, 1/2) <= rank), by counting.
        for count in range(1, 40):
            tail, rank = 0, 0
            while True:
                term = 1
                for i in range(rank):
                    term = term * (count - i) // (i + 1)
                if tail + term > 0.025 * 2 ** count:
                    break
                tail += term
                rank += 1
            self.assertEqual(summary.median_interval_rank(count), max(rank - 1, 0), count)

    def test_statistics(self):
        found = summary.statistics([5.0, 1.0, 2.0, 4.0, 3.0, 8.0, 7.0, 6.0])
        self.assertEqual(found["median"], 4.5)
        self.assertEqual(found["samples"], 8)
        self.assertLessEqual(found["low"], found["median"])
        self.assertEqual((found["low"], found["high"]), (1.0, 8.0))

    def test_geometric_mean(self):
        self.assertAlmostEqual(summary.geometric_mean([2.0, 8.0]), 4.0)
        self.assertIsNone(summary.geometric_mean([]))


class SequencesTest(unittest.TestCase):
    def test_every_sequence_has_an_example_with_its_inputs_and_outputs(self):
        for sequence in sequences.SEQUENCES:
            text = sequence.fuse(ROOT / "examples")
            names = [word.strip() for word in re.search(r"^input ([^;]*);", text, re.M)[1].split(",")]
            self.assertEqual(sorted(names), sorted([*sequence.inputs, *sequence.scalars]), sequence.name)
            returned = [word.strip() for word in re.search(r"^return ([^;]*);", text, re.M)[1].split(",")]
            self.assertEqual(returned, list(sequence.outputs), sequence.name)

    def test_every_peer_has_every_sequence(self):
        for name in ("torch_sequences.py", "jax_sequences.py"):
            functions = re.findall(r"^def (\w+)\(([^)]*)\)", (HERE / name).read_text(), re.M)
            arguments = {function: words.replace(" ", "").split(",") for function, words in functions}
            for sequence in sequences.SEQUENCES:
                expected = [*sequence.inputs, *("lambda_" if s == "lambda" else s for s in sequence.scalars)]
                self.assertEqual(arguments[sequence.function], expected, f"{name}: {sequence.name}")

    def test_floors(self):
        floor = {s.name: s.floor_bytes(s.side("large"), "f32", True) for s in sequences.SEQUENCES}
        self.assertEqual(floor["vadd"], 16 << 26)
        self.assertEqual(floor["axpydot"], (16 << 26) + 4)
        matrix = 4 << 28
        for name, matrices in {"sgemvt": 2, "gemver": 3, "madd": 3, "bicgk": 1, "cg_step": 1, "softmax": 2}.items():
            self.assertEqual(floor[name] // matrix, matrices, name)
        self.assertEqual(floor["function1"], 4 * (1 << 22) * (9 + 9 + 3 + 25 + 25 + 25))
        sgemvt = sequences.BY_NAME["sgemvt"]
        self.assertEqual(sgemvt.floor_bytes(2048, "f64", False), 8 * (2048 * 2048 + 4 * 2048))

    def test_f64_text(self):
        text = sequences.fuse_text("size n; // scalar\nvector[n] x, y;  scalar a;\nMATRIX3x3 A;\nSCALAR s;\ninput x, a;\n", "f64")
        self.assertEqual(text, "size n; \nf64 vector[n] x, y;  f64 scalar a;\nf64 MATRIX3x3 A;\nf64 SCALAR s;\ninput x, a;\n")
        for sequence in sequences.SEQUENCES:
            text = sequences.fuse_text(sequence.fuse(ROOT / "examples"), "f64")
            words = re.findall(r"(f64 )?\b(?:matrix|vector|scalar|MATRIX\d+x\d+|VECTOR\d|SCALAR)\b", text)
            self.assertTrue(words and all(words), sequence.name)

    def test_cases(self):
        found = sequences.cases(["small", "fit"], ["f32"], ["atax", "cg_step"])
        self.assertEqual([case.key for case in found], ["atax-small-f32-2048", "cg_step-small-f32-2048", "cg_step-fit-f32-2048",
                                                        "cg_step-fit-f32-3072"])
        shapes = sequences.cases(["shapes"], ["f32"], ["softmax", "bicgk"])
        self.assertEqual([case.key for case in shapes],
                         ["bicgk-shapes-f32-4x16777216", "softmax-shapes-f32-4x16777216", "softmax-shapes-f32-16x4194304",
                          "softmax-shapes-f32-4194304x8"])
        bicgk = sequences.BY_NAME["bicgk"]
        self.assertEqual(bicgk.size_options("4x16777216"), {"m": 4, "n": 1 << 24})
        self.assertEqual(bicgk.floor_bytes("4x16777216", "f32", True), 4 * (6 * (1 << 24) + 8))
        everything = sequences.cases(sequences.SETS, sequences.TYPES)
        self.assertEqual(len({case.key for case in everything}), len(everything))


class NotingDriver:
    """Takes the calls of fused_program.Driver and notes them as numbers."""

    def __init__(self):
        self.notes, self.launches = [], []

    def load_module(self, image):
        self.notes.append(("load", image))
        return len(self.notes)

    def unload_module(self, module):
        self.notes.append(("unload", module))

    def find_kernel(self, module, name):
        return {"fused_av": 11, "fused_z_r": 12, "finish_r": 13}[name]

    def set_attribute(self, function, attribute, value):
        self.notes.append(("attribute", function, attribute, value))

    def allocate(self, size):
        self.notes.append(("allocate", size))
        return 1 << 40

    def free(self, address):
        self.notes.append(("free", address))

    def zero(self, address, size):
        self.notes.append(("zero", address, size))

    def launch(self, config, function, parameters):
        words = [ctypes.cast(p, ctypes.POINTER(ctypes.c_uint64 if function != 11 or i else ctypes.c_float)).contents.value
                 for i, p in enumerate(parameters)]
        attributes = [(config.attributes[i].id, list(config.attributes[i].value[:3])) for i in range(config.attribute_count)]
        self.launches.append((function, config.grid_x, config.block_x, config.shared_bytes, config.stream, attributes, words))


class FusedProgramTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)
        (self.folder / "binary").mkdir()
        self.description = json.loads((HERE / "testdata" / "program.json").read_text())
        for name in ("aa11", "bb22"):
            (self.folder / "binary" / f"{name}.cubin").write_bytes(name.encode())
        self.driver = NotingDriver()

    def load(self):
        (self.folder / "binary" / "program.json").write_text(json.dumps(self.description))
        return fused_program.FusedProgram(self.folder, driver=self.driver)

    def bind(self, program):
        return program.bind({"w": 100, "v": 200, "u": 300}, {"z": 400, "r": 500}, {"a": 1.25})

    def test_structures_have_the_sizes_of_the_driver_interface(self):
        self.assertEqual(ctypes.sizeof(fused_program.LaunchConfig), 56)
        self.assertEqual(fused_program.LaunchConfig.stream.offset, 32)
        self.assertEqual(fused_program.LaunchConfig.attributes.offset, 40)
        self.assertEqual(fused_program.LaunchConfig.attribute_count.offset, 48)
        self.assertEqual(ctypes.sizeof(fused_program.LaunchAttribute), 72)
        self.assertEqual(fused_program.LaunchAttribute.value.offset, 8)

    def test_launches_with_resolved_arguments(self):
        program = self.load()
        self.bind(program).launch(77)
        base = 1 << 40          # the temporary, 4000 bytes, then the workspace at the next multiple of 256
        workspace = base + 4096 + 256
        self.assertEqual(self.driver.launches, [
            (11, 4, 256, 0, 77, [], [1.25, 200, base, 1000]),
            (12, 8, 512, 65536, 77, [], [100, base, 300, 400, workspace, 1000]),
            (13, 1, 128, 0, 77, [], [workspace, 500, 8])])
        self.assertIn(("attribute", 12, 8, 65536), self.driver.notes)
        self.assertEqual([note for note in self.driver.notes if note[0] in ("load", "allocate", "zero")],
                         [("load", b"aa11"), ("load", b"bb22"), ("allocate", 8192), ("zero", base, 8192)])

    def test_launching_again_allocates_nothing(self):
        bound = self.bind(self.load())
        notes = len(self.driver.notes)
        bound.launch(1)
        bound.launch(2)
        self.assertEqual(len(self.driver.notes), notes)
        self.assertEqual([launch[4] for launch in self.driver.launches], [1, 1, 1, 2, 2, 2])

    def test_launch_attributes(self):
        launches = self.description["program"]["launches"]
        launches[0]["cooperative"] = True
        launches[1] |= {"programmatic": True, "cluster": 2}
        launches[2] |= {"cooperative": False, "programmatic": False}
        self.bind(self.load()).launch(0)
        self.assertEqual([launch[5] for launch in self.driver.launches], [[(2, [1, 0, 0])], [(6, [1, 0, 0]), (4, [2, 1, 1])], []])

    def test_f64_scalars_are_eight_bytes(self):
        self.description["inputs"][3]["data_type"] = "F64"
        program = self.load()
        argument = program._argument({"scalar_buffer": 3}, {}, {3: ctypes.c_double(0.1)})
        self.assertEqual((argument.value, ctypes.sizeof(argument)), (0.1, 8))
        self.driver.launch = lambda config, function, parameters: self.driver.launches.append(
            ctypes.cast(parameters[0], ctypes.POINTER(ctypes.c_double)).contents.value)
        self.bind(program).launch(0)
        self.assertEqual(self.driver.launches[0], 1.25)

    def test_what_it_does_not_know_is_refused(self):
        self.description["program"]["launches"][1]["new_option"] = 0
        self.load()
        self.description["program"]["launches"][1]["new_option"] = 3
        with self.assertRaisesRegex(ValueError, "fused_z_r is launched with new_option"):
            self.load()

    def test_alignment(self):
        self.description["pointer_alignment"] = 16
        with self.assertRaisesRegex(ValueError, "w is at 0x64"):
            self.bind(self.load())
        self.load().bind({"w": 96, "v": 208, "u": 304}, {"z": 400, "r": 512}, {"a": 1.25})
        with self.assertRaisesRegex(fused_program.MisalignedError, "intermediate results is at 0x1004"):
            fused_program.FusedProgram(self.folder, allocate=lambda size: (0x1004, None), driver=self.driver)
        fused_program.FusedProgram(self.folder, allocate=lambda size: (0x1010, None), driver=self.driver)

    def test_missing_buffer_is_an_error(self):
        with self.assertRaises(KeyError):
            self.load().bind({"w": 100, "v": 200}, {"z": 400, "r": 500}, {"a": 1.25})

    def test_close_frees_what_it_allocated(self):
        self.load().close()
        self.assertIn(("free", 1 << 40), self.driver.notes)
        self.assertEqual(sum(note[0] == "unload" for note in self.driver.notes), 2)


class ReportTest(unittest.TestCase):
    def test_ratio_is_of_the_best_peer(self):
        row = sample_document()["rows"][0]
        self.assertEqual(report.best_peer(row)[0], "compile")
        self.assertAlmostEqual(report.ratio(row), 305 / 280)

    def test_wrong_and_failed_are_shown_and_not_ranked(self):
        rows = sample_document()["rows"]
        text = report.markdown(rows)
        self.assertIn("| AXPYDOT | 268.4 | 1.04 | 2.24 | 1.14 | torch.compile | 1.09 |", text)
        self.assertIn("| BiCGK | 4.20 | 10.0 | wrong | 15.0 | torch.compile | 1.50 |", text)
        self.assertIn("out of memory", text)
        self.assertIn("- BiCGK, small, f32, torch eager: wrong: relative error 0.5", text)
        self.assertIn("over all 2 rows: 1.28", text)

    def test_missing_everywhere_is_said_once(self):
        rows = [sample_row("vadd", "small", ours=3.0, eager=5.0), sample_row("sscal", "small", ours=2.0, eager=3.0)]
        for row in rows:
            row["results"]["jax"] = {"missing": "no JAX"}
        text = report.markdown(rows)
        self.assertIn("Missing: JAX: no JAX.", text)
        self.assertNotIn("| JAX |", text)

    def test_what_was_not_captured_is_marked(self):
        text = report.markdown([sample_row("vadd", "small", ours=3.0, jax=9.0)])
        self.assertIn("| 9.00* |", text)

    def test_benchmarks_section(self):
        text = write_benchmarks.peers(sample_document(), {})
        self.assertIn("## Test GPU: sequences against cuBLAS, torch and JAX", text)
        self.assertIn("driver 555.1", text)
        self.assertIn("| AXPYDOT | 1.04 | torch.compile | 1.09 |", text)
        self.assertIn("| BiCGK |  |  |  | 10.0 | torch.compile | 1.50 |", text)

    def test_plot_is_a_document_with_a_mark_for_every_time(self):
        rows = sample_document()["rows"]
        text = plot.draw(rows, "a <GPU> & more")
        document = xml.dom.minidom.parseString(text)
        self.assertEqual(document.documentElement.tagName, "svg")
        marks = [element.getElementsByTagName("title")[0].firstChild.data
                 for tag in ("circle", "path") for element in document.getElementsByTagName(tag)]
        self.assertEqual(sum("(" in mark for mark in marks), 5)
        self.assertIn("BiCGK, ours: 2.38 (10.0 us)", marks)


class WorkerDialogueTest(unittest.TestCase):
    """peers_bench.Bench with a script in place of case_worker.py."""

    SCRIPT = """
        import json, os, sys
        def send(message): print(json.dumps(message), flush=True)
        send({"hello": {"copy_bytes_per_second": 4e12, "device": {"name": "Test GPU"}, "versions": {}}})
        for line in sys.stdin:
            request = json.loads(line)
            name = request["case"]["sequence"]
            if name == "vadd" and "cublas" in request["peers"]:
                for i in range(2000): send({"at": "eager"})
                send({"at": "cublas"})
                os._exit(9)
            if name == "sscal" and "ours" in request["peers"]:
                send({"lost": "ours", "why": "illegal address"})
                os._exit(3)
            if name == "atax":
                send({"at": "data"})
                os._exit(5)
            if name == "madd":
                send({"row": {"error": "out of memory"}})
                continue
            send({"row": {"sequence": name, "set": "small", "type": "f32", "side": 8, "floor_bytes": 4000000, "reread": [],
                          "results": {peer: {} for peer in request["peers"]}}})
    """

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = pathlib.Path(folder.name) / "case_worker.py"
        script.write_text(textwrap.dedent(self.SCRIPT))
        here, peers_bench.HERE = peers_bench.HERE, script.parent
        self.addCleanup(setattr, peers_bench, "HERE", here)
        arguments = peers_bench.parse_arguments(["--output", "x.json", "--client", sys.executable])
        self.bench = peers_bench.Bench(arguments, folder.name)
        self.addCleanup(self.bench.stop)

    def run_case(self, sequence):
        return self.bench.run(sequences.cases(["small"], ["f32"], [sequence])[0])

    def test_a_case_without_trouble(self):
        row = self.run_case("bicgk")
        self.assertEqual(list(row["results"]), list(sequences.PEERS))
        self.assertAlmostEqual(row["floor_seconds"], 1e-6)

    def test_a_peer_that_ends_the_process_is_left_out(self):
        row = self.run_case("vadd")
        self.assertIn("code 9", row["results"]["cublas"]["error"])
        self.assertEqual(row["results"]["ours"], {})
        self.assertNotIn("error", self.run_case("bicgk"))

    def test_a_fault_of_a_kernel_is_its_error(self):
        row = self.run_case("sscal")
        self.assertEqual(row["results"]["ours"], {"error": "illegal address"})
        self.assertEqual(row["results"]["eager"], {})

    def test_a_failed_case_is_a_row_and_the_next_one_runs(self):
        self.assertIn("code 5", self.run_case("atax")["error"])
        self.assertEqual(self.run_case("madd")["error"], "out of memory")
        self.assertNotIn("error", self.run_case("bicgk"))


class SampleInTurnTest(unittest.TestCase):
    class Subject:
        def __init__(self, log, fails_at=None):
            self.log, self.fails_at, self.samples = log, fails_at, []

        def sample(self):
            if len(self.log) == self.fails_at:
                raise RuntimeError("illegal address")
            self.log.append(self)
            self.samples.append(len(self.log))

    def test_all_take_turns_and_the_first_rounds_do_not_count(self):
        log, begun = [], []
        subjects = {name: self.Subject(log) for name in "ab"}
        case_worker.sample_in_turn(subjects, 2, self.fail, begun.append)
        self.assertEqual(begun, ["a", "b"] * 4)
        self.assertEqual({name: subject.samples for name, subject in subjects.items()}, {"a": [5, 7], "b": [6, 8]})

    def test_one_that_fails_is_left_out(self):
        log, failures = [], []
        subjects = {"a": self.Subject(log), "b": self.Subject(log, 4), "c": self.Subject(log)}  # in its second round
        case_worker.sample_in_turn(subjects, 3, lambda *failure: failures.append(failure))
        self.assertEqual([(name, str(error)) for name, error in failures], [("b", "illegal address")])
        self.assertEqual({name: len(subject.samples) for name, subject in subjects.items()}, {"a": 3, "c": 3})


class SubmitTest(unittest.TestCase):
    """case_worker.submit with a script in place of the client."""

    def submit(self, body, **more):
        with tempfile.TemporaryDirectory() as folder:
            client = pathlib.Path(folder) / "client"
            client.write_text("#!/usr/bin/env python3\nimport json, sys\n" + body)
            os.chmod(client, 0o755)
            options = {"examples": str(ROOT / "examples"), "scratch": folder, "client": str(client), "candidates": 7,
                       "server": "", **more}
            return case_worker.submit(sequences.Case("cg_step", "small", "f64", 2048), folder, options)

    def test_report(self):
        candidate = {"outcome": "OK", "fusions": [["q"]], "kernels": [], "cold_seconds": {}, "warm_seconds": {},
                     "speedup": 2.0, "predicted_rank": 3, "description": "d"}
        found = self.submit("assert sys.argv[sys.argv.index('--cache') + 1] == 'warm'\n"
                            "assert '--target' in sys.argv and 'n=2048' in sys.argv and 'm=2048' not in sys.argv\n"
                            "assert 'f64 matrix[n,n]' in open(sys.argv[2]).read()\n"
                            f"print(json.dumps({{'floor': {{'bytes': 5}}, 'candidates': [{candidate!r}]}}))\n")
        self.assertEqual((found["predicted_rank"], found["floor_bytes"]), (3, 5))

    def test_variants(self):
        for variant, makes in {"best": [], "q=row_panel T256": ["q=row_panel T256"], "q=T64 + p1=vector V4": ["q=T64", "p1=vector V4"]}.items():
            options = variants_bench.parse(["cg_step", variant, "--candidates", "3", "--peers", "eager,jax",
                                           "--client", sys.executable])
            self.assertEqual(options.peers, ["eager", "jax"])
            more = variants_bench.submit_options(options, variant, "")
            self.assertEqual((more["make"], more["candidates"]), (makes, 3 if makes else 30))
            found = self.submit("print(json.dumps({'floor': {'bytes': 5}, 'candidates': [{'outcome': 'OK', 'fusions': [], 'kernels': [], "
                                "'cold_seconds': {}, 'warm_seconds': {}, 'speedup': 1, 'predicted_rank': 1, 'description': "
                                "[b for a, b in zip(sys.argv, sys.argv[1:]) if a == '--make']}]}))\n", make=more["make"])
            self.assertEqual(found["description"], makes)

    def test_failure(self):
        with self.assertRaisesRegex(RuntimeError, "exit code 4: no device"):
            self.submit("sys.stderr.write('no device')\nsys.exit(4)\n")


class CublasLibraryTest(unittest.TestCase):
    def test_has_the_sequences_that_are_said_to_be_expressible(self):
        if not CUBLAS_LIBRARY:
            self.skipTest("libfusion_cublas_sequences.so was not built: no CUDA headers")
        library = ctypes.CDLL(CUBLAS_LIBRARY)
        library.fusion_cublas_error.restype = ctypes.c_char_p
        for sequence in sequences.SEQUENCES:
            self.assertEqual(library.fusion_cublas_find(sequence.name.encode()) >= 0, sequence.cublas is not None, sequence.name)
        self.assertNotEqual(library.fusion_cublas_open(b"no-such-library.so", None, 0), 0)
        self.assertIn(b"no-such-library.so", library.fusion_cublas_error())
        self.assertNotEqual(library.fusion_cublas_run(0, 4, 1, 1, None, None, None), 0)


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word.startswith("--cublas-library=")]
    if given:
        CUBLAS_LIBRARY = given[0].split("=", 1)[1]
    unittest.main(argv=[sys.argv[0]] + [word for word in sys.argv[1:] if word not in given])
