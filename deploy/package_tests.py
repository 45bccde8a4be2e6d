#!/usr/bin/env python3
"""Reads ctest's list of tests (`ctest --show-only=json-v1`), writes a CTestTestfile.cmake that runs them from the folder it lies in.

Each test's program is expected beside it. Exit status 1: the list is empty, or a test is no program of its own.
"""
import json
import os
import sys

KEPT = ("LABELS", "TIMEOUT", "SKIP_REGULAR_EXPRESSION")


def quoted(text):
    return f"[==[{text}]==]"


def main():
    tests = json.load(sys.stdin)["tests"]
    if not tests:
        print("package_tests.py: no tests", file=sys.stderr)
        return 1
    print("# Made by deploy/package_tests.py.")
    for test in tests:
        program, *arguments = test.get("command", [""])
        if not os.access(program, os.X_OK):
            print(f"package_tests.py: {test['name']} has no program", file=sys.stderr)
            return 1
        name = quoted(test["name"])
        command = " ".join(['"${CMAKE_CURRENT_LIST_DIR}/' + os.path.basename(program) + '"'] + [quoted(a) for a in arguments])
        print(f"add_test({name} {command})")
        for item in test["properties"]:
            if item["name"] in KEPT:
                value = item["value"]
                text = ";".join(value) if isinstance(value, list) else str(value)
                print(f"set_tests_properties({name} PROPERTIES {item['name']} {quoted(text)})")
    return 0


sys.exit(main())
