#!/usr/bin/env python3
"""Times loops in OpenMP 4.5 with all grids G and blocks B that Chen et al. 2017 print, shared out as OpenMP says, and beside them what the farm
makes of the same text with tiles of its own.

  tests/bench/loops_sweep.py [--client PATH] [--target cuda|host] [--only NAME]... [--small] [--json FILE]

The chunks of OpenMP are those that `check --print metafork` prints; grids are 64 to 512, blocks 128 to 1024. "predicted first" is the pair that
would be taken without measuring.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The text, its sizes as printed, small ones, and the name of the block's size.
EXAMPLES = {
    "vector_addition": ("tests/bench/openmp_loops/vector_addition.c", {"n": 4096 * 4096}, {"n": 4096}, "B"),
    "saxpy": ("tests/bench/openmp_loops/saxpy.c", {"n": 4096 * 64}, {"n": 4096}, "B"),
    "jacobi": ("tests/bench/openmp_loops/jacobi.c", {"n": 32768, "T": 100}, {"n": 4096, "T": 3}, "B"),
    "transpose": ("tests/bench/openmp_loops/transpose.c", {"n": 16384}, {"n": 256}, "B"),
    "lu": ("examples/loops/lu.c", {"N": 2048}, {"N": 64}, "B"),
    "multiplication": ("examples/loops/matmul_openmp.c", {"N": 2048}, {"N": 128}, "B1"),
}


def submit(arguments, path, sizes, *more):
    command = [arguments.client, "submit", str(path), "--target", arguments.target, "--json", *more]
    for size, value in sizes.items():
        command += ["--size", f"{size}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def microseconds(candidate):
    return candidate["measured_seconds"]["median"] * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default=str(ROOT / "build/release/bin/fusion-client"))
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    table = {"rows": []}
    print("| loops | pairs | best (us) | at (G, B) | worst / best | predicted first / best | own tiles (us) | best / own tiles |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, (path, sizes, small, block) in EXAMPLES.items():
            if arguments.only and name not in arguments.only:
                continue
            sizes = small if arguments.small else sizes
            printed = subprocess.run([arguments.client, "check", str(ROOT / path), "--print", "metafork"], capture_output=True, text=True, check=True)
            chunks = pathlib.Path(folder) / f"{name}.c"
            chunks.write_text(f"#pragma fusion parameter G in 64..512\n#pragma fusion parameter {block} in 128..1024\n{printed.stdout}")
            swept = submit(arguments, chunks, sizes, "--measure-all")
            # Without shared memory: OpenMP has none.
            pairs = {(one["parameters"]["G"], one["parameters"][block]): one for one in reversed(swept["candidates"])
                     if one["outcome"] == "OK" and "shared" not in one["description"]}
            best = min(pairs.values(), key=microseconds)
            # The plain case has the rank 1 whatever is predicted.
            first = min(pairs.values(), key=lambda one: (one["predicted_rank"] == 1, one["predicted_rank"]))
            own = submit(arguments, ROOT / path, sizes)
            table["device"] = swept["device"]["name"]
            row = {"name": name, "sizes": sizes, "pairs": {f"{g}, {b}": microseconds(one) for (g, b), one in sorted(pairs.items())},
                   "at": [best["parameters"]["G"], best["parameters"][block]], "best_us": microseconds(best),
                   "worst_over_best": max(map(microseconds, pairs.values())) / microseconds(best), "regret": microseconds(first) / microseconds(best),
                   "own_us": microseconds(own["candidates"][0]), "own_case": own["candidates"][0]["description"]}
            table["rows"].append(row)
            print(f"| {name} | {len(pairs)} | {row['best_us']:.1f} | {row['at'][0]}, {row['at'][1]} | {row['worst_over_best']:.2f} | {row['regret']:.2f} "
                  f"| {row['own_us']:.1f} | {row['best_us'] / row['own_us']:.2f} |", flush=True)
            if arguments.json:
                pathlib.Path(arguments.json).write_text(json.dumps(table, indent=1) + "\n")
    if table["rows"]:
        mean = math.exp(sum(math.log(row["regret"]) for row in table["rows"]) / len(table["rows"]))
        print(f"\npredicted first / best, geometric mean: {mean:.2f}")


if __name__ == "__main__":
    main()
