#!/usr/bin/env python3
"""Faults of whole processes: a server, workers with simulated GPUs, clients; workers are killed or stopped, the server is killed.

    tests/fault/processes.py BIN_DIRECTORY EXAMPLE (--kill-workers N | --stop-workers N | --kill-server N | --soak SECONDS)
                             [--workers N] [--parallel N]

Every submission that was acknowledged must end SUCCEEDED. A task that a dead or stopped worker held is done elsewhere, and what
a stopped worker says when it goes on is refused; a server that is killed and started again repeats nothing.
"""
import argparse
import os
import random
import signal
import sys
import threading
import time

from farm_processes import LEASE_SECONDS, Farm, ended, tell_figure

CACHE_MEBIBYTES = 16  # of the connection that writes to the database (kWriterCacheKibibytes in db/store/sqlite_store.cc)


def disturb_workers(farm, times, stop, in_parallel):
    """Each time: a job, the worker that times for it is killed or stopped, the job ends elsewhere. Seconds, one for each."""
    seconds, failures, left, unchanged = [], [], [times], []
    busy = set()

    def once():
        job = farm.submit()
        while True:
            held = farm.holder(job)
            if held is None and ended(farm, job):
                job = farm.submit()  # too quick for us
                continue
            if held is not None:
                with farm.lock:
                    if held[0] not in busy:
                        busy.add(held[0])
                        break
            time.sleep(0.005)
        name, task, fence = held
        process = farm.workers[name]
        process.send_signal(signal.SIGSTOP if stop else signal.SIGKILL)
        begin = time.monotonic()
        farm.wait_for(lambda: ended(farm, job), 90, f"{job}, after {name} went")
        seconds.append(time.monotonic() - begin)
        if stop:
            time.sleep(max(0, LEASE_SECONDS + 3 - (time.monotonic() - begin)))
            before = farm.query("SELECT state, fence, worker, result FROM tasks WHERE id = ?", task)
            process.send_signal(signal.SIGCONT)
            time.sleep(2)
            after = farm.query("SELECT state, fence, worker, result FROM tasks WHERE id = ?", task)
            if before != after:
                raise RuntimeError(f"{task}: {name}, which held it under fence {fence}, changed it after its lease")
            if process.poll() is not None:
                raise RuntimeError(f"{name} did not go on")
            unchanged.append(task)
        else:
            process.wait()
            farm.start_worker(name)
        with farm.lock:
            busy.discard(name)

    def lane():
        while True:
            with farm.lock:
                if left[0] == 0 or failures:
                    return
                left[0] -= 1
            try:
                once()
            except Exception as error:  # told by the main thread
                failures.append(error)

    threads = [threading.Thread(target=lane) for _ in range(min(in_parallel, times))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    seconds.sort()
    p99 = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    print(f"{len(seconds)} workers {'stopped past their lease and continued' if stop else 'killed'}; jobs finished elsewhere: "
          f"median {seconds[len(seconds) // 2]:.1f} s, p99 {p99:.1f} s")
    tell_figure("workers stopped" if stop else "workers killed", len(seconds))
    tell_figure("finished elsewhere, p99 s", p99)
    if stop:
        tell_figure("tasks unchanged when their worker went on", len(unchanged))
    if p99 > 20:
        raise RuntimeError("jobs take longer than 20 s to finish elsewhere")


def kill_server(farm, times, seed):
    """The server dies at moments that nobody chose, and is back at once."""
    choose = random.Random(seed)
    jobs, failures, stop = [], [], threading.Event()

    def submit():
        while not stop.is_set():
            try:
                jobs.append(farm.submit())
            except Exception as error:
                failures.append(error)
                return
            time.sleep(0.05)

    clients = [threading.Thread(target=submit) for _ in range(2)]
    for client in clients:
        client.start()
    for _ in range(times):
        time.sleep(choose.uniform(0.3, 1.5))
        farm.server.kill()
        farm.server.wait()
        farm.start_server()
    stop.set()
    for client in clients:
        client.join()
    if failures:
        raise failures[0]
    for job in jobs:
        farm.wait_for(lambda: ended(farm, job), 120, job)
    tasks, attempts = farm.query("SELECT count(*), sum(attempts) FROM tasks WHERE state = 'DONE'")[0]
    print(f"server killed {times} times; {len(jobs)} submissions acknowledged, all kept; {tasks} tasks done by {attempts} runs")
    tell_figure("server killed", times)
    tell_figure("acknowledged submissions, all kept", len(jobs))
    tell_figure("repeated runs", attempts - tasks)
    if attempts != tasks:
        raise RuntimeError("a task was run again although the server was back within 30 s")
    if farm.query("PRAGMA integrity_check") != [("ok",)]:
        raise RuntimeError("the database is damaged")


def soak(farm, seconds, seed):
    """Jobs all the time, workers that are killed or stopped at random; the server's memory and descriptors stay as they are."""
    choose = random.Random(seed)
    jobs, failures, stop = [], [], threading.Event()

    def submit():
        while not stop.is_set():
            try:
                job = farm.submit()
                jobs.append(job)
                farm.wait_for(lambda: farm.state(job) in ("SUCCEEDED", "FAILED", "CANCELLED"), 180, job)
            except Exception as error:
                failures.append(error)
                return

    def usage():
        status = open(f"/proc/{farm.server.pid}/status").read()
        resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
        return resident / 1024, len(os.listdir(f"/proc/{farm.server.pid}/fd"))

    clients = [threading.Thread(target=submit) for _ in range(3)]
    for client in clients:
        client.start()
    begin = time.monotonic()
    end = begin + seconds
    first, warm_after, samples, faults = None, None, [], 0

    def is_warm():
        """It has threads and caches by now. The largest, of pages of the database, grows with it until it is full."""
        passed = time.monotonic() - begin
        return passed > seconds / 2 or (passed > seconds / 5 and farm.database_mebibytes() > 2 * CACHE_MEBIBYTES)

    while time.monotonic() < end and not failures:
        time.sleep(choose.uniform(2, 6))
        name = choose.choice(sorted(farm.workers))
        process = farm.workers[name]
        if choose.random() < 0.5:
            process.kill()
            process.wait()
            farm.start_worker(name)
        else:
            process.send_signal(signal.SIGSTOP)
            threading.Timer(choose.uniform(1, 25), process.send_signal, [signal.SIGCONT]).start()
        faults += 1
        if first or is_warm():
            samples.append(usage())
            warm_after = warm_after or time.monotonic() - begin
            first = first or samples[0]
    stop.set()
    for client in clients:
        client.join()
    if failures:
        raise failures[0]
    states = {}
    for job in jobs:
        states[farm.state(job)] = states.get(farm.state(job), 0) + 1
    last = samples[-1]
    print(f"{seconds} s, {faults} faults, {len(jobs)} jobs ended: {states}; memory {first[0]:.0f} to {last[0]:.0f} MiB "
          f"(most {max(s[0] for s in samples):.0f}) once warm, after {warm_after:.0f} s; descriptors {first[1]} to {last[1]} "
          f"(most {max(s[1] for s in samples)}); the database has {farm.database_mebibytes():.0f} MiB")
    tell_figure("seconds", seconds)
    tell_figure("random faults", faults)
    tell_figure("jobs", len(jobs))
    tell_figure("jobs that did not end", len(jobs) - sum(states.get(s, 0) for s in ("SUCCEEDED", "FAILED", "CANCELLED")))
    tell_figure("memory grown, percent", 100 * (last[0] / first[0] - 1))
    tell_figure("descriptors grown", last[1] - first[1])
    if last[0] > 1.25 * first[0] + 16 or last[1] > first[1] + 40:
        raise RuntimeError("memory or descriptors grow")
    if states.get("SUCCEEDED", 0) < 0.9 * len(jobs):
        raise RuntimeError("many jobs fail")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries")
    parser.add_argument("example")
    parser.add_argument("--kill-workers", type=int, default=0)
    parser.add_argument("--stop-workers", type=int, default=0)
    parser.add_argument("--kill-server", type=int, default=0)
    parser.add_argument("--soak", type=int, default=0, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--parallel", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        with Farm(arguments.binaries, arguments.example, arguments.workers, 0.2) as farm:
            # The first job builds; the others find everything built.
            first = farm.submit()
            farm.wait_for(lambda: ended(farm, first), 120, "the first job")
            if arguments.kill_workers:
                disturb_workers(farm, arguments.kill_workers, False, arguments.parallel)
            if arguments.stop_workers:
                disturb_workers(farm, arguments.stop_workers, True, arguments.parallel)
            if arguments.kill_server:
                kill_server(farm, arguments.kill_server, arguments.seed)
            if arguments.soak:
                soak(farm, arguments.soak, arguments.seed)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
