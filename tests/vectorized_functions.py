#!/usr/bin/env python3
"""Checks that the host's compiler computes every function of entries on many entries at once: in a loop as exported code has it, with the options
that its README gives, and identical functions kept apart.

    tests/vectorized_functions.py LIBRARY_DIRECTORY [--compiler g++]
"""
import argparse
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

ARCH = ["-march=x86-64-v3"] if platform.machine() == "x86_64" else []
OPTIONS = "-O3 -fno-math-errno -fno-trapping-math -std=c++17 -fno-ipa-icf -fopt-info-vec-optimized".split()
CALL_THE_C_LIBRARY = {"sin_map", "cos_map", "pow_map"}
# Operands that are one number for all entries.
SCALARS = {"axpy_map": {"a"}, "axpby_map": {"a", "b"}}


def functions(library):
    """Yields the routine's text, its name and operands, where all of these are entries."""
    for path in sorted(library.glob("functions/*/*/routines.h")):
        text = path.read_text()
        for name, operands in re.findall(r"FUSION_FN T (\w+_map)\(([^)]*)\)", text):
            if name not in CALL_THE_C_LIBRARY and all(re.fullmatch(r"\s*T \w+", operand) for operand in operands.split(",")):
                yield text, name, [operand.split()[-1] for operand in operands.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--compiler", default="g++")
    arguments = parser.parse_args()
    lines, texts, wanted = ['#include "fusion_device.h"'], set(), {}
    for text, name, operands in functions(arguments.library):
        if text not in texts:
            texts.add(text)
            lines += text.splitlines()
        scalars = SCALARS.get(name, set())
        for kind in ("float", "double"):
            parameters = "".join(f", {kind} s_{o}" if o in scalars else f", const {kind}* FUSION_RESTRICT g_{o}" for o in operands)
            values = ", ".join(f"s_{o}" if o in scalars else f"r_{o}[v]" for o in operands)
            lines += [f'extern "C" void {name}_{kind}(fu_index n{parameters}, {kind}* FUSION_RESTRICT g_result) {{', "#pragma GCC ivdep"]
            lines.append("for (int i = 0; i < (int)n; ++i) {")
            wanted[len(lines)] = f"{name} of {kind}"
            lines += [f"{kind} r_{o}[1]; r_{o}[0] = g_{o}[i];" for o in operands if o not in scalars]
            lines += [f"{kind} r_result[1];", "FUSION_UNROLL", "for (int v = 0; v < 1; ++v) {", f"r_result[v] = {name}<{kind}>({values});", "}",
                      "g_result[i] = r_result[0];", "}"]
            lines.append("}")
    if len(wanted) < 60:
        sys.exit(f"{len(wanted)} functions are too few to be all")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "functions.cc")
        source.write_text("\n".join(lines) + "\n")
        done = subprocess.run([arguments.compiler, *ARCH, *OPTIONS, "-I", str(arguments.library / "device"), "-c", str(source), "-o", f"{folder}/functions.o"],
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    vectorized = {int(line) for line in re.findall(r"functions\.cc:(\d+):\d+: optimized: loop vectorized", done.stderr)}
    missed = [name for line, name in wanted.items() if line not in vectorized]
    if missed:
        sys.exit("one entry at a time: " + ", ".join(missed))
    print(f"{len(wanted)} functions on many entries at once")


if __name__ == "__main__":
    main()
