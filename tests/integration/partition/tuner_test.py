#!/usr/bin/env python3
"""The online tuner of partitioned loops: its library is loaded, and a loop of simulated times converges.

  tuner_test.py --driver build/release/tests/partition_tuner_driver --lib build/release/lib --bin build/release/bin [--cc build/release/bin/fusion-cc]

With --cc a program of plain loops tunes itself, too.
What the tuner found is printed by fusion-client tune list and show. A program without a server, beside another one, after one that was
killed and that ends at any moment says nothing of the tuner, and ends well.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT = 120  # seconds that a program may take
SECTION = "partition_tuner_driver/partition/prog.c:gemm:12:3"

# The tuner begins when a thirtieth of what loops have taken is a tenth of a second, at the latest.
STEPS = """#include <stdlib.h>
#include <time.h>
int main(void) {
  const int n = 2000000;
  double *a = calloc(n, sizeof(double)), *b = calloc(n, sizeof(double));
  if (a == NULL || b == NULL) return 1;
  for (const time_t start = time(NULL); time(NULL) < start + 7;) {
    for (int i = 0; i < n; i++) a[i] = .5 * a[i] + b[i];
  }
  return a[7] != 0;
}
"""


class Programs:
    """A folder with the driver beside the libraries, and one for data."""

    def __init__(self, arguments, folder):
        self.bin = pathlib.Path(arguments.bin).resolve()
        self.driver = folder / "partition_tuner_driver"
        self.driver.symlink_to(pathlib.Path(arguments.driver).resolve())
        for name in ["libfusion_partition_tuner.so", "libfusion_tuner.so"]:
            (folder / name).symlink_to(pathlib.Path(arguments.lib).resolve() / name)
        self.environment = dict(os.environ, FUSION_DATA_DIR=str(folder / "data"), XDG_CONFIG_HOME=str(folder))
        self.environment.pop("FUSION_SERVER", None)

    def start(self, *command, **environment):
        return subprocess.Popen([str(word) for word in command], env=dict(self.environment, **environment), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, *command, status=0, **environment):
        """Returns what a program printed; it has to end with the status and to say nothing else."""
        with self.start(*command, **environment) as process:
            output, errors = process.communicate(timeout=LIMIT)
        if process.returncode != status or errors:
            sys.exit(f"{command} {environment}: status {process.returncode}\n{output}{errors}")
        return output

    def drive(self, *words, **others):
        return self.run(self.driver, *words, **others)


def expect(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"{pattern} is not in:\n{text}")
    return found


def converges(programs):
    share = float(expect(r"^share (0\.\d+) runs \d+$", programs.drive("converge", ".7")).group(1))
    if abs(share - .7) > .05:
        sys.exit(f"the share is {share}")
    listed = programs.run(programs.bin / "fusion-client", "tune", "list")
    expect(re.escape(SECTION) + r" +steps=1000,work=\d+ .*device_steps=\d+", listed)
    shown = programs.run(programs.bin / "fusion-client", "tune", "show", SECTION)
    for parameter in [r"device_steps +0 to 1000", r"host_threads +1, 2 .*device_steps < steps", r"chunks +powers of two, 1 to 16 .*device_steps > 0",
                      r"block_x +powers of two, 32 to 1024", r"block_y +powers of two, 1 to 32"]:
        expect(parameter, shown)
    best = int(expect(r"best: device_steps=(\d+)", shown).group(1))
    if abs(best - 700) > 100:
        sys.exit(f"the best is {best}")


def is_silent(programs):
    if programs.drive("once", ".7", FUSION_SERVER="127.0.0.1:1"):
        sys.exit("a program says something without its server")
    with programs.start(programs.driver, "hold", ".7") as holder:
        holder.stdout.readline()  # it has the tuner
        if programs.drive("once", ".7", status=1):
            sys.exit("a second program says something")
        expect(r"is in use by process \d+", programs.drive("reason", ".7"))
        holder.kill()
        holder.communicate(timeout=LIMIT)
    if programs.drive("once", ".7"):
        sys.exit("a program after one that was killed says something")


def tunes_plain_loops(programs, compiler, folder):
    """A sequential program has a section for its loop, and a file of what it learned, when it has run some seconds."""
    source, program = folder / "steps.c", folder / "steps"
    source.write_text(STEPS, encoding="utf-8")
    subprocess.run([compiler, "-O2", "-g", source, "-o", program], check=True)
    programs.run(program, FUSION_PARTITION_THREADS="2")
    listed = programs.run(programs.bin / "fusion-client", "tune", "list")
    section = expect(r"steps/partition/steps\.c:main:\d+:\d+:host", listed).group(0)
    shown = programs.run(programs.bin / "fusion-client", "tune", "show", section)
    expect(r"host_threads +1, 2 ", shown)
    expect(r"best: host_threads=[12]", shown)
    learned = next((folder / "data/partition").iterdir()).read_text(encoding="utf-8")
    expect(r"^fusion-partition 1\n", learned)
    expect(r"(?m)^\S*steps\.c:\d+:\d+ main ", learned)


def ends_at_any_moment(programs):
    for milliseconds in range(0, 60, 2):
        for mode in ["end", "fork"]:
            if programs.drive(mode, milliseconds):
                sys.exit(f"a program says something that ends after {milliseconds} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ["--driver", "--lib", "--bin"]:
        parser.add_argument(option, required=True)
    parser.add_argument("--cc")
    arguments = parser.parse_args()
    for test in [converges, is_silent, ends_at_any_moment]:
        with tempfile.TemporaryDirectory() as folder:
            test(Programs(arguments, pathlib.Path(folder)))
    if arguments.cc:
        with tempfile.TemporaryDirectory() as folder:
            tunes_plain_loops(Programs(arguments, pathlib.Path(folder)), arguments.cc, pathlib.Path(folder))
    print("the tuner of partitioned loops: converges, is silent, ends at any moment")


if __name__ == "__main__":
    main()
