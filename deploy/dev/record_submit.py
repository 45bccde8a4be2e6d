#!/usr/bin/env python3
"""Records a first submission as text: what a terminal of 100 columns shows, with the lines of progress that are written over in their order.

    deploy/dev/record_submit.py --bin build/release/bin > docs/first-submit.txt

The store is empty. Of the lines that are written over, the first and the last of each stage are kept.
"""
import argparse
import fcntl
import os
import pathlib
import pty
import re
import struct
import sys
import tempfile
import termios

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 100


def record(command, environment):
    """The bytes that the command writes to its terminal."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(environment)
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the terminal has ended
            break
        if not piece:
            break
        shown += piece
    os.waitpid(child, 0)
    return shown.decode()


def frames(shown):
    """The lines in their order; of those that are written over, the first and the last of each stage."""
    lines = []
    for part in re.split(r"\r\n|\r\x1b\[K", shown):
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", part).rstrip()
        progress = re.match(r"\[\d+:\d\d\] (\w+)", text)
        stage = progress.group(1) if progress else None
        if stage and len(lines) >= 2 and lines[-1][0] == stage == lines[-2][0]:
            lines[-1] = (stage, text)
        elif text or (lines and lines[-1][0] is None and lines[-1][1]):
            lines.append((stage, text))
    return [text for _, text in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", help="folder of the programs")
    parser.add_argument("arguments", nargs="*", default=["submit", "examples/softmax.fuse", "--target", "host", "--quick"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        program = str(pathlib.Path(options.bin).resolve() / "fusion-client")
        os.chdir(ROOT)
        shown = record([program, *options.arguments], {"FUSION_DATA_DIR": data, "NO_COLOR": "1", "TERM": "xterm"}).replace(data, "~/.local/share/fusion")
    print("$ fusion-client", " ".join(options.arguments))
    print("\n".join(frames(shown)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
