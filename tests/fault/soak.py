#!/usr/bin/env python3
"""The long forms of the tests of faults, hours of them, and a table: what was asked, what the tests counted, whether it was met.

    deploy/dev/soak.sh [--quick] [--only TEXT] [--results DIR] [BUILD_FOLDER]
      --quick         the short forms, to see that the script works
      --only TEXT     of the rows whose names hold TEXT alone: several such soaks may run beside each other
      --results DIR   logs and rows of the table are kept there; what has passed there before is not run again, so
                      that a soak can be interrupted and go on another day. Each row says when, and of which commit

What is judged are lines "figure: NAME = VALUE" of the tests, and what a row's patterns find. A figure that was not told is missed.
Rows that need a GPU say so where there is none. Exit status: 1 when a test failed or a row was missed.
"""
import argparse
import dataclasses
import datetime
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = "examples/vadd.fuse"
SKIPPED = 77  # exit status of a test that cannot be done on this machine
FUZZ_TARGETS = ("parse", "submit", "synchronize", "stored_rows", "tuner", "device_code", "runner_replies", "requests")
FUZZ_SCRIPTS = ("worker_sequences", "service_calls")  # an input is many calls
SHORT_FORM = {"FUSION_LONG_TESTS": "0"}


@dataclasses.dataclass(frozen=True)
class Condition:
    figure: str
    relation: str        # "at least", "at most" or "exactly"
    bound: float
    quick: float = None  # the bound of the short form; None: the figure is only told there
    several: str = ""    # how figures of one name become one: sum, max, min; by default what the relation is hardest for

    def value(self, values):
        how = self.several or {"at least": "sum", "at most": "max", "exactly": "sum"}[self.relation]
        return math.nan if any(map(math.isnan, values)) else {"sum": sum, "max": max, "min": min}[how](values)

    def met(self, value, long_form):
        bound = self.bound if long_form else self.quick
        if bound is None:
            return True
        return {"at least": value >= bound, "at most": value <= bound, "exactly": value == bound}[self.relation]


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    asked: str
    command: list
    conditions: tuple = ()
    # Figures that the output has in another form: name -> regular expression, whose group is a value; without a group its
    # matches are counted.
    patterns: dict = dataclasses.field(default_factory=dict)
    needs_gpu: bool = False
    environment: dict = dataclasses.field(default_factory=dict)


def at_least(figure, bound, quick=None, several=""):
    return Condition(figure, "at least", bound, quick, several)


def at_most(figure, bound, quick=None):
    return Condition(figure, "at most", bound, quick)


def told(figure):
    """A figure for those that are judged to be compared with; the largest where there are several."""
    return Condition(figure, "at most", math.inf)


def none_of(figure):
    return Condition(figure, "exactly", 0, 0)


def rows_of(build, long_form):
    """All rows, in the order in which they run."""
    count = lambda quick, long: str(long if long_form else quick)
    script = lambda name, *options: [sys.executable, f"tests/fault/{name}", f"{build}/bin", *options]
    program = lambda name, *filters: [f"{build}/tests/{name}", *(f"--gtest_filter={one}" for one in filters)]
    workers = ("--workers", "24", "--parallel", "10")
    crashes = (at_least("kinds of crashes", 7, 7), none_of("wrong outcomes"), at_most("next job within, s", 5),
               at_most("changed by a kind of crash, median percent", 2), at_most("next job's time differs, percent", 2),
               told("before any crash, percent"), told("before the next crash, percent"))
    cheats = (at_least("kinds of cheats", 30, 30), at_least("cheats caught", 30, 30), at_least("honest kernels", 200, 24),
              none_of("honest kernels flagged"))
    elsewhere = at_most("finished elsewhere, p99 s", 20, 20)
    abuse = (at_least("kinds of abuse that the server outlived", 15, 15), at_least("idle connections", 10000, 1),
             at_most("others' p99, times that without", 2))
    http2 = "behind the proxy: rapid reset, header floods, 10,000 idle connections, slow readers: others' p99 at most doubles; no crash"
    # On the host two that write into the runner's replies stand for what host code has not: misaligned, too much shared memory.
    crash = "illegal address, hang, trap, out of memory, {}, deep recursion, {} each: right outcome; next job within 5 s, its time within 2 %"
    cheat = "30 kinds, all caught; 0 of 200 honest kernels flagged"
    return [
        Row("simulated farm", "10,000 seeds, at least 200 faults each: 0 lost, 0 accepted twice; a seed replays exactly",
            program("fault_simulation_test", "-FairShare*"),
            (at_least("seeds", 10000, 200), at_least("least faults of a seed", 200, 200, "min"), none_of("violations"),
             at_least("stale results refused", 1, 1), at_least("seeds replayed exactly", 3, 3))),
        Row("workers killed", "500: job finished elsewhere within 20 s (p99)",
            script("processes.py", EXAMPLE, "--kill-workers", count(10, 500), *workers), (at_least("workers killed", 500, 10), elsewhere)),
        Row("workers stopped", "200, past their lease and continued: job finished elsewhere within 20 s (p99); every stale result refused",
            script("processes.py", EXAMPLE, "--stop-workers", count(5, 200), *workers),
            (at_least("workers stopped", 200, 5), elsewhere, at_least("tasks unchanged when their worker went on", 200, 5))),
        Row("server killed at commits", "300, between each pair of commits: acknowledged submits kept; no repeated run",
            script("commit_kills.py", EXAMPLE, f"{build}/tests/libfusion_kill_at_commit.so"),
            (at_least("server killed at a commit", 300, 24), at_least("acknowledged submissions", 1, 1),
             none_of("lost, repeated or unsound"))),
        Row("server killed", "300, at random moments: acknowledged submits kept; no repeated run when back within 30 s",
            script("processes.py", EXAMPLE, "--kill-server", count(10, 300)),
            (at_least("server killed", 300, 10), at_least("acknowledged submissions, all kept", 1, 1), none_of("repeated runs"))),
        Row("links between namespaces", "cut both ways, one way, delayed 5 s, 30 % loss, 200 each: the same invariants",
            script("network_links.py", EXAMPLE, "--each", count(4, 200)),
            (*(at_least(f"links {kind}", 200, 4) for kind in ("cut", "one way", "slow", "lossy")), elsewhere, none_of("jobs lost"),
             none_of("results accepted twice or of old fences"))),
        Row("storage, full disk and errors", "disk full, I/O errors, 100 each: clean error or recovery; integrity check passes",
            program("fault_storage_test", "*AFullDisk*"),
            tuple(at_least(kind, 100, 25) for kind in ("disk full", "error on writing", "error on synchronising"))),
        # In the form of every commit: the long one is that of the simulated farm, and moves the clock fifty times as often.
        Row("clock moved by an hour", "100: recovery; integrity check passes", program("fault_simulation_test", "Seeds/*"),
            (at_least("clock moved", 100, 100), none_of("violations")), environment=SHORT_FORM),
        Row("storage, power cut", "2,000, at every sync of the SQLite log: acknowledged rows present",
            program("fault_storage_test", "*PowerCut*"), (at_least("power cuts", 2000, 200),)),
        Row("candidates that crash, host", crash.format("forged replies", 100), program("fault_candidates_test", "*CrashingCandidateTest*"),
            (*crashes, at_least("crashes of a kind", 100, 2, "min"))),
        Row("candidates that crash, GPU", crash.format("misaligned, too much shared memory", 10), program("gpu_measure_test", "*CrashingCandidateTest*"),
            (*crashes, at_least("crashes of a kind", 10, 2, "min")), needs_gpu=True),
        Row("candidates that cheat, host", cheat, program("fault_candidates_test", "-*CrashingCandidateTest*"), cheats),
        Row("candidates that cheat, GPU", cheat, program("gpu_measure_test", "*DishonestCandidateTest*:*HonestCandidateTest*"), cheats,
            needs_gpu=True),
        Row("sandbox", "60 probes: all denied, worker alive", program("fault_sandbox_test"),
            (at_least("probes", 60, 60), none_of("probes not denied"))),
        Row("identity", "role x method matrix; expired, wrong, revoked, rotated certificates (20): as listed; rotation drops no call",
            program("fault_identity_test"),
            (at_least("role x method calls", 200, 200), none_of("calls not as listed"), at_least("certificates", 20, 20),
             at_least("rotations while calls run", 1, 1)),
            {"certificates": r"^\[ +OK \] CertificatesTest\.",
             "rotations while calls run": r"^\[ +OK \] CertificatesTest\.TheServersIsRenewedWhileCallsRunAndNoneIsDropped"}),
        Row("malformed", "2,000 messages and DAGs: typed errors; no crash", program("fault_malformed_test"),
            (at_least("attacks", 2000, 2000), none_of("answers without a proper status"))),
        Row("fuzzers", "10^6 runs each of parser, messages, database rows, frames: no crash", ["tests/fuzz/run.sh"],
            (*(at_least(f"runs of {target}", 1e6, 1) for target in FUZZ_TARGETS),
             *(at_least(f"runs of {target}", 50000, 1) for target in FUZZ_SCRIPTS))),
        Row("HTTP/2 abuse", http2, script("http2_abuse.py", *(["--judge"] if long_form else [])), abuse),
        Row("throughput", "1,000 workers, 100,000 queued: at least 3,000/s dispatched and recorded durably; Submit p99 at most 10 ms",
            [f"{build}/tests/dispatch_bench", "--workers", count(100, 1000), "--tasks", count(5000, 100000)],
            (at_least("workers", 1000, 100), at_least("tasks", 100000, 5000), at_least("tasks a second", 3000), at_most("Submit p99, s", 0.01)),
            {"workers": r'"workers": (\d+)', "tasks": r'"tasks": (\d+)', "tasks a second": r'"tasks_per_second": ([\d.e+]+)',
             "Submit p99, s": r'"submit_p99_seconds": ([\d.e+-]+)'}),
        Row("noisy user", "at 100 times the rate: others wait at most 1.5 times as long", program("fault_simulation_test", "FairShare*"),
            (at_least("the noisy user asks for, times", 100, 100, "min"), at_most("others wait, times as long", 1.5, 1.5))),
        Row("noisy user, a server", "the same on a real server: others' jobs take at most 1.5 times as long", program("fault_shared_farm_test"),
            (at_least("the noisy user asks a server for, times", 100, 50, "min"), at_most("others' jobs take, times as long", 1.5, 5))),
        Row("short kernels, GPU", "build and timing, one GPU, 8 cores: at least 20 candidates/s, GPU busy at least 70 %",
            ["taskset", "-c", eight_processors(), sys.executable, "tests/bench/farm_bench.py", "--bin", f"{build}/bin", "--target", "cuda",
             "--jobs", count(8, 48), "--output", os.path.join(tempfile.gettempdir(), f"fusion-soak-farm-{os.getpid()}.json")],
            (Condition("cores", "exactly", 8), at_least("candidates a second, cold", 20), at_least("GPU busy, cold, percent", 70),
             at_least("candidates a second, cached", 20), at_least("GPU busy, cached, percent", 70)), needs_gpu=True),
        Row("tuning, server killed", "100, while programs tune: each acknowledged report stored once", program("fault_tuning_service_test"),
            (at_least("server killed", 100, 5), at_least("reports, each stored once", 1, 1))),
        Row("tuning, programs", "100, with the library: nothing acknowledged is lost, no call waits 1 ms", program("fault_tuning_test"),
            (at_least("server killed", 100, 5), none_of("calls over 1 ms of the thread's own time"))),
        Row("upgrade", "server and workers one version apart work", program("fault_upgrade_test"),
            (at_least("upgrades", 5, 5),), {"upgrades": r"^\[ +OK \] Upgrade"}),
        Row("soak", "1 hour, random faults: memory and descriptors flat, every job terminal",
            script("processes.py", EXAMPLE, "--soak", count(60, 3600)),
            (at_least("seconds", 3600, 60), at_least("random faults", 100, 1), at_least("jobs", 1, 1), none_of("jobs that did not end"),
             at_most("memory grown, percent", 25), at_most("descriptors grown", 40, 40))),
    ]


def eight_processors():
    """As taskset takes them; fewer where there are fewer."""
    return ",".join(map(str, sorted(os.sched_getaffinity(0))[:8]))


def has_gpu():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60).stdout.startswith("GPU ")
    except (OSError, subprocess.TimeoutExpired):
        return False


def read_figures(output, patterns):
    """{name: [value, ...]}, in the order of the output."""
    figures = {}
    for name, value in re.findall(r"^figure: (.+) = ([-+\d.e]+|nan|inf)$", output, re.M):
        figures.setdefault(name, []).append(float(value))
    for name, pattern in patterns.items():
        found = list(re.finditer(pattern, output, re.M))
        if found:
            figures[name] = [float(one[1]) for one in found] if found[0].re.groups else [float(len(found))]
    return figures


def number(value):
    whole = math.isfinite(value) and (abs(value) >= 1000 or abs(value - round(value)) < 1e-9)
    return f"{value:,.0f}" if whole else f"{value:.4g}"


def judge(row, output, code, long_form):
    """(verdict, what was counted)."""
    figures = read_figures(output, row.patterns)
    counted, missed = [], []
    for condition in row.conditions:
        if condition.figure not in figures:
            missed.append(f"{condition.figure} was not told")
            continue
        value = condition.value(figures[condition.figure])
        counted.append(f"{condition.figure}: {number(value)}")
        if not condition.met(value, long_form):
            missed.append(f"{condition.figure}: {number(value)}, {condition.relation} "
                          f"{number(condition.bound if long_form else condition.quick)} asked")
    counted = "; ".join(counted)
    if code == SKIPPED:
        reasons = re.findall(r"SKIP: (.*)", output)
        return f"SKIP: {reasons[-1] if reasons else 'no reason given'}", counted
    ended = "" if code == 0 else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
    if missed:
        told = "; ".join(missed)
        # One that failed in the middle tells no figures: that is no news beside its failure.
        return (f"FAIL ({ended}): {told}" if ended and all(one.endswith("not told") for one in missed)
                else f"MISSED: {told}" + (f" ({ended})" if ended else "")), counted
    return (f"FAIL ({ended})" if ended else "pass"), counted


def cell(text):
    return text.replace("|", "/").replace("\n", " ")


def table_line(kept):
    return "| " + " | ".join(cell(kept[key]) for key in ("name", "asked", "counted", "result", "when", "time")) + " |"


def run_row(row, long_form, log, commit):
    """Runs it; what the table says of it."""
    environment = {**os.environ, **({"FUSION_LONG_TESTS": "1"} if long_form else {}), **row.environment}
    begin = time.monotonic()
    with open(log, "wb") as output:
        try:
            code = subprocess.run(row.command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT).returncode
        except OSError as error:
            output.write(f"{error}\n".encode())
            code = 127
    verdict, counted = judge(row, pathlib.Path(log).read_text(errors="replace"), code, long_form)
    return {"name": row.name, "asked": row.asked, "counted": counted, "result": verdict + ("" if long_form else " (short form)"),
            "passed": verdict == "pass", "bad": not verdict.startswith(("pass", "SKIP")),
            "when": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d} {commit}", "time": f"{time.monotonic() - begin:.0f} s"}


def run_all(rows, long_form, only, logs, gpu):
    """Prints each row's result as it comes, then the table. Whether none was bad."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    commit = done.stdout.strip() or "unknown"
    lines, good = [], True
    for row in rows:
        if only not in row.name:
            continue
        path = logs / (re.sub(r"[ /,]", "_", row.name) + ("" if long_form else ".quick"))
        kept_at = path.with_name(path.name + ".json")
        if kept_at.exists():
            kept = json.loads(kept_at.read_text())
            print(f"before  {row.name}", flush=True)
        elif row.needs_gpu and not gpu:
            kept = {"name": row.name, "asked": row.asked, "counted": "", "result": "needs a GPU", "when": "", "time": ""}
            print(f"no GPU  {row.name}", flush=True)
        else:
            kept = run_row(row, long_form, path.with_name(path.name + ".log"), commit)
            good = good and not kept["bad"]
            if kept["passed"]:
                kept_at.write_text(json.dumps(kept, indent=1) + "\n")
            print(f"{kept['result'].split(':')[0].split(' ')[0]:7} {row.name}", flush=True)
        lines.append(table_line(kept))
    print("\n".join(["| test | asked | counted | result | day, commit | time |", "| --- | --- | --- | --- | --- | --- |", *lines]))
    print(f"Logs: {logs}")
    return good


def main():
    parser = argparse.ArgumentParser(prog="soak.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--results", metavar="DIR")
    parser.add_argument("build", nargs="?", default="build/release", metavar="BUILD_FOLDER")
    arguments = parser.parse_args()
    build = ROOT / arguments.build  # an absolute one stays as it is
    if not (build / "bin").is_dir():
        parser.error(f"{build} has no folder bin: build first, or name the folder of a build")
    rows = rows_of(build, not arguments.quick)
    if not any(arguments.only in row.name for row in rows):
        parser.error(f"no row's name holds '{arguments.only}'; there are: {', '.join(row.name for row in rows)}")
    logs = pathlib.Path(arguments.results or tempfile.mkdtemp(prefix="fusion-soak-")).absolute()
    logs.mkdir(parents=True, exist_ok=True)
    return 0 if run_all(rows, not arguments.quick, arguments.only, logs, has_gpu()) else 1


if __name__ == "__main__":
    sys.exit(main())
