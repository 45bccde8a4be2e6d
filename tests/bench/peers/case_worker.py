"""Measures cases, one after the other, in a process of its own, for peers_bench.py, which starts another when this one dies.

Reads one request a line on stdin: {"case", "peers", "folder", "reuse"}; writes messages, one JSON a line, on stdout:
{"hello": ...} once, {"at": what begins now} on the way, then {"row": ...}. After {"lost": ...} the process ends: the device
cannot be used by it any more.
"""
import gc
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import time
import traceback

import sequences
import summary


def submit(case, folder, options):
    """Runs fusion-client submit; returns what is kept of its report. options["make"]: arguments of --make, if any.
    RuntimeError: it failed."""
    sequence = sequences.BY_NAME[case.sequence]
    os.makedirs(os.path.join(options["scratch"], case.type), exist_ok=True)
    source = os.path.join(options["scratch"], case.type, case.sequence + ".fuse")
    with open(source, "w", encoding="utf-8") as file:
        file.write(sequences.fuse_text(sequence.fuse(options["examples"]), case.type))
    command = [options["client"], "submit", source, "--target", "cuda", "--output", folder, "--json", "--candidates",
               str(options["candidates"]), "--cache", "cold" if case.large else "warm"]
    for name, value in sequence.size_options(case.side).items():
        command += ["--size", f"{name}={value}"]
    for text in options.get("make", []):
        command += ["--make", text]
    if options["server"]:
        command += ["--server", options["server"]]
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"fusion-client: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    report = json.loads(done.stdout)
    best = report["candidates"][0]
    if best["outcome"] != "OK":
        raise RuntimeError(f"fusion-client: no candidate is OK: {best['outcome']}: {best.get('message', '')[:300]}")
    return {"submit_seconds": time.monotonic() - start, "floor_bytes": report["floor"]["bytes"],
            "candidates": len(report["candidates"]), "fusions": best["fusions"], "kernels": best["kernels"],
            "cold_seconds": best["cold_seconds"], "warm_seconds": best["warm_seconds"], "speedup": best["speedup"],
            "predicted_rank": best["predicted_rank"], "description": best["description"]}


def sample_in_turn(subjects, samples, failed, begins=lambda name: None):
    """Samples of all of {name: Subject}, which take turns. One that raises is left out: failed(name, error)."""
    for number in range(samples + 2):
        for name, subject in list(subjects.items()):
            begins(name)
            try:
                subject.sample()
            except Exception as error:  # of any library
                del subjects[name]
                failed(name, error)
            if number < 2:  # the clocks rise
                subject.samples.clear()


class Worker:
    def __init__(self, options, send):
        import implementations
        import timing
        import torch
        self.torch, self.implementations, self.timing = torch, implementations, timing
        self.options, self.send = options, send

    def hello(self):
        torch = self.torch
        torch.cuda.init()
        properties = torch.cuda.get_device_properties(0)
        versions = {"python": sys.version.split()[0], "torch": torch.__version__, "cuda": torch.version.cuda}
        for name in ("triton", "jax", "jaxlib"):
            try:
                versions[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                pass
        try:
            versions["cublas"] = self.implementations.cublas_version(self.options["cublas_library"])
        except self.implementations.Missing:
            pass
        return {"device": {"name": properties.name, "arch": f"sm_{properties.major}{properties.minor}",
                           "multiprocessors": properties.multi_processor_count, "memory_bytes": properties.total_memory},
                "versions": versions, "copy_bytes_per_second": self.timing.copy_bytes_per_second()}

    def free(self):
        gc.collect()
        self.torch.cuda.empty_cache()

    def usable(self):
        """A fault of a kernel makes every later call fail."""
        try:
            self.torch.cuda.synchronize()
            self.torch.zeros(1, device="cuda").item()
            return True
        except Exception:  # of whatever kind torch makes of it
            return False

    def measure(self, request):
        """The row of a case."""
        case = sequences.Case(**request["case"])
        sequence = sequences.BY_NAME[case.sequence]
        large = case.large
        row = {"sequence": case.sequence, "set": case.set, "type": case.type, "side": case.side,
               "sizes": sequence.size_options(case.side), "floor_bytes": sequence.floor_bytes(case.side, case.type, large),
               "reread": list(sequence.reread) if large else [], "results": {}}
        results = row["results"]
        peers = list(request["peers"])
        self.torch._dynamo.reset()
        self.free()
        if "ours" in peers and not request["reuse"]:
            self.send({"at": "ours"})
            try:
                row["fused"] = submit(case, request["folder"], self.options)
            except RuntimeError as error:
                results["ours"] = {"error": str(error)}
                peers.remove("ours")
        self.send({"at": "data"})
        data = self.implementations.Data(case)
        reference = data.reference()
        timer = self.timing.Timer(large)
        subjects = {}
        for peer in peers:
            self.send({"at": peer})
            subject = self.prepare(peer, case, data, reference, timer, request["folder"], results)
            if subject is not None:
                subjects[peer] = subject
        reference = None
        self.free()

        def failed(peer, error):
            results[peer] = {"error": describe(error)}
            self.lose_if_unusable(peer, results)

        sample_in_turn(subjects, self.options["samples"], failed, lambda peer: self.send({"at": peer}))
        for peer, subject in subjects.items():
            results[peer] |= {"seconds": summary.statistics(subject.samples), "samples": subject.samples}
            subject.release()
        row["results"] = {peer: results[peer] for peer in sequences.PEERS if peer in results}
        return row

    def prepare(self, peer, case, data, reference, timer, folder, results):
        """A verified subject, or None with the reason in results."""
        start = time.monotonic()
        try:
            implementation = self.implementations.make(peer, data, folder, self.options["cublas_library"])
            subject = self.timing.Subject(implementation, timer)
            error = subject.verify(reference, data)
        except self.implementations.Missing as absent:
            results[peer] = {"missing": str(absent)}
            return None
        except Exception as error:  # of any library
            results[peer] = {"error": describe(error)}
            self.lose_if_unusable(peer, results)
            return None
        shown = [value if math.isfinite(value) else None for value in error]  # JSON has no infinity
        results[peer] = {"relative_l2": shown[0], "max_relative_error": shown[1], "captured": subject.captured,
                         "protocol": subject.protocol, "prepare_seconds": time.monotonic() - start}
        if self.timing.within_bounds(error, case.type):
            return subject
        norm, largest = sequences.BOUNDS[case.type]
        results[peer]["wrong"] = (f"relative error {error[0]:.2e} in the 2-norm (bound {norm:.0e}), largest {error[1]:.2e} "
                                  f"(bound {largest:.0e})")
        subject.release()
        return None

    def lose_if_unusable(self, peer, results):
        if not self.usable():
            self.send({"lost": peer, "why": results[peer]["error"]})
            os._exit(3)  # destructors would only fault again


def describe(error):
    return f"{type(error).__name__}: {error}"[:1500]


def main():
    options = json.loads(sys.argv[1])
    # Libraries print; only messages may reach the parent.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(message):
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    worker = Worker(options, send)
    send({"hello": worker.hello()})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            row = worker.measure(request)
        except Exception as error:  # the case has failed, not the run
            traceback.print_exc()
            row = {"error": describe(error)}
            if not worker.usable():
                send({"lost": None, "why": row["error"]})
                os._exit(3)
        send({"row": row})


if __name__ == "__main__":
    main()
