#!/usr/bin/env python3
"""Checks of generated CUDA kernels on a GPU beyond what every submission checks itself. From the package:

    python3 tests/gpu/check_kernels.py [--only atax,softmax] [--types f32,f64] [--sizes 3] [--candidates 30]
    python3 tests/gpu/check_kernels.py --full [--kinds vector,elements,matrix]
    python3 tests/gpu/check_kernels.py --leading-dimensions
    python3 tests/gpu/check_kernels.py --sanitize [--leading-dimensions]
    python3 tests/gpu/check_kernels.py --wide [--sanitize] --match cluster --sizes 3 --only softmax,layer_norm,rms_norm

All submissions go to a farm of this machine that lasts as long as the checks, or, with --data, whose tables of routine times and builds
the next checks find again.

Every candidate of every example, at ragged sizes and with each buffer one entry off its alignment, agrees with torch in f64,
and gives the same bits in 20 runs unless it is described as atomic. Needs torch. Where the kernels that were measured are those for
aligned buffers, the buffers are; one of each structure is then compiled with nvcc, and its example, which takes the other
kernels, runs with --misaligned. With --sanitize instead: the exported
folders of candidates of different structure are compiled with nvcc, and their examples run under compute-sanitizer's
memcheck, racecheck, initcheck and synccheck; what these find is a failure. With --leading-dimensions the rows of all matrices lie
further apart than they are long; without --sanitize it is the submission then that checks values and what lies between rows. With --wide rows are so long that
clusters of blocks may hold them, and every check has to have a candidate that --match asks for. With --full every size of the tables below, from empty ones to 1,000,003 entries and 4093 x 5001.

Exit status: 0 all good, 1 something is wrong, 2 bad usage, 77 this machine lacks what the checks, or some of them, take; "SKIP" says what.
"""
import argparse
import concurrent.futures
import copy
import ctypes
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
sys.path[:0] = [str(ROOT / "tests/bench"), str(ROOT / "tests/bench/peers")]

import local_farm
import peers_bench
import sequences

RUNS = 20
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
# What the description of a candidate says of its structure.
STRUCTURE_WORDS = ("element", "vector", "row_panel", "cooperative", "staged", "bulk", "exchanged", "one-shot", "keeps", "in shared memory", "tiles",
                   "atomic", "cluster")
SUBMIT_SECONDS = 540
SKIPPED = 77
# Rows longer and shorter than blocks and vectors; but for those of 256, which vectors fill, no size is a multiple of anything.
SIZES = {"vector": [{"n": 0}, {"n": 1}, {"n": 31}, {"n": 33}, {"n": 100003}],
         "elements": [{"e": 0}, {"e": 1}, {"e": 31}, {"e": 33}, {"e": 3001}],
         "matrix": [{"m": 0, "n": 257}, {"m": 257, "n": 0}, {"m": 1, "n": 257}, {"m": 257, "n": 1}, {"m": 31, "n": 33}, {"m": 33, "n": 31},
                    {"m": 301, "n": 256}, {"m": 301, "n": 1003}],
         "square": [{"n": 0}, {"n": 1}, {"n": 31}, {"n": 33}, {"n": 256}, {"n": 301}]}
# With --full besides; of fewer candidates.
LARGE_SIZES = {"vector": [{"n": 1000003}], "elements": [{"e": 1000003}], "matrix": [{"m": 4093, "n": 5001}], "square": [{"n": 4093}]}
LARGE_CANDIDATES = 4
MOST_LARGE_ENTRIES = 32_000_003  # of a list: 1,000,003 elements of up to 31 entries
# With --sanitize: every access is followed, and racecheck keeps them all.
SANITIZED_SIZES = {"vector": [{"n": 5003}], "elements": [{"e": 301}], "matrix": [{"m": 301, "n": 256}, {"m": 301, "n": 261}],
                   "square": [{"n": 256}, {"n": 261}]}
# With --wide: rows that clusters hold, of lengths that permit vectors and not; in f32 of two blocks, of four (100,001, which permits no
# vectors, and 131,072), and of eight.
WIDE_SIZES = {"matrix": [{"m": 301, "n": 16381}, {"m": 301, "n": 16384}, {"m": 65, "n": 100001}, {"m": 67, "n": 131072},
                         {"m": 31, "n": 262144}]}
# With --leading-dimensions: rows that permit vectors (the last, which is checked alone by default), and such that do not.
SPACED_SIZES = {"matrix": [{"m": 301, "n": 1003}, {"m": 301, "n": 1004}], "square": [{"n": 301}, {"n": 300}]}
LEFT_OUT = []  # folders for aligned buffers that wait for nvcc
THIS_PROCESS = threading.Lock()  # submissions run beside each other, this process's use of the GPU does not


def sizes_of(sequence, options):
    """(sizes, most candidates) of each check of a sequence."""
    kind = "square" if sequence.size_names == ("n",) and sequence.kind == "matrix" else sequence.kind
    special = WIDE_SIZES if options.wide else SANITIZED_SIZES if options.sanitize else SPACED_SIZES if options.leading_dimensions else None
    table = special or SIZES
    checks = [(sizes, options.candidates) for sizes in table.get(kind, [])]
    if not options.full:
        checks = checks[-options.sizes:]
    elif special is None:
        checks += [(sizes, min(options.candidates, LARGE_CANDIDATES)) for sizes in LARGE_SIZES[kind]]
    most = MOST_LARGE_ENTRIES // sequence.entries
    return [({"n": 1, "m": 1, "e": 1} | {name: min(value, most) if name == "e" else value for name, value in sizes.items()}, candidates)
            for sizes, candidates in checks]


def with_leading_dimensions(text):
    """A graph with a leading dimension for each matrix, lda and ldb in turn."""
    def declare(match):
        names = [name.strip() for name in match.group(2).split(",")]
        return " ".join(f"{match.group(1)},ld={'lda' if (match.start() + i) % 2 else 'ldb'}] {name};" for i, name in enumerate(names))
    return "size lda, ldb;\n" + re.sub(r"(matrix\[\w+,\w+)\] ([\w ,]+);", declare, text)


def run(arguments, exit_codes=(0,)):
    """stdout of a program. RuntimeError: it failed, or took too long; with the end of what it said."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=SUBMIT_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:
        said = late.stderr or b""
        said = said if isinstance(said, str) else said.decode(errors="replace")
        raise RuntimeError(f"{' '.join(arguments)}: not done after {SUBMIT_SECONDS} s: {said.strip()[-600:]}") from late
    if done.returncode not in exit_codes:
        output = (done.stdout[:600] if arguments[0] == "compute-sanitizer" else "") + done.stderr.strip()[-300:]
        raise RuntimeError(f"{' '.join(arguments[:3])}: exit code {done.returncode}: {output}")
    if done.returncode != 0 and not done.stdout:
        raise RuntimeError(f"{' '.join(arguments[:3])}: {done.stderr.strip()[-600:]}")
    return done.stdout


def lacks(options):
    """What this machine lacks for the checks, as a text; None: nothing."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver (libcuda.so.1)"
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "no CUDA device"
    for program in ("nvcc", "compute-sanitizer") if options.sanitize else ():
        if not shutil.which(program):
            return f"{program} is not installed"
    if not options.sanitize and not options.leading_dimensions:
        try:
            import torch
        except ImportError:
            return "torch is not installed"
        if not torch.cuda.is_available():
            return "torch finds no CUDA device"
    return None


def check(options, farm, sequence, data_type, sizes, candidates):
    """Problems of one example of one type at one size, as texts; None when no candidate has what --match asks for."""
    with tempfile.TemporaryDirectory(prefix="fusion-check-") as folder:
        source = pathlib.Path(folder) / f"{sequence.name}.fuse"
        text = sequence.fuse(ROOT / "examples")
        text = with_leading_dimensions(text) if options.leading_dimensions else text
        source.write_text(sequences.fuse_text(text, data_type), encoding="utf-8")
        farm.check()
        # It ends before we do: the next checks with the same data would have to go on with it.
        command = ["submit", str(source), "--target", "cuda", "--json", "--candidates", str(candidates), "--time-limit",
                   str(SUBMIT_SECONDS - 20)]
        for name, value in sequence.size_options(sizes).items():
            command += ["--size", f"{name}={value}"]
        if options.leading_dimensions:
            command += ["--size", f"lda={sizes['n'] + 4}", "--size", f"ldb={sizes['n'] + 8}"]
        try:
            # 1: no candidate is good, and the report says why; or there is no report.
            report = json.loads(run(farm.command(*command), exit_codes=(0, 1)))
            if "candidates" not in report:
                return [f"no report: {report}"]
            folders, structures = [], set()
            for candidate in report["candidates"]:
                words = structure(candidate["description"])
                if options.leading_dimensions and not options.sanitize and candidate["outcome"] == "OK":
                    folders.append((candidate["description"], ""))
                elif options.match in candidate["description"] and candidate["outcome"] == "OK" and not (
                        options.sanitize and words in structures):
                    structures.add(words)
                    folders.append((candidate["description"], f"{folder}/rank{candidate['rank']}"))
                    run(farm.command("fetch", report["job"], "--rank", str(candidate["rank"]), "--output", folders[-1][1]))
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
            if shutil.which("nvcc"):
                found += misaligned_example(*one)
            else:
                LEFT_OUT.append(one)
        return problems + found


def unlike(outputs, reference, data_type):
    """What sets outputs apart from the reference, as a text; None: they agree. Where the reference is zero or not finite, as of nothing,
    they must be the same."""
    import timing
    import torch
    measured = []
    for out, expected in zip(outputs, reference, strict=True):
        if expected.numel() == 0 or torch.isfinite(expected).all() and torch.any(expected != 0):
            measured.append((out, expected))
        elif not torch.allclose(out.reshape(-1).double(), expected.reshape(-1), rtol=0, atol=0, equal_nan=True):
            return f"{out.reshape(-1)[:4].tolist()} instead of {expected.reshape(-1)[:4].tolist()}"
    found = timing.errors([out for out, _ in measured], [expected for _, expected in measured])
    return None if timing.within_bounds(found, data_type) else f"relative errors {found}"


def check_folders(sequence, data_type, sizes, folders):
    """Problems of exported folders, given as (description, path); and of each structure one whose kernels are for aligned buffers."""
    import fused_program
    import implementations
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
                first, found = outputs, unlike(outputs, reference, data_type)
                if found:
                    problems.append(f"{found}: {description[:160]}")
            elif "atomic" not in description and not all(same_bits(a, b) for a, b in zip(first, outputs)):
                problems.append(f"run {number + 1} gave other bits: {description[:160]}")
                break
        torch.cuda.synchronize()
        ours.close()
    return problems, list(of_aligned.values())


def same_bits(one, other):
    import torch
    words = torch.int64 if one.dtype == torch.float64 else torch.int32
    return torch.equal(one.view(words), other.view(words))


def structure(description):
    return tuple(word in description for word in STRUCTURE_WORDS)


def data_of(folder, programs):
    """The farm's data folder in `folder` (None: none). What other programs left there goes."""
    if folder is None:
        return None
    files = [programs / name for name in ("fusion-server", "fusion-worker", "fusion-runner")]
    made = "-".join(str(file.stat().st_mtime_ns) for file in files)
    for other in folder.glob("*-*-*"):
        if other.name != made and re.fullmatch(r"\d+-\d+-\d+", other.name):
            shutil.rmtree(other, ignore_errors=True)
    return folder / made


def build_example(path):
    sources = [f"{path}/{name}" for name in ("example.cu", "fused.cu", "reference.cc")]
    run(["nvcc", "-arch=native", "-lineinfo", "-o", f"{path}/example", *sources])
    return f"{path}/example"


def misaligned_example(description, path):
    """Problems of an exported folder whose buffers are one entry off their alignment."""
    try:
        run([build_example(path), "--misaligned", "--once"])
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
                run(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", example, "--once"])
        except RuntimeError as error:
            problems.append(f"{description[:160]}: {error}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default=str(ROOT / "bin/fusion-client"), help="the other programs are beside it")
    parser.add_argument("--data", type=pathlib.Path, help="folder for the farm's data, kept for other checks with the same programs")
    parser.add_argument("--only", type=peers_bench.names(sequences.BY_NAME), default=list(sequences.BY_NAME), help="sequences")
    parser.add_argument("--kinds", type=peers_bench.names(("vector", "elements", "matrix")), default=["vector", "elements", "matrix"],
                        help="sequences over vectors, lists of elements, matrices")
    parser.add_argument("--types", type=peers_bench.names(sequences.TYPES), default=["f32"], help="f32, f64 (default f32)")
    parser.add_argument("--candidates", type=int, default=12)
    parser.add_argument("--sizes", type=int, default=1, help="how many of a sequence's sizes (default 1, the largest)")
    parser.add_argument("--full", action="store_true", help="every size")
    parser.add_argument("--match", default="", help="only candidates whose description holds this text, as 'bulk'")
    parser.add_argument("--leading-dimensions", action="store_true", help="padded rows; matrices alone")
    parser.add_argument("--wide", action="store_true", help="rows that a cluster may hold; matrices that need not be square")
    parser.add_argument("--sanitize", action="store_true", help="compute-sanitizer instead of the other checks; needs nvcc, as --wide does")
    parser.add_argument("--jobs", type=int, default=8, help="submissions at once")
    options = parser.parse_args()
    programs = pathlib.Path(options.client).resolve().parent
    if not shutil.which(options.client) or not shutil.which(programs / "fusion-server"):
        parser.error(f"--client: {options.client} is no program, or fusion-server is not beside it")
    lacking = lacks(options)
    if lacking:
        print(f"SKIP: {lacking}")
        return SKIPPED
    chosen = [sequences.BY_NAME[name] for name in options.only]
    chosen = [sequence for sequence in chosen
              if sequence.kind in options.kinds and (sequence.kind == "matrix" or not options.leading_dimensions)]
    told, told_lock = [], threading.Lock()

    def tell(name, problems):
        with told_lock:
            told.append(problems)
            print(f"{name}: {'no such candidate' if problems is None else 'BAD' if problems else 'ok'}", flush=True)
            for problem in problems or ():
                print(f"  {problem}", flush=True)

    def check_and_tell(sequence, data_type, sizes, candidates):
        try:
            problems = check(options, farm, sequence, data_type, sizes, candidates)
        except Exception as error:  # of torch, at a size that it does not take, or of the driver: the other checks go on
            problems = [f"{type(error).__name__}: {error}"[:600]]
        tell(" ".join([sequence.name, data_type, *(f"{size}={value}" for size, value in sequence.size_options(sizes).items())]), problems)

    farm = None
    try:
        farm = local_farm.LocalFarm(programs, [["--target", "cuda"]], options.jobs, data=data_of(options.data, programs),
                                    environment={"FUSION_NVRTC_PATH": peers_bench.nvrtc_path()} | dict(os.environ))
        farm.wait_for_devices(180)
        # By size, not by example: submissions at once then differ in what they build and in the routines that they measure.
        cases = [(number, sequence, data_type, *case) for data_type, sequence in itertools.product(options.types, chosen)
                 for number, case in enumerate(sizes_of(sequence, options))]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            futures = [pool.submit(check_and_tell, *case) for _, *case in sorted(cases, key=lambda case: -case[0])]
            for future in futures:
                future.result()
    except RuntimeError as error:
        print(f"check_kernels.py: {error}", file=sys.stderr)
        return 1
    finally:
        if farm:
            farm.close()
    bad, unmatched = sum(bool(problems) for problems in told), sum(problems is None for problems in told)
    print(f"{len(told)} checks, {bad} of them bad" + (f", {unmatched} without such a candidate" if unmatched else ""))
    if LEFT_OUT:
        print(f"SKIP: {len(LEFT_OUT)} folders with misaligned buffers, nvcc is not installed")
    missing = unmatched if options.wide else unmatched == len(told)
    return 1 if bad or missing else SKIPPED if LEFT_OUT else 0


if __name__ == "__main__":
    sys.exit(main())
