#!/usr/bin/env python3
"""Writes BENCHMARKS.md from the results in tests/bench/results, and the plots of the comparison with peers beside them.

    tests/bench/write_benchmarks.py
"""
import json
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))

import plot
import report
import sequences
import targets

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
        "in the same process. Error is the largest relative error of any candidate, against f64."
        + (f" {document['note']}" if document.get("note") else ""),
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


def slug(device):
    return device.lower().replace(" ", "-")


def newest_rows(documents, sets=sequences.SETS):
    """Of each case of these sets the row that was measured last."""
    rows = {}
    for row in sorted((row for document in documents for row in document["rows"]), key=lambda row: row["date"]):
        if row["set"] in sets:
            rows[row["sequence"], row["set"], row["type"], row["side"]] = row
    return list(rows.values())


def shapes_section(documents):
    """Of the set "shapes", which is in no target: few long rows, and short ones."""
    parts = []
    for data_type in sequences.TYPES:
        rows = [row for row in newest_rows(documents, ("shapes",)) if row["type"] == data_type]
        if rows:
            parts.append(f"\n### Few long rows, and short ones, {data_type}\n\nus, cold caches (`--sets shapes`); in no target and no mean "
                         f"above.\n\n{report.table(rows, 'shapes')}")
    return "\n".join(parts)


def reasons_of(device):
    """{row: why it misses its target} of a device, as targets.read_reasons gives it."""
    path = RESULTS / f"peers-{slug(device)}.reasons.md"
    return targets.read_reasons(path.read_text()) if path.exists() else {}


def peers_section(documents, plots):
    """The section "Against cuBLAS, torch and JAX" for each device, from (file name, document) pairs of
    tests/bench/peers/peers_bench.py. Of a case that several measured, the newest stands. `plots`: (device, file name). First come
    the targets, what misses them and why (peers-DEVICE.reasons.md), behind the tables what peers-DEVICE.remarks.md says of them."""
    parts = []
    for device in sorted({document["device"]["name"] for _, document in documents}):
        own = [(name, document) for name, document in documents if document["device"]["name"] == device]
        rows = newest_rows(document for _, document in own)
        lines = [f"## Against cuBLAS, torch and JAX: {device}", "",
                 targets.markdown(rows, [document for _, document in own], reasons_of(device)), "### How the rows were measured", ""]
        for name, document in own:
            conditions = document.get("conditions_after") or document.get("conditions_before") or {}
            facts = [f"driver {conditions['driver_version']}"] if "driver_version" in conditions else []
            facts += [f"{key} {conditions[key]}" for key in ("clocks.sm", "clocks.mem") if key in conditions]
            facts += [f"{key} {value}" for key, value in document["versions"].items() if value]
            lines += [f"`{name}`: {document['date']}; {document['device']['arch']}; copy "
                      f"{document['copy_bytes_per_second'] / 1e9:.0f} GB/s (read plus written); {'; '.join(facts)}.", "",
                      f"    {document['command']}", ""]
            lines += [document["note"], ""] if "note" in document else []
        lines += ["The floor is the time of the fewest bytes (each input read once, each output written once; where said, a matrix "
                  "too large for the caches is read again after a global barrier) at the copy rate of the same run. All are "
                  "timed in turn on the same data and verified against f64; medians. tests/bench/README.md says how.", ""]
        lines += [f"![time over floor](tests/bench/results/{name})\n" for owner, name in plots if owner == device]
        remarks = RESULTS / f"peers-{slug(device)}.remarks.md"
        parts.append("\n".join(lines) + "\n" + report.markdown(rows) + shapes_section([document for _, document in own])
                     + ("\n" + remarks.read_text() if remarks.exists() else ""))
    return "\n".join(parts)


def warn_of_reasons(documents):
    """Says on stderr which missed rows have no reason, and which reasons are of rows that are met now."""
    for device in sorted({document["device"]["name"] for _, document in documents}):
        judged = targets.judgements(newest_rows(document for _, document in documents if document["device"]["name"] == device))
        reasons = reasons_of(device)
        for name in targets.without_reason(judged, reasons):
            print(f"{device}: no reason recorded for {name}", file=sys.stderr)
        for name in targets.stale(judged, reasons):
            print(f"{device}: the reason for {name} is stale, its target is met", file=sys.stderr)


def peers_plots(documents):
    """Writes a plot of all rows of each device; (device, file name) pairs."""
    plots = []
    for device in sorted({document["device"]["name"] for _, document in documents}):
        rows = newest_rows(document for _, document in documents if document["device"]["name"] == device)
        name = f"peers-{slug(device)}.svg"
        (RESULTS / name).write_text(plot.draw(rows, device))
        plots.append((device, name))
    return plots


def main():
    parts = ["# Benchmarks", "",
             "Made by `tests/bench/write_benchmarks.py` from `tests/bench/results/`; do not edit by hand. "
             "Each section names the command that measured it.", ""]
    peers = []
    for path in sorted(RESULTS.glob("*.json")):
        if path.name.startswith(("tuning-", "polybench-")) or path.name.endswith("-passes.json"):
            continue  # one section of all of them; a part of another file's
        document = json.loads(path.read_text())
        if document.get("schema") == report.SCHEMA:
            peers.append((path.name, document))
        elif document.get("schema") == "fusion.model_report/1":
            parts.append(model_table(document, path))
        elif document.get("schema") == "fusion.model_replay/1":
            parts.append(replay_table(document, path))
        elif "benchmarks" in document:
            parts.append(search_table(document, path.name))
        elif "rows" in document:
            parts.append(examples_table(document, path.name))
        else:
            parts.append(figures_table(document, path.name))
    parts.append(tuning_section())
    for path in sorted(RESULTS.glob("*-device.txt")):
        parts.append(device_section(path))
    if peers:
        parts.append(peers_section(peers, peers_plots(peers)))
        warn_of_reasons(peers)
    (ROOT / "BENCHMARKS.md").write_text("\n".join(parts))


# What tests/bench/search must reach: the name's beginning, in words, and the target.
SEARCH_ROWS = (("Example/function1", "Function I: whole search and 50 best covers", "50 ms"),
               ("Example/gemver", "GEMVER: the same", "200 ms"),
               ("Example/layer_norm", "layer norm: the same", "200 ms"),
               ("Example/st_venant", "St. Venant: the same", "200 ms"),
               ("RandomGraph/nodes:100/", "random graph, 100 nodes, sets up to 6: best cover", ""),
               ("RandomGraph/nodes:200/", "the same, 200 nodes", ""),
               ("RandomGraph/nodes:300/", "the same, 300 nodes", "2 s, proved"),
               ("RandomGraph/nodes:1000/covers:1/", "the same, 1000 nodes (a row for each graph)", "10 s, 1 GB, gap 0.5 %"),
               ("RandomGraph/nodes:1000/covers:50/", "the same, 1000 nodes: 50 best", "30 s, within the gap"),
               ("VectorGraph/nodes:300/", "vector operations, 300 nodes, predicted times, 30 covers", ""),
               ("VectorGraph/nodes:1000/", "the same, 1000 nodes", ""),
               ("VectorGraph/nodes:10000/", "the same, 10,000 nodes", "60 s, an answer with its bound"),
               ("OwnInputs/nodes:300/", "the same, no inputs in common, 300 nodes", ""),
               ("OwnInputs/nodes:1000/", "the same, 1000 nodes", ""),
               ("SetsUpToSix/nodes:300/", "the same, 300 nodes, all sets up to 6, predicted times: best cover", ""),
               ("SetsUpToSix/nodes:1000/", "the same, 1000 nodes", ""))


MOST_ROWS = 3  # of one kind of graph, each by itself


def search_table(document, name):
    """Google Benchmark's JSON of tests/bench/search."""
    context = document["context"]
    chosen = " --benchmark_filter='VectorGraph|OwnInputs|SetsUpToSix'" if "vector-graphs" in name else ""
    lines = ["## The search", "", f"{context['date'][:10]}; {context['num_cpus']} CPUs, {context['mhz_per_cpu']} MHz, one thread.", "",
             f"    build/release/tests/search_bench{chosen} "
             f"--benchmark_out=tests/bench/results/{name} --benchmark_out_format=json", "",
             "Memory is the most that the process had by then, rows above included.", "",
             "| what | time | gap | covers | memory | target |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    memory = lambda run: f"{run['most_megabytes']:.0f} MB" if "most_megabytes" in run else ""
    for prefix, words, target in SEARCH_ROWS:
        runs = [run for run in document["benchmarks"] if run["name"].startswith(prefix)]
        if len(runs) > MOST_ROWS:
            times = [run["real_time"] for run in runs]
            seconds = int(re.search(r"(\d+) s", target)[1])
            within = sum(time <= 1000 * seconds for time in times)
            proved = sum(run["proved"] for run in runs)
            lines.append(f"| {words}: median of {len(runs)} graphs; most | {statistics.median(times):.0f} ms; {max(times):.0f} ms, {within} of them within {seconds} s | "
                         f"proved: {proved:.0f} | {runs[0]['covers']:.0f} | {memory(runs[-1])} | {target} |")
            continue
        for run in runs:
            gap = "proved" if run["proved"] else f"{run['gap_percent']:.2f} %"
            if "listed_gap_percent" in run and not run["proved"]:
                gap += f"; of the sets looked at {run['listed_gap_percent']:.2f} %"
            lines.append(f"| {words} | {run['real_time']:.1f} ms | {gap} | {run['covers']:.0f} | {memory(run)} | {target} |")
    return "\n".join(lines) + "\n"


def model_table(document, path):
    """What tests/bench/model_accuracy.py kept of `fusion-client model report`, with its plots beside it."""
    percent = lambda share: f"{100 * share:.1f} %"
    first, third = document["median_regret"]["first"], document["median_regret"]["first_3"]
    host = "--target host" in document["command"]
    error, tau, share = ("20 %", "0.6", "") if host else ("10 %", "0.8", "95 %")
    lines = [f"## Predictions of the service{' for the host' if host else ''}, when graphs come again", "",
             f"{document['date']}; {document['graphs'][0]['device']}; {document['candidates']:,} candidates of "
             f"{len(document['graphs'])} graphs and sizes, cold. All were predicted by the model as corrected by earlier passes over the "
             "same graphs, and all were timed.", "", f"    {document['command']}", "",
             "| figure | measured | target |", "| --- | ---: | ---: |",
             f"| median absolute error | {percent(document['median_absolute_error'])} | {error} |",
             f"| Kendall's tau over the candidates of a graph, median (least) | {document['median_kendall_tau']:.2f} "
             f"({document['least_kendall_tau']:.2f}) | {tau} |",
             f"| the fastest, or one that cannot be told from it, among the first 5 | {percent(document['best_in_first_5_with_ties'])} | {share} |",
             f"| the fastest itself | {percent(document['best_in_first_5'])} | {share} |",
             f"| the best of the first 3 within 2 % of the fastest | {percent(document['first_3_within_2_percent'])} | {share} |",
             f"| loss if the first alone, the first three were timed, median | {percent(first)}, {percent(third)} | |",
             f"| the same, largest | {percent(document['largest_regret']['first'])}, {percent(document['largest_regret']['first_3'])} | |", ""]
    passes = json.loads(path.with_name(f"{path.stem}-passes.json").read_text())
    lines += ["Pass by pass, each as it was predicted then:", "", f"    {passes['command']}", "",
              "| pass | candidates, of these never measured before | median error | tau | first 5 (or a tie) | first 3 within 2 % |",
              "| ---: | ---: | ---: | ---: | ---: | ---: |"]
    for number, one in enumerate(passes["passes"], 1):
        lines.append(f"| {number} | {one['candidates']:,}, {one['new']:,} | {percent(one['median_absolute_error'])} | "
                     f"{one['median_kendall_tau']:.2f} | {percent(one['best_in_first_5_with_ties'])} | "
                     f"{percent(one['first_3_within_2_percent'])} |")
    lines.append("")
    for kind, words in (("predicted", "predicted against measured times"), ("convergence", "the best so far in predicted order")):
        plot = path.with_name(f"{path.stem}-{kind}.svg")
        if plot.exists():
            lines += [f"![{words}](tests/bench/results/{plot.name})", ""]
    lines += ["| graph | sizes | candidates | median error | tau | five fastest at | first 3 lose |", "| --- | --- | ---: | ---: | ---: | --- | ---: |"]
    for graph in document["graphs"]:
        tau = "" if graph["kendall_tau"] is None else f"{graph['kendall_tau']:.2f}"
        lines.append(f"| {graph['graph']} | {graph['sizes']} | {graph['candidates']} | {percent(graph['median_absolute_error'])} | {tau} | "
                     f"{' '.join(map(str, graph['fastest_positions']))} | {percent(graph['regret']['first_3'])} |")
    remarks = path.with_name(f"{path.stem}.remarks.md")
    if remarks.exists():
        lines += ["", remarks.read_text().rstrip()]
    return "\n".join(lines) + "\n"


def replay_table(document, path):
    """What model_replay made of measured candidates: a line for each way to predict, and all graphs of those that matter most."""
    percent = lambda share: f"{100 * share:.1f} %"
    ways = {way["name"]: way for way in document["ways"]}
    graphs = ways["nothing left out"]["graphs"]
    lines = [f"## Predictions of graphs from measurements: {document['device']}", "", f"{document['date']}; {document['device']}; {ways['nothing left out']['candidates']:,} candidates of {len(graphs)} graphs "
             "and sizes, cold, all timed. Predicted from stored measurements by the model of this tree.", "", f"    {document['command']}",
             "", "| what was known | graphs | median absolute error | Kendall's tau, median (least) | best, or a tie, in first 5 "
             "| first 3 within 2 % | loss of first 1, 3, median | largest |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for way in document["ways"]:
        median, largest = way["median_regret"], way["largest_regret"]
        lines.append(f"| {way['name']} | {way['graph_count']} | {percent(way['median_absolute_error'])} | {way['median_kendall_tau']:.2f} "
                     f"({way['least_kendall_tau']:.2f}) | {percent(way['best_in_first_5_with_ties'])} | "
                     f"{percent(way['first_3_within_2_percent'])} | {percent(median['first'])}, {percent(median['first_3'])} | "
                     f"{percent(largest['first'])}, {percent(largest['first_3'])} |")
    lines += ["| target | | 10 % | 0.8 | 95 % | 95 % | | |", ""]
    for kind, words in (("predicted", "predicted against measured times, nothing left out"),
                        ("convergence", "the best so far in predicted order, nothing left out")):
        plot = path.with_name(f"{path.stem}-{kind}.svg")
        if plot.exists():
            lines += [f"![{words}](tests/bench/results/{plot.name})", ""]
    left_out = {(graph["graph"], graph["sizes"]): graph for graph in ways["the example left out"]["graphs"]}
    recalled = {(graph["graph"], graph["sizes"]): graph for graph in ways.get("measured before, kernels remembered", {}).get("graphs", [])}
    lines += ["Of each graph the error, tau, where the best or a tie of it stands, and what the first 3 lose:", "",
              "| graph | sizes | candidates | the example left out | nothing left out | measured before, kernels remembered |",
              "| --- | --- | ---: | ---: | ---: | ---: |"]
    for graph in graphs:
        key = (graph["graph"], graph["sizes"])
        cells = [f"{percent(way['median_absolute_error'])}, {way['kendall_tau']:.2f}, {way['best_position_with_ties']}, "
                 f"{percent(way['first_3_regret'])}" if way else "" for way in (left_out.get(key), graph, recalled.get(key))]
        lines.append(f"| {graph['graph']} | {graph['sizes']} | {graph['candidates']} | {' | '.join(cells)} |")
    remarks = path.with_name(f"{path.stem}.remarks.md")
    if remarks.exists():
        lines += ["", remarks.read_text().rstrip()]
    return "\n".join(lines) + "\n"


def tuning_section():
    """What tests/bench/tuning measured: the library, the server, the search, partitioned loops."""
    read = lambda name: json.loads((RESULTS / name).read_text())
    milliseconds = lambda seconds: f"{1e3 * seconds:.2f} ms"
    lines = ["## Online tuning", "",
             "    build/release/tests/tuning_library_bench > tests/bench/results/tuning-library.json",
             "    build/release/tests/tuning_server_bench > tests/bench/results/tuning-server.json",
             "    build/release/tests/tuning_search_bench > tests/bench/results/tuning-search.json", ""]
    library = read("tuning-library.json")
    lines += [f"What a run costs a program; {library['processors']} processors. \"New choices\": the server sends new choices and proposals "
              "all the time.", "",
              "| server, threads | next: p50, p99 | of a million calls over 1 us | start + stop, mean (loop) | p99, clock included |",
              "| --- | ---: | ---: | ---: | ---: |"]
    for run in library["runs"]:
        name = "quiet" if run["server"] == "quiet" else "new choices"
        over = 1e6 * run["next_wall"]["over_1_us"] / run["calls"]
        lines.append(f"| {name}, {run['threads']} | {run['next_wall']['p50_ns']:.0f}, {run['next_wall']['p99_ns']:.0f} ns | {over:.0f} | "
                     f"{run['start_stop_loop_ns']:.0f} ns | {run['start_stop_wall']['p99_ns']:.0f} ns |")
    lines += ["", "Targets: p99 of next under 1 us; start + stop under 200 ns together.", ""]
    server = read("tuning-server.json")
    quantiles = lambda case, what: f"{milliseconds(case[what]['p50_seconds'])}, {milliseconds(case[what]['p99_seconds'])}"
    lines += [f"{server['programs']} programs in a process of their own and one server, loopback, {server['processors']} processors, "
              f"`{server['strategy']}`. Reports a second are of programs that wait for nothing; times are of runs of "
              f"{milliseconds(server['run_seconds'])}. The disk's own time: `fdatasync` of 24 KiB, 2,000 times right before the case.", "",
              "| database, reports stored before | reports/s | acknowledged, stored safely: p50, p99 | next proposal: p50, p99 | the disk alone: p50, p99 |",
              "| --- | ---: | ---: | ---: | ---: |"]
    for place, cases in (("disk", server["cases"]), ("memory", server["cases_in_memory"])):
        for case in cases:
            lines.append(f"| {place}, {case['stored_before']:,} | {case['reports_per_second']:,.0f} | {quantiles(case, 'acknowledged')} | "
                         f"{quantiles(case, 'next_proposal')} | {quantiles(case, 'fdatasync') if place == 'disk' else ''} |")
    before = [case for path in sorted(RESULTS.glob("tuning-server-before-*.json")) for case in json.loads(path.read_text())["cases"]]
    worst = lambda what: ", ".join(milliseconds(case[what]["p99_seconds"]) for case in before)
    lines += ["", "Targets: 20,000 a second; p99 under 2 ms, flat in what is stored. In the runs just before this one, on the disk, p99 in the same order: "
              f"acknowledged {worst('acknowledged')}, where the disk alone took {worst('fdatasync')}; next proposal {worst('next_proposal')}. Eight "
              "programs with runs of 5 ms ask for more proposals than the model can be fitted for: meanwhile they run with the best known.", ""]
    search = read("tuning-search.json")
    lines += [f"Evaluations until the choice is within {100 * search['within']:.0f} % of the best, at {100 * search['noise']:.0f} % noise; random "
              "search counts as done when it has drawn such a point, known or not.", "",
              "| function | seeds | median, p90 | random search, median | share (target 0.5) |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {row['function']} | {row['seeds']} | {row['median_evaluations']:.0f}, {row['p90_evaluations']:.0f} | "
              f"{row['random_median_evaluations']:.0f} | {row['share_of_random']:.3f} |" for row in search["functions"]]
    lines += ["", "The curves of seed 002, times interpolated between its ratios. Excess: what 40 evaluations took beyond 40 runs of the best, in "
              "runs of the best.", "",
              "| curve | seeds | within 5 % after 16 (target 90 %) | after 40 (target 99 %) | excess: median, p90 |",
              "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {row['curve']} | {row['seeds']} | {100 * row['share_good_after_16']:.1f} % | {100 * row['share_good_after_40']:.1f} % | "
              f"{row['median_excess_runs']:.1f}, {row['p90_excess_runs']:.1f} |" for row in search["replay"]]
    loops = [json.loads(path.read_text())["cases"] for path in sorted(RESULTS.glob("polybench-*.json"))]
    first = loops[0]
    lines += ["", f"Loops of PolyBench split between {first[0]['host_threads']} threads ({first[0]['host_instructions']}) and one "
              f"{first[0]['device']}, f64, transfers included, tuned while they ran; the first of {len(loops)} runs, and what the tuned loop took "
              "over the faster of CPU alone and GPU alone in each (target 1.03). Sequential: PolyBench's loops, one thread, -O2; the seed's "
              "speed-ups are of its own machine.", "",
              "    python3 tests/bench/tuning/polybench_bench.py --full --output polybench.json    # in the package, on the GPU machine", "",
              "| loop | sequential | CPU alone | GPU alone | tuned | ratio | evaluations | over the faster end | speed-up | seed 002 |",
              "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for i, case in enumerate(first):
        ends = ", ".join(f"{cases[i]['tuned_over_faster_end']:.3f}" for cases in loops)
        times = " | ".join(milliseconds(case[kind]["median_seconds"]) for kind in ("sequential", "cpu_alone", "gpu_alone", "tuned"))
        lines.append(f"| {case['routine']} {' x '.join(str(size) for size in case['sizes'].values())} | {times} | {case['found']['ratio']:.3f} | "
                     f"{case['search']['evaluations']} | {ends} | {case['speedup']['tuned']:,.0f} | {case['seed']['best_speedup']:.2f} |")
    return "\n".join(lines) + "\n"


def device_section(path):
    """What tests/bench/device/device_limits.cu printed."""
    return "\n".join(["## What launches, barriers and loads cost", "",
                      "`tests/bench/device/device_limits.cu` (its first lines say how to build it). \"graph\": 20 calls in one CUDA",
                      f"graph, per call. `results/{path.name}`.", "", *("    " + line for line in path.read_text().splitlines()), ""])


def figures_table(document, name):
    """Single figures: {"title", "command", "date", "figures": [{"what", "value", "target"}], "notes": [text]}."""
    lines = [f"## {document['title']}", "", f"{document['date']}{'; ' + str(document['cores']) + ' cores' if 'cores' in document else ''}.", "", f"    {document['command']}", "",
             "| what | measured | target |", "| --- | ---: | ---: |"]
    lines += [f"| {f['what']} | {f['value']} | {f['target']} |" for f in document["figures"]]
    lines += [line for note in document.get("notes", ()) for line in ("", note)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
