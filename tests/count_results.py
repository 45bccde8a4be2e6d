#!/usr/bin/env python3
"""Prints "N passed, N failed, N skipped" from the JUnit file of ctest; exits 1 when a test failed or none ran.

A test is skipped when it said so (GTEST_SKIP) or is disabled. A test that could not run for any other reason, such as
a missing program, counts as failed: ctest calls both "not run".

Before that line it says what the tests of label fault took, added up: `ctest -L fault` takes that long at most. Where the
short forms took longer than FAULT_SECONDS it says that too; a machine with other things to do is no failing test.
"""

import os
import sys
import xml.etree.ElementTree

FAULT_SECONDS = 15 * 60  # what the short forms are given


def outcome_of(case):
    """passed, failed or skipped for one <testcase> element."""
    status = case.get("status")
    if status == "run":
        return "passed"
    if status == "disabled":
        return "skipped"
    skipped = case.find("skipped")
    if status == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def count(root):
    """Outcome -> number over all test cases below `root`."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in root.iter("testcase"):
        counts[outcome_of(case)] += 1
    return counts


def fault_line(root):
    """What the tests of label fault took, as text; None when none ran. Their names begin with the label."""
    seconds = {case.get("name", ""): float(case.get("time") or 0) for case in root.iter("testcase")
               if case.get("name", "").startswith("fault/") and outcome_of(case) != "skipped"}
    if not seconds:
        return None
    total = sum(seconds.values())
    longest = max(seconds, key=seconds.get)
    line = f"label fault: {len(seconds)} tests in {total:.0f} s, one after another; longest: {longest}, {seconds[longest]:.0f} s"
    if total > FAULT_SECONDS and os.environ.get("FUSION_LONG_TESTS") != "1":
        line += f"; that is more than the {FAULT_SECONDS} s that the short forms are given"
    return line


def self_test():
    """Every way a case can end, as ctest 3.25 and 3.31 write them."""
    root = xml.etree.ElementTree.fromstring("""<testsuite>
      <testcase name="ran" status="run"/>
      <testcase name="wrong" status="fail"><failure message=""/></testcase>
      <testcase name="no device" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
      <testcase name="no program" status="notrun"><skipped message="Unable to find executable"/></testcase>
      <testcase name="off" status="disabled"/>
    </testsuite>""")
    found = count(root)
    if found != {"passed": 1, "failed": 2, "skipped": 2}:
        print(f"count_results.py: wrong counts: {found}", file=sys.stderr)
        return 1
    if fault_line(root) is not None:
        print("count_results.py: a time of label fault, of which no test ran", file=sys.stderr)
        return 1
    os.environ.pop("FUSION_LONG_TESTS", None)
    case = '<testcase name="{}" status="{}" time="{}">{}</testcase>'
    skipped = '<skipped message="SKIP_RETURN_CODE=77"/>'
    for last, expected in ((340.25, "label fault: 3 tests in 900 s, one after another; longest: fault/b, 500 s"),
                           (341.25, "label fault: 3 tests in 901 s, one after another; longest: fault/b, 500 s; that is more "
                                    "than the 900 s that the short forms are given")):
        cases = [("fault/a", "run", 60.25, ""), ("fault/b", "run", 499.5, ""), ("fault/c", "fail", last, ""),
                 ("fault/links", "notrun", 77, skipped), ("unit/fault", "run", 1000, "")]
        line = fault_line(xml.etree.ElementTree.fromstring(
            "<testsuite>" + "".join(case.format(*each) for each in cases) + "</testsuite>"))
        if line != expected:
            print(f"count_results.py: wrong time of label fault: {line}", file=sys.stderr)
            return 1
    return 0


def main(arguments):
    if arguments[1:] == ["--self-test"]:
        return self_test()
    if len(arguments) != 2:
        print("usage: count_results.py FILE | --self-test", file=sys.stderr)
        return 2
    root = xml.etree.ElementTree.parse(arguments[1]).getroot()
    counts = count(root)
    if (line := fault_line(root)) is not None:
        print(line)
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 0 if counts["failed"] == 0 and sum(counts.values()) > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
