#!/usr/bin/env python3
"""How much a farm of one machine gets done: a server, workers and jobs in parallel, with an empty build cache and again with a full one.

    tests/bench/farm_bench.py --bin build/release/bin --target host --output farm.json
    tests/bench/farm_bench.py --target cuda --output farm.json            # in the package of deploy/package.sh, on a GPU machine
    tests/bench/farm_bench.py --bin build/release/bin --simulate 4 --output farm.json   # the farm alone: no candidate is run

Every job is `fusion-client submit --detach --json`, whose time is told, and `fusion-client jobs watch --json` to its end. Jobs are
the examples in turn, each with names of its own, so that no two share a kernel; both passes have the same. In the second most
kernels are known, not all: what jobs taught of predictions changes which candidates are tried (builds_reused). On GPUs, nvidia-smi says
how busy they are meanwhile; where there is none, the JSON says so. Where the time of timings goes, workers' metrics say
(fusion_worker_timing_seconds_total): lane_seconds of a pass, by part, over all devices.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import local_farm

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Vectors and matrices, so that no tables of routine times are measured before the first job of a GPU.
EXAMPLES = "vadd,axpydot,waxpby,sscal,bicgk,atax,gesummv,sgemv"
SAMPLE_MILLISECONDS = 200


def start_farm(arguments):
    kind = ["--simulate", str(arguments.simulate)] if arguments.simulate else ["--target", arguments.target]
    slots = ["--build-slots", str(arguments.build_slots)] if arguments.build_slots else []
    return local_farm.LocalFarm(arguments.bin, [kind + slots] * arguments.workers, arguments.parallel)


def lane_seconds_of(farm):
    """Where the time of timings has gone since the workers started, by part."""
    seconds = {}
    for address in farm.metrics:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
            for line in page.read().decode().splitlines():
                found = re.fullmatch(r'fusion_worker_timing_seconds_total\{.*part="(\w+)"\} (\S+)', line)
                if found:
                    seconds[found[1]] = seconds.get(found[1], 0.0) + float(found[2])
    return seconds


class GpuSampler:
    """Utilisation of all GPUs while it runs, by nvidia-smi."""

    def __init__(self):
        self.samples = []  # (monotonic time, percent), of each GPU
        self.process = None
        if shutil.which("nvidia-smi"):
            self.process = subprocess.Popen(
                ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"--loop-ms={SAMPLE_MILLISECONDS}"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.samples.append((time.monotonic(), int(line)))

    def busy_percent(self, begin, end):
        """Mean over the GPUs and the time; none: nothing was sampled."""
        values = [percent for when, percent in self.samples if begin <= when <= end]
        return statistics.mean(values) if values else None

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def write_graphs(folder, examples, count):
    """`count` files, the examples in turn. Names of values carry the number, so that no two share the code of a kernel."""
    paths = []
    for number in range(count):
        example = examples[number % len(examples)]
        text = (ROOT / "examples" / f"{example}.fuse").read_text()
        body = re.sub(r"//[^\n]*", "", text)
        names = set()
        for declaration in re.findall(r"^\s*(?:vector|matrix|scalar)\b(?:\[[^\]]*\])?\s*([^;]+);", body, re.M):
            names |= {name.strip() for name in declaration.split(",")}
        for name in names:
            body = re.sub(rf"\b{re.escape(name)}\b(?!\s*\()", f"{name}_{number}", body)
        path = os.path.join(folder, f"{example}_{number}.fuse")
        pathlib.Path(path).write_text(body)
        paths.append(path)
    return paths


def run_job(farm, path, arguments):
    """One job to its end, as a dictionary."""
    target = "cuda" if arguments.simulate else arguments.target
    command = ["submit", path, "--target", target, "--candidates", str(arguments.candidates), "--measure-all", "--detach"]
    for size in arguments.size:
        command += ["--size", size]
    start = time.monotonic()
    code, answer, errors = farm.client(*command)
    acknowledged = time.monotonic()
    if code != 0:
        return {"file": os.path.basename(path), "error": errors.strip()[-500:]}
    code, result, errors = farm.client("jobs", "watch", answer["job"], "--output", path + ".code", "--force")
    job = {"file": os.path.basename(path), "submit_seconds": acknowledged - start, "job_seconds": time.monotonic() - start}
    if code != 0:
        return {**job, "error": errors.strip()[-500:]}
    outcomes = {}
    for candidate in result["candidates"]:
        outcomes[candidate["outcome"]] = outcomes.get(candidate["outcome"], 0) + 1
    return {**job, "outcomes": outcomes, "builds": result.get("builds"), "builds_reused": result.get("builds_reused")}


def run_pass(farm, paths, arguments, gpus):
    """All jobs, `parallel` at a time."""
    left, jobs, lock = list(reversed(paths)), [], threading.Lock()

    def work():
        while True:
            with lock:
                if not left:
                    return
                path = left.pop()
            job = run_job(farm, path, arguments)
            with lock:
                jobs.append(job)

    parts_before = lane_seconds_of(farm)
    begin = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(arguments.parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end = time.monotonic()
    lane_seconds = {part: seconds - parts_before.get(part, 0.0) for part, seconds in lane_seconds_of(farm).items()}
    candidates = sum(job.get("outcomes", {}).get("OK", 0) for job in jobs)
    submits = [job["submit_seconds"] for job in jobs if "submit_seconds" in job]
    ended = [job["job_seconds"] for job in jobs if "outcomes" in job]
    return {
        "seconds": end - begin,
        "candidates": candidates,
        "candidates_per_second": candidates / (end - begin),
        "builds": sum(job.get("builds") or 0 for job in jobs),
        "builds_reused": sum(job.get("builds_reused") or 0 for job in jobs),
        "lane_seconds": lane_seconds,
        "gpu_busy_percent": gpus.busy_percent(begin, end),
        "submit_seconds": {"p50": percentile(submits, 0.5), "p99": percentile(submits, 0.99)},
        "job_seconds": {"p50": percentile(ended, 0.5), "p99": percentile(ended, 0.99)},
        "failed_jobs": [job for job in jobs if "error" in job],
        "jobs": sorted(jobs, key=lambda job: job["file"]),
    }


def figures_of(passes):
    """What people look at, as tests/bench/write_benchmarks.py takes it."""
    figures = []
    for name, words in (("cold", "with an empty build cache"), ("cached", "from the build cache")):
        result = passes[name]
        figures.append({"what": f"candidates measured, {words}", "value": f"{result['candidates_per_second']:.1f} /s",
                        "target": "20 /s"})
        figures.append({"what": f"builds that were known, {words}", "value": f"{result['builds_reused']} of {result['builds']}",
                        "target": ""})
        busy = result["gpu_busy_percent"]
        figures.append({"what": f"GPUs busy, {words}", "value": "not sampled" if busy is None else f"{busy:.0f} %", "target": "70 %"})
        parts = sorted(((seconds, part) for part, seconds in result["lane_seconds"].items()), reverse=True)
        if parts and result["candidates"]:
            text = ", ".join(f"{part} {1e3 * seconds / result['candidates']:.1f}" for seconds, part in parts
                             if seconds * 1e3 >= 0.05 * result["candidates"])
            figures.append({"what": f"where the time of the device's lane goes, {words}", "value": f"ms a candidate: {text}", "target": ""})
        submit = result["submit_seconds"]
        if submit["p50"] is not None:
            figures.append({"what": f"`submit --detach`, whole process, {words}",
                            "value": f"p50 {1e3 * submit['p50']:.0f} ms, p99 {1e3 * submit['p99']:.0f} ms", "target": ""})
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "bin"), help="folder of the programs (default: that of the package)")
    parser.add_argument("--target", default="cuda", choices=["cuda", "host"])
    parser.add_argument("--simulate", type=int, default=0, help="so many simulated GPUs for each worker, instead of --target")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=48, help="few are over before a farm has begun to work evenly")
    parser.add_argument("--parallel", type=int, default=8, help="jobs at a time")
    parser.add_argument("--build-slots", type=int, default=0, help="builds at a time of each worker; 0: as many as it thinks best")
    parser.add_argument("--candidates", type=int, default=16, help="of each job")
    parser.add_argument("--examples", default=EXAMPLES)
    parser.add_argument("--size", action="append", default=[], help="NAME=VALUE, for all examples, which must have it")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    if arguments.jobs < 1 or arguments.parallel < 1 or arguments.workers < 1:
        parser.error("--jobs, --parallel and --workers are 1 or more")

    farm, gpus = start_farm(arguments), GpuSampler()
    try:
        devices = farm.wait_for_devices(180)
        paths = write_graphs(farm.folder, arguments.examples.split(","), arguments.jobs)
        passes = {"cold": run_pass(farm, paths, arguments, gpus), "cached": run_pass(farm, paths, arguments, gpus)}
    except RuntimeError as error:
        print(f"farm_bench.py: {error}", file=sys.stderr)
        return 1
    finally:
        farm.close()
        gpus.close()
    notes = []
    if arguments.simulate:
        notes.append("devices are simulated: no candidate was run; the figures are of the farm alone")
    elif arguments.target == "host":
        notes.append("without a GPU: candidates ran on the host's processor")
    if not gpus.samples:
        notes.append("nvidia-smi is not here or said nothing: GPUs were not sampled")
    document = {
        "title": "A farm of one machine",
        "date": datetime.date.today().isoformat(),
        "command": "tests/bench/farm_bench.py " + " ".join(sys.argv[1:]),
        "figures": figures_of(passes),
        "notes": notes,
        "cores": len(os.sched_getaffinity(0)),
        "devices": devices,
        "simulated": bool(arguments.simulate),
        **passes,
    }
    pathlib.Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
    for note in notes:
        print(f"note: {note}")
    for figure in document["figures"]:
        print(f"{figure['what']}: {figure['value']}")
    # As tests/fault/soak.py reads them.
    print(f"figure: cores = {document['cores']}")
    for name, result in passes.items():
        print(f"figure: candidates a second, {name} = {result['candidates_per_second']:.10g}")
        if result["gpu_busy_percent"] is not None:
            print(f"figure: GPU busy, {name}, percent = {result['gpu_busy_percent']:.10g}")
    failed = passes["cold"]["failed_jobs"] + passes["cached"]["failed_jobs"]
    for job in failed:
        print(f"failed: {job['file']}: {job['error']}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
