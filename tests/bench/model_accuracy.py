#!/usr/bin/env python3
"""Submits all examples to a server of its own, with every candidate measured, and reports how well they were predicted.

    tests/bench/model_accuracy.py --bin build/release/bin --data /tmp/accuracy --output report.json --plots plots

Each pass submits each example at its own sizes and at sizes that vectors divide; later passes predict with what earlier ones
taught. The report is of the last pass alone. The folder of --data stays, and may be one of an earlier run. With
--candidates-output PREFIX all measured candidates of each pass are written to PREFIX1.json, PREFIX2.json ..., from which
build/release/tests/model_replay predicts anew. Exit status: 0 done, 1 a job failed, 2 bad usage.
"""
import argparse
import base64
import concurrent.futures
import datetime
import json
import os
import pathlib
import signal
import sqlite3
import sys
import time

import examples_bench
import local_farm

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Sizes beside those in the files: of each size of a matrix, of vectors and of lists.
MATRIX_SIZE, VECTOR_SIZE, ELEMENTS = 8192, 1 << 26, 1 << 20


def size_options(name):
    names, matrices, mapped = examples_bench.sizes_of((ROOT / "examples" / f"{name}.fuse").read_text(encoding="utf-8"))
    value = ELEMENTS if mapped else MATRIX_SIZE if matrices else VECTOR_SIZE
    return [text for size in (["elements"] if mapped else names) for text in ("--size", f"{size}={value}")]


def measured_candidates(results, database_path):
    """What model_replay reads: the device, the tables of its routines, and the candidates of each (example, result) that are OK."""
    database = sqlite3.connect(database_path)
    blobs = {name: [base64.b64encode(row[0]).decode() for row in database.execute(query)]
             for name, query in (("device", "SELECT description FROM devices ORDER BY last_seen_micros DESC"),
                                 ("routine_tables", "SELECT content FROM routine_tables ORDER BY routine"))}
    database.close()
    graphs = [{"example": name, "sizes": result["graph"]["sizes"],
               "candidates": [{"description": candidate["description"], "predicted": candidate["predicted_seconds"],
                               **{key: candidate["measured_seconds"][key] for key in ("median", "low", "high")}}
                              for candidate in result["candidates"] if candidate["outcome"] == "OK"]}
              for name, result in results]
    return {"schema": "fusion.measured_candidates/1", "date": datetime.date.today().isoformat(), "device": blobs["device"][0],
            "routine_tables": blobs["routine_tables"], "graphs": graphs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of the server's database")
    parser.add_argument("--target", default="cuda", choices=("cuda", "host"))
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--only", default="", help="examples, with commas")
    parser.add_argument("--own-sizes", action="store_true", help="the examples' own sizes alone")
    parser.add_argument("--candidates", type=int, default=30)
    parser.add_argument("--jobs-at-once", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=float("inf"),
                        help="start no pass that would not end within so many seconds of the beginning, if it took as long as the "
                             "one before, and no job after them")
    parser.add_argument("--output", type=pathlib.Path, help="JSON of `model report`")
    parser.add_argument("--plots", type=pathlib.Path)
    parser.add_argument("--candidates-output", help="PREFIX of files of measured candidates")
    options = parser.parse_args()
    examples = [name for name in sorted(path.stem for path in (ROOT / "examples").glob("*.fuse"))
                if not options.only or name in options.only.split(",")]
    began = time.monotonic()
    farm = local_farm.LocalFarm(options.bin, [["--target", options.target]], options.jobs_at_once, data=options.data)
    failed = done = 0

    def end(*_):
        options.time_limit = 0  # no job is started
        farm.close()
        sys.exit(143)
    signal.signal(signal.SIGTERM, end)

    def submit(name, size_arguments):
        if time.monotonic() - began > options.time_limit:
            return None
        code, result, errors = farm.client("submit", str(ROOT / "examples" / f"{name}.fuse"), "--target", options.target,
                                           "--candidates", str(options.candidates), "--measure-all", *size_arguments)
        if code != 0:
            print(f"{name} {' '.join(size_arguments)}: {errors.strip()[-300:]}", flush=True)
            return False
        return name, result

    try:
        farm.wait_for_devices(180)
        pass_seconds = 0
        for number in range(options.passes):
            if time.monotonic() - began + pass_seconds > options.time_limit:
                print(f"no time for pass {number + 1}", flush=True)
                break
            pass_began = time.monotonic()
            cases = [(name, size_arguments) for name in examples
                     for size_arguments in ([[]] if options.own_sizes else [[], size_options(name)])]
            # Several at once: searches and builds of one beside the timing of another; timings take turns.
            with concurrent.futures.ThreadPoolExecutor(options.jobs_at_once) as pool:
                outcomes = list(pool.map(lambda case: submit(*case), cases))
            results = [outcome for outcome in outcomes if outcome]
            done = len(results)
            failed += sum(outcome is False for outcome in outcomes)
            pass_seconds = time.monotonic() - pass_began
            if options.candidates_output and results:
                pathlib.Path(f"{options.candidates_output}{number + 1}.json").write_text(
                    json.dumps(measured_candidates(results, farm.database()), indent=None, separators=(",", ":")) + "\n",
                    encoding="utf-8")
            cut_off = ", cut off" if None in outcomes else ""
            print(f"pass {number + 1}{cut_off}: {done} jobs of {len(cases)}, {time.monotonic() - began:.0f} s", flush=True)
        if done and (options.output or options.plots):
            code, report, errors = farm.client("model", "report", "--jobs", str(done),
                                               *(["--plots", str(options.plots)] if options.plots else []))
            if code != 0:
                raise RuntimeError(f"model report: {errors.strip()[-300:]}")
            document = {key: value for key, value in report.items() if not key.endswith("_plot")}
            document["date"] = datetime.date.today().isoformat()
            document["command"] = " ".join(["tests/bench/model_accuracy.py", *sys.argv[1:]])
            if options.output:
                options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    finally:
        farm.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
