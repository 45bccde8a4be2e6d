#!/usr/bin/env python3
"""A server that is killed at every commit of a job's life, right before it and right after it, and is started again each time.

    tests/fault/commit_kills.py BIN_DIRECTORY EXAMPLE LIBRARY [--kills N] [--self-test]

LIBRARY is kill_at_commit.cc, built: it ends the server's process at the Nth commit after its start; nothing in the server knows of it.
Each N is taken once before and once after the commit, while workers with simulated GPUs work and clients submit. Then: every submission
that was acknowledged is there and has SUCCEEDED, so has every job that was not; every task was claimed once, and begun once by all workers
together; no event of a job is missing; the database is sound. A job that goes on plans with what was learned meanwhile: timings that it had
asked for before and does not want any more are cancelled with its end. These are few, and begun once at most. FUSION_LONG_TESTS=1: 300
kills, unless --kills says otherwise.

--self-test: commits are lost that were acknowledged, as by a disk that lies; that must be found.
"""
import argparse
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import farm_processes

# What a client says whose server has gone.
NO_CONNECTION = re.compile("no server answers|[Ff]ailed to connect|[Ss]ocket closed|Connection (reset|refused)|Broken pipe")


UNFINISHED = "SELECT count(*) FROM jobs WHERE state IN ('QUEUED', 'RUNNING')"
MOST_UNFINISHED = 6
MOST_DROPPED = 0.05  # of all tasks


class Farm(farm_processes.Farm):
    """Workers that say what they begin, and a server that can be told when to die."""

    def __init__(self, binaries, example, library):
        self.library, self.kill, self.killed = library, None, []
        super().__init__(binaries, example, 4, 0.05)

    def start_server(self):
        environment = dict(os.environ)
        if self.kill:
            when, commit = self.kill
            environment.update(LD_PRELOAD=self.library, FUSION_KILL_WHEN=when, FUSION_KILL_AT_COMMIT=str(commit),
                               ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))
        self.server = subprocess.Popen(
            [os.path.join(self.binaries, "fusion-server"), "--listen", f"127.0.0.1:{self.port}", "--data", self.data,
             "--job-threads", "16"], stdout=self.log, stderr=self.log, env=environment)

    def start_worker(self, name):
        with open(os.path.join(self.folder, f"{name}.log"), "ab") as log:
            self.workers[name] = subprocess.Popen(
                [os.path.join(self.binaries, "fusion-worker"), "--server", f"127.0.0.1:{self.port}", "--name", name, "--simulate", "1",
                 "--simulate-seconds", str(self.simulated_seconds), "--log-format", "json", "--log-level", "debug"],
                stdout=log, stderr=log)

    def begun(self):
        """How often each task was begun, by all workers together."""
        begun = collections.Counter()
        for name in self.workers:
            with open(os.path.join(self.folder, f"{name}.log")) as log:
                for line in log:
                    match = re.match(r"(?:build|time) (tasks/\w+)$", json.loads(line)["message"])
                    if match:
                        begun[match[1]] += 1
        return begun


def lives(farm, kills, acknowledged, failures):
    """The server is killed so often, each time one commit later; how often it died where it should, by kind."""
    died, seconds = collections.Counter(), []
    for number in range(kills):
        when, commit = ("before", "after")[number % 2], 1 + number // 2
        farm.kill = (when, commit)
        begin = time.monotonic()
        farm.start_server()
        try:
            code = farm.server.wait(timeout=120)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"nothing is committed any more: {commit} commits did not come within 120 s")
        if code != -signal.SIGKILL:
            raise RuntimeError(f"the server ended with {code} instead of being killed {when} commit {commit}")
        if failures:
            raise failures[0]
        died[when] += 1
        farm.killed.append(time.time())
        seconds.append(time.monotonic() - begin)
    print(f"the server lived {sorted(seconds)[len(seconds) // 2]:.1f} s (median), {max(seconds):.1f} s at most, "
          f"{len(acknowledged)} submissions acknowledged meanwhile", flush=True)
    return died


def dropped_timings(farm):
    """{task: how often it was claimed} of cancelled timings whose job went on after they were queued, and had its end without them."""
    dropped = {}
    for task, claimed, created, cancelled, succeeded, ended in farm.query(
            "SELECT tasks.id, tasks.attempts, tasks.created_micros, tasks.updated_micros, min(jobs.state = 'SUCCEEDED'), "
            "max(jobs.updated_micros) FROM tasks JOIN job_tasks ON job_tasks.task = tasks.number JOIN jobs ON jobs.id = job_tasks.job "
            "WHERE tasks.state = 'CANCELLED' AND tasks.kind = 'TIME' GROUP BY tasks.number"):
        if succeeded and cancelled >= ended and any(created < killed * 1e6 < ended for killed in farm.killed):
            dropped[task] = claimed
    return dropped


def findings(farm, acknowledged):
    """What is wrong at the end, one line for each."""
    wrong = []
    states = dict(farm.query("SELECT id, state FROM jobs"))
    for job in acknowledged:
        if states.get(job) != "SUCCEEDED":
            wrong.append(f"{job} was acknowledged and is {states.get(job, 'not there')}")
    wrong += [f"{job} is {state}" for job, state in states.items() if state != "SUCCEEDED" and job not in acknowledged]
    tasks = dict(farm.query("SELECT id, attempts FROM tasks WHERE state = 'DONE'"))
    wrong += [f"{task} was claimed {attempts} times" for task, attempts in tasks.items() if attempts != 1]
    dropped = dropped_timings(farm)
    wrong += [f"{task} is {state}" for task, state in farm.query("SELECT id, state FROM tasks WHERE state <> 'DONE'") if task not in dropped]
    begun = farm.begun()
    wrong += [f"{task} was begun {begun[task]} times" for task in tasks if begun[task] != 1]
    wrong += [f"{task} was begun and is not among those that are done" for task in begun if task not in tasks and task not in dropped]
    wrong += [f"{task} was dropped, begun {begun[task]} and claimed {claimed} times" for task, claimed in dropped.items()
              if claimed > 1 or begun[task] > claimed]
    if len(dropped) > MOST_DROPPED * (len(tasks) + len(dropped)):
        wrong.append(f"{len(dropped)} timings were dropped, and {len(tasks)} tasks done")
    attempts = dict(farm.query("SELECT ended_how, count(*) FROM task_attempts GROUP BY ended_how"))
    if attempts.pop("CANCELLED", 0) != sum(dropped.values()) or attempts != {"DONE": len(tasks)}:
        wrong.append(f"attempts ended as {attempts}, and there are {len(tasks)} tasks, and {sum(dropped.values())} begun and dropped")
    for job, count, last in farm.query("SELECT job, count(*), max(sequence) FROM job_events GROUP BY job"):
        if count != last:
            wrong.append(f"{job} has {count} events up to number {last}")
    wrong += [row[0] for row in farm.query("PRAGMA integrity_check") if row[0] != "ok"]
    wrong += [f"a row of {row[0]} refers to nothing" for row in farm.query("PRAGMA foreign_key_check")]
    return wrong


def submit_all_the_time(farm, most, acknowledged, failures, stop):
    """So that there are always some jobs, `most` unfinished ones, which are all brought to their end (none: without asking)."""
    def submit():
        while not stop.is_set():
            try:
                if most is not None and farm.query(UNFINISHED)[0][0] >= most:
                    time.sleep(0.1)
                    continue
                done = farm.submit_once()
                if done.returncode == 0:
                    acknowledged.append(json.loads(done.stdout)["job"])
                elif not NO_CONNECTION.search(done.stderr):
                    raise RuntimeError(f"submit: {done.returncode}: {done.stderr}")
            except Exception as error:  # told by the main thread
                failures.append(error)
                return
            time.sleep(0.2)

    clients = [threading.Thread(target=submit) for _ in range(2)]
    for client in clients:
        client.start()
    return clients


def run(farm, kills, self_test):
    acknowledged, failures, stop = [], [], threading.Event()
    # The first job builds; the others find most of it built.
    farm.wait_for(lambda: farm.submit_once().returncode == 0, 60, "the first submission")
    farm.wait_for(lambda: farm.query("SELECT count(*) FROM jobs WHERE state = 'SUCCEEDED'")[0][0] > 0, 60, "the first job")
    farm.server.kill()
    farm.server.wait()
    # A database that loses commits is not asked.
    clients = submit_all_the_time(farm, None if self_test else MOST_UNFINISHED, acknowledged, failures, stop)
    died = {}
    try:
        if self_test:
            farm.kill = ("lose", 60)
            farm.start_server()
            with contextlib.suppress(subprocess.TimeoutExpired):
                farm.server.wait(timeout=20)
            farm.server.kill()
            farm.server.wait()
        else:
            died = lives(farm, kills, acknowledged, failures)
    finally:
        stop.set()
        farm.kill = None
        farm.start_server()
        for client in clients:
            client.join()
    if failures:
        raise failures[0]
    farm.wait_for(lambda: farm.query(UNFINISHED)[0][0] == 0, 300, "the end of all jobs")
    wrong = findings(farm, set(acknowledged))
    if self_test:
        if not any("was acknowledged" in line for line in wrong):
            raise RuntimeError(f"a commit that was lost was not found: {wrong}")
        print(f"lost commits were found: {len(wrong)} findings, such as: {wrong[0]}")
        return
    for line in wrong[:20]:
        print(line)
    tasks = farm.query("SELECT count(*) FROM tasks WHERE state = 'DONE'")[0][0]
    jobs = farm.query("SELECT count(*) FROM jobs")[0][0]
    print(f"server killed {sum(died.values())} times at a commit, {died['before']} right before and {died['after']} right after one: "
          f"{len(acknowledged)} submissions acknowledged, {jobs} jobs, all succeeded; {tasks} tasks, each begun once; "
          f"{len(dropped_timings(farm))} timings dropped by jobs that planned anew")
    farm_processes.tell_figure("server killed at a commit", sum(died.values()))
    farm_processes.tell_figure("acknowledged submissions", len(acknowledged))
    farm_processes.tell_figure("lost, repeated or unsound", len(wrong))
    if wrong:
        raise RuntimeError(f"{len(wrong)} findings")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries")
    parser.add_argument("example")
    parser.add_argument("library")
    parser.add_argument("--kills", type=int, default=300 if os.environ.get("FUSION_LONG_TESTS") == "1" else 24)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    try:
        with Farm(arguments.binaries, arguments.example, os.path.abspath(arguments.library)) as farm:
            run(farm, arguments.kills, arguments.self_test)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
