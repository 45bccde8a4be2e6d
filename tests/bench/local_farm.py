"""A farm of this machine for measurements and checks: a fusion-server, which takes an address of its own, and its workers."""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def ends_with_us():
    """Of a child: it is terminated when this process ends, however that happens."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class LocalFarm:
    """With `data`, a folder that stays, the server's database is that of the farm before; else the folder goes with close().
    `workers`: the options of each, as ["--target", "cuda"]. `job_threads`: jobs that the server searches and steers at once."""

    def __init__(self, binaries, workers, job_threads, data=None, environment=None):
        self.binaries = binaries
        self.kept = data is not None
        self.folder = os.fspath(data) if data else tempfile.mkdtemp(prefix="fusion-farm-")
        os.makedirs(self.folder, exist_ok=True)
        self.environment = dict(environment or os.environ, FUSION_DATA_DIR=os.path.join(self.folder, "client"))
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.processes = []
        self.address = free_address()
        self.metrics = []
        self.workers = len(workers)
        try:
            self.start("fusion-server", "--listen", self.address, "--data", os.path.join(self.folder, "server"), "--job-threads",
                       str(job_threads))
            self.await_server(30)  # a worker that finds none waits before it tries again
            for number, options in enumerate(workers):
                self.metrics.append(free_address())
                self.start("fusion-worker", "--server", self.address, "--name", f"worker{number}", "--metrics-listen",
                           self.metrics[-1], *options)
        except BaseException:
            self.close()
            raise

    def start(self, program, *options):
        command = [os.path.join(self.binaries, program), *options]
        self.processes.append(subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, env=self.environment,
                                               preexec_fn=ends_with_us))

    def await_server(self, seconds):
        """Until it listens."""
        host, port = self.address.split(":")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            with socket.socket() as client:
                if client.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"the server did not listen within {seconds} s: {self.last_of_log()}")

    def database(self):
        return os.path.join(self.folder, "server", "fusion.db")

    def command(self, *options):
        """Of the client, for this farm."""
        return [os.path.join(self.binaries, "fusion-client"), *options, "--server", self.address]

    def client(self, *options):
        """Exit code, the JSON on stdout (none: not JSON), stderr."""
        done = subprocess.run(self.command(*options, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, env=self.environment)
        try:
            return done.returncode, json.loads(done.stdout), done.stderr
        except json.JSONDecodeError:
            return done.returncode, None, done.stderr

    def check(self):
        """RuntimeError: one of the processes has ended."""
        for process in self.processes:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[0]} ended: {self.last_of_log()}")

    def wait_for_devices(self, seconds):
        """The devices of all workers, when all have called. RuntimeError: they have not, or offer none."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            code, answer, _ = self.client("workers", "list")
            if code == 0 and len(answer["workers"]) == self.workers:
                devices = [device for worker in answer["workers"] for device in worker["devices"]]
                if not devices:
                    raise RuntimeError(f"the workers offer no device: {self.last_of_log()}")
                return devices
            time.sleep(0.2)
        raise RuntimeError(f"{self.workers} workers did not connect within {seconds} s: {self.last_of_log()}")

    def last_of_log(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")[-1000:]

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)
