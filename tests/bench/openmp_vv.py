#!/usr/bin/env python3
"""What becomes of the target regions of OpenMP_VV's tests of loops (OpenMP 4.5, C).

    tests/bench/openmp_vv.py OPENMP_VV [--client build/release/bin/fusion-client] [--only TEXT] [--list] [--run] [--plain] [--json FILE]

OPENMP_VV is the folder with `tests/4.5` in it. A test checks its regions' results, mostly in functions of its own, of which we read loops alone. So
each region is a question of its own: the pragmas of all others, and directives that only move data, are taken out of the preprocessed text, and
the suite's macros that look for a device or report errors stand for nothing. `check` says that the region is proved, taken at its word (asserted)
or refused, and why. With --run a job on the host computes each region that is read, on random inputs, and compares it with the serial
program: wrong is a job that fails at that. A test passes where all of its regions are read and, with --run, have right results.
--plain asks what the loops alone would come to: it takes out clauses that change no result of a loop (depend, defaultmap, is_device_ptr), and has
functions of teams and threads say that there is one team of one thread.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDERS = ("target_teams_distribute", "target_teams_distribute_parallel_for", "target", "application_kernels")
# Stands for the suite's header.
HEADER = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define OMPVV_NUM_TEAMS_DEVICE 8
#define OMPVV_NUM_TEAMS_HOST 8
#define OMPVV_NUM_THREADS_DEVICE 8
#define OMPVV_NUM_THREADS_HOST 8
#define OMPVV_WARNING(...) {}
#define OMPVV_WARNING_IF(...) {}
#define OMPVV_ERROR(...) {}
#define OMPVV_ERROR_IF(...) {}
#define OMPVV_INFOMSG(...) {}
#define OMPVV_INFOMSG_IF(...) {}
#define OMPVV_TEST_OFFLOADING
#define OMPVV_TEST_AND_SET_OFFLOADING(there) there = 1;
#define OMPVV_TEST_SHARED_ENVIRONMENT
#define OMPVV_TEST_AND_SET_SHARED_ENVIRONMENT(shared) shared = 0;
#define OMPVV_CHECK_TO_SKIP(...)
#define OMPVV_TEST_VERBOSE(condition) {}
#define OMPVV_TEST_AND_SET(errors, condition) { errors += (condition); }
#define OMPVV_TEST_AND_SET_VERBOSE(errors, condition) { errors += (condition); }
#define OMPVV_RETURN(errors) { return errors; }
#define OMPVV_REPORT(errors) {}
#define OMPVV_REPORT_AND_RETURN(errors) { return errors; }
"""
PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp[ \t]+([^\n]*)$", re.M)
DATA = re.compile(r"target\s+(enter\s+|exit\s+)?(data|update)\b")
JOB_SECONDS = 300


def preprocessed(path, headers, suite):
    """The text behind its includes; None: it has no such text, with what the compiler says."""
    command = ["cc", "-E", "-fopenmp", f"-I{headers}", f"-I{path.parent}", f"-I{suite / 'ompvv'}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, (re.findall(r"error: (.*)", done.stderr) or ["it is not preprocessed"])[0]
    lines, own = [], True
    for line in done.stdout.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            own = pathlib.Path(marker.group(1)).name == path.name
        elif own:
            lines.append(line)
    return "\n".join(lines) + "\n", ""


def behind_brackets(text, at):
    pairs, depth = {"(": 1, "{": 1, ")": -1, "}": -1}, 0
    for end in range(at, len(text)):
        depth += pairs.get(text[end], 0)
        if depth == 0:
            return end + 1
    return len(text)


def statement_end(text, at):
    """Where the statement ends that begins at or behind `at`."""
    while True:
        skipped = re.compile(r"\s*(?:#[^\n]*\n\s*)*").match(text, at)
        at = skipped.end()
        head = re.compile(r"(for|if|while)\s*(?=\()").match(text, at)
        if text.startswith("{", at):
            return behind_brackets(text, at)
        if not head:
            return text.find(";", at) + 1 or len(text)
        at = behind_brackets(text, head.end())


def regions(text):
    """The text with one region alone, for each of them."""
    pragmas = list(PRAGMA.finditer(text))
    found, end = [], 0
    for pragma in pragmas:
        if pragma.group(1).startswith("target") and not DATA.match(pragma.group(1)) and pragma.start() >= end:
            end = statement_end(text, pragma.end())
            found.append((pragma.start(), end))
    for start, end in found:
        one = text
        for pragma in pragmas:
            if not start <= pragma.start() < end:
                one = one[:pragma.start()] + " " * len(pragma.group()) + one[pragma.end():]
        yield text.count("\n", 0, start) + 1, one


def reasons_of(said):
    """What kinds of errors there are, without advice."""
    messages = re.findall(r"error: (.*)", said) or [line for line in said.strip().splitlines()[-1:]]
    return list(dict.fromkeys(re.split(r"; |: only target| \(did you mean", message)[0] for message in messages))


def plain(text):
    """Without clauses that change no loop's result, and with one team of one thread, as OpenMP allows."""
    text = re.sub(r"\b(depend|defaultmap|is_device_ptr)\s*\((?:[^()]|\([^()]*\))*\)", "", text)
    text = re.sub(r"\bomp_get_(num_teams|num_threads|thread_limit)\s*\(\s*\)", "1", text)
    return re.sub(r"\bomp_get_(team_num|thread_num)\s*\(\s*\)", "0", text)


def examine(arguments, text, folder):
    """(verdict, reasons) of one region."""
    path = pathlib.Path(folder) / "region.c"
    path.write_text(plain(text) if arguments.plain else text)
    done = subprocess.run([arguments.client, "check", str(path)], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        return "refused", reasons_of(done.stderr)
    verdict = "asserted" if "says so" in done.stdout else "proved" if ": proved" in done.stdout else "serial"
    if not arguments.run:
        return verdict, []
    command = [arguments.client, "submit", str(path), "--target", "host", "--quick", "--json"]
    sizes = set()
    while True:
        try:
            given = [word for name in sorted(sizes) for word in ("--size", f"{name}=3")]
            done = subprocess.run(command + given, capture_output=True, text=True, timeout=JOB_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "no job", [f"not done after {JOB_SECONDS} s"]
        # Integers that the text around the region would give a value.
        missing = set(re.findall(r"error: (\w+) has no value", done.stderr)) - sizes
        if not missing:
            break
        sizes |= missing
    if done.returncode != 0:
        reasons = reasons_of(done.stderr)
        return ("wrong" if any("f64 results" in each or "should be" in each for each in reasons) else "no job"), reasons
    wrong = any(candidate["outcome"] == "WRONG_RESULT" for candidate in json.loads(done.stdout)["candidates"])
    return ("wrong", ["a kernel has other results than the serial program"]) if wrong else (verdict, [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("--client", default="build/release/bin/fusion-client")
    parser.add_argument("--only", default="", help="tests whose name has this text")
    parser.add_argument("--list", action="store_true", help="print each region with its verdict")
    parser.add_argument("--run", action="store_true", help="run each region that is read as a job on the host")
    parser.add_argument("--plain", action="store_true", help="without depend, defaultmap and is_device_ptr, and as of one team of one thread")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    tests, counted, reasons = [], collections.Counter(), collections.Counter()
    paths = [path for folder in FOLDERS for path in sorted((arguments.suite / "tests/4.5" / folder).glob("*.c")) if arguments.only in path.name]
    if not paths:
        sys.exit(f"{arguments.suite}: no such tests in tests/4.5")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "ompvv.h").write_text(HEADER)
        for path in paths:
            text, said = preprocessed(path, folder, arguments.suite)
            found = [("refused", [said], 0)] if text is None else [(*examine(arguments, one, folder), line) for line, one in regions(text)]
            test = {"name": path.name, "regions": [{"line": line, "verdict": verdict, "reasons": why} for verdict, why, line in found],
                    "passes": bool(found) and all(verdict in ("proved", "asserted", "serial") for verdict, _, _ in found)}
            tests.append(test)
            for verdict, why, _ in found:
                counted[verdict] += 1
                reasons.update(f"{verdict}: {each}" for each in why)
            if arguments.list:
                print(f"{path.name}: {'passes' if test['passes'] else 'no target region' if not found else 'does not pass'}", flush=True)
                for verdict, why, line in found:
                    print(f"  line {line} of the preprocessed text: {verdict}{': ' if why else ''}{'; '.join(why)}", flush=True)
            if arguments.json:
                pathlib.Path(arguments.json).write_text(json.dumps({"ran": arguments.run, "plain": arguments.plain, "tests": tests}, indent=1) + "\n")
    print(f"{sum(counted.values())} regions: " + ", ".join(f"{count} {verdict}" for verdict, count in counted.most_common()))
    print(f"{sum(test['passes'] for test in tests)} of {len(tests)} tests pass, {sum(not test['regions'] for test in tests)} have no target region"
          + ("" if arguments.run else "; nothing was run"))
    for kind, count in reasons.most_common():
        print(f"  {count} {kind}")
    return 1 if counted["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
