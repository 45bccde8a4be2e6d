#!/usr/bin/env python3
"""What a busy host chooses: every example is submitted beside busy processes, and what came first is timed again when they are gone.

    tests/bench/busy_host.py run --bin build/release/bin --state busy.json
    tests/bench/busy_host.py run --bin build/release/bin --state short.json --only vadd,bicgk --times 1 --candidates 8 --size m=512 --size n=512
    tests/bench/busy_host.py table --state busy.json
    tests/bench/busy_host.py noisy --bin build/release/bin --state noisy.json --only bicgk --jobs 20

run: for each example the idle choice (a submit to a store of its own), then --times submits beside --busy processes that never sleep, to a
store that they share and no idle job has taught. Each choice is timed again when the machine is idle: with --make and --together it is
submitted alone, beside the idle choice. A run is good where that took at most 10 % longer than the idle choice. Every step goes to --state
when it is done: started again with the same options, the script goes on behind the last one.

noisy: --jobs submits beside the busy processes, then one without: what it chooses, against one to an empty store.

All is on the host of this machine, which should do nothing else: the figure of an idle machine that is busy says nothing. Several of these
scripts may share a large machine, each on cores of its own (taskset), if all are in the same --phase: idle, busy or again.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from local_farm import ends_with_us  # noqa: E402
from examples_bench import sizes_of  # noqa: E402

ALLOWED = 1.10  # of the idle choice's time
BUSY_LOOP = "while True: pass"


class BusyProcesses:
    """So many processes that take all the time that they get, while the block lasts."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP], preexec_fn=ends_with_us) for _ in range(self.count)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


class State:
    """Results by step, in a file that is replaced whenever one is added."""

    def __init__(self, path, options):
        self.path = pathlib.Path(path)
        self.content = {"options": options, "steps": {}}
        if self.path.exists():
            self.content = json.loads(self.path.read_text())
            if self.content["options"] != options:
                sys.exit(f"{path} is of other options: {self.content['options']}")

    def step(self, name, work):
        """The result of the step, made now or before."""
        steps = self.content["steps"]
        if name not in steps:
            steps[name] = work()
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.content, indent=1) + "\n")
            os.replace(new, self.path)
            print(f"{name}: {summary(steps[name])}", flush=True)
        return steps[name]


def summary(result):
    unreliable = ", unreliable" if result["unreliable"] else ""
    return f"{result['best']['seconds'] * 1e6:.4g} us, {result['best']['description']}{unreliable}"


class Submitter:
    def __init__(self, arguments):
        self.client = os.path.abspath(os.path.join(arguments.bin, "fusion-client"))
        self.examples = pathlib.Path(__file__).resolve().parents[2] / "examples"
        self.arguments = arguments

    def submit(self, example, data, *more):
        """The first candidate of a submit to the store in the folder `data`, and whether the race was reliable."""
        source = self.examples / f"{example}.fuse"
        command = [self.client, "submit", str(source), "--target", "host", "--json", "--candidates", str(self.arguments.candidates), *more]
        declared, _, _ = sizes_of(source.read_text())
        for size in self.arguments.size or []:
            if size.split("=")[0] in declared:
                command += ["--size", size]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                                  env=dict(os.environ, FUSION_DATA_DIR=os.fspath(data)))
        if done.returncode != 0:
            sys.exit(f"{example}: exit code {done.returncode}: {done.stderr.strip()[-800:]}")
        result = json.loads(done.stdout)
        ranked = [candidate for candidate in result["candidates"] if candidate["outcome"] == "OK"]
        return {
            "best": self.described(ranked[0]),
            "timed": [self.described(candidate) for candidate in ranked],
            "unreliable": result.get("unreliable", False),
            "remarks": result.get("remarks", []),
            "conditions": result["conditions"],
            "seconds": result["seconds"],
        }

    @staticmethod
    def described(candidate):
        return {
            "key": candidate["key"],
            "description": candidate["description"],
            "fusions": candidate["fusions"],
            "seconds": candidate["measured_seconds"]["median"],
            "steady": candidate.get("steady", True),
        }

    def timed_again(self, example, choices, data):
        """Seconds of each candidate of `choices`, by its key, from one submit that times every candidate of the search, and where one is
        not among these from one that asks for its kernels."""
        found = {}
        for candidate in self.submit(example, data, "--measure-all")["timed"]:
            found.setdefault(candidate["key"], candidate["seconds"])
        for choice in choices:
            if choice["key"] in found:
                continue
            hints = []
            for kernel, results in zip(choice["description"].split("; "), choice["fusions"]):
                hints += ["--make", f"{results[0]}={kernel.split('} ', 1)[-1]}"]
            for candidate in self.submit(example, data, *hints)["timed"]:
                found.setdefault(candidate["key"], candidate["seconds"])
        return found


def run(arguments, examples, state):
    submitter = Submitter(arguments)
    folder = pathlib.Path(arguments.data or str(arguments.state) + ".data")

    def submit(example, kind):
        path = folder / f"{example}-{kind}"
        path.mkdir(parents=True, exist_ok=True)
        return submitter.submit(example, path)

    def submit_beside(example):
        with BusyProcesses(arguments.busy):
            return submit(example, "busy")

    def timed_again(example):
        choices = [state.content["steps"][f"{example} {step}"]["best"] for step in ["idle", *(f"busy {time + 1}" for time in range(arguments.times))]]
        path = folder / f"{example}-again"
        path.mkdir(parents=True, exist_ok=True)
        return {"best": choices[0], "unreliable": False, "seconds_by_key": submitter.timed_again(example, choices, path)}

    if arguments.phase in (None, "idle"):
        for example in examples:
            state.step(f"{example} idle", lambda: submit(example, "idle"))
    if arguments.phase in (None, "busy"):
        for time in range(arguments.times):
            for example in examples:
                state.step(f"{example} busy {time + 1}", lambda: submit_beside(example))
    if arguments.phase in (None, "again"):
        for example in examples:
            state.step(f"{example} again", lambda: timed_again(example))
    return table(arguments, examples, state)


def table(arguments, examples, state):
    steps = state.content["steps"]
    good = runs = unreliable = 0
    print(f"{'example':22s} {'idle (us)':>10s}  busy choices, timed again when idle, over the idle choice")
    for example in examples:
        again = steps.get(f"{example} again")
        if again is None:
            continue
        seconds = again["seconds_by_key"]
        idle = seconds.get(again["best"]["key"])
        ratios = []
        for number in range(arguments.times):
            step = steps[f"{example} busy {number + 1}"]
            taken = seconds.get(step["best"]["key"])
            ratio = taken / idle if idle and taken else float("nan")
            ratios.append(f"{ratio:5.2f}{'~' if step['unreliable'] else ' '}")
            runs += 1
            good += ratio <= ALLOWED
            unreliable += step["unreliable"]
        print(f"{example:22s} {idle * 1e6 if idle else float('nan'):10.1f}  {' '.join(ratios)}")
    print(f"within {round(100 * (ALLOWED - 1))} %: {good} of {runs} runs; {unreliable} said that they are unreliable (~)")
    return 0


def noisy(arguments, examples, state):
    submitter = Submitter(arguments)
    folder = pathlib.Path(arguments.data or str(arguments.state) + ".data")
    for example in examples:
        taught, empty = folder / f"{example}-taught", folder / f"{example}-empty"
        for path in (taught, empty):
            path.mkdir(parents=True, exist_ok=True)
        for number in range(arguments.jobs):
            def busy():
                with BusyProcesses(arguments.busy):
                    return submitter.submit(example, taught)

            state.step(f"{example} noisy {number + 1}", busy)
        after = state.step(f"{example} quiet after noise", lambda: submitter.submit(example, taught))
        fresh = state.step(f"{example} quiet, nothing known", lambda: submitter.submit(example, empty))

        def again():
            seconds = submitter.timed_again(example, [after["best"], fresh["best"]], folder / f"{example}-empty")
            return {"best": fresh["best"], "unreliable": False, "seconds_by_key": seconds}

        seconds = state.step(f"{example} again", again)["seconds_by_key"]
        first, second = seconds.get(after["best"]["key"]), seconds.get(fresh["best"]["key"])
        print(f"{example}: after {arguments.jobs} noisy jobs {summary(after)}")
        print(f"{example}: nothing known       {summary(fresh)}")
        if first and second:
            print(f"{example}: the former takes {first / second:.2f} times as long as the latter")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["run", "table", "noisy"])
    parser.add_argument("--bin", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--state", required=True, help="JSON file of what is done")
    parser.add_argument("--data", help="folder of the stores; STATE.data")
    parser.add_argument("--only", help="comma separated names of examples")
    parser.add_argument("--size", action="append", help="NAME=VALUE, for the examples that have it")
    parser.add_argument("--phase", choices=["idle", "busy", "again"], help="of run: this one alone; all three in turn without it")
    parser.add_argument("--times", type=int, default=3, help="submits of each example beside the busy processes")
    parser.add_argument("--busy", type=int, default=8, help="busy processes")
    parser.add_argument("--jobs", type=int, default=20, help="noisy jobs")
    parser.add_argument("--candidates", type=int, default=30)
    arguments = parser.parse_args()
    names = sorted(path.stem for path in (pathlib.Path(__file__).resolve().parents[2] / "examples").glob("*.fuse"))
    examples = [name for name in names if not arguments.only or name in arguments.only.split(",")]
    unknown = set(arguments.only.split(",") if arguments.only else []) - set(names)
    if unknown:
        sys.exit(f"no such example: {', '.join(sorted(unknown))}")
    options = {name: getattr(arguments, name) for name in ("size", "busy", "candidates")}
    state = State(arguments.state, options)
    return {"run": run, "table": table, "noisy": noisy}[arguments.mode](arguments, examples, state)


if __name__ == "__main__":
    sys.exit(main())
