"""Steps that the tests of automatic partitioning share: compiling both ways, and runs on the simulated device."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# All runs of one test give up after this many seconds: a loop that never ends is a wrong result too.
RUN_LIMIT = 300
# A compile of one file takes a few seconds at most.
COMPILE_LIMIT = 120


def options(description, compiler_option="--cc", plain="clang-19", splits="0,0.4,1"):
    """The parser of the options that all these tests have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(compiler_option, dest="compiler", required=True, help="the compiler that partitions")
    parser.add_argument("--plain", default=plain, help="the compiler that gives the expected results")
    parser.add_argument("--splits", default=splits, help="shares of the iterations for the device")
    parser.add_argument("--keep", help="a folder for sources, programs and reports, kept afterwards")
    return parser


def splits_of(arguments):
    return arguments.splits.split(",")


def environment(split, chunks=3):
    """The environment of a run that splits every partitioned loop at the given share, on the simulated device."""
    return dict(os.environ, FUSION_PARTITION="device", FUSION_PARTITION_DEVICE="simulated", FUSION_PARTITION_LEAST_WORK="0",
                FUSION_PARTITION_THREADS="2", FUSION_PARTITION_SPLIT=split, FUSION_PARTITION_CHUNKS=str(chunks),
                FUSION_PARTITION_REPORT="1")


def try_compiler(command):
    """Runs a compiler; returns whether it succeeded, in all functions, and what it wrote to stderr."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                              timeout=COMPILE_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return False, f"no end after {COMPILE_LIMIT} s"
    # A function whose new form LLVM's verifier refuses is compiled as it came, and the compiler says so.
    return done.returncode == 0 and "its new form is not valid" not in done.stderr, done.stderr


def call_compiler(command):
    """Runs a compiler and returns what it wrote to stderr; ends the test when it fails."""
    good, text = try_compiler(command)
    if not good:
        print(" ".join(str(word) for word in command), text[:4000], sep="\n")
        sys.exit("the compiler failed")
    return text


def partitioned_loops(remarks):
    return remarks.count(": loop partitioned: ")


def other_remarks(source, remarks):
    """Compares all remarks on a source file with its comments: each loop has its remarks in the lines before it, as comments that
    begin with "loop partitioned", "loop reordered" or "not partitioned". Lines are counted from the loop's: "(line +1)" is the next one.
    Returns the differences, one text each."""
    expected, texts = set(), []
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        comment = re.match(r" *// (.*)$", line)
        if comment and re.match("(loop partitioned|loop reordered|not partitioned): ", comment[1]):
            texts.append(comment[1])
        elif comment and texts:
            texts[-1] += f" {comment[1]}"
        else:
            expected |= {(number, text) for text in texts}
            texts = []
    said = set()
    remark = re.compile(re.escape(source.name) + r":(\d+):\d+: remark: (.*) \[-Rpass(?:-missed)?=fusion\]$", re.MULTILINE)
    for line, text in remark.findall(remarks):
        said.add((int(line), re.sub(r"\(line (\d+)\)", lambda other, loop=int(line): f"(line +{int(other[1]) - loop})", text)))
    return ([f"{source.name}:{line}: said: {text}" for line, text in sorted(said - expected)] +
            [f"{source.name}:{line}: expected: {text}" for line, text in sorted(expected - said)])


def run_program(command, split, report=None):
    """Runs a program at one split; returns its exit status (None when it took too long) and its standard output."""
    try:
        done = subprocess.run([str(word) for word in command], env=environment(split), capture_output=True, text=True, errors="replace",
                              timeout=RUN_LIMIT, check=False)
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
        return None, out if isinstance(out, str) else out.decode(errors="replace")
    if report is not None:
        with open(report, "a", encoding="utf-8") as file:
            file.write(done.stderr)
    return done.returncode, done.stdout


def in_folder(keep, work):
    """Calls work(folder) with the folder to keep, or with one that goes away afterwards."""
    if keep:
        folder = pathlib.Path(keep).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return work(folder)
    with tempfile.TemporaryDirectory() as temporary:
        return work(pathlib.Path(temporary))


def main(description, check, compiler_option="--cc"):
    """The whole of a test whose check(arguments, folder) returns what is wrong, one text each."""
    arguments = options(description, compiler_option).parse_args()
    wrong = in_folder(arguments.keep, lambda folder: check(arguments, folder))
    print("\n".join(wrong + [f"{pathlib.Path(sys.argv[0]).name}: {len(wrong)} problems"]))
    sys.exit(1 if wrong else 0)
