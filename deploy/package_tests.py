#!/usr/bin/env python3
"""Reads ctest's list of tests (`ctest --show-only=json-v1`), writes a CTestTestfile.cmake that runs them from the folder that is given.

Each test's program lies in that folder, or is a script of tests/ that lies below it; other programs that arguments name are in ../bin.
Exit status 1: the list is empty, or a test is neither.
"""
import json
import os
import pathlib
import sys

KEPT = ("LABELS", "TIMEOUT", "SKIP_REGULAR_EXPRESSION", "SKIP_RETURN_CODE", "RUN_SERIAL")
TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"


def quoted(text):
    return f"[==[{text}]==]"


def argument_text(argument):
    is_program = os.path.isabs(argument) and os.path.isfile(argument) and os.access(argument, os.X_OK)
    return quoted("../bin/" + os.path.basename(argument) if is_program else argument)


def command_text(command, folder):
    """What runs a test in the package; None: it is no program there."""
    program, *arguments = command
    is_python = os.path.basename(program).startswith("python")
    if not is_python and not os.access(folder / os.path.basename(program), os.X_OK):
        return None
    texts = ['"${CMAKE_CURRENT_LIST_DIR}/' + os.path.basename(program) + '"']
    if is_python:
        script = pathlib.Path(arguments.pop(0)) if arguments else pathlib.Path()
        if not script.is_file() or TESTS not in script.resolve().parents:
            return None
        texts = ["python3", quoted(script.resolve().relative_to(TESTS).as_posix())]  # ctest runs it in the folder of its file
    return " ".join(texts + [argument_text(argument) for argument in arguments])


def main():
    tests = json.load(sys.stdin)["tests"]
    if not tests:
        print("package_tests.py: no tests", file=sys.stderr)
        return 1
    print("# Made by deploy/package_tests.py.")
    for test in tests:
        command = command_text(test.get("command", [""]), pathlib.Path(sys.argv[1]))
        if command is None:
            print(f"package_tests.py: {test['name']} has no program", file=sys.stderr)
            return 1
        name = quoted(test["name"])
        print(f"add_test({name} {command})")
        for item in test["properties"]:
            if item["name"] in KEPT:
                value = item["value"]
                text = ";".join(value) if isinstance(value, list) else str(value)
                print(f"set_tests_properties({name} PROPERTIES {item['name']} {quoted(text)})")
    return 0


sys.exit(main())
