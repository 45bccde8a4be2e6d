#!/usr/bin/env python3
"""The examples in examples/partition: what matters in them is partitioned, and all modes give the checksum of the plain compiler.

  examples_test.py --cc fusion-cc --cxx fusion-c++ [--plain clang-19] [--plain-cxx clang++-19] [--keep DIR]

Each example is compiled by both compilers and run at a small size with FUSION_PARTITION off, host and device (the simulated one, half of
the iterations). Checksums are printed by %a, and compared as text. The remarks and the lines of the report in the examples' README have to
be printed as they stand there; "..." there stands for anything.
"""

import os
import pathlib
import re
import subprocess
import sys

import partition_runs

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = pathlib.Path("examples/partition")
REMARKS = ["-Rpass=fusion", "-Rpass-missed=fusion"]
REPORT = re.compile(r"^(?P<file>\S+):(?P<line>\d+):\d+ \S+: calls (?P<calls>\d+), split (?P<split>\d+)% device, host threads \d+, "
                    r"seconds \d")
# A small size of each, and the texts that the loops begin with that have to be partitioned.
EXAMPLES = {
    "gemm.c": (["37", "41", "43"], ["for (int i = 0; i < ni; i++) {"]),
    "gesummv.c": (["53"], ["for (int i = 0; i < n; i++) {"]),
    "syrk.c": (["47", "29"], ["for (int i = 0; i < n; i++) {"]),
    "jacobi.c": (["39", "5"], ["for (int i = 1; i < n - 1; i++)"]),
    "vectors.cc": (["1009", "4"], ["for (std::size_t i = 0; i < velocities.size(); ++i)",
                                   "for (std::size_t i = 0; i < positions.size(); ++i)\n"]),
}

# Headers of the library whose loops have to be partitioned in a program.
HEADERS = {"vectors.cc": "/stl_algo.h:"}


class Example:
    """One program: compiled twice, and what the compiler said."""

    def __init__(self, name, arguments, folder):
        self.source = FOLDER / name
        self.sizes, self.loops = EXAMPLES[name]
        is_cxx = self.source.suffix == ".cc"
        self.plain, self.tested = folder / (self.source.stem + ".plain"), folder / self.source.stem
        options = ["-O3", "-std=c++20"] if is_cxx else ["-O3"]
        partition_runs.call_compiler([arguments.plain_cxx if is_cxx else arguments.plain, *options, self.source, "-o", self.plain])
        self.remarks = partition_runs.call_compiler([arguments.cxx if is_cxx else arguments.compiler, *options, *REMARKS, self.source,
                                                     "-o", self.tested])
        (folder / (self.source.stem + ".remarks")).write_text(self.remarks)

    def lines(self):
        """The numbers of the lines of the loops that matter: all that have their texts."""
        lines = self.source.read_text().splitlines(keepends=True)
        return [number for number, line in enumerate(lines, 1) if any(line.lstrip().startswith(text) for text in self.loops)]

    def run(self, program, mode):
        """(checksum or None, standard error) of a run at the small size."""
        environment = dict(partition_runs.environment(".5"), FUSION_PARTITION=mode)
        done = subprocess.run([program, *self.sizes], env=environment, capture_output=True, text=True,
                              timeout=partition_runs.RUN_LIMIT, check=False)
        found = re.match(r"checksum (\S+)\nseconds \d+\.\d+\n$", done.stdout)
        return (found[1] if done.returncode == 0 and found else None), done.stderr


def problems_of(example):
    """What is wrong with an example, in words."""
    partitioned = "\n".join(line for line in example.remarks.splitlines() if "remark: loop partitioned" in line)
    problems = [f"line {line} is not partitioned" for line in example.lines() if f"{example.source}:{line}:" not in partitioned]
    if not example.lines():
        problems.append("none of the loops that matter is in the source")
    if "not valid" in example.remarks:
        problems.append("the compiler made a function that is not valid")
    expected, _ = example.run(example.plain, "off")
    if expected is None:
        problems.append("the plain program failed")
    for mode in ("off", "host", "device"):
        checksum, report = example.run(example.tested, mode)
        if checksum != expected:
            problems.append(f"{mode}: checksum {checksum}, not {expected}")
        ran = {int(found["line"]): int(found["split"]) for found in map(REPORT.match, report.splitlines())
               if found and int(found["calls"]) and pathlib.Path(found["file"]) == example.source}
        if mode == "off" and ran:
            problems.append(f"off: loops ran, in lines {sorted(ran)}")
        header = HEADERS.get(example.source.name)
        if header and mode != "off" and not any(header in line and REPORT.match(line) for line in report.splitlines()):
            problems.append(f"{mode}: no loop of {header} ran")
        for line in example.lines() if mode != "off" else []:
            if line not in ran:
                problems.append(f"{mode}: line {line} never ran")
            elif (mode == "device") != (ran[line] > 0):
                problems.append(f"{mode}: line {line} ran with {ran[line]} % of it on the device")
    return problems


def as_pattern(line):
    """A line of the README, of which "..." is anything."""
    return re.compile("".join(".*" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", line.strip())) + "$", re.M)


def readme_problems(examples):
    """What the README shows and no example prints."""
    text = (ROOT / FOLDER / "README.md").read_text()
    shown = [line for line in text.splitlines() if line.startswith(f"    {FOLDER}/")]
    printed = "\n".join(example.remarks for example in examples.values())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FUSION_PARTITION")}
    environment |= {"FUSION_PARTITION_REPORT": "1", "FUSION_PARTITION_LEAST_WORK": "0"}
    for example in examples.values():
        printed += "\n" + subprocess.run([example.tested, *example.sizes], env=environment, capture_output=True, text=True,
                                         timeout=partition_runs.RUN_LIMIT, check=False).stderr
    return [f"README.md shows what is not printed: {line.strip()}" for line in shown if not as_pattern(line).search(printed)] or (
        [] if len(shown) >= 2 else ["README.md shows no remark and no line of a report"])


def test(arguments, folder):
    """Returns 1 if anything is wrong."""
    examples = {name: Example(name, arguments, folder) for name in EXAMPLES}
    count = 0
    for name, example in examples.items():
        problems = problems_of(example)
        print(f"{name}: {'; '.join(problems) or 'partitioned, same checksums'}")
        count += len(problems)
    for problem in readme_problems(examples):
        print(problem)
        count += 1
    for name in sorted({path.name for path in (ROOT / FOLDER).glob("*.c*")} - set(EXAMPLES)):
        print(f"{name}: not tested")
        count += 1
    print(f"examples_test.py: {len(examples)} examples, {count} problems")
    return 1 if count else 0


def main():
    parser = partition_runs.options(__doc__)
    parser.add_argument("--cxx", required=True, help="the compiler that partitions C++")
    parser.add_argument("--plain-cxx", default="clang++-19", help="the compiler that gives the expected results for C++")
    arguments = parser.parse_args()
    for name in ("compiler", "cxx", "plain", "plain_cxx", "keep"):
        value = getattr(arguments, name)
        if value and "/" in value:
            setattr(arguments, name, str(pathlib.Path(value).absolute()))
    os.chdir(ROOT)  # remarks name files as they were given
    return partition_runs.in_folder(arguments.keep, lambda folder: test(arguments, folder))


if __name__ == "__main__":
    sys.exit(main())
