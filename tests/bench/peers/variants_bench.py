#!/usr/bin/env python3
"""Times kernels of one sequence that differ in how they are made, beside each other and beside peers: each round runs every
one once, on the same data, verified against f64, as peers_bench.py times them.

    tests/bench/peers/variants_bench.py mapped_product_4 --set small --type f64 --peers compile_products \\
        "C=element T256 E64" "C=element T128 E32" "C=element T64 E64 exchanged"

A variant is what `fusion-client submit --make` takes; several for one program are joined by " + ". Of candidates that a
variant leaves open the one predicted fastest is built, or with --candidates N the fastest measured of N. "best" is what a
submission finds by itself.

Exit status: 0 all timed, 1 some not, 2 bad usage.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import case_worker
import peers_bench
import sequences
import summary

MICROSECONDS = 1e6


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequence", choices=sorted(sequences.BY_NAME), metavar="SEQUENCE")
    parser.add_argument("variants", nargs="+", metavar="VARIANT")
    parser.add_argument("--set", default="small", choices=sequences.SETS)
    parser.add_argument("--type", default="f32", choices=sequences.TYPES)
    parser.add_argument("--side", type=int, help="length of vectors or lists, rows of matrices (default: that of the set)")
    parser.add_argument("--peers", type=peers_bench.names([p for p in sequences.PEERS if p != "ours"]), default=[],
                        help="as of peers_bench.py")
    parser.add_argument("--candidates", type=int, default=1, help="to build and time for each variant (default 1)")
    parser.add_argument("--samples", type=int, default=31)
    parser.add_argument("--folders", help="keep the exported folders here, 1, 2, ... (default: a temporary folder)")
    peers_bench.add_machine_options(parser)
    parser.add_argument("--output", metavar="JSON")
    options = parser.parse_args(arguments)
    if options.samples < 1:
        parser.error("--samples: at least 1")
    if options.set == "fit" and not sequences.BY_NAME[options.sequence].fit:
        parser.error(f"--set fit: not of {options.sequence}")
    if not os.path.isfile(options.client):
        parser.error(f"--client: {options.client} is no program")
    return options


def submit_options(options, variant, scratch):
    """What case_worker.submit needs for one variant."""
    best = variant == "best"
    return {"client": options.client, "server": options.server, "examples": options.examples, "scratch": scratch,
            "candidates": peers_bench.CANDIDATES if best else options.candidates, "make": [] if best else variant.split(" + ")}


def complain(label, error):
    print(f"variants_bench.py: {label}: {case_worker.describe(error)}", file=sys.stderr, flush=True)


def prepare(options, case, scratch):
    """{label: Subject}, and whether all that were asked for are there."""
    import implementations
    import timing
    data = implementations.Data(case)
    reference = data.reference()
    timer = timing.Timer(case.set == "large")
    subjects, complete = {}, True

    def add(label, make_implementation):
        nonlocal complete
        try:
            subject = timing.Subject(make_implementation(), timer)
            error = subject.verify(reference, data)
            if timing.within_bounds(error, case.type):
                subjects[label] = subject
                return
            subject.release()
            raise RuntimeError(f"wrong: relative error {error[0]:.2e}, largest {error[1]:.2e}")
        except Exception as error:  # of any library: the others can still be timed
            complete = False
            complain(label, error)

    for number, variant in enumerate(options.variants, 1):
        folder = str(pathlib.Path(options.folders or scratch) / str(number))
        try:
            found = case_worker.submit(case, folder, submit_options(options, variant, scratch))
        except RuntimeError as error:
            complete = False
            print(f"variants_bench.py: {variant}: {error}", file=sys.stderr, flush=True)
            continue
        add(f"{number}. {variant}: {found['description']}", lambda folder=folder: implementations.Ours(data, folder))
    for peer in options.peers:
        add(peer, lambda peer=peer: implementations.make(peer, data, None, options.cublas_library))
    return subjects, complete


def main(arguments):
    options = parse(arguments)
    side = options.side or (sequences.FIT_SIDES[0] if options.set == "fit" else
                            sequences.BY_NAME[options.sequence].side(options.set))
    case = sequences.Case(options.sequence, options.set, options.type, side)
    try:
        import torch  # noqa: F401, what everything here runs with
    except ImportError as error:
        print(f"variants_bench.py: needs torch and a GPU: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        subjects, complete = prepare(options, case, scratch)
        asked = len(subjects)
        case_worker.sample_in_turn(subjects, options.samples, complain)
        complete = complete and len(subjects) == asked
        rows = [{"variant": label, "seconds": summary.statistics(subject.samples)} for label, subject in subjects.items()]
        for subject in subjects.values():
            subject.release()
    for row in sorted(rows, key=lambda row: row["seconds"]["median"]):
        low, middle, high = (row["seconds"][key] * MICROSECONDS for key in ("low", "median", "high"))
        print(f"{middle:10.2f} us  [{low:.2f}, {high:.2f}]  {row['variant']}", flush=True)
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps({"case": case.key, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0 if complete and rows else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
