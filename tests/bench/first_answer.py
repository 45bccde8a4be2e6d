#!/usr/bin/env python3
"""How long the first answer takes on this machine, which should do nothing else: each example is submitted for the host to a store of its own.

    tests/bench/first_answer.py --bin build/release/bin --state first.json
    tests/bench/first_answer.py --bin build/release/bin --state first.json --kind full --only vadd,bicgk

full: as a person submits it who says nothing; quick: with --quick. Where both were made, rank 1 of each is timed again side by side: what the
quick answer loses. Every step goes to --state when it is done: started again with the same options, the script goes on behind the last one.
"""
import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from busy_host import State, Submitter  # noqa: E402

KINDS = {"full": [], "quick": ["--quick"]}
QUICK_SECONDS, FULL_SECONDS, ALLOWED = 10, 90, 1.25


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--state", required=True, help="JSON file of what is done")
    parser.add_argument("--only", help="comma separated names of examples")
    parser.add_argument("--kind", choices=list(KINDS), help="this one alone")
    arguments = parser.parse_args()
    arguments.candidates, arguments.size = 30, None
    names = sorted(path.stem for path in (pathlib.Path(__file__).resolve().parents[2] / "examples").glob("*.fuse"))
    examples = [name for name in names if not arguments.only or name in arguments.only.split(",")]
    submitter = Submitter(arguments)
    state = State(arguments.state, {})

    def answer(example, kind):
        with tempfile.TemporaryDirectory() as data:
            start = time.monotonic()
            result = submitter.submit(example, data, *KINDS[kind])
            return dict(result, answer_seconds=time.monotonic() - start)

    def again(example, choices):
        with tempfile.TemporaryDirectory() as data:
            return {"best": choices[0], "unreliable": False, "seconds_by_key": submitter.timed_again(example, choices, data)}

    print(f"{'example':22s} " + " ".join(f"{kind + ' (s)':>10s}" for kind in KINDS) + "  quick choice over full choice")
    slow, ratios = [], []
    for example in examples:
        made = {kind: state.step(f"{example} {kind}", lambda: answer(example, kind)) for kind in KINDS if arguments.kind in (None, kind)}
        ratio = ""
        if len(made) == len(KINDS):
            full, quick = (made[kind]["best"]["key"] for kind in KINDS)
            seconds = state.step(f"{example} again", lambda: again(example, [made[kind]["best"] for kind in KINDS]))["seconds_by_key"]
            if seconds.get(full) and seconds.get(quick):
                ratios.append(seconds[quick] / seconds[full])
                ratio = f"{ratios[-1]:.2f}"
        times = [f"{made[kind]['answer_seconds']:10.1f}" if kind in made else " " * 10 for kind in KINDS]
        slow += [f"{example} {kind}" for kind, limit in zip(KINDS, (FULL_SECONDS, QUICK_SECONDS))
                 if kind in made and made[kind]["answer_seconds"] > limit]
        print(f"{example:22s} {' '.join(times)}  {ratio}", flush=True)
    print(f"over {FULL_SECONDS} s, or {QUICK_SECONDS} with --quick: {', '.join(slow) or 'none'}")
    if ratios:
        print(f"quick choices within {ALLOWED} times the full choice: {sum(ratio <= ALLOWED for ratio in ratios)} of {len(ratios)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
