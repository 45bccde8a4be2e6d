#!/usr/bin/env python3
"""Checks of generated CUDA kernels on a GPU beyond what every submission checks itself. From the package:

    python3 tests/gpu/check_kernels.py [--only atax,softmax] [--types f32,f64] [--sizes 3] [--candidates 30]
    python3 tests/gpu/check_kernels.py --leading-dimensions
    python3 tests/gpu/check_kernels.py --sanitize [--leading-dimensions]
    python3 tests/gpu/check_kernels.py --wide [--sanitize] --match cluster

Every candidate of every example, at ragged sizes and with each buffer one entry off its alignment, agrees with torch in f64,
and gives the same bits in 20 runs unless it is described as atomic. Needs torch. Where the kernels that were measured are those for
aligned buffers, the buffers are; one of each structure is then compiled with nvcc, and its example, which takes the other
kernels, runs with --misaligned. With --sanitize instead: the exported
folders of candidates of different structure are compiled with nvcc, and their examples run under compute-sanitizer's
memcheck, racecheck, initcheck and synccheck; what these find is a failure. With --leading-dimensions the rows of all matrices lie
further apart than they are long; without --sanitize it is the submission then that checks values and what lies between rows. With --wide rows are so long that
clusters of blocks may hold them.

Exit status: 0 all good, 1 something is wrong or was left out, 2 bad usage.
"""
import argparse
import concurrent.futures
import copy
import functools
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench/peers"))

import peers_bench
import sequences

RUNS = 20
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# What the description of a candidate says of its structure.
STRUCTURE_WORDS = ("element", "vector", "row_panel", "cooperative", "staged", "bulk", "exchanged", "one-shot", "keeps", "in shared memory", "tiles",
                   "atomic", "cluster")
SUBMIT_SECONDS = 300
# Rows longer and shorter than blocks and vectors; but for those of 256, which vectors fill, no size is a multiple of anything.
SIZES = {"vector": [{"n": 1}, {"n": 33}, {"n": 100003}],
         "elements": [{"e": 1}, {"e": 33}, {"e": 3001}],
         "matrix": [{"m": 1, "n": 257}, {"m": 257, "n": 1}, {"m": 33, "n": 31}, {"m": 301, "n": 256}, {"m": 301, "n": 1003}],
         "square": [{"n": 1}, {"n": 33}, {"n": 256}, {"n": 301}]}
# With --sanitize: every access is followed, and racecheck keeps them all.
SANITIZED_SIZES = {"vector": [{"n": 5003}], "elements": [{"e": 301}], "matrix": [{"m": 301, "n": 256}, {"m": 301, "n": 261}],
                   "square": [{"n": 256}, {"n": 261}]}
# With --wide: rows that a cluster holds, of lengths that permit vectors (the last) and not.
WIDE_SIZES = {"matrix": [{"m": 301, "n": 16381}, {"m": 301, "n": 16384}]}
# With --leading-dimensions: rows that permit vectors (the last, which is checked alone by default), and such that do not.
SPACED_SIZES = {"matrix": [{"m": 301, "n": 1003}, {"m": 301, "n": 1004}], "square": [{"n": 301}, {"n": 300}]}
THIS_PROCESS = threading.Lock()  # submissions run beside each other, this process's use of the GPU does not


def sizes_of(sequence, options):
    kind = "square" if sequence.size_names == ("n",) and sequence.kind == "matrix" else sequence.kind
    table = WIDE_SIZES if options.wide else SANITIZED_SIZES if options.sanitize else SPACED_SIZES if options.leading_dimensions else SIZES
    return [{"n": 1, "m": 1, "e": 1} | sizes for sizes in table.get(kind, [])]


def with_leading_dimensions(text):
    """A graph with a leading dimension for each matrix, lda and ldb in turn."""
    def declare(match):
        names = [name.strip() for name in match.group(2).split(",")]
        return " ".join(f"{match.group(1)},ld={'lda' if (match.start() + i) % 2 else 'ldb'}] {name};" for i, name in enumerate(names))
    return "size lda, ldb;\n" + re.sub(r"(matrix\[\w+,\w+)\] ([\w ,]+);", declare, text)


def run(arguments, folder):
    """stdout of a program. RuntimeError: it failed, or took too long; with the end of what it said."""
    environment = {"FUSION_NVRTC_PATH": peers_bench.nvrtc_path()} | dict(os.environ) | {"FUSION_DATA_DIR": folder}
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=SUBMIT_SECONDS, env=environment,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        said = late.stderr or b""
        said = said if isinstance(said, str) else said.decode(errors="replace")
        raise RuntimeError(f"{' '.join(arguments)}: not done after {SUBMIT_SECONDS} s: {said.strip()[-600:]}") from late
    if done.returncode != 0:
        output = (done.stdout[:600] if arguments[0] == "compute-sanitizer" else "") + done.stderr.strip()[-300:]
        raise RuntimeError(f"{' '.join(arguments[:3])}: exit code {done.returncode}: {output}")
    return done.stdout


def check(options, sequence, data_type, sizes):
    """Problems of one example of one type at one size, as texts; None when no candidate has what --match asks for."""
    with tempfile.TemporaryDirectory(prefix="fusion-check-") as folder:
        source = pathlib.Path(folder) / f"{sequence.name}.fuse"
        text = sequences.fuse_text(sequence.fuse(ROOT / "examples"), data_type)
        source.write_text(with_leading_dimensions(text) if options.leading_dimensions else text, encoding="utf-8")
        command = [options.client, "submit", str(source), "--target", "cuda", "--json", "--candidates", str(options.candidates)]
        for name, value in sequence.size_options(sizes).items():
            command += ["--size", f"{name}={value}"]
        if options.leading_dimensions:
            command += ["--size", f"lda={sizes['n'] + 4}", "--size", f"ldb={sizes['n'] + 8}"]
        try:
            report = json.loads(run(command, folder))
            folders, structures = [], set()
            for candidate in report["candidates"]:
                words = structure(candidate["description"])
                if options.leading_dimensions and not options.sanitize:
                    folders.append((candidate["description"], ""))
                elif options.match in candidate["description"] and candidate["outcome"] == "OK" and not (
                        options.sanitize and words in structures):
                    structures.add(words)
                    folders.append((candidate["description"], f"{folder}/rank{candidate['rank']}"))
                    run([options.client, "fetch", report["job"], "--rank", str(candidate["rank"]), "--output", folders[-1][1]],
                        folder)
        except RuntimeError as error:
            return [str(error)]
        problems = [f"{candidate['outcome']}: {candidate.get('message', '')[:200]} ({candidate['description'][:120]})"
                    for candidate in report["candidates"] if candidate["outcome"] != "OK"]
        if not folders and options.match and not problems:
            return None
        if not folders:
            problems.append("no candidate was checked")
        if options.sanitize:
            return problems + sanitize_folders(folders)
        if options.leading_dimensions:
            return problems
        with THIS_PROCESS:
            found, of_aligned = check_folders(sequence, data_type, sizes, folders)
        for one in of_aligned:
            found += misaligned_example(*one)
        return problems + found


def check_folders(sequence, data_type, sizes, folders):
    """Problems of exported folders, given as (description, path); and of each structure one whose kernels are for aligned buffers."""
    import fused_program
    import implementations
    import timing
    import torch
    problems = []
    aligned = implementations.Data(sequences.Case(sequence.name, "small", data_type, sizes))
    reference = aligned.reference()
    misaligned = copy.copy(aligned)
    misaligned.inputs, misaligned.outputs = dict(aligned.inputs), dict(aligned.outputs)
    for place in (misaligned.inputs, misaligned.outputs):
        for name, tensor in place.items():
            shifted = torch.empty(tensor.numel() + 1, dtype=tensor.dtype, device=tensor.device)[1:].view(tensor.shape)
            place[name] = shifted.copy_(tensor)
    of_aligned = {}
    for description, path in folders:
        try:
            data, ours = misaligned, implementations.Ours(misaligned, path)
        except fused_program.MisalignedError:
            data, ours = aligned, implementations.Ours(aligned, path)
            of_aligned.setdefault(structure(description), (description, path))
        first = None
        for number in range(RUNS):
            data.poison()
            outputs = [tensor.clone() for tensor in ours()]
            if first is None:
                first, found = outputs, timing.errors(outputs, reference)
                if not timing.within_bounds(found, data_type):
                    problems.append(f"relative errors {found}: {description[:160]}")
            elif "atomic" not in description and not all(torch.equal(a, b) for a, b in zip(first, outputs)):
                problems.append(f"run {number + 1} gave other bits: {description[:160]}")
                break
        torch.cuda.synchronize()
        ours.close()
    return problems, list(of_aligned.values())


def structure(description):
    return tuple(word in description for word in STRUCTURE_WORDS)


def build_example(path):
    sources = [f"{path}/{name}" for name in ("example.cu", "fused.cu", "reference.cc")]
    run(["nvcc", "-arch=native", "-lineinfo", "-o", f"{path}/example", *sources], path)
    return f"{path}/example"


def misaligned_example(description, path):
    """Problems of an exported folder whose buffers are one entry off their alignment."""
    if not shutil.which("nvcc"):
        return [f"misaligned: not checked, nvcc is not installed: {description[:160]}"]
    try:
        run([build_example(path), "--misaligned", "--once"], path)
    except RuntimeError as error:
        return [f"misaligned: {error}: {description[:160]}"]
    return []


def sanitize_folders(folders):
    """Problems of exported folders, given as (description, path): what compute-sanitizer finds while their examples run."""
    problems = []
    for description, path in folders:
        try:
            example = build_example(path)
            for tool in TOOLS:
                run(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", example, "--once"], path)
        except RuntimeError as error:
            problems.append(f"{description[:160]}: {error}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default=str(ROOT / "bin/fusion-client"))
    parser.add_argument("--only", type=peers_bench.names(sequences.BY_NAME), default=list(sequences.BY_NAME), help="sequences")
    parser.add_argument("--types", type=peers_bench.names(sequences.TYPES), default=["f32"], help="f32, f64 (default f32)")
    parser.add_argument("--candidates", type=int, default=12)
    parser.add_argument("--sizes", type=int, default=1, help="how many of a sequence's sizes (default 1, the largest)")
    parser.add_argument("--match", default="", help="only candidates whose description holds this text, as 'bulk'")
    parser.add_argument("--leading-dimensions", action="store_true", help="padded rows; matrices alone")
    parser.add_argument("--wide", action="store_true", help="rows that a cluster may hold; matrices that need not be square")
    parser.add_argument("--sanitize", action="store_true", help="compute-sanitizer instead of the other checks; needs nvcc, as --wide does")
    parser.add_argument("--jobs", type=int, default=8, help="submissions at once")
    options = parser.parse_args()
    for program in ("nvcc", "compute-sanitizer") if options.sanitize else ():
        if not shutil.which(program):
            parser.error(f"--sanitize: {program} is not installed")
    if not shutil.which(options.client):
        parser.error(f"--client: {options.client} is no program")
    cases = {}
    for name in options.only:
        sequence = sequences.BY_NAME[name]
        if options.leading_dimensions and sequence.kind != "matrix":
            continue
        for data_type, sizes in itertools.product(options.types, sizes_of(sequence, options)[-options.sizes:]):
            text = " ".join(f"{size}={value}" for size, value in sequence.size_options(sizes).items())
            cases[f"{name} {data_type} {text}"] = functools.partial(check, options, sequence, data_type, sizes)
    bad = unmatched = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(case): name for name, case in cases.items()}
        for future in concurrent.futures.as_completed(futures):
            problems = future.result()
            bad += bool(problems)
            unmatched += problems is None
            print(f"{futures[future]}: {'no such candidate' if problems is None else 'BAD' if problems else 'ok'}", flush=True)
            for problem in problems or ():
                print(f"  {problem}", flush=True)
    print(f"{len(cases)} checks, {bad} of them bad" + (f", {unmatched} without such a candidate" if unmatched else ""))
    return 1 if bad or unmatched == len(cases) else 0


if __name__ == "__main__":
    sys.exit(main())
