#!/usr/bin/env python3
"""Writes BENCHMARKS.md from the results in tests/bench/results.

    tests/bench/write_benchmarks.py
"""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "bench" / "results"


def microseconds(seconds):
    value = seconds * 1e6
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def examples_table(document, name):
    if not document["rows"]:
        return ""
    device = document["rows"][0]["device"]
    sizes = ("vectors 2^26, matrices 16384 x 16384, mapped lists 2^22" if document["large"]
             else "the sizes in the files, multiples of nothing")
    measured = next((row["conditions"] for row in document["rows"] if row.get("conditions")), {})
    conditions = "".join(f"; {name.replace('_', ' ')} {value}" for name, value in measured.items() if value)
    flags = " --large" if document["large"] else ""
    lines = [
        f"## {device['name']}: all examples, {sizes}",
        "",
        f"{document['date']}; {device['arch']}; copy {device['copy_bytes_per_second'] / 1e9:.0f} GB/s (read plus written){conditions}. "
        "Times are medians with caches flushed before each run (cold). Speed-up is paired, sample by sample, with the unfused cover "
        "in the same process. Error is the largest relative error of any candidate, against f64.",
        "",
        f"    tests/bench/examples_bench.py --target {document['target']}{flags} --client build/release/bin/fusion-client "
        f"--output tests/bench/results/{name}",
        "",
        "| example | floor us | best us | best / floor | unfused us | speed-up | kernels | error | candidates OK | submit s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in document["rows"]:
        best = row["best_seconds"]["median"]
        total = sum(row["outcomes"].values())
        lines.append(
            f"| {row['example']} | {microseconds(row['floor_seconds'])} | {microseconds(best)} "
            f"| {best / row['floor_seconds']:.2f} | {microseconds(row['unfused_seconds']['median'])} "
            f"| {row['speedup']:.2f} | {len(row['kernels'])} | {row['max_relative_error']:.1e} "
            f"| {row['outcomes'].get('OK', 0)} of {total} | {row['submit_seconds']:.1f} |")
    return "\n".join(lines) + "\n"


def main():
    parts = ["# Benchmarks", "",
             "Made by `tests/bench/write_benchmarks.py` from `tests/bench/results/`; do not edit by hand. "
             "Each section names the command that measured it.", ""]
    for path in sorted(RESULTS.glob("*.json")):
        document = json.loads(path.read_text())
        if "rows" in document:
            parts.append(examples_table(document, path.name))
        else:
            parts.append(figures_table(document, path.name))
    (ROOT / "BENCHMARKS.md").write_text("\n".join(parts))


def figures_table(document, name):
    """Single figures: {"title", "command", "date", "figures": [{"what", "value", "target"}]}."""
    lines = [f"## {document['title']}", "", f"{document['date']}.", "", f"    {document['command']}", "",
             "| what | measured | target |", "| --- | ---: | ---: |"]
    lines += [f"| {f['what']} | {f['value']} | {f['target']} |" for f in document["figures"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
