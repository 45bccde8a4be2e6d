#!/usr/bin/env python3
"""Finds comments that are fragments: a comment is a sentence with a subject and a verb, and it names the noun that it speaks of.

  tests/check_comments.py [ROOT]       prints each fragment as file:line: text; exits 1 if there is any
  tests/check_comments.py --self-test  checks that openings of each kind are found, and that sentences pass

A comment that opens with a genitive ("Of this round."), a clause without a main verb ("Whether it is known.", "What a row takes.") or a
reference to what stands elsewhere ("As above.", "The same in f64.") makes the reader guess its noun. The check goes by the first words of a
comment that stands on lines of its own, in all headers, and in the sources of everything but tests.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

OPENINGS = re.compile(r"(Of|Whether|What|That|Those|Who|Whose|Which|How|As|By|Likewise|The same)\b")


def fragments_of(text):
    """(line number, first line) of each comment that opens as a fragment does."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        comment = stripped.startswith("//")
        if comment and not inside and OPENINGS.match(stripped.lstrip("/ ")):
            yield number, stripped
        inside = comment


def is_checked(path):
    # Their text is part of generated kernels and exported folders, which stay as they are, byte for byte.
    if path.startswith(("library/device/", "library/functions/")) or path in (
            "library/verification/entry_operations.h", "library/verification/exported_checks.h"):
        return False
    return path.endswith(".h") or (path.endswith(".cc") and not path.startswith("tests/"))


def files_of(root):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cc"], cwd=root, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [path for path in listed.stdout.split() if (root / path).exists()]
    return [str(path.relative_to(root)) for suffix in ("h", "cc") for path in root.rglob("*." + suffix)]


def check(root):
    files = sorted(path for path in files_of(root) if is_checked(path))
    found = 0
    for path in files:
        for number, line in fragments_of((root / path).read_text(encoding="utf-8")):
            print(f"{path}:{number}: {line}")
            found += 1
    if found:
        print(f"check_comments.py: {found} comments are fragments: name what they speak of, and say it with a verb")
        return 1
    print(f"check_comments.py: {len(files)} files have comments that open as sentences do")
    return 0


def self_test():
    opening = ["Of this round.", "Whether it is known.", "What a row takes.", "That of the job.", "Those that failed.", "Who waits.",
               "Whose turn it is.", "Which of them serves.", "How often it ran.", "As above.", "By job.", "Likewise.", "The same in f64."]
    for text in opening:
        assert list(fragments_of(f"int x;\n// {text}\nint y;\n")) == [(2, f"// {text}")], text
    for text in ["Returns whether it is known.", "Offsets are counted from 0.", "These fields are reset in each round.", "In a trial nothing is stored."]:
        assert not list(fragments_of(f"// {text}\n")), text
    assert not list(fragments_of("// A sentence that goes on\n// whether it fits\n// Of a line or not.\n")), "only the first line opens"
    assert not list(fragments_of("int x;  // Of the round\n")), "a comment beside code"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "tests").mkdir()
        (root / "a.h").write_text("// Of a.\n")
        (root / "tests" / "b.cc").write_text("// Of b.\n")
        assert check(root) == 1
        (root / "a.h").write_text("// This is a.\n")
        assert check(root) == 0
    print("check_comments.py: self-test passed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        sys.exit(check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
