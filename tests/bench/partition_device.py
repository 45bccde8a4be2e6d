#!/usr/bin/env python3
"""Measures sequential programs that fusion-cc partitions, beside clang and beside OpenMP's offloading by hand, on a machine with a GPU.

  tests/bench/partition_device.py build --output FOLDER [--cc build/release/bin/fusion-cc] [--openmp LLVM [--openmp-lib LIBRARIES] [--cuda-path CUDA]]
  tests/bench/partition_device.py measure FOLDER --output RESULTS.json [--only seed|polybench|small]... [--seconds LIMIT] [--quick]

`build` makes FOLDER of all programs and libraries, which can be packed and unpacked on the other machine: nothing but python3 and the
GPU's driver is needed there. LLVM is where the packages clang-tools-19 and libomp-19-dev are unpacked (usr/lib/llvm-19), CUDA one that
clang-19 knows (11.8), LIBRARIES a folder of what those programs load at run time. Without --openmp these programs are left out.

`measure` goes on where an earlier call with the same output ended, and starts nothing that would end after LIMIT seconds.

  seed       the six shapes of Baier 2016, seconds of the kernel, transfers included: sequential; ours as written (off), on one thread, on
             all threads (host), by itself (auto), on the GPU alone (device); OpenMP's offloading. auto, host, device and OpenMP call the
             kernel again and again on the same data, and each call's time is kept.
  polybench  30 kernels at EXTRALARGE: sequential, ours by itself in its first run and, at the end, in the next one (learned), OpenMP's
             offloading; seconds of the kernel's one call and of the whole process. Sequential programs that take seconds run four side by
             side, each on a core of its own, and so do both programs of a kernel without a partitioned loop.
  small      MINI to LARGE, whole processes: sequential and ours in turn; the long ones of LARGE as above.

Results have to have the bits of the sequential program; durbin by OpenMP, which adds up in another order, has to be close.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import queue
import re
import shutil
import subprocess
import sys
import threading
import time

SIDES = {"sequential": "sequential", "openmp": "openmp"}  # the folder of a side; all others are programs of ours
ONE_THREAD = {"FUSION_PARTITION": "host", "FUSION_PARTITION_THREADS": "1"}
MODES = {"sequential": {}, "off": {"FUSION_PARTITION": "off"}, "one thread": ONE_THREAD, "host": {"FUSION_PARTITION": "host"}, "auto": {}, "learned": {},
         "device": {"FUSION_PARTITION": "device", "FUSION_PARTITION_SPLIT": "1"}, "openmp": {"OMP_TARGET_OFFLOAD": "MANDATORY"}}

# The shapes of Baier 2016, in the order of the kernels' parameters: ni nj nk, n, m n.
SHAPES = [("gemm", (2000, 2300, 2600)), ("gemm", (1000000, 100, 100)), ("gesummv", (2000,)), ("gesummv", (10000,)), ("syrk", (2000, 2600)),
          ("syrk", (100, 10000))]
QUICK_SHAPES = [("gemm", (200, 230, 260)), ("gemm", (10000, 20, 20)), ("gesummv", (500,)), ("gesummv", (1000,)), ("syrk", (100, 130)), ("syrk", (10, 1000))]

# The order of the table, what the loops gain most from first, and about how long the sequential program takes at LARGE and EXTRALARGE
# on one core: these decide what runs side by side and what still fits into the time.
SECONDS = {
    "gemm": (.4, 4), "2mm": (2.8, 25), "3mm": (4.3, 40), "syrk": (1.9, 12), "syr2k": (4, 35), "covariance": (5, 60), "correlation": (5, 60),
    "symm": (3.7, 35), "trmm": (3, 35), "doitgen": (.55, 4.5), "gramschmidt": (6, 80), "lu": (5.5, 60), "ludcmp": (4.6, 60), "jacobi-2d": (1.1, 11),
    "heat-3d": (1.3, 13), "fdtd-2d": (1.2, 12), "adi": (9.3, 80), "deriche": (.35, 1.4), "gemver": (.03, .12), "mvt": (.035, .15),
    "gesummv": (.01, .03), "atax": (.01, .02), "bicg": (.01, .02), "jacobi-1d": (.001, .005), "durbin": (.01, .03), "cholesky": (1.8, 15),
    "trisolv": (.01, .03), "floyd-warshall": (10, 85), "nussinov": (4.4, 60), "seidel-2d": (19, 155)}
LONG = 1.5  # programs that take about this many seconds run once, and sequential ones side by side
AT_MOST_BESIDE = 4


class Programs:
    """The folder of programs: runs one of them. What ours learns in a run is kept in a folder of `learned`, or forgotten."""

    def __init__(self, folder, gpu, learned):
        self.folder = pathlib.Path(folder).resolve()
        self.learned = pathlib.Path(learned).resolve()
        self.listed = json.loads((self.folder / "programs.json").read_text())
        self.kernels = self.listed["kernels"]
        self.gpu = gpu

    def environment(self, mode):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("FUSION_", "OMP_", "LIBOMPTARGET"))}
        library = str(self.folder / ("lib-openmp" if mode == "openmp" else "lib"))
        clean["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [library, clean.get("LD_LIBRARY_PATH")]))
        chosen = dict(MODES[mode])
        if mode == "openmp" and not self.gpu:
            chosen["OMP_TARGET_OFFLOAD"] = "DISABLED"
        return {**clean, **chosen}

    def folder_of(self, mode, name):
        """Where a program of ours keeps what it learns: `learned` goes on from what the last run of `auto` left, all others begin with nothing."""
        folder = self.learned / (name if mode in ("auto", "learned") else f"{name} {mode}")
        if mode != "learned":
            shutil.rmtree(folder, ignore_errors=True)
        return folder

    def run(self, mode, name, sizes, limit, calls=None, report=False):
        """What a program printed, with the seconds of its process; or {"error"}. `calls` is how often and for how many seconds."""
        command = [str(self.folder / SIDES.get(mode, "ours") / name), *map(str, sizes), *map(str, calls or ())]
        environment = self.environment(mode)
        if mode not in SIDES:
            environment["FUSION_DATA_DIR"] = str(self.folder_of(mode, name))
        if report:
            environment["FUSION_PARTITION_REPORT"] = "1"
        start = time.monotonic()
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=max(1, limit), check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"no end after {limit:.0f} s", "late": True}
        whole = time.monotonic() - start
        called = re.findall(r"^call (\S+) (\S+)$", done.stdout, re.M)
        if done.returncode or not called:
            return {"error": f"status {done.returncode}: {done.stderr.strip()[-300:]}"}
        result = {"whole": round(whole, 6), "calls": [round(float(seconds), 8) for seconds, _ in called], "hashes": sorted({bits for _, bits in called}),
                  "sample": float(re.search(r"^sample (\S+)$", done.stdout, re.M)[1])}
        started = re.search(r"^start (\S+)$", done.stdout, re.M)
        if started:
            result["start"] = float(started[1])
        if report and done.stderr.strip():
            result["report"] = [re.sub(r"\S*/(?=\S+\.c:)", "", line) for line in done.stderr.strip().splitlines()[:8]]
        return result


class Results:
    """The file of results. One lock guards the document."""

    def __init__(self, path, head, retry):
        self.path = pathlib.Path(path)
        self.lock = threading.Lock()
        self.written = 0
        self.document = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.document.update(head)
        for part in ("seed", "polybench", "small"):
            self.document.setdefault(part, {})
        for _, entry in self.all_entries() if retry else ():
            entry["runs"] = {mode: [run for run in runs if "error" not in run and run.get("bits") != "wrong"] for mode, runs in entry["runs"].items()}

    def all_entries(self):
        return [(f"{part} {key}", entry) for part in ("seed", "polybench", "small") for key, entry in self.document[part].items()]

    def entry(self, part, key, name, sizes):
        return self.document[part].setdefault(key, {"kernel": name, "sizes": list(sizes), "runs": {}})

    def add(self, entry, mode, result, beside=0):
        """Keeps a run, and whether its bits are those of the sequential program; the file is written once a second."""
        with self.lock:
            if beside:
                result["side_by_side"] = beside
            entry["runs"].setdefault(mode, []).append(result)
            judge(entry)
            if time.monotonic() - self.written > 1:
                self.write()

    def write(self):
        """Writes the file, a line for each entry."""
        parts = []
        for key, value in self.document.items():
            text = json.dumps(value)
            if isinstance(value, dict):
                text = "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items()) + "\n }"
            parts.append(f" {json.dumps(key)}: {text}")
        temporary = self.path.with_suffix(".part")
        temporary.write_text("{\n" + ",\n".join(parts) + "\n}\n")
        temporary.replace(self.path)
        self.written = time.monotonic()

    def has(self, entry, mode, count=1):
        """Whether a mode has so many runs; one that failed is not tried again."""
        runs = entry["runs"].get(mode, [])
        return len(runs) >= count or any("error" in run for run in runs)


def judge(entry):
    """Marks each run of an entry: "same", "close" or "wrong" beside the first sequential one, which alone keeps its bits where all are the same."""
    sequential = [run for run in entry["runs"].get("sequential", []) if "error" not in run]
    if not sequential:
        return
    expected = sequential[0]
    for mode, runs in entry["runs"].items():
        for run in runs:
            if "error" in run or run.get("bits") == "same":
                continue
            near = abs(run["sample"] - expected["sample"]) <= 1e-6 * abs(expected["sample"])
            run["bits"] = "same" if run["hashes"] == expected["hashes"] else "close" if mode == "openmp" and near else "wrong"
            if run["bits"] == "same" and run is not expected:
                del run["hashes"], run["sample"]


class Measurement:
    """One call of `measure`: what runs, and until when."""

    def __init__(self, programs, results, options):
        self.programs, self.results, self.quick = programs, results, options.quick
        self.end = time.monotonic() + options.seconds
        self.left_out = []
        self.taught = set()  # kernels whose last program of `auto` at EXTRALARGE ran in this call

    def rest(self):
        return self.end - time.monotonic()

    def say(self, text):
        print(f"[{self.rest():4.0f} s left] {text}", flush=True)

    def once(self, entry, mode, expected, calls=None, report=False, beside=0):
        """Runs a program unless the time does not suffice. Returns its result or None."""
        if expected > self.rest():
            self.left_out.append(f"{entry['kernel']} {' '.join(map(str, entry['sizes']))} {mode}")
            return None
        wanted, rest = max(20, 4 * expected), self.rest()
        result = self.programs.run(mode, entry["kernel"], entry["sizes"], min(wanted, rest), calls, report)
        if result.get("late") and rest < wanted:
            self.left_out.append(f"{entry['kernel']} {mode}, which the end of the time stopped")
            return None
        self.results.add(entry, mode, result, beside)
        return result

    def said(self, entry, modes):
        """One line of an entry: the least seconds of its modes."""
        words = []
        for mode in modes:
            runs = entry["runs"].get(mode, [])
            good = [run for run in runs if "error" not in run]
            if good:
                best = min(min(run["calls"]) for run in good)
                wrong = "" if all(run.get("bits") != "wrong" for run in good) else " WRONG"
                words.append(f"{mode} {best:.4g} (first {good[0]['calls'][0]:.4g}, whole {min(run['whole'] for run in good):.4g}){wrong}")
            elif runs:
                words.append(f"{mode} ERROR {' '.join(runs[-1]['error'].split())[:120]}")
        self.say(f"{entry['kernel']} {' '.join(map(str, entry['sizes']))}: " + ", ".join(words))

    def seed(self):
        """The six shapes."""
        for name, sizes in QUICK_SHAPES if self.quick else SHAPES:
            if name not in self.programs.kernels:
                continue
            entry = self.results.entry("seed", f"{name} {' '.join(map(str, sizes))}", name, sizes)
            # They are compared with each other, so they run in turn: long ones once, short ones up to fifteen times.
            seconds, spent = 20, time.monotonic()
            for turn in range(15):
                if time.monotonic() - spent > (1 if self.quick else 6 if turn < 2 else 3):
                    break
                for mode in ("sequential", "off", "one thread"):
                    if not self.results.has(entry, mode, turn + 1):
                        self.once(entry, mode, seconds)
            repeats = (8, 1) if self.quick else (40, 12)
            for mode, calls in (("auto", repeats), ("device", (12, 5)), ("host", (8, 4)), ("openmp", (12, 5))):
                if (mode != "openmp" or self.programs.kernels[name]["openmp"]) and not self.results.has(entry, mode):
                    self.once(entry, mode, 25, calls, report=mode != "openmp")
            self.said(entry, list(MODES))

    def side_by_side(self, jobs):
        """Runs (entry, mode, about how many seconds), longest first, each on a core of its own. Cores stand two apart: neighbours may be
        one core's two threads."""
        jobs = [job for job in jobs if not self.results.has(job[0], job[1])]
        cores = sorted(os.sched_getaffinity(0))
        cores = cores[::2][:AT_MOST_BESIDE] if len(cores) >= 2 * AT_MOST_BESIDE else cores[:max(1, len(cores) // 2)]
        free = queue.Queue()
        for core in cores:
            free.put(core)

        def work(job):
            entry, mode, seconds = job
            core = free.get()
            os.sched_setaffinity(0, {core})  # of this thread, and so of the process that it makes
            try:
                if self.once(entry, mode, seconds, report=mode == "auto", beside=len(cores)):
                    self.said(entry, [mode])
            finally:
                free.put(core)

        with concurrent.futures.ThreadPoolExecutor(len(cores)) as pool:
            list(pool.map(work, sorted(jobs, key=lambda job: -job[2])))

    def entries(self, part, data_set):
        """{kernel: entry} of a data set, in the order of SECONDS."""
        found = {}
        for name in SECONDS:
            if name in self.programs.kernels:
                found[name] = self.results.entry(part, f"{name} {data_set}", name, self.programs.kernels[name]["sizes"][data_set])
                found[name]["set"] = data_set
        return found

    def long_ones(self, entries, place, with_loops):
        """Runs the long programs side by side: sequential ones of kernels with a partitioned loop, or both of the kernels without any."""
        modes = ["sequential"] if with_loops else ["sequential", "auto"]
        self.side_by_side([(entry, mode, SECONDS[name][place]) for name, entry in entries.items() for mode in modes
                           if SECONDS[name][place] >= LONG and bool(self.programs.kernels[name]["partitioned"]) == with_loops])

    def polybench(self):
        """EXTRALARGE. The kernels without a partitioned loop come last: they take long, and have the same code twice."""
        entries = self.entries("polybench", "MEDIUM" if self.quick else "EXTRALARGE")
        if not self.quick:
            self.long_ones(entries, 1, True)
        for name, entry in entries.items():
            about = .1 if self.quick else SECONDS[name][1]
            kernel = self.programs.kernels[name]
            modes = (["sequential", "auto"] if about < LONG else ["auto"] if kernel["partitioned"] else []) + (["openmp"] if kernel["openmp"] else [])
            # As many runs as take some seconds, and at least one of each, in turn.
            spent = time.monotonic()
            for turn in range(5):
                for mode in modes:
                    if (turn == 0 or time.monotonic() - spent < 4) and not self.results.has(entry, mode, turn + 1):
                        self.once(entry, mode, min(about, 15), report=mode == "auto")
                        if mode == "auto":
                            self.taught.add(name)
            if modes:
                self.said(entry, ["sequential", "auto", "openmp"])
        if not self.quick:
            self.long_ones(entries, 1, False)
        for name, entry in entries.items():
            if self.programs.kernels[name]["partitioned"] and self.results.has(entry, "auto") and not self.results.has(entry, "learned"):
                self.again(entry)

    def again(self, entry):
        """Runs of a program that has learned from one run; that is made here where an earlier call of the measurement made it."""
        expected = min(run.get("whole", 60) for run in entry["runs"]["auto"])
        for attempt in range(3):
            if 2 * expected > self.rest() or attempt and expected > 2:
                break
            if entry["kernel"] not in self.taught:
                self.taught.add(entry["kernel"])
                self.programs.run("auto", entry["kernel"], entry["sizes"], self.rest())
            self.once(entry, "learned", expected, report=True)
        self.said(entry, ["sequential", "auto", "learned"])

    def small(self):
        """MINI to LARGE: pairs in turn, the other first in each second pair."""
        for data_set in ("MINI", "SMALL") if self.quick else ("MINI", "SMALL", "MEDIUM", "LARGE"):
            entries, large = self.entries("small", data_set), data_set == "LARGE"
            if large:
                self.long_ones(entries, 0, True)
                self.long_ones(entries, 0, False)
            for name, entry in entries.items():
                about = SECONDS[name][0] if large else .1
                long = about >= LONG
                modes = ["sequential", "auto"] if not long else ["auto"] if self.programs.kernels[name]["partitioned"] else []
                spent = time.monotonic()
                for turn in range(3 if self.quick else 7 if large else 21):
                    if turn >= (1 if long else 3) and time.monotonic() - spent > (1.5 if large else .4):
                        break
                    for mode in modes if turn % 2 == 0 else reversed(modes):
                        if not self.results.has(entry, mode, turn + 1):
                            self.once(entry, mode, about)
            self.say(f"small {data_set} done")


def graphics():
    """(name, driver) of the GPU, or None."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True, timeout=60,
                              check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.splitlines()[0].split(", ") if done.returncode == 0 and done.stdout.strip() else None


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    found = re.search(r"model name\s*: (.*)", text)
    return found[1].strip() if found else platform.machine()


def touch_memory(gigabytes):
    """A virtual machine may get its memory as it is used first, which is slow: done here, not in the first program."""
    child = "import sys; n = int(sys.argv[1]) << 30; m = bytearray(n); m[::4096] = b'x' * (n // 4096)"
    subprocess.run([sys.executable, "-c", child, str(gigabytes)], check=False)


def measure(options):
    gpu = graphics()
    if not gpu and not options.quick:
        sys.exit("partition_device.py: nvidia-smi finds no GPU here; --quick runs small sizes without one")
    programs = Programs(options.folder, gpu, f"{options.output}.learned")
    head = {"schema": "fusion.partition_device/1", "date": datetime.date.today().isoformat(), "device": gpu[0] if gpu else "none",
            "driver": gpu[1] if gpu else "none", "processor": processor(), "processors": len(os.sched_getaffinity(0)), "flags": programs.listed["flags"],
            "compiler": programs.listed["compiler"], "quick": options.quick, "at_most_side_by_side": AT_MOST_BESIDE}
    measurement = Measurement(programs, Results(options.output, head, options.retry), options)
    if not options.quick and options.only != ["small"]:
        touch_memory(6)
        measurement.say("memory is there")
    for part in options.only or ["seed", "polybench", "small"]:
        start = time.monotonic()
        getattr(measurement, part)()
        measurement.results.write()
        measurement.say(f"{part}: {time.monotonic() - start:.0f} s")
    shutil.rmtree(programs.learned, ignore_errors=True)
    wrong = [f"{key}, {mode}: {run.get('error', 'other bits')}" for key, entry in measurement.results.all_entries()
             for mode, runs in entry["runs"].items() for run in runs if "error" in run or run.get("bits") == "wrong"]
    for line in wrong:
        print("ERROR " + line.replace("\n", "; "))
    if measurement.left_out:
        left_out = list(dict.fromkeys(measurement.left_out))
        print(f"{len(left_out)} left out for want of time, the same command goes on: {'; '.join(left_out[:20])}{' ...' * (len(left_out) > 20)}")
    return 1 if wrong else 0


def build(options):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "partitioned"))
    import programs  # what it needs of the repository is not there on the other machine
    try:
        return programs.build(options)
    except RuntimeError as error:
        sys.exit(str(error))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("build")
    one.add_argument("--cc", default="build/release/bin/fusion-cc", help="the compiler that partitions")
    one.add_argument("--plain", default="clang-19")
    one.add_argument("--output", required=True, help="the folder of all programs")
    one.add_argument("--openmp", help="clang-tools-19 and libomp-19-dev, unpacked: the folder usr/lib/llvm-19")
    one.add_argument("--openmp-lib", help="the libraries that go along, instead of libomp and libomptarget of that folder")
    one.add_argument("--cuda-path", help="a CUDA that clang-19 knows")
    one.add_argument("--kernels", help="names, with commas")
    two = verbs.add_parser("measure")
    two.add_argument("folder")
    two.add_argument("--output", required=True, help="the file of results; what it has is kept")
    two.add_argument("--only", action="append", choices=["seed", "polybench", "small"])
    two.add_argument("--seconds", type=float, default=580)
    two.add_argument("--retry", action="store_true", help="run again what failed, instead of keeping that it did")
    two.add_argument("--quick", action="store_true", help="small sizes, also without a GPU, to see that all works")
    options = parser.parse_args()
    return {"build": build, "measure": measure}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
