#!/usr/bin/env python3
"""Compares our fused kernels with cuBLAS, torch eager, torch.compile and JAX, all on the same data in the same run, each
verified against f64. One command; a peer that is not there is reported as missing, a case that fails is a row with its
error.

    tests/bench/peers/peers_bench.py --client bin/fusion-client --output peers.json --plot peers.svg
    tests/bench/peers/peers_bench.py --sets small --types f32 --only atax,bicgk --peers ours,cublas,compile --output small.json

Needs Python with torch, an NVIDIA driver, and NVRTC for fusion-client (torch brings one); runs from the relocatable package
(deploy/package.sh). tests/bench/README.md says how times are taken; tests/bench/write_benchmarks.py writes BENCHMARKS.md.
"""
import argparse
import datetime
import glob
import json
import os
import pathlib
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import plot
import report
import sequences

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CANDIDATES = 30  # that a submission times
START_SECONDS = 240  # for importing torch and JAX and measuring the copy rate


class WorkerLost(Exception):
    """The worker died or hung; `at`: what it was doing."""

    def __init__(self, at, why):
        super().__init__(why)
        self.at = at


class WorkerProcess:
    """A case_worker.py and what it said of itself."""

    def __init__(self, options, environment):
        self._process = subprocess.Popen([sys.executable, str(HERE / "case_worker.py"), json.dumps(options)],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._at = "start"
        self._read = b""
        self.hello = self._wait("hello", START_SECONDS)

    def measure(self, request, seconds):
        self._at = "data"
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._wait("row", seconds)

    def _wait(self, key, seconds):
        deadline = time.monotonic() + seconds
        while True:
            line = self._line(deadline)
            if line is None:
                self.stop()
                raise WorkerLost(self._at, f"no answer within {seconds:.0f} s")
            if not line:
                self.stop()
                raise WorkerLost(self._at, f"the process ended with code {self._process.returncode}")
            message = json.loads(line)
            self._at = message.get("at", self._at)
            if "lost" in message:
                self.stop()
                raise WorkerLost(message["lost"], message["why"])
            if key in message:
                return message[key]

    def _line(self, deadline):
        """The next message; None when the time is over, b"" at the end."""
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._read:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            data = os.read(pipe, 1 << 16)
            if not data:
                return b""
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line

    def ended(self):
        return self._process.poll() is not None

    def stop(self):
        """Ends it, if it has not ended by itself; a process that is about to gets a moment, for its exit code."""
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:  # a request that it never read
                pass


class Bench:
    """The run: cases, workers and the document."""

    def __init__(self, arguments, scratch):
        self._arguments = arguments
        self._scratch = scratch
        self._worker = None
        self.hello = None
        self._environment = dict(os.environ)
        for name, value in {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
                            "TRITON_CACHE_DIR": f"{scratch}/triton", "FUSION_DATA_DIR": f"{scratch}/fusion",
                            "FUSION_NVRTC_PATH": nvrtc_path(), "TF_CPP_MIN_LOG_LEVEL": "2"}.items():
            self._environment.setdefault(name, value)
        self._options = {"client": arguments.client, "server": arguments.server, "candidates": arguments.candidates,
                         "examples": arguments.examples, "scratch": scratch, "samples": arguments.samples,
                         "cublas_library": arguments.cublas_library}

    def worker(self):
        if self._worker is None or self._worker.ended():
            self._worker = WorkerProcess(self._options, self._environment)
            self.hello = self.hello or self._worker.hello
        return self._worker

    def stop(self):
        if self._worker is not None:
            self._worker.stop()

    def run(self, case):
        """The row of a case. A peer that brings the process down is left out in another try."""
        folder = os.path.join(self._arguments.folders or self._scratch, case.key)
        reuse = self._arguments.reuse and os.path.exists(os.path.join(folder, "binary", "program.json"))
        lost = {}
        for _ in sequences.PEERS:
            request = {"case": vars(case), "peers": [p for p in self._arguments.peers if p not in lost], "folder": folder,
                       "reuse": reuse}
            try:
                row = self.worker().measure(request, self._arguments.case_limit)
            except (WorkerLost, BrokenPipeError) as error:
                self._worker = None
                at = getattr(error, "at", None)
                if at not in request["peers"]:
                    return self.failed(case, f"{at or 'the process'}: {error}")
                lost[at] = str(error)
                reuse = os.path.exists(os.path.join(folder, "binary", "program.json"))
                continue
            if "results" not in row:
                return self.failed(case, row["error"])
            row["results"] |= {peer: {"error": text} for peer, text in lost.items()}
            return self.complete(row)
        return self.failed(case, "every peer brought the process down")

    def failed(self, case, error):
        sequence = sequences.BY_NAME[case.sequence]
        row = {"sequence": case.sequence, "set": case.set, "type": case.type, "side": case.side, "results": {},
               "error": error, "floor_bytes": sequence.floor_bytes(case.side, case.type, case.large)}
        return self.complete(row) if self.hello else row

    def complete(self, row):
        row["copy_bytes_per_second"] = self.hello["copy_bytes_per_second"]
        row["floor_seconds"] = row["floor_bytes"] / row["copy_bytes_per_second"]
        row["date"] = datetime.datetime.now().isoformat(timespec="seconds")
        return row


def nvrtc_path():
    """Folders of the NVRTC that this Python's packages brought: fusion-client looks there besides the system's."""
    folders = [folder for folder in sys.path if folder.endswith("-packages")]
    return ":".join(os.path.dirname(found) for folder in folders
                    for found in sorted(glob.glob(f"{folder}/nvidia/*/lib/libnvrtc.so.*")))


def conditions():
    """Driver, clocks and temperature by nvidia-smi, as it names them; {} where it is not."""
    device = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]  # as nvidia-smi takes it: a number or a UUID
    fields = ["driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "temperature.gpu", "power.draw"]
    for more in (["clocks_event_reasons.active"], ["clocks_throttle_reasons.active"], []):  # by the age of the driver
        command = ["nvidia-smi", f"--query-gpu={','.join(fields + more)}", "--format=csv,noheader"]
        command += ["-i", device] if device else []
        try:
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return {}
        if done.returncode == 0 and done.stdout.strip():
            values = done.stdout.splitlines()[0].split(",")
            return {name: value.strip() for name, value in zip(fields + more, values)}
    return {}


def names(known):
    """An argument type: names with commas between, all of `known`."""
    def parse(text):
        found = [name for name in text.split(",") if name]
        unknown = [name for name in found if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return found
    return parse


def first_existing(*paths):
    return next((str(path) for path in paths if path.exists()), str(paths[0]))


def add_machine_options(parser):
    """Where things are on this machine; defaults for the package and for the tree."""
    parser.add_argument("--client", default=first_existing(ROOT / "bin/fusion-client",
                                                           ROOT / "build/release/bin/fusion-client"))
    parser.add_argument("--server", default="", help="address of a server, instead of one in the client's process")
    parser.add_argument("--examples", default=str(ROOT / "examples"))
    parser.add_argument("--cublas-library", default=first_existing(
        HERE / "libfusion_cublas_sequences.so", ROOT / "build/release/tests/bench/peers/libfusion_cublas_sequences.so"))


def parse_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_machine_options(parser)
    parser.add_argument("--sizes", "--sets", dest="sets", type=names((*sequences.SETS, "shapes")), default=list(sequences.SETS))
    parser.add_argument("--types", type=names(sequences.TYPES), default=list(sequences.TYPES))
    parser.add_argument("--only", type=names(sequences.BY_NAME), help="sequences")
    parser.add_argument("--peers", type=names(sequences.PEERS), default=list(sequences.PEERS))
    parser.add_argument("--candidates", type=int, default=CANDIDATES, help="for fusion-client submit")
    parser.add_argument("--samples", type=int, default=31, help="of each implementation (default 31)")
    parser.add_argument("--time-limit", type=float, default=float("inf"), metavar="S", help="start no case after S seconds")
    parser.add_argument("--case-limit", type=float, default=300, metavar="S", help="a case that takes longer is ended")
    parser.add_argument("--folders", help="keep our exported folders here (default: a temporary folder)")
    parser.add_argument("--reuse", action="store_true", help="take our code from --folders where an earlier run left it")
    parser.add_argument("--merge", action="store_true", help="keep the rows of other cases that are in --output")
    parser.add_argument("--output", required=True, metavar="JSON")
    parser.add_argument("--plot", metavar="SVG")
    arguments = parser.parse_args(words)
    if arguments.samples < 1:
        parser.error("--samples: at least 1")
    if arguments.reuse and not arguments.folders:
        parser.error("--reuse needs --folders")
    if "ours" in arguments.peers and not shutil.which(arguments.client):
        parser.error(f"--client: {arguments.client} is no program")
    return arguments


def row_key(row):
    return (row["sequence"], row["set"], row["type"], row["side"])


def write(arguments, document):
    """The document as it is now, in one step."""
    temporary = arguments.output + ".new"
    pathlib.Path(temporary).write_text(json.dumps(document, indent=1) + "\n")
    os.replace(temporary, arguments.output)


def line(row):
    """One line of progress."""
    texts = [f"{peer} {report.seconds(row, peer) * 1e6:.1f}" for peer in sequences.PEERS if report.seconds(row, peer)]
    texts += [f"{peer} {'WRONG' if 'wrong' in result else 'FAILED'}" for peer, result in row["results"].items()
              if "wrong" in result or "error" in result]
    factor = report.ratio(row)
    return (f"{row['set']:5s} {row['type']} {report.title(row):34s} " + (row.get("error") or "us: " + ", ".join(texts))
            + (f"  ({factor:.2f}x the best peer)" if factor else ""))


def main():
    arguments = parse_arguments(sys.argv[1:])
    start = time.monotonic()
    kept = []
    if arguments.merge and os.path.exists(arguments.output):
        kept = json.loads(pathlib.Path(arguments.output).read_text())["rows"]
    document = {"schema": report.SCHEMA, "date": datetime.date.today().isoformat(),
                "command": shlex.join(["tests/bench/peers/peers_bench.py", *sys.argv[1:]]), "device": {}, "versions": {},
                "rows": kept, "not_run": []}
    pathlib.Path(arguments.output).resolve().parent.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="fusion-peers-")
    bench = Bench(arguments, scratch)
    try:
        hello = bench.worker().hello
        document |= hello
        document["conditions_before"] = conditions()
        print(f"{hello['device']['name']}: copy {hello['copy_bytes_per_second'] / 1e12:.3f} TB/s; {hello['versions']}",
              flush=True)
        for case in sequences.cases(arguments.sets, arguments.types, arguments.only):
            if time.monotonic() - start > arguments.time_limit:
                document["not_run"].append(case.key)
                continue
            row = bench.run(case)
            document["rows"] = [other for other in document["rows"] if row_key(other) != row_key(row)] + [row]
            print(line(row), flush=True)
            write(arguments, document)
    except WorkerLost as error:
        print(f"peers_bench.py: the measuring process did not start: {error}", file=sys.stderr)
        return 1
    finally:
        bench.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    document["conditions_after"] = conditions()
    document["seconds"] = time.monotonic() - start
    write(arguments, document)
    print("\n" + report.markdown(document["rows"]))
    if arguments.plot:
        pathlib.Path(arguments.plot).write_text(plot.draw(document["rows"], document["device"]["name"]))
    if document["not_run"]:
        print(f"The time limit of {arguments.time_limit:.0f} s left out: {', '.join(document['not_run'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
