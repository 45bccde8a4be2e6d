#!/usr/bin/env python3
"""How long the first answer takes on this machine, which should do nothing else: each example is submitted for the host to a store of its own.

    tests/bench/first_answer.py --bin build/release/bin --state first.json
    tests/bench/first_answer.py --bin build/release/bin --state first.json --option=--candidates=4 --only vadd,bicgk

With --option, each is also submitted with these options to a store of its own, and rank 1 of both is timed again side by side: what the quicker
answer loses. Every step goes to --state when it is done: started again with the same options, the script goes on behind the last one.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from busy_host import State, Submitter  # noqa: E402

LONGEST_SECONDS, ALLOWED = 90, 1.25


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--state", required=True, help="JSON file of what is done")
    parser.add_argument("--output", help="JSON file of the figures alone")
    parser.add_argument("--only", help="comma separated names of examples")
    parser.add_argument("--option", action="append", default=[], help="a further option of submit; may be repeated")
    arguments = parser.parse_args()
    arguments.candidates, arguments.size = 30, None
    names = sorted(path.stem for path in (pathlib.Path(__file__).resolve().parents[2] / "examples").glob("*.fuse"))
    examples = [name for name in names if not arguments.only or name in arguments.only.split(",")]
    submitter = Submitter(arguments)
    state = State(arguments.state, {"options": arguments.option})
    kinds = {"plain": [], **({"options": arguments.option} if arguments.option else {})}

    def answer(example, kind):
        with tempfile.TemporaryDirectory() as data:
            start = time.monotonic()
            result = submitter.submit(example, data, *kinds[kind])
            return dict(result, answer_seconds=time.monotonic() - start)

    def again(example, choices):
        with tempfile.TemporaryDirectory() as data:
            return {"best": choices[0], "unreliable": False, "seconds_by_key": submitter.timed_again(example, choices, data)}

    print(f"{'example':22s} " + " ".join(f"{kind + ' (s)':>12s}" for kind in kinds) + "  rank 1 with the options over rank 1 without")
    slow, ratios, rows = [], [], []
    for example in examples:
        made = {kind: state.step(f"{example} {kind}", lambda: answer(example, kind)) for kind in kinds}
        ratio = ""
        rows.append({"example": example, **{kind: result["answer_seconds"] for kind, result in made.items()}})
        if len(made) == 2:
            best = {kind: result["best"] for kind, result in made.items()}
            seconds = state.step(f"{example} again", lambda: again(example, list(best.values())))["seconds_by_key"]
            plain, options = (seconds.get(choice["key"]) for choice in best.values())
            if plain and options:
                ratios.append(options / plain)
                ratio = f"{ratios[-1]:.2f}"
                rows[-1]["ratio"] = ratios[-1]
        times = " ".join(f"{result['answer_seconds']:12.1f}" for result in made.values())
        slow += [example] if made["plain"]["answer_seconds"] > LONGEST_SECONDS else []
        print(f"{example:22s} {times}  {ratio}", flush=True)
    if arguments.output:
        pathlib.Path(arguments.output).write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "cores": len(os.sched_getaffinity(0)),
                                                              "options": arguments.option, "rows": rows}, indent=1) + "\n")
    print(f"over {LONGEST_SECONDS} s without options: {', '.join(slow) or 'none'}")
    if ratios:
        print(f"within {ALLOWED} times the choice without options: {sum(ratio <= ALLOWED for ratio in ratios)} of {len(ratios)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
