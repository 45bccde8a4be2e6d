#!/usr/bin/env python3
"""Submits every example and writes what came out as JSON: time, floor, speed-up over unfused, error.

    tests/bench/examples_bench.py --client build/release/bin/fusion-client --target host --output host.json
    tests/bench/examples_bench.py --client bin/fusion-client --target cuda --large --output cuda-large.json

--large: vectors of 2^26, matrices of 16384 x 16384, mapped lists of 2^22 elements; else the sizes in the files, which are
multiples of nothing. tests/bench/write_benchmarks.py makes BENCHMARKS.md of the results.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import time


def sizes_of(text):
    """Names of the sizes of a .fuse file, and whether it has matrices or mapped lists."""
    names = []
    for declaration in re.findall(r"^\s*size\s+([^;]+);", text, re.M):
        names += [part.split("=")[0].strip() for part in declaration.split(",")]
    matrices = re.search(r"\bmatrix\s*\[", text) is not None
    mapped = re.search(r"\b(MATRIX\d|VECTOR\d|SCALAR\b)", text) is not None
    return names, matrices, mapped


def large_sizes(text):
    names, matrices, mapped = sizes_of(text)
    if mapped:
        return {"elements": 1 << 22}
    return {name: (1 << 14) if matrices else (1 << 26) for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", required=True)
    parser.add_argument("--target", default="host", choices=["host", "cuda"])
    parser.add_argument("--examples", default=str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--candidates", type=int, default=30)
    parser.add_argument("--only", help="comma separated names")
    parser.add_argument("--output", required=True)
    parser.add_argument("--server")
    arguments = parser.parse_args()

    rows, failed = [], 0
    for path in sorted(pathlib.Path(arguments.examples).glob("*.fuse")):
        if arguments.only and path.stem not in arguments.only.split(","):
            continue
        text = path.read_text()
        command = [arguments.client, "submit", str(path), "--target", arguments.target, "--json", "--candidates",
                   str(arguments.candidates)]
        if arguments.large:
            for name, value in large_sizes(text).items():
                command += ["--size", f"{name}={value}"]
        if arguments.server:
            command += ["--server", arguments.server]
        start = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seconds = time.monotonic() - start
        if done.returncode != 0:
            failed += 1
            print(f"{path.stem}: exit code {done.returncode}: {done.stderr.strip()[-600:]}", file=sys.stderr)
            continue
        result = json.loads(done.stdout)
        candidates = result["candidates"]
        outcomes = {}
        for candidate in candidates:
            outcomes[candidate["outcome"]] = outcomes.get(candidate["outcome"], 0) + 1
        best = candidates[0]
        row = {
            "example": path.stem,
            "sizes": result["graph"].get("sizes"),
            "device": result["device"],
            "conditions": result.get("conditions"),
            "floor_seconds": result["floor"]["seconds"],
            "unfused_seconds": result["unfused"]["measured_seconds"],
            "best_seconds": best.get("measured_seconds"),
            "warm_seconds": best.get("warm_seconds"),
            "speedup": best.get("speedup"),
            "fusions": best["fusions"],
            "kernels": best["kernels"],
            "predicted_rank": best["predicted_rank"],
            "predicted_seconds": best["predicted_seconds"],
            "max_relative_error": max((c["max_relative_error"] for c in candidates if c["outcome"] == "OK"), default=None),
            "outcomes": outcomes,
            "failures": [c.get("message", "")[:300] for c in candidates if c["outcome"] != "OK"][:3],
            "submit_seconds": seconds,
            "search": result["search"],
        }
        rows.append(row)
        print(f"{path.stem:22s} floor {row['floor_seconds'] * 1e6:10.1f} us  best {row['best_seconds']['median'] * 1e6:10.1f} us"
              f"  {row['best_seconds']['median'] / row['floor_seconds']:5.2f} x floor  {row['speedup']:5.2f} x unfused"
              f"  error {row['max_relative_error']:.1e}  {outcomes}  {seconds:.1f} s", flush=True)
        document = {"date": datetime.date.today().isoformat(), "target": arguments.target, "large": arguments.large,
                    "candidates": arguments.candidates, "rows": rows}
        pathlib.Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(rows)} examples measured, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
