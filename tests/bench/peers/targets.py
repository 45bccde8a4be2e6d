"""What the rows of the comparison must reach (TARGETS), whether they do, and why not where they do not: the table of
targets in BENCHMARKS.md and the list of what misses them.

Reasons are text, kept by the row's name in results/peers-h200.reasons.md: headings "## NAME", of which several may
stand above one text. A missed row that has none is listed as such, and so is a reason whose row is met.
"""
import dataclasses
import re
import typing

import report
import sequences
from summary import geometric_mean

INDUCTOR = ("compile", "compile_graphs")  # with products of small matrices as bmm, as most people write them
NO_REASON = "No reason recorded."


def over_floor(row):
    ours = report.seconds(row, "ours")
    return ours / row["floor_seconds"] if ours else None


def times_inductor(row):
    ours, theirs = report.seconds(row, "ours"), [report.seconds(row, peer) for peer in INDUCTOR if report.seconds(row, peer)]
    return min(theirs) / ours if ours and theirs else None


@dataclasses.dataclass(frozen=True)
class Condition:
    text: str
    figure: typing.Callable   # of a row: a number, or None where it was not measured
    bound: float
    at_most: bool             # the figure may be at most the bound; otherwise at least
    set: str = ""             # of sequences.SETS; empty: of all sets and both types together
    sequences: tuple = ()     # their names; empty: all
    mean: bool = False        # of the rows' geometric mean instead of each row

    @property
    def asked(self):
        return f"{'at most' if self.at_most else 'at least'} {self.bound:g}"

    def met(self, value):
        return value <= self.bound if self.at_most else value >= self.bound


@dataclasses.dataclass(frozen=True)
class Target:
    case: str
    conditions: tuple


def floor_at_most(bound, names, text=""):
    return Condition(text or f"at most {bound:.2f} of the floor", over_floor, bound, True, "large", names)


def times_best_peer(bound, set_name, names=(), text="", mean=False):
    return Condition(text or f"at least {bound:g} times the best peer", report.ratio, bound, False, set_name, names, mean)


VECTORS = ("function1", "function2", "vadd", "waxpby", "sscal", "madd", "axpydot")
TARGETS = (
    Target("Function I, II; VADD, WAXPBY, SSCAL, MADD, AXPYDOT",
           (floor_at_most(1.03, VECTORS), times_best_peer(1, "large", VECTORS, "never slower than the best peer"))),
    Target("SGEMV, GESUMMV, BiCGK, GEMVER", (floor_at_most(1.05, ("sgemv", "gesummv", "bicgk", "gemver")),)),
    Target("ATAX, softmax, layer norm over rows of 16384", (floor_at_most(1.08, ("atax", "softmax", "layer_norm")),)),
    Target("SGEMVT, CG step, GEMVER where the matrix fits on chip (2048 and 3072 square)",
           (times_best_peer(1.5, "fit", ("sgemvt", "cg_step", "gemver"), "at least 1.5 times the best peer, CUDA graphs included"),)),
    Target("every case at 2^20 vectors, 2048 square, 31,744 elements (20 calls in one CUDA graph)",
           (times_best_peer(1, "small", text="never slower than the best peer"),
            times_best_peer(1.5, "small", ("atax", "bicgk", "sgemvt", "gesummv"), "ATAX, BiCGK, SGEMVT, GESUMMV at least 1.5 times"),
            Condition("Function I and II at least 10 times Inductor (products as bmm)", times_inductor, 10, False, "small",
                      ("function1", "function2")),
            times_best_peer(1.5, "small", text="geometric mean at least 1.5", mean=True))),
    # 32 x 32 is 64 FLOP for each 12 bytes in f32 and each 24 in f64, far below what the cards do in that time.
    Target("mapped products of 4, 7, 8, 16, 32",
           (floor_at_most(1.10, tuple(f"mapped_product_{n}" for n in (4, 7, 8, 16, 32)),
                          "at most 1.10 of the floor (all are memory-bound)"),)),
    Target("geometric mean over all rows against the best peer of each",
           (times_best_peer(1.35, "", text="at least 1.35", mean=True),)),
)


def case_name(sequence, set_name, data_type, side):
    """As reasons name rows."""
    title = sequences.BY_NAME[sequence].title
    return f"{title}{f' {side}' if set_name == 'fit' else ''}, {set_name}, {data_type}"


def row_name(row):
    return case_name(row["sequence"], row["set"], row["type"], row["side"])


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What rows of one type (or all, `data_type` None) show of a condition."""
    condition: Condition
    data_type: str
    asked: tuple    # names of what must be measured
    figures: dict   # name -> number; of a mean the only one, under its own name
    failed: tuple   # names of rows in which ours did not run or was wrong
    counted: int    # rows that were measured, failed ones included

    @property
    def missed(self):
        return [*self.failed, *(name for name, value in self.figures.items() if not self.condition.met(value))]

    @property
    def worst(self):
        """(name, number), or None."""
        pick = max if self.condition.at_most else min
        return pick(self.figures.items(), key=lambda item: item[1]) if self.figures else None

    def words(self, name):
        """The figure of a row, with the fewest digits that tell on which side of the bound it is."""
        if name in self.failed:
            return "failed"
        value = self.figures[name]
        for digits in (2, 3, 4):
            if self.condition.met(float(f"{value:.{digits}f}")) == self.condition.met(value):
                break
        return f"{value:.{digits}f}"

    def cell(self):
        if not self.counted:
            return "not measured"
        complete = self.counted == len(self.asked)
        worst = self.failed[0] if self.failed else self.worst[0]
        verdict = ("MISSED" if self.condition.mean else f"MISSED by {len(self.missed)} of {len(self.asked)}") if self.missed else (
            "met" if complete else "met where measured")
        figure = self.words(worst) if self.condition.mean else f"worst {self.words(worst)}, {worst.rsplit(', ', 2)[0]}"
        return f"{verdict}: {figure}" + ("" if complete else f" ({self.counted} of {len(self.asked)} rows measured)")


def judge(condition, rows, data_type):
    """`data_type` None: rows of both types together."""
    sets = [condition.set] if condition.set else sequences.SETS
    types = [data_type] if data_type else sequences.TYPES
    asked = [case_name(case.sequence, case.set, case.type, case.side)
             for case in sequences.cases(sets, types, condition.sequences)]
    figures, failed = {}, {}  # of a row that failed in one run and is good in another the figure counts
    for row in rows:
        name = row_name(row)
        if name not in asked:
            continue
        value = None if row.get("error") else condition.figure(row)
        ours = {} if row.get("error") else row["results"].get("ours", {})
        if value is not None:
            figures[name] = value
        elif not condition.mean and (row.get("error") or "wrong" in ours or "error" in ours):
            failed[name] = True
    failed = [name for name in failed if name not in figures]
    counted = len(figures) + len(failed)
    if condition.mean and figures:
        figures = {", ".join(["geometric mean", *(part for part in (condition.set, data_type) if part)]): geometric_mean(figures.values())}
    return Judgement(condition, data_type, tuple(asked), figures, tuple(failed), counted)


def judgements(rows):
    """[(target, [judgement, ...])]: for each condition those of both types, or one of all rows."""
    return [(target, [judge(condition, rows, data_type) for condition in target.conditions
                      for data_type in (sequences.TYPES if condition.set else (None,))]) for target in TARGETS]


def table(judged):
    """Markdown, a line for each condition; f64 is summed up in a line of its own too."""
    lines = ["| case | target | f32 | f64 |", "| --- | --- | --- | --- |"]
    for target, found in judged:
        for place, condition in enumerate(target.conditions):
            cells = [one.cell() for one in found if one.condition is condition]
            lines.append(f"| {target.case if place == 0 else ''} | {condition.text} | {' | '.join(cells)} |" + (" |" if len(cells) == 1 else ""))
    f64 = [one for _, found in judged for one in found if one.data_type == "f64"]
    missed = sum(bool(one.missed) for one in f64)
    met = sum(not one.missed and one.counted == len(one.asked) for one in f64)
    lines.insert(-1, f"| f64 versions of all | the same ratios | | {'MISSED' if missed else 'met'}: of the {len(f64)} lines above {met} met, "
                     f"{missed} missed, {len(f64) - met - missed} not or not wholly measured |")
    return "\n".join(lines) + "\n"


def read_reasons(text):
    """{name: text} of a file of reasons. Raises ValueError where a name has no text or two."""
    reasons = {}
    for heading, body in re.findall(r"((?:^## [^\n]*\n)+)((?:(?!## )[^\n]*(?:\n|$))*)", text, re.M):
        for name in re.findall(r"^## (.*?)\s*$", heading, re.M):
            if not body.strip():
                raise ValueError(f"no reason stands below '{name}'")
            if name in reasons:
                raise ValueError(f"'{name}' has two reasons")
            reasons[name] = body.strip()
    return reasons


def known_names():
    names = {case_name(case.sequence, case.set, case.type, case.side) for case in sequences.cases(sequences.SETS, sequences.TYPES)}
    means = [condition for target in TARGETS for condition in target.conditions if condition.mean]
    return names | {f"geometric mean, {condition.set}, {data_type}" for condition in means if condition.set
                    for data_type in sequences.TYPES} | {"geometric mean"}


def without_reason(judged, reasons):
    """Names of what misses a target and has no reason."""
    return [name for name in missed_names(judged) if name not in reasons]


def stale(judged, reasons):
    """Names that have a reason and miss nothing. Raises ValueError for a name that no row can have."""
    for name in reasons:
        if name not in known_names():
            raise ValueError(f"a reason is kept for '{name}', which no row is called; names are like "
                             "'SGEMVT 2048, fit, f32', 'softmax, large, f64' or 'geometric mean, small, f32'")
    missed = missed_names(judged)
    return [name for name in reasons if name not in missed]


def missed_names(judged):
    """In the order of the table; what misses two targets once."""
    return list(dict.fromkeys(name for _, found in judged for one in found for name in one.missed))


def missed_list(judged, reasons):
    """Markdown: each thing that misses, with its figures and targets; those with the same reason stand above it together."""
    by_reason = {}
    for name in missed_names(judged):
        figures = "; ".join(f"{one.words(name)} ({one.condition.asked})" for _, found in judged for one in found if name in one.missed)
        by_reason.setdefault(reasons.get(name, NO_REASON), []).append(f"{name}: {figures}")
    lines = ["- **" + "; ".join(names) + ".**\n" + "\n".join("  " + line for line in reason.splitlines())
             for reason, names in by_reason.items()]
    old = stale(judged, reasons)
    if old:
        lines.append(f"- Stale, reasons of what is met now: {'; '.join(old)}.")
    return "\n".join(lines) + "\n" if lines else "Nothing that was measured misses a target.\n"


def conditions(rows, documents):
    """One line: card, days, driver, toolkit and clocks, each with all values that occur."""
    measured = [document.get("conditions_after") or document.get("conditions_before") or {} for document in documents]
    values = lambda key, found: ", ".join(sorted({one[key] for one in found if one.get(key)})) or "unknown"
    days = sorted(row["date"][:10] for row in rows)
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return (f"{values('name', [document['device'] for document in documents])}; rows of {span}; driver {values('driver_version', measured)}; "
            f"CUDA {values('cuda', [document['versions'] for document in documents])}; clocks {values('clocks.sm', measured)} (multiprocessors), "
            f"{values('clocks.mem', measured)} (memory).\n")
