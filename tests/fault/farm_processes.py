"""A server, workers with simulated GPUs and clients as processes, for the tests that disturb them."""
import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

LEASE_SECONDS = 15


def tell_figure(name, value):
    """A line that tests/fault/soak.py reads."""
    print(f"figure: {name} = {value:.10g}", flush=True)


class Farm:
    """The processes, and what the database says of their work. All on this machine's loopback, unless a subclass says otherwise."""

    listen_host = "127.0.0.1"
    server_options = ("--job-threads", "16")

    def __init__(self, binaries, example, worker_count, simulated_seconds):
        self.binaries, self.example = binaries, example
        self.folder = tempfile.mkdtemp(prefix="fusion-faults-")
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data)
        self.log = open(os.path.join(self.folder, "log"), "wb")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.simulated_seconds = simulated_seconds
        self.server = None
        self.workers = {}
        self.lock = threading.Lock()
        self.start_server()
        for number in range(worker_count):
            self.start_worker(f"worker{number}")

    def start_server(self):
        self.server = subprocess.Popen(
            [os.path.join(self.binaries, "fusion-server"), "--listen", f"{self.listen_host}:{self.port}", "--data", self.data,
             *self.server_options], stdout=self.log, stderr=self.log)
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.server.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("the server does not listen")

    def place_of(self, name):
        """What the command of the worker begins with, and the address at which it reaches the server."""
        return [], "127.0.0.1"

    def start_worker(self, name):
        prefix, server = self.place_of(name)
        process = subprocess.Popen(
            [*prefix, os.path.join(self.binaries, "fusion-worker"), "--server", f"{server}:{self.port}", "--name", name,
             "--simulate", "1", "--simulate-seconds", str(self.simulated_seconds)], stdout=self.log, stderr=self.log)
        with self.lock:
            self.workers[name] = process

    def submit(self):
        """The name of a job that the server has acknowledged; a client that finds no server tries again."""
        for _ in range(30):
            done = self.submit_once()
            if done.returncode == 0:
                return json.loads(done.stdout)["job"]
            if "no server answers" not in done.stderr:
                break
            time.sleep(0.3)
        raise RuntimeError(f"submit: {done.returncode}: {done.stderr}")

    def submit_once(self):
        done = subprocess.run(
            [os.path.join(self.binaries, "fusion-client"), "submit", self.example, "--target", "cuda", "--arch", "sm_90",
             "--candidates", "4", "--server", f"127.0.0.1:{self.port}", "--detach", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        return done

    def query(self, sql, *arguments):
        with contextlib.closing(sqlite3.connect(os.path.join(self.data, "fusion.db"), timeout=30)) as database:
            return database.execute(sql, arguments).fetchall()

    def database_mebibytes(self):
        return os.path.getsize(os.path.join(self.data, "fusion.db")) / 2**20

    def state(self, job):
        return self.query("SELECT state FROM jobs WHERE id = ?", job)[0][0]

    def holder(self, job):
        """The worker that times something for the job, the task and its fence; none: nobody does."""
        rows = self.query("SELECT worker, tasks.id, fence FROM tasks JOIN job_tasks ON task = number "
                          "WHERE job = ? AND kind = 'TIME' AND state = 'RUNNING'", job)
        return rows[0] if rows else None

    def wait_for(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        raise RuntimeError(f"{what}: not within {seconds} s")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        """The end of the log where something is wrong, and of all processes."""
        if error is not None:
            self.log.flush()
            with open(os.path.join(self.folder, "log"), errors="replace") as log:
                sys.stderr.write("".join(log.readlines()[-60:]))
        self.close()

    def close(self):
        for process in [self.server, *self.workers.values()]:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def ended(farm, job):
    state = farm.state(job)
    if state in ("FAILED", "CANCELLED"):
        raise RuntimeError(f"{job} is {state}")
    return state == "SUCCEEDED"
