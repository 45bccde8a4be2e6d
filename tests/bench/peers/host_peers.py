#!/usr/bin/env python3
"""Compares exported host code with torch on this machine's processors, for every example that torch_sequences.py has too, at its own sizes, and for
graphs of neural networks.

    tests/bench/peers/host_peers.py --bin build/release/bin --output host-peers.json     # needs python3-torch and g++
    tests/bench/peers/host_peers.py --bin build/release/bin --output host-peers.json --only softmax,swiglu

Each graph is submitted to an empty store; rank 1 is built as its README says and called in turn with torch in eager mode: same data, same number
of threads. torch allocates its results anew; malloc keeps the memory (MALLOC_MMAP_MAX_=0), so that it does not pay for fresh pages. Results are
compared. Every graph goes to --output when it is done: started again, the script goes on behind the last one.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
EXAMPLES = FOLDER.parents[2] / "examples"
sys.path.insert(0, str(FOLDER))
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_TOP_PAD_": str(1 << 28)}
ROUNDS = 21
# Name: text of the graph, function in torch.
NETWORKS = {
    "swiglu": ("size n = 8000000;\nvector[n] a, b, s, y;\ninput a, b;\ns = silu(a);\ny = vmul(s, b);\nreturn y;\n",
               lambda torch, a, b: torch.nn.functional.silu(a) * b),
    "gelu_bias": ("size m = 4093, n = 5001;\nmatrix[m,n] X, S, Y;  vector[n] b;\ninput X, b;\nS = coladd(X, b);\nY = gelu(S);\nreturn Y;\n",
                  lambda torch, X, b: torch.nn.functional.gelu(X + b)),
    "log_softmax": ("size m = 4093, n = 5001;\nmatrix[m,n] X, D, E, Y;  vector[m] largest, total, l;\ninput X;\nlargest = rowmax(X);\n"
                    "D = rowsub(X, largest);\nE = exp(D);\ntotal = rowsum(E);\nl = log(total);\nY = rowsub(D, l);\nreturn Y;\n",
                    lambda torch, X: torch.log_softmax(X, dim=1)),
}


def declared(text):
    """Sizes with their defaults, and the shape of each value: {"A": ["m", "n"], "M": ["elements", 3, 3], "a": []}."""
    text = re.sub(r"//[^\n]*", "", text)
    sizes = {name: int(value) for name, value in re.findall(r"(\w+)\s*=\s*(\d+)", " ".join(re.findall(r"\bsize\b([^;]*);", text)))}
    sizes.setdefault("elements", 31744)
    shapes = {}
    for kind, extents, names in re.findall(r"\b(matrix|vector|scalar|MATRIX\d+x\d+|VECTOR\d+|SCALAR)\b\s*(\[[^\]]*\])?([^;]*);", text):
        small = [int(extent) for extent in re.findall(r"\d+", kind)]
        shape = ["elements", *small] if kind[0].isupper() else re.findall(r"\w+", extents)
        for name in re.findall(r"\w+", names):
            shapes[name] = shape
    return sizes, shapes


def export(arguments, name, source, folder):
    command = [os.path.join(arguments.bin, "fusion-client"), "submit", source, "--target", "host", "--output", f"{folder}/code", "--json", *arguments.submit]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, FUSION_DATA_DIR=f"{folder}/data"), check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: exit code {done.returncode}: {done.stderr.strip()[-800:]}")
    subprocess.run(["g++", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-std=c++17", "-shared", "-fPIC", "fused.cc", "-o",
                    "fused.so"], cwd=f"{folder}/code", check=True)
    return json.loads(done.stdout)


def fused_call(folder, sizes, tensors, scalars):
    """A function without arguments that computes once; `tensors` has inputs and outputs by name."""
    library = ctypes.CDLL(f"{folder}/code/fused.so")
    prototype = re.search(r"int fused_launch\(([^)]*)\)", pathlib.Path(folder, "code", "fused.h").read_text()).group(1)
    sizes_of = [ctypes.c_int64(sizes[name]) for name in re.findall(r"int64_t n_(\w+)", prototype)]
    library.fused_workspace_bytes.restype = ctypes.c_size_t
    workspace_bytes = library.fused_workspace_bytes(*sizes_of)
    workspace = ctypes.create_string_buffer(workspace_bytes + 64)
    values = []
    for parameter in prototype.split(",")[: -2 - len(sizes_of)]:
        name = parameter.split()[-1]
        values.append(ctypes.c_void_p(tensors[name].data_ptr()) if "*" in parameter else ctypes.c_float(scalars[name]))
    values += [*sizes_of, workspace, ctypes.c_size_t(workspace_bytes)]

    def call():
        if (code := library.fused_launch(*values)) != 0:
            raise RuntimeError(f"fused_launch: {code}")

    return call


def compare(arguments, name, threads):
    import torch
    import sequences
    import torch_sequences

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        if name in NETWORKS:
            text, function = NETWORKS[name]
            source = f"{folder}/{name}.fuse"
            pathlib.Path(source).write_text(text)
            scalars, low, high = {}, -1.0, 1.0
            call_torch = lambda inputs: (function(torch, *inputs),)
        else:
            source = str(EXAMPLES / f"{name}.fuse")
            text = pathlib.Path(source).read_text()
            sequence = sequences.BY_NAME[name]
            scalars = dict(sequence.scalars)
            low, high = (0.25, 1.25) if sequence.positive else (-1.0, 1.0)
            call_torch = lambda inputs: torch_sequences.SEQUENCES[name](*inputs, **torch_sequences.keywords(scalars))
        result = export(arguments, name, source, folder)
        sizes, shapes = declared(text)
        names = {kind: re.findall(r"\w+", " ".join(re.findall(rf"\b{kind}\b([^;]*);", re.sub(r"//[^\n]*|=[^,;]*|\bin\s*\([^)]*\)", "", text))))
                 for kind in ("input", "return")}
        empty = lambda value: torch.empty([sizes.get(extent, extent) if isinstance(extent, str) else extent for extent in shapes[value]])
        inputs = {value: empty(value).uniform_(low, high) for value in names["input"] if value not in scalars}
        outputs = {value: empty(value) for value in names["return"]}
        ours = fused_call(folder, sizes, {**inputs, **outputs}, scalars)
        run_torch = lambda: call_torch(list(inputs.values()))
        ours()
        worst = 0.0
        for value, expected in zip(outputs.values(), run_torch()):
            scale = max(expected.double().abs().mean().item(), 1e-30)
            worst = max(worst, ((value.double() - expected.double()).abs().max().item()) / scale)
        samples = {"ours": [], "torch": []}
        for _ in range(ROUNDS):
            for who, call in (("ours", ours), ("torch", run_torch)):
                start = time.perf_counter()
                call()
                samples[who].append(time.perf_counter() - start)
        ratio = statistics.median(t / o for o, t in zip(samples["ours"], samples["torch"]))
        return {"ours": statistics.median(samples["ours"]), "torch": statistics.median(samples["torch"]), "ratio": ratio, "difference": worst,
                "seconds": result["seconds"], "fusions": result["candidates"][0]["fusions"], "torch_version": torch.__version__, "threads": threads}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin", help="folder of the programs")
    parser.add_argument("--output", required=True, help="JSON file of what is done")
    parser.add_argument("--only", help="comma separated names")
    parser.add_argument("--submit", action="append", default=[], help="a further option of submit, as --submit=--quick; may be repeated")
    arguments = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in MALLOC.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], dict(os.environ, **MALLOC))
    import sequences  # noqa: E402
    names = [*NETWORKS, *sorted(path.stem for path in EXAMPLES.glob("*.fuse") if path.stem in sequences.BY_NAME)]
    output = pathlib.Path(arguments.output)
    done = json.loads(output.read_text()) if output.exists() else {}
    for name in names:
        if arguments.only and name not in arguments.only.split(","):
            continue
        if name not in done:
            done[name] = compare(arguments, name, len(os.sched_getaffinity(0)))
            output.write_text(json.dumps(done, indent=1) + "\n")
        one = done[name]
        print(f"{name:22s} {one['ours'] * 1e3:9.3f} ms, torch {one['torch'] * 1e3:9.3f} ms: {one['ratio']:6.2f} times as fast, difference {one['difference']:.1e}",
              flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
