#!/usr/bin/env python3
"""Writes BENCHMARKS.md, at most 20 KB, from the results in tests/bench/results, and the plot of the comparison with peers beside them.

    tests/bench/write_benchmarks.py

The page has the newest figures alone. A result that is measured again replaces the file of the one before.
"""
import json
import pathlib
import re
import statistics
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent / folder) for folder in ("peers", "partitioned")]

import partition_tables
import plot
import report
import sequences
import targets
from summary import geometric_mean

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "bench" / "results"
MOST_BYTES = 20_000
SETS = {"large": "large", "small": "small", "fit": "on chip"}


def read(name):
    return json.loads((RESULTS / name).read_text())


def table(headings, rows):
    """Markdown: the first column is text, the others are figures."""
    lines = ["| " + " | ".join(headings) + " |", "| --- |" + " ---: |" * (len(headings) - 1)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def section(title, *paragraphs):
    return "\n\n".join([f"## {title}", *paragraphs]) + "\n"


def reasons():
    """{row: why it misses what was asked for}, as targets.read_reasons gives it."""
    return targets.read_reasons((RESULTS / "peers-h200.reasons.md").read_text())


def brief(reason):
    """What a reason begins with, as one sentence: up to its first full stop or colon."""
    words = " ".join(reason.split())
    return re.match(r".{20,}?[.:](?= |$)|.*", words)[0].rstrip(".:") + "."


def peers(document, why):
    """The comparison of a document of peers_bench.py; `why`: see reasons. The page has the beginning of each reason."""
    rows = document["rows"]
    means, best = [], {}
    for set_name, data_type, found in report.groups(rows):
        ratios = [report.ratio(row) for row in found if not row.get("error") and report.ratio(row)]
        if set_name in SETS and ratios:
            means.append([f"{SETS[set_name]}, {data_type}", len(ratios), f"{geometric_mean(ratios):.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}"])
        for row in found:
            best[row["sequence"], set_name, data_type, row["side"]] = row

    def cells(name, set_name):
        found = [row for (sequence, of_set, data_type, _), row in best.items() if (sequence, of_set, data_type) == (name, set_name, "f32")]
        if not found or not report.ratio(found[0]):
            return ["", "", ""]
        row, (peer, _) = found[0], report.best_peer(found[0])
        ours = report.seconds(row, "ours")
        return [f"{ours / row['floor_seconds']:.2f}" if set_name == "large" else report.microseconds(ours), sequences.PEERS[peer], f"{report.ratio(row):.2f}"]

    lines = [[sequence.title, *cells(name, "large"), *cells(name, "small")] for name, sequence in sequences.BY_NAME.items()]
    return section(
        f"{document['device']['name']}: sequences against cuBLAS, torch and JAX",
        "Large: vectors of 2^26, matrices 16384 square, lists of 2^22 small matrices, one call with flushed caches. Small: 2^20, 2048 square, "
        "31,744, twenty calls in one CUDA graph. Every peer that computes the sequence rightly is timed in turn on the same data; a ratio is the time "
        "of the best peer over ours. " + targets.conditions(rows, [document]).rstrip(),
        "    tests/bench/peers/peers_bench.py --output tests/bench/results/peers-h200.json    # in the package, on the GPU machine",
        table(["rows", "count", "geometric mean of the ratios", "smallest", "largest"], means),
        "f32, by sequence:",
        table(["sequence", "large: ours / floor", "best peer", "ratio", "small: ours, us", "best peer", "ratio"], [line for line in lines if any(line[1:])]),
        "![time over floor](tests/bench/results/peers-h200.svg)", "What was asked for; of each line the worst row stands there, over the floor or as many times as fast as the best peer.",
        targets.table(targets.judgements(rows)).rstrip(), "What misses, and why ([at length](tests/bench/results/peers-h200.reasons.md)):",
        targets.missed_list(targets.judgements(rows), {name: brief(reason) for name, reason in why.items()}).rstrip())


# Rows of the predictions that the page leaves out; the results have them.
UNSHOWN_WAYS = ("the example left out, others' kernels remembered", "2 graphs of other examples known, 3 draws",
                "5 graphs of other examples known, 3 draws", "20 graphs of other examples known, 3 draws",
                "the same, kernels remembered", "every second candidate, the example left out", "measured before, corrections alone")


def predictions():
    document = read("model-h200.json")
    percent = lambda share: f"{100 * share:.1f} %"
    rows = [[way["name"], way["graph_count"], percent(way["median_absolute_error"]), f"{way['median_kendall_tau']:.2f}", percent(way["best_in_first_5_with_ties"]),
             percent(way["first_3_within_2_percent"])] for way in document["ways"] if way["name"] not in UNSHOWN_WAYS]
    return section(
        f"{document['device']}: predictions", f"{document['date']}. All candidates of the graphs were timed, and predicted from what was known. Asked for: an error "
        "of at most 10 %, Kendall's tau of 0.8, the best among the first five in 95 %, the best of three within 2 % in 95 %.", f"    {document['command']}",
        table(["what was known", "graphs", "median error", "tau, median", "best, or a tie, in first 5", "first 3 within 2 %"], rows),
        "![predicted against measured](tests/bench/results/model-h200-predicted.svg)")


# What tests/bench/search must reach: the beginning of the name, in words, and the target.
SEARCH_ROWS = (("Example/function1", "Function I: search and 50 covers", "50 ms"), ("Example/gemver", "GEMVER: the same", "200 ms"),
               ("Example/layer_norm", "layer norm: the same", "200 ms"), ("Example/st_venant", "St. Venant: the same", "200 ms"),
               ("RandomGraph/nodes:300/", "random graph of 300 nodes, sets up to 6", "2 s"),
               ("RandomGraph/nodes:1000/covers:1/", "the same, 1000 nodes", "10 s"))


def search():
    document = read("search.json")
    rows = []
    for prefix, words, target in SEARCH_ROWS:
        runs = [run for run in document["benchmarks"] if run["name"].startswith(prefix)]
        times = [run["real_time"] for run in runs]
        rows.append([words + (f" (median of {len(runs)} graphs; most)" if len(runs) > 1 else ""),
                     f"{statistics.median(times):.0f} ms" + (f"; {max(times):.0f} ms" if len(runs) > 1 else ""),
                     f"{sum(run['proved'] for run in runs):.0f} of {len(runs)}", target])
    return section("The search", f"{document['context']['date'][:10]}; one thread of {document['context']['mhz_per_cpu']} MHz.",
                   "    build/release/tests/search_bench --benchmark_out=tests/bench/results/search.json --benchmark_out_format=json",
                   table(["what", "time", "proved optimal", "asked for"], rows))


def figures(name, title):
    """A section of the figures that something was asked for."""
    document = read(name)
    return section(title, f"{document['date']}{'; ' + str(document['cores']) + ' cores' if 'cores' in document else ''}.", f"    {document['command']}",
                   table(["what", "measured", "asked for"], [[figure["what"], figure["value"], figure["target"]] for figure in document["figures"] if figure["target"]]))


def tuning():
    library, server, found = read("tuning-library.json"), read("tuning-server.json"), read("tuning-search.json")
    milliseconds = lambda seconds: f"{1e3 * seconds:.2f} ms"
    worst = max(run["next_wall"]["p99_ns"] for run in library["runs"])
    cases = server["cases"]
    rows = [["next: p99 over all runs", f"{worst:.0f} ns", "1 us"],
            ["start and stop together, most", f"{max(run['start_stop_loop_ns'] for run in library['runs']):.0f} ns", "200 ns"],
            ["reports a second, least", f"{min(case['reports_per_second'] for case in cases):,.0f}", "20,000"],
            ["acknowledged, stored safely: p99, most", milliseconds(max(case["acknowledged"]["p99_seconds"] for case in cases)), "2 ms"],
            ["evaluations as a share of random search, most", f"{max(row['share_of_random'] for row in found['functions']):.2f}", "0.5"]]
    loops = [[f"{case['routine']} {' x '.join(str(size) for size in case['sizes'].values())}",
              *(milliseconds(case[kind]["median_seconds"]) for kind in ("sequential", "cpu_alone", "gpu_alone", "tuned")), f"{case['found']['ratio']:.3f}",
              f"{case['tuned_over_faster_end']:.3f}"] for case in read("polybench-h200.json")["cases"]]
    return section("Online tuning", "    build/release/tests/tuning_library_bench, tuning_server_bench, tuning_search_bench > tests/bench/results/tuning-*.json",
                   table(["what", "measured", "asked for"], rows),
                   "Loops of PolyBench split between the processors' threads and one H200 by a tuned ratio, f64, transfers included; the last column is the time over "
                   "that of the faster of processors alone and GPU alone (asked for: 1.03).",
                   "    python3 tests/bench/tuning/polybench_bench.py --full --output polybench-h200.json    # in the package, on the GPU machine",
                   table(["loop", "sequential", "processors", "GPU", "tuned", "ratio", "over the faster"], loops))


def hosts():
    answers, compared = read("first-answer.json"), read("host-peers.json")
    submitted = {row["example"]: [f"{row['plain']:.0f} s", f"{row['options']:.1f} s", f"{row['ratio']:.2f}" if "ratio" in row else ""] for row in answers["rows"]}
    against = {name: [f"{1e3 * one['ours']:.2f}", f"{1e3 * one['torch']:.2f}", f"{one['ratio']:.2f}"] for name, one in compared.items()}
    rows = [[name, *submitted.get(name, [""] * 3), *against.get(name, [""] * 3)] for name in sorted({**submitted, **against})]
    any_of = next(iter(compared.values()))
    return section("Processors alone", f"{answers['date']}; {answers['cores']} cores of a virtual machine. How long a submission takes from an empty store, with all and with "
                   f"`{' '.join(answers['options'])}`, and the time of rank 1 of the quick answer over that of the full one, timed side by side (asked for: "
                   f"90 s, 10 s, and 1.25 in all but two); then the code of a quick answer beside torch {any_of['torch_version']} in eager mode, {any_of['threads']} "
                   "threads, memory that malloc keeps, in turn.",
                   "    tests/bench/first_answer.py --bin build/release/bin --state first.json --option=--quick --output tests/bench/results/first-answer.json\n"
                   "    tests/bench/peers/host_peers.py --bin build/release/bin --submit=--quick --output tests/bench/results/host-peers.json",
                   table(["example", "full", "quick", "over full", "its code, ms", "torch, ms", "times as fast"], rows))


def loops():
    document, others = read("loops-h200.json"), read("loops-peers-h200.json")
    swept, choice = read("loops-sweep-h200.json"), read("loops-choice-h200.json")
    microseconds = lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    ratio = lambda value: f"{value:.1f}" if value >= 2 else f"{value:.2f}"
    short = lambda value: f"2^{value.bit_length() - 1}" if value >= 1 << 16 and value & (value - 1) == 0 else str(value)
    sizes = lambda values: f"{values[0]}^{len(values)}" if len(values) > 1 and len(set(values)) == 1 else " x ".join(map(short, values))
    peer = {(row["name"], *row["sizes"].values()): row for row in others["rows"]}
    kinds = ("ppcg_default_us", "ppcg_best_us", "openmp_default_us", "openmp_best_us")
    rows, ratios = [], {kind: [] for kind in kinds}
    for row in document["rows"]:
        beside = peer.get((row["name"], *row["sizes"].values()))
        if beside is None and any(later["name"] == row["name"] for later in document["rows"][document["rows"].index(row) + 1:]):
            continue  # without peers the larger sizes stand for both
        for kind in kinds if beside else ():
            ratios[kind].append(beside[kind] / row["rank1_us"])
        rows.append([f"{row['name']} {sizes(list(row['sizes'].values()))}", microseconds(row["rank1_us"]), f"{row['speedup']:.2f}",
                     *(ratio(beside[kind] / row["rank1_us"]) if beside else "-" for kind in kinds)])
    rows.append(["geometric mean", "", "", *(f"{geometric_mean(ratios[kind]):.2f}" for kind in kinds)])
    pairs = [[row["name"], microseconds(row["best_us"]), f"{row['at'][0]} x {row['at'][1]}", f"{row['worst_over_best']:.2f}", f"{row['regret']:.2f}",
              microseconds(row["own_us"])] for row in swept["rows"]]
    regrets = [row["chosen_us"] / row["fastest_us"] for row in choice["rows"]]
    cuda = [row for row in read("polybench-gpu-h200.json")["rows"] if "ratio" in row]
    by_hand = ", ".join(f"{row['name']} {round(row['ratio']) if row['ratio'] > 10 else ratio(row['ratio'])}" for row in sorted(cuda, key=lambda row: row["ratio"]))
    return section(f"Loops in C on an {document['device']}", "The loops of `examples/loops` as jobs of 30 verified cases: microseconds, and how many times as fast as one iteration a "
                   "thread in blocks of 256; as PPCG by default, and the best of its tiles, blocks and hybrid tiling; and as OpenMP offload by default, and the best of 16 grids "
                   f"and blocks with the time of launches ({others['ppcg']}; {others['openmp']}). The case predicted to be fastest took "
                   f"{geometric_mean([row['regret'] for row in document['rows']]):.2f} times as long as rank 1.",
                   "    tests/bench/loops.py --target cuda --json tests/bench/results/loops-h200.json",
                   table(["loops", "rank 1", "plain", "PPCG", "its best", "OpenMP", "its best"], rows),
                   "In OpenMP's grids of 64 to 512, blocks of 128 to 1024 (`loops_sweep.py`); how many times as long others take:",
                   table(["loops", "best", "at", "worst", "predicted", "own tiles"], pairs),
                   f"Folders chose variants that took {geometric_mean(regrets):.2f} times as long as their fastest, {max(regrets):.2f} at worst; a choice takes "
                   f"{max(row.get('later_choice_ns', 0) for row in choice['rows']):.0f} ns, the first {max(row.get('first_choice_us', 0) for row in choice['rows']):.1f} us "
                   "(`loops_choice.py`).",
                   f"Times as fast as PolyBench/GPU in its best blocks (`polybench_gpu.py`): {by_hand}; geometric mean "
                   f"{ratio(geometric_mean([row['ratio'] for row in cuda]))}. As predicted over rank 1: {geometric_mean([row['regret'] for row in cuda]):.2f}.")


def partitioned():
    """Sections about sequential programs that fusion-cc partitions; none before they are measured."""
    if not (RESULTS / "partition-h200.json").exists():
        return []
    document = read("partition-h200.json")
    return [section(f"Sequential programs, partitioned: {document['device']}", *partition_tables.paragraphs(document, read("polybench-h200.json"), table))]


def page():
    return "\n".join(["# Benchmarks\n\nMade by `tests/bench/write_benchmarks.py` from `tests/bench/results`; do not edit by hand. Each section names the command that "
                      "measured it; `tests/bench/README.md` says how times are taken.\n",
                      peers(read("peers-h200.json"), reasons()), predictions(), loops(), search(), figures("farm-h200.json", "A farm of one machine with an H200"),
                      figures("dispatch.json", "Tasks through one server"), hosts(), tuning(), *partitioned()])


def main():
    document, text = read("peers-h200.json"), page()
    (RESULTS / "peers-h200.svg").write_text(plot.draw(document["rows"], document["device"]["name"]))
    (ROOT / "BENCHMARKS.md").write_text(text)
    if len(text.encode()) > MOST_BYTES:
        print(f"BENCHMARKS.md has {len(text.encode())} bytes, more than {MOST_BYTES}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
