"""The tables of BENCHMARKS.md about sequential programs that fusion-cc partitions, from what partition_device.py measured."""
import math
import statistics

# Baier 2016, tables 6.1 to 6.3: times as fast as clang at ratio 0, and at the best ratio. The third number is what is asked for here.
SHAPES = {"gemm 2000 2300 2600": (.437, .466, 100), "gemm 1000000 100 100": (.245, .376, 50), "gesummv 2000": (.390, .390, 10),
          "gesummv 10000": (.391, .391, 9), "syrk 2000 2600": (.887, 1.227, 100), "syrk 100 10000": (.883, 1.579, 60)}
# Shapes that the link or memory bounds have to reach .9 of the loops that are split by hand, others .25.
BOUND = ("gemm 1000000 100 100", "gesummv 2000", "gesummv 10000")
SETS = ("MINI", "SMALL", "MEDIUM", "LARGE")


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def good(entry, mode):
    """The runs of a mode that ended and have the right bits."""
    return [run for run in entry["runs"].get(mode, []) if "error" not in run and run.get("bits") != "wrong"]


def first_call(entry, mode, of=min):
    runs = good(entry, mode)
    return of(run["calls"][0] for run in runs) if runs else None


def whole(entry, mode, of=statistics.median):
    runs = good(entry, mode)
    return of(run["whole"] for run in runs) if runs else None


def steady(entry, mode):
    """The median of the last calls of a program that calls its kernel again and again."""
    runs = good(entry, mode)
    return statistics.median(runs[0]["calls"][-5:]) if runs else None


def calls_until_close(entry):
    """The number of the first call of `auto` that takes at most 1.05 times as long as the fastest one."""
    calls = good(entry, "auto")[0]["calls"]
    return next(number for number, seconds in enumerate(calls, 1) if seconds <= 1.05 * min(calls))


def shown(value):
    """A ratio in three digits or fewer."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def over(numerator, denominator):
    return numerator / denominator if numerator is not None and denominator else None


def by_hand_seconds(document):
    """{shape: seconds} of the loops that are split by hand and tuned, of polybench_bench.py."""
    order = {"gemm": ("ni", "nj", "nk"), "gesummv": ("n",), "syrk": ("m", "n")}
    return {" ".join([case["routine"], *(str(case["sizes"][size]) for size in order[case["routine"]])]): case["tuned"]["median_seconds"]
            for case in document["cases"]}


def title_of(shape):
    """A shape as other tables name it; syrk's kernel has its smaller size first."""
    name, *sizes = shape.split()
    return f"{name} {' x '.join(reversed(sizes) if name == 'syrk' else sizes)}"


def shape_rows(document, by_hand):
    rows = []
    for shape, (baier_none, baier_best, asked) in SHAPES.items():
        entry = document["seed"].get(shape)
        clang = first_call(entry, "sequential") if entry else None
        if clang is None or not good(entry, "auto"):
            continue
        ours = steady(entry, "auto")
        rows.append([title_of(shape), f"{clang:.3g}", baier_none, shown(over(clang, first_call(entry, "one thread"))), baier_best, shown(clang / ours), asked,
                     shown(over(clang, first_call(entry, "auto"))), calls_until_close(entry), shown(over(clang, steady(entry, "device"))),
                     shown(over(clang, steady(entry, "openmp"))), shown(over(by_hand.get(shape), ours))])
    return rows


def large_rows(document):
    """Rows of the kernels at EXTRALARGE, and {what: ratios} for means."""
    rows, ratios = [], {"whole": {}, "call": {}, "openmp": {}, "openmp call": {}}
    for entry in document["polybench"].values():
        name, clang, ours = entry["kernel"], whole(entry, "sequential"), whole(entry, "auto")
        ratio, call = over(clang, ours), over(first_call(entry, "sequential", statistics.median), first_call(entry, "auto", statistics.median))
        openmp = over(whole(entry, "openmp"), ours)
        for kind, value in (("whole", ratio), ("call", call), ("openmp", openmp),
                            ("openmp call", over(first_call(entry, "openmp", statistics.median), first_call(entry, "auto", statistics.median)))):
            if value:
                ratios[kind][name] = value
        rows.append([name, f"{clang:.3g}" if clang else "-", shown(ratio), shown(call), shown(over(clang, whole(entry, "learned"))), shown(openmp)])
    return rows, ratios


def small_figures(document):
    """{set: (kernels, geometric mean of the ratios, worst ratio and its kernel, most milliseconds above 1.03 times, and its kernel)}."""
    found = {}
    for data_set in SETS:
        pairs = {entry["kernel"]: (whole(entry, "auto", min), whole(entry, "sequential", min)) for entry in document["small"].values()
                 if entry["set"] == data_set and good(entry, "auto") and good(entry, "sequential")}
        if pairs:
            ratios = {name: ours / clang for name, (ours, clang) in pairs.items()}
            excess = {name: 1e3 * (ours - 1.03 * clang) for name, (ours, clang) in pairs.items()}
            worst, most = max(ratios, key=ratios.get), max(excess, key=excess.get)
            found[data_set] = (len(pairs), geometric_mean(list(ratios.values())), f"{ratios[worst]:.2f}, {worst}", excess[most], most)
    return found


def extreme(ratios, of=min):
    """The least or greatest of {name: ratio}, with its name."""
    name = of(ratios, key=ratios.get)
    return f"{shown(ratios[name])}, {name}"


def titled(ratios):
    return {title_of(shape): ratio for shape, ratio in ratios.items()}


def asked_rows(document, by_hand, ratios, small):
    """What was asked for: [what, measured, asked for]."""
    entries = {shape: document["seed"][shape] for shape in SHAPES if good(document["seed"].get(shape, {"runs": {}}), "auto")}
    rows = []
    if entries:
        speed = {shape: over(first_call(entry, "sequential"), steady(entry, "auto")) for shape, entry in entries.items()}
        alone = {shape: over(first_call(entry, "sequential"), first_call(entry, "one thread")) for shape, entry in entries.items()}
        least = {shape: min(filter(None, (first_call(entry, "sequential"), *(steady(entry, mode) for mode in ("host", "device"))))) for shape, entry in entries.items()}
        tuned = {shape: steady(entry, "auto") / least[shape] for shape, entry in entries.items()}
        hand = {shape: by_hand[shape] / steady(entry, "auto") for shape, entry in entries.items() if shape in by_hand}
        met = sum(speed[shape] >= SHAPES[shape][2] for shape in speed)
        rows += [["the six shapes", f"{met} of {len(speed)} met", "as in the table"], ["one thread, ratio 0", extreme(titled(alone)), "0.97"],
                 ["by itself, time over the least of clang, host alone, GPU alone", extreme(titled(tuned), max), "1.03"],
                 ["calls until within 5 % of the fastest", f"{max(calls_until_close(entry) for entry in entries.values())}", "40"]]
        for title, chosen, asked in (("split by hand over ours, memory or link bound", [shape for shape in hand if shape in BOUND], "0.9"),
                                     ("the same, others", [shape for shape in hand if shape not in BOUND], "0.25")):
            if chosen:
                rows.append([title, extreme(titled({shape: hand[shape] for shape in chosen})), asked])
    if ratios["whole"]:
        rows += [[f"EXTRALARGE, geometric mean over {len(ratios['whole'])}", f"{geometric_mean(list(ratios['whole'].values())):.2f}", "10"],
                 ["EXTRALARGE, worst", extreme(ratios["whole"]), "0.97"]]
    if ratios["openmp"]:
        rows += [[f"OpenMP over ours, geometric mean over {len(ratios['openmp'])}", f"{geometric_mean(list(ratios['openmp'].values())):.2f}", "above 1"],
                 ["OpenMP over ours, worst", extreme(ratios["openmp"]), "0.9"],
                 ["the same of the kernels' calls, mean; worst", f"{geometric_mean(list(ratios['openmp call'].values())):.2f}; {extreme(ratios['openmp call'])}", ""]]
    for data_set, (kernels, mean, worst, excess, name) in small.items():
        rows.append([f"{data_set}, {kernels} kernels: mean; worst; most above 1.03 times", f"{mean:.2f}; {worst}; {excess:.1f} ms, {name}", "1 ms"])
    return rows


def wrong_results(document):
    """Names of what failed or has other bits."""
    return [f"{key} {mode}" for part in ("seed", "polybench", "small") for key, entry in document[part].items() for mode, runs in entry["runs"].items()
            if any("error" in run or run.get("bits") == "wrong" for run in runs)]


def paragraphs(document, by_hand_document, table):
    """The paragraphs of the section; `table` makes Markdown of headings and rows."""
    by_hand = by_hand_seconds(by_hand_document)
    rows, ratios = large_rows(document)
    wrong = wrong_results(document)
    wrong = wrong[:3] + [f"{len(wrong) - 3} more"] * (len(wrong) > 3)
    compiler = document["compiler"].removeprefix("Debian ").split(" (")[0]
    found = [f"{document['date']}; {document['processors']} processors; {compiler} at -O3. Results have clang's bits" + (f", but for {', '.join(wrong)}" if wrong else "")
             + ". By itself (`auto`) unless said otherwise; ratios say how many times as fast as clang. Seconds of a call, transfers included: of the first, and of "
             "repeated ones (`ours`, GPU alone, OpenMP); `calls` is the first that is within 5 % of the fastest; the last column is the time of the loop split by hand over ours.",
             "    tests/bench/partition_device.py measure FOLDER --output tests/bench/results/partition-h200.json    # tests/bench/README.md"]
    found.append(table(["loop", "clang, s", "Baier, ratio 0", "one thread", "Baier, best", "ours", "asked", "first call", "calls", "GPU alone", "OpenMP", "by hand"],
                       shape_rows(document, by_hand)))
    if rows:
        found += [f"PolyBench at EXTRALARGE, whole processes, which call the kernel once; clang's long ones ran up to {document['at_most_side_by_side']} side by side. "
                  "`call`: of the kernel's call alone; next run: with what the first one learned; OpenMP: its time over ours.",
                  table(["kernel", "clang, s", "ratio", "call", "next run", "OpenMP"], rows)]
    found.append(table(["what", "measured", "asked for"], asked_rows(document, by_hand, ratios, small_figures(document))))
    return found
