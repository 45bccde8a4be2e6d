#!/usr/bin/env python3
"""C++ loop forms are partitioned, or refused, as the comments of forms.cc say, and give the bytes of a plain -O0 build.

  forms_test.py --cxx fusion-c++ [--plain clang++-19] [--splits 0,0.5,1] [--keep DIR]

Prints a table of all forms. Exits 1 when a form marked found is not partitioned, when one marked refused is, and when a result differs.
"""

import pathlib
import re
import sys

import partition_runs

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests/integration/partition/programs"
SOURCE = PROGRAMS / "forms.cc"
FLAGS = ["-g", "-std=c++20", "-fno-math-errno", "-ffp-contract=off", "-I", ROOT]
REMARK = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+):\d+: remark: (?P<what>(?:loop|not) partitioned\b.*)")


class Form:
    """A function of forms.cc: what is expected of it, and the lines of its text."""

    def __init__(self, name, expected, first):
        self.name = name
        self.expected = expected
        self.first = first
        self.last = first
        self.loop = 0  # the line of the outermost loop; 0: it is in a header
        self.remarks = []  # (line, text)

    def holds(self, remark):
        """A remark belongs to the form by its line, or by its text where the loop comes from a header."""
        if pathlib.Path(remark["file"]).name == SOURCE.name:
            return self.first <= int(remark["line"]) <= self.last
        return re.search(rf"\b(_Z\d+)?{self.name}(\b|[RPS])", remark["what"]) is not None

    def made(self):
        """The form's outermost loop is partitioned, or an inner one only, or none."""
        lines = [line for line, what in self.remarks if what.startswith("loop partitioned")]
        if not lines:
            return "no"
        return "yes" if not self.loop or any(line in (0, self.loop) for line in lines) else "inner"

    def wrong(self):
        kind = self.expected.split(":")[0]
        return (kind == "found" and self.made() != "yes") or (kind == "refused" and self.made() != "no")


def forms_of(lines):
    """The forms of the source: a comment that says what is expected, then the function."""
    forms = []
    for number, line in enumerate(lines, 1):
        expected = re.match(r"// ((?:found|refused: .*|later: .*))$", line)
        if expected:
            name = re.search(r"(\w+)\(", lines[number])[1]
            forms.append(Form(name, expected[1], number + 1))
        if forms and forms[-1].last == forms[-1].first and not forms[-1].loop and re.match(r"  (for|while) \(", line):
            forms[-1].loop = number
        if line == "}" and forms and forms[-1].last == forms[-1].first:
            forms[-1].last = number
    return forms


def read_remarks(text, forms):
    for line in text.splitlines():
        remark = REMARK.search(line)
        if remark is None:
            continue
        for form in forms:
            if form.holds(remark):
                here = pathlib.Path(remark["file"]).name == SOURCE.name
                form.remarks.append((int(remark["line"]) if here else 0, remark["what"]))


def build(arguments, folder):
    """Returns the reference program, the tested one, and the remarks."""
    driver, plain, tested = folder / "driver.o", folder / "plain.o", folder / "tested.o"
    partition_runs.call_compiler([arguments.plain, "-O0", *FLAGS, "-c", PROGRAMS / "forms_driver.cc", "-o", driver])
    partition_runs.call_compiler([arguments.plain, "-O0", *FLAGS, "-c", SOURCE, "-o", plain])
    remarks = partition_runs.call_compiler([arguments.compiler, "-O3", "-g", *FLAGS, "-Rpass=fusion", "-Rpass-missed=fusion", "-c", SOURCE,
                                            "-o", tested])
    partition_runs.call_compiler([arguments.plain, driver, plain, "-o", folder / "forms_plain"])
    partition_runs.call_compiler([arguments.compiler, driver, tested, "-o", folder / "forms_tested"])
    return folder / "forms_plain", folder / "forms_tested", remarks


def hashes(program, split, report=None):
    """The hash that a program prints for each form; a form that is missing stands behind a crash."""
    status, out = partition_runs.run_program([program], split, report)
    if status != 0:
        print(f"split {split}: {program.name} ended with status {status}")
    return dict(line.split() for line in out.splitlines())


def differing(arguments, folder, plain, tested):
    """For each split, the names of forms whose results differ."""
    right = hashes(plain, "0")
    different = {}
    for split in partition_runs.splits_of(arguments):
        mine = hashes(tested, split, folder / "forms.report")
        different[split] = {name for name in right if mine.get(name) != right[name]}
    return right, different


def print_table(forms, different):
    for form in forms:
        splits = [split for split, names in different.items() if form.name in names]
        result = "differs at " + ", ".join(splits) if splits else "same"
        verdict = "WRONG" if form.wrong() or splits else ""
        print(f"{form.name:18} {form.expected.split(':')[0]:8} {form.made():6} {result:10} {verdict}")
        if form.wrong():
            print("\n".join(f"    {line}: {what}" for line, what in form.remarks) or "    no remark")


def test(arguments, folder):
    forms = forms_of(SOURCE.read_text(encoding="utf-8").splitlines())
    plain, tested, remarks = build(arguments, folder)
    read_remarks(remarks, forms)
    ran, different = differing(arguments, folder, plain, tested)
    print_table(forms, different)
    missing = [form.name for form in forms if form.name not in ran]
    wrong = sum(form.wrong() for form in forms)
    bad = set().union(*different.values())
    made = sum(form.made() == "yes" for form in forms)
    print(f"forms_test.py: {len(forms)} forms, {made} partitioned, {wrong} against what is expected, "
          f"{len(bad)} with other results, {len(missing)} not run")
    return 1 if wrong or bad or missing or not forms else 0


def main():
    parser = partition_runs.options(__doc__, "--cxx", "clang++-19", "0,0.5,1")
    arguments = parser.parse_args()
    return partition_runs.in_folder(arguments.keep, lambda folder: test(arguments, folder))


if __name__ == "__main__":
    sys.exit(main())
