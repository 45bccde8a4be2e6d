#!/usr/bin/env python3
"""Prints "N passed, N failed, N skipped" from the JUnit file of ctest; exits 1 when a test failed or none ran.

A test is skipped when it said so (GTEST_SKIP) or is disabled. A test that could not run for any other reason, such as
a missing program, counts as failed: ctest calls both "not run".
"""

import sys
import xml.etree.ElementTree


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
    return 0


def main(arguments):
    if arguments[1:] == ["--self-test"]:
        return self_test()
    if len(arguments) != 2:
        print("usage: count_results.py FILE | --self-test", file=sys.stderr)
        return 2
    counts = count(xml.etree.ElementTree.parse(arguments[1]).getroot())
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 0 if counts["failed"] == 0 and sum(counts.values()) > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
