#!/usr/bin/env python3
"""Times the loops of examples/loops as jobs, each at two sizes, and prints a table for BENCHMARKS.md.

  tests/bench/loops.py [--client PATH] [--target cuda|host] [--only NAME]... [--small] [--submit=OPTION]... [--json FILE] [--export DIR]
                       [--cases-output FILE]

With --cases-output FILE all cases that were timed are written to FILE, of which build/release/tests/loops_replay predicts anew; --submit=--measure-all
times all that were looked for.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Sizes that tiles divide where the loops round down.
SIZES = {
    "addition": [{"N": 4096}, {"N": 8192}],
    "dot_product": [{"n": 1 << 20}, {"n": 1 << 26}],
    "gemm": [{"ni": 1024, "nj": 1024, "nk": 1024}, {"ni": 4000, "nj": 4000, "nk": 4000}],
    "jacobi": [{"N": 32770, "T": 100}, {"N": 16777218, "T": 100}],
    "lu": [{"N": 1024}, {"N": 2048}],
    "matmul": [{"N": 1024}, {"N": 2048}],
    "matmul_openmp": [{"N": 1000}, {"N": 2048}],
    "reversal": [{"N": 1 << 23}, {"N": 1 << 25}],
    "reversal_serial": [{"N": 10000019}, {"N": 1 << 25}],
    "row_sums": [{"n": 4096, "m": 4096}, {"n": 10007, "m": 8191}],
    "smoothing": [{"N": 32770, "T": 100}, {"N": 16777216, "T": 100}],
    "stencil": [{"n": 1000, "T": 50}, {"n": 4096, "T": 50}],
    "transpose": [{"n": 4096, "m": 4096}, {"n": 16384, "m": 16384}],
}
SMALL = {"N": 1026, "T": 4, "n": 300, "m": 200, "ni": 100, "nj": 120, "nk": 80}
SMALL_BY_NAME = {"matmul": {"N": 128}, "addition": {"N": 128}, "lu": {"N": 64}, "matmul_openmp": {"N": 100}, "reversal": {"N": 4096}}


def submit(arguments, name, sizes):
    """The result of a job, or the error text."""
    command = [arguments.client, "submit", str(ROOT / "examples/loops" / (name + ".c")), "--target", arguments.target, "--json"]
    for size, value in sizes.items():
        command += ["--size", f"{size}={value}"]
    command += arguments.submit
    if arguments.export:
        command += ["--force", "--output", str(pathlib.Path(arguments.export) / f"{name}_{'_'.join(map(str, sizes.values()))}")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}"
    return json.loads(done.stdout), None


def regret(candidates):
    """The time of the case that was predicted to be the fastest of those that were timed, over that of the fastest."""
    timed = [one for one in candidates if one["outcome"] == "OK"]
    # The plain case stands first whatever is predicted.
    predicted = sorted(timed, key=lambda one: one["predicted_rank"])
    first = predicted[1] if len(predicted) > 1 and predicted[0]["predicted_rank"] == 1 else predicted[0]
    return first["measured_seconds"]["median"] / min(one["measured_seconds"]["median"] for one in timed)


def timed_cases(result):
    """What loops_replay reads of a job's cases that are OK."""
    return [{"description": one["description"], "parameters": one.get("parameters", {}), "cached": ", shared " in one["description"],
             "predicted_rank": one["predicted_rank"], "predicted": one["predicted_seconds"],
             **{key: one["measured_seconds"][key] for key in ("median", "low", "high")},
             "kernels": [{key: kernel[key] for key in ("blocks", "threads", "registers", "spill_bytes", "shared_bytes")} for kernel in one["kernels"]]}
            for one in result["candidates"] if one["outcome"] == "OK"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default=str(ROOT / "build/release/bin/fusion-client"))
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--small", action="store_true", help="small sizes, to see that all is right")
    parser.add_argument("--submit", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("--export")
    parser.add_argument("--cases-output")
    arguments = parser.parse_args()
    rows, failed = [], 0
    table = {"device": "", "rows": rows}
    cases = {"schema": "fusion.measured_loops/1", "date": datetime.date.today().isoformat(), "device": "", "rows": []}

    def write():
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(table, indent=1) + "\n")
        if arguments.cases_output:
            pathlib.Path(arguments.cases_output).write_text(json.dumps(cases, separators=(",", ":")) + "\n")

    print("| loops | sizes | plain (us) | rank 1 (us) | speed-up | case | timed |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, both in SIZES.items():
        if arguments.only and name not in arguments.only:
            continue
        if arguments.small:
            both = [SMALL_BY_NAME.get(name) or {size: SMALL[size] for size in both[0]}]
        for sizes in both:
            result, error = submit(arguments, name, sizes)
            shown = ", ".join(f"{size}={value}" for size, value in sizes.items())
            if error:
                failed += 1
                print(f"| {name} | {shown} | - | - | - | {error} | |", flush=True)
                rows.append({"name": name, "sizes": sizes, "error": error})
                write()
                continue
            best = result["candidates"][0]
            plain = result["unfused"]["measured_seconds"]["median"] * 1e6
            first = best["measured_seconds"]["median"] * 1e6
            rows.append({"name": name, "sizes": sizes, "plain_us": plain, "rank1_us": first, "speedup": best["speedup"], "case": best["description"],
                         "timed": len(result["candidates"]), "predicted_rank": best["predicted_rank"], "regret": regret(result["candidates"]),
                         "largest_error": best["max_relative_error"], "tolerance": best["tolerance"]})
            table["device"] = cases["device"] = result["device"]["name"]
            cases["rows"].append({"name": name, "sizes": sizes, "cases": timed_cases(result)})
            write()
            print(f"| {name} | {shown} | {plain:.1f} | {first:.1f} | {best['speedup']:.2f} | {best['description']} | {len(result['candidates'])} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
