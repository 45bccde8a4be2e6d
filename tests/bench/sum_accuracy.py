#!/usr/bin/env python3
"""Submits graphs that add up many positive f32 entries and prints, for each ranked candidate, the largest relative error against f64.

    tests/bench/sum_accuracy.py --client build/release/bin/fusion-client --target host
    tests/bench/sum_accuracy.py --client bin/fusion-client --target cuda --output sums-cuda.json

Sums, norms and means of a vector, of tall columns, of long rows and of a square matrix, and sums of rows that are summed again; by default of 10^8
entries on a GPU and 10^7 on a host. Entries are random numbers' absolute values, so that nothing cancels. Exit status 1 where an
error is above --bound, 2e-6. (Equal entries, whose roundings all go one way, are in tests/property/codegen/long_sums_test.cc.)
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

VECTOR = """size n;
vector[n] x, p;  scalar s, r, d;
input x;
p = abs(x);  s = sum(p);  r = nrm2(x);  d = dot(p, p);
return s, r, d;
"""
MATRIX = """size m, n;
matrix[m,n] A, P;  vector[n] c, cm, cn;  vector[m] r, rm, rn;  scalar d;
input A;
P = abs(A);
c = colsum(P);  cm = colmean(P);  cn = colnrm2(A);
r = rowsum(P);  rm = rowmean(P);  rn = rownrm2(A);
d = sum(r);
return c, cm, cn, r, rm, rn, d;
"""
COLUMNS = """size m, n;
matrix[m,n] A, P;  vector[n] c, cm, cn;
input A;
P = abs(A);
c = colsum(P);  cm = colmean(P);  cn = colnrm2(A);
return c, cm, cn;
"""
ROWS = COLUMNS.replace("vector[n]", "vector[m]").replace("colsum", "rowsum").replace("colmean", "rowmean").replace(
    "colnrm2", "rownrm2")


def graphs(entries):
    """Name, text and sizes of each graph."""
    side = math.isqrt(entries)
    yield "vector", VECTOR, {"n": entries}
    yield "tall columns", COLUMNS, {"m": entries // 3, "n": 3}
    yield "wide columns", COLUMNS, {"m": entries // 4096, "n": 4096}
    yield "long rows", ROWS, {"m": 3, "n": entries // 3}
    yield "square", MATRIX, {"m": side, "n": side}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", required=True)
    parser.add_argument("--target", default="host", choices=["host", "cuda"])
    parser.add_argument("--server")
    parser.add_argument("--entries", type=int, help="of each graph (10^8 on a GPU, 10^7 on a host)")
    parser.add_argument("--candidates", type=int, default=30)
    parser.add_argument("--bound", type=float, default=2e-6)
    parser.add_argument("--only", help="comma separated names of graphs")
    parser.add_argument("--output", help="a JSON file")
    arguments = parser.parse_args()
    entries = arguments.entries or (10**8 if arguments.target == "cuda" else 10**7)

    rows, bad = [], 0
    for name, text, sizes in graphs(entries):
        if arguments.only and name not in arguments.only.split(","):
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".fuse") as file:
            file.write(text)
            file.flush()
            command = [arguments.client, "submit", file.name, "--target", arguments.target, "--json", "--candidates",
                       str(arguments.candidates)]
            for size, value in sizes.items():
                command += ["--size", f"{size}={value}"]
            if arguments.server:
                command += ["--server", arguments.server]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            print(f"{name}: exit code {done.returncode}: {done.stderr.strip()[-600:]}", file=sys.stderr)
            bad += 1
            continue
        for candidate in json.loads(done.stdout)["candidates"]:
            error = candidate.get("max_relative_error")
            right = candidate["outcome"] == "OK" and error is not None and error <= arguments.bound
            bad += not right
            rows.append({"graph": name, "sizes": sizes, "rank": candidate["rank"], "error": error,
                         "outcome": candidate["outcome"], "description": candidate["description"]})
            shown = "-" if error is None else f"{error:.1e}"
            print(f"{name:13s} rank {candidate['rank']:3d}  {shown:>8s}  {'' if right else 'ABOVE '}"
                  f"{candidate['outcome']}  {candidate['description']}", flush=True)
        if arguments.output:
            pathlib.Path(arguments.output).write_text(
                json.dumps({"target": arguments.target, "entries": entries, "rows": rows}, indent=1) + "\n")
    print(f"{len(rows)} candidates, {bad} not within {arguments.bound:g}")
    sys.exit(1 if bad or not rows else 0)


if __name__ == "__main__":
    main()
