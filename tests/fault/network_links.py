#!/usr/bin/env python3
"""Faults of links: workers in network namespaces of their own, whose links to the server are cut, cut one way, lossy or slow.

    tests/fault/network_links.py BIN_DIRECTORY EXAMPLE [--each N] [--together N] [--outage SECONDS] [--only KIND]...

Links are pairs of devices of the kernel (veth) that are taken down or drop packets, all or some; slow ones are pairs of TUN devices with a
relay between them, as many kernels have no netem. Each fault falls on a worker while it times something for a job. The job ends SUCCEEDED
all the same, if the worker was cut off within 20 s (p99; jobs that got a second disturbed worker are told apart, and must end, too). What the
worker says afterwards of tasks that others have by then changes nothing; it comes back by itself and works again. No task has two results.
Exit code 77: this machine cannot make such faults, or not all kinds; what it can make was tested.
"""
import argparse
import collections
import concurrent.futures
import datetime
import itertools
import json
import os
import subprocess
import sys
import time

import network_namespaces
from farm_processes import Farm, tell_figure
from network_namespaces import Link, RelayedLink

LOSS, DELAY_SECONDS = 0.3, 5
FINISHED_ELSEWHERE_SECONDS = 20
# An attempt to connect that nobody answers lasts 20 s, in which the kernel asks ever more rarely.
RECONNECTED_SECONDS = 20
PATIENCE_SECONDS = 180

# By kind: the ways to do it, which take turns.
KINDS = {
    "cut": [("here", Link.cut_here), ("there", Link.cut_there)],
    "one way": [("to the server", Link.drop_what_comes), ("to the worker", Link.drop_what_goes)],
    "lossy": [(f"{LOSS:.0%} each way", lambda link: link.lose(LOSS))],
    "slow": [
        (f"{DELAY_SECONDS} s to the server", lambda link: link.delay_what_comes(DELAY_SECONDS)),
        (f"{DELAY_SECONDS} s to the worker", lambda link: link.delay_what_goes(DELAY_SECONDS)),
        (f"{DELAY_SECONDS} s each way",
         lambda link: (link.delay_what_comes(DELAY_SECONDS), link.delay_what_goes(DELAY_SECONDS))),
    ],
}
CUT_OFF = ("cut", "one way")
# Between faults: a job whose worker is lost begins anew, and so many at one moment would wait for each other.
PAUSE_SECONDS = 0.3


class LinkedFarm(Farm):
    """A farm whose workers are in namespaces of their own."""

    listen_host = "0.0.0.0"
    numbers = itertools.count()  # of links, of all farms

    def __init__(self, binaries, example, workers, make_link):
        self.make_link, self.links = make_link, {}
        self.server_options = ("--insecure-any-address", "--job-threads", str(workers))
        super().__init__(binaries, example, workers, 0.2)

    def place_of(self, name):
        link = self.links[name] = self.make_link(next(self.numbers))
        return link.prefix, link.here

    def last_contacts(self):
        """By worker, by the clock of this machine."""
        listed = subprocess.run(
            [os.path.join(self.binaries, "fusion-client"), "workers", "list", "--server", f"127.0.0.1:{self.port}", "--json"],
            stdout=subprocess.PIPE, check=True, text=True, timeout=60)
        return {worker["worker"].removeprefix("workers/"):
                datetime.datetime.fromisoformat(worker["last_contact"].replace("Z", "+00:00")).timestamp()
                for worker in json.loads(listed.stdout)["workers"] if worker["last_contact"]}


class Fault:
    """One fault of one worker's link."""

    def __init__(self, kind, way, begin):
        self.kind, self.way, self.begin = kind, way, begin
        self.worker = self.job = None
        self.alone = True  # the job was bound to no other worker whose link was disturbed
        self.begun = self.ended = self.mended = self.back = None  # time.time()
        self.history = []  # of the job's tasks since then, where it took too long


def begin_faults(farm, faults, submitters):
    """Jobs, and a fault for the holder of each; a job or a worker has one at most."""
    waiting = collections.deque(faults)
    submitted = [submitters.submit(farm.submit) for _ in faults]
    jobs, hit = set(), set()
    next_fault = 0.0
    end = time.monotonic() + PATIENCE_SECONDS
    while waiting:
        if time.monotonic() > end:
            raise RuntimeError(f"{len(waiting)} of {len(faults)} faults found no worker that timed something")
        for known in [one for one in submitted if one.done()]:
            submitted.remove(known)
            jobs.add(known.result())
        held = farm.query("SELECT job, worker FROM tasks JOIN job_tasks ON task = number WHERE kind = 'TIME' AND state = 'RUNNING'")
        for job, worker in held:
            if waiting and job in jobs and worker not in hit and time.time() > next_fault:
                fault = waiting.popleft()
                fault.begin(farm.links[worker])
                fault.begun, fault.job, fault.worker = time.time(), job, worker
                hit.add(worker)
                jobs.discard(job)
                next_fault = fault.begun + PAUSE_SECONDS
        for (job,) in farm.query(f"SELECT id FROM jobs WHERE state = 'SUCCEEDED' AND id IN ({','.join('?' * len(jobs))})", *jobs):
            jobs.discard(job)  # too quick for us
            submitted.append(submitters.submit(farm.submit))
        time.sleep(0.01)


def wait_for_jobs(farm, faults):
    ids = [fault.job for fault in faults]

    def all_ended():
        states = farm.query(f"SELECT id, state, updated_micros FROM jobs WHERE id IN ({','.join('?' * len(ids))})", *ids)
        ended = {job: micros / 1e6 for job, state, micros in states if state == "SUCCEEDED"}
        wrong = [(job, state) for job, state, _ in states if state in ("FAILED", "CANCELLED")]
        if wrong:
            raise RuntimeError(f"jobs did not succeed: {wrong}")
        for fault in faults:
            fault.ended = ended.get(fault.job)
        return len(ended) == len(ids)

    farm.wait_for(all_ended, PATIENCE_SECONDS, "the jobs whose workers' links were disturbed")
    kinds = {fault.worker: fault.kind for fault in faults}
    for fault in faults:
        # Those that had a task of the job since then, builds too: where one waits 5 s for what a lossy link brings, the job does. And
        # those that were to have one.
        holders = farm.query("SELECT worker FROM task_attempts JOIN job_tasks USING (task) WHERE job = ? AND (ended_micros IS NULL OR "
                             "ended_micros > ?)", fault.job, int(fault.begun * 1e6))
        devices = farm.query("SELECT device_uuid FROM tasks JOIN job_tasks ON task = number WHERE job = ? AND kind = 'TIME'", fault.job)
        met = {worker for worker, in holders} | {uuid.removeprefix("SIMULATED-").removesuffix("-0") for uuid, in devices}
        fault.alone = not met.intersection(kinds.keys() - {fault.worker})
        if fault.kind in CUT_OFF and fault.ended - fault.begun > FINISHED_ELSEWHERE_SECONDS:
            fault.history = history(farm, fault, kinds)


def history(farm, fault, kinds):
    """Who had the tasks of the fault's job since then, for how long; in seconds after the fault."""
    rows = farm.query("SELECT t.kind, t.created_micros, a.worker, a.claimed_micros, a.ended_micros, a.ended_how FROM task_attempts a "
                      "JOIN tasks t ON a.task = t.number JOIN job_tasks j ON j.task = t.number WHERE j.job = ? ORDER BY a.number", fault.job)
    after = lambda micros: f"{micros / 1e6 - fault.begun:.2f}" if micros else "-"
    return [f"{kind} queued {after(created)}, {worker} ({kinds.get(worker, 'sound')}) from {after(claimed)} to {after(ended)} {how}"
            for kind, created, worker, claimed, ended, how in rows if not ended or ended / 1e6 > fault.begun - 1]


def taken_from(farm, faults):
    """The tasks that workers with disturbed links lost to others since then, as they are now."""
    rows = []
    for fault in faults:
        rows += farm.query(
            "SELECT t.id, a.fence, t.fence, t.state, t.worker, a.worker, t.result FROM task_attempts a JOIN tasks t ON a.task = t.number "
            "WHERE a.worker = ? AND a.ended_micros > ? AND a.ended_how IN ('LEASE_EXPIRED', 'WORKER_GONE') ORDER BY a.number",
            fault.worker, int(fault.begun * 1e6))
    return rows


def wait_for_contact(farm, faults):
    def all_back():
        contacts = farm.last_contacts()  # whole seconds
        for fault in faults:
            if fault.back is None and contacts.get(fault.worker, 0) > fault.mended:
                fault.back = time.time()
        time.sleep(0.2)
        return all(fault.back for fault in faults)

    farm.wait_for(all_back, PATIENCE_SECONDS, "workers whose links are whole again")


def wait_for_work(farm, faults, submitters):
    """Jobs for everybody, until each has done something since its link was mended."""
    jobs = [one.result() for one in [submitters.submit(farm.submit) for _ in farm.links]]

    def all_worked():
        since = {fault.worker: fault.mended * 1e6 for fault in faults}
        done = farm.query("SELECT worker, max(claimed_micros) FROM task_attempts WHERE ended_how = 'DONE' GROUP BY worker")
        worked = {worker for worker, claimed in done if claimed > since.get(worker, 0)}
        if not worked.issuperset(since) and farm.query("SELECT count(*) FROM jobs WHERE state IN ('QUEUED', 'RUNNING')")[0][0] == 0:
            jobs.append(farm.submit())
        return worked.issuperset(since)

    farm.wait_for(all_worked, PATIENCE_SECONDS, "work of workers whose links are whole again")
    ids = ",".join("?" * len(jobs))
    farm.wait_for(lambda: farm.query(f"SELECT count(*) FROM jobs WHERE state = 'SUCCEEDED' AND id IN ({ids})", *jobs)[0][0] == len(jobs),
                  PATIENCE_SECONDS, "the jobs after that")


def disturb(farm, faults, outage, submitters):
    """All faults at about one moment, until their jobs have ended and `outage` is over. The number of tasks lost to others, by kind."""
    begin_faults(farm, faults, submitters)
    wait_for_jobs(farm, faults)
    time.sleep(max(0.0, max(fault.begun for fault in faults) + outage - time.time()))
    before = taken_from(farm, faults)
    for fault in faults:
        farm.links[fault.worker].mend()
        fault.mended = time.time()
    wait_for_contact(farm, faults)
    wait_for_work(farm, faults, submitters)
    after = taken_from(farm, faults)
    if after[:len(before)] != before:
        raise RuntimeError(f"workers changed tasks that they had lost: {[a for a, b in zip(after, before) if a != b]}")
    wrong = [row for row in after if row[1] >= row[2] and row[3] == "DONE"]
    if wrong:
        raise RuntimeError(f"tasks were done under a fence that was lost: {wrong}")
    kinds = {fault.worker: fault.kind for fault in faults}
    return collections.Counter(kinds[row[5]] for row in before)


def check_everything(farm):
    lost = farm.query("SELECT id, state FROM jobs WHERE state <> 'SUCCEEDED'")
    twice = farm.query("SELECT task, count(*) FROM task_attempts WHERE ended_how = 'DONE' GROUP BY task HAVING count(*) > 1")
    wrong = farm.query("SELECT t.id FROM tasks t JOIN task_attempts a ON a.task = t.number "
                       "WHERE a.ended_how = 'DONE' AND (t.state <> 'DONE' OR t.fence <> a.fence OR t.worker <> a.worker)")
    tell_figure("jobs lost", len(lost))
    tell_figure("results accepted twice or of old fences", len(twice) + len(wrong))
    if lost or twice or wrong:
        raise RuntimeError(f"jobs lost: {lost}; results accepted twice: {twice}; results of old fences: {wrong}")
    if farm.query("PRAGMA integrity_check") != [("ok",)]:
        raise RuntimeError("the database is damaged")


def percentile(values, share):
    values = sorted(values) or [float("nan")]
    return values[min(len(values) - 1, int(share * len(values)))]


def tell(kind, faults, stale):
    took = [fault.ended - fault.begun for fault in faults if fault.alone]
    back = [fault.back - fault.mended for fault in faults]
    ways = collections.Counter(fault.way for fault in faults)
    print(f"links {kind} ({', '.join(f'{way}: {count}' for way, count in sorted(ways.items()))}): {len(faults)}; jobs ended after: "
          f"median {percentile(took, 0.5):.1f} s, p99 {percentile(took, 0.99):.1f} s ({len(faults) - len(took)} that got two such workers "
          f"left out); {stale} tasks done by others meanwhile, "
          f"0 changed when the worker was back; heard of again after: median {percentile(back, 0.5):.1f} s, most {max(back):.1f} s",
          flush=True)
    tell_figure(f"links {kind}", len(faults))
    if kind in CUT_OFF:
        tell_figure("finished elsewhere, p99 s", percentile(took, 0.99))
    tell_figure("heard of again, most s", max(back))
    problems = []
    if kind in CUT_OFF and percentile(took, 0.99) > FINISHED_ELSEWHERE_SECONDS:
        problems.append(f"links {kind}: jobs take longer than {FINISHED_ELSEWHERE_SECONDS} s to finish elsewhere: "
                        f"{[f'{t:.1f}' for t in sorted(took)[-5:]]}")
        problems += [f"  of {fault.worker}: {'; '.join(fault.history)}" for fault in faults if fault.alone and fault.history]
    if max(back) > RECONNECTED_SECONDS:
        problems.append(f"links {kind}: workers need longer than {RECONNECTED_SECONDS} s to come back: "
                        f"{[f'{b:.1f}' for b in sorted(back)[-5:]]}")
    return problems


def waves(arguments, kinds):
    """The faults, as many of each kind as are wanted, in parts that happen together."""
    left = [Fault(kind, *KINDS[kind][number % len(KINDS[kind])]) for number in range(arguments.each) for kind in kinds]
    while left:
        yield left[:arguments.together]
        left = left[arguments.together:]


def test(arguments, kinds, make_link):
    """All kinds on one farm. What was wrong."""
    together = min(arguments.together, arguments.each * len(kinds))
    # Devices take turns: jobs that lose theirs get those that have had no job since the faults began.
    faults, stale = [], collections.Counter()
    with LinkedFarm(arguments.binaries, arguments.example, 2 * together + 2, make_link) as farm:
        with concurrent.futures.ThreadPoolExecutor(4) as submitters:
            farm.wait_for(lambda: len(farm.last_contacts()) == len(farm.links), 120, "the workers")
            wait_for_work(farm, [], submitters)
            for wave in waves(arguments, kinds):
                stale += disturb(farm, wave, arguments.outage, submitters)
                faults += wave
        check_everything(farm)
    return [problem for kind in kinds for problem in tell(kind, [fault for fault in faults if fault.kind == kind], stale[kind])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries")
    parser.add_argument("example")
    parser.add_argument("--each", type=int, default=4, help="faults of each kind (default: 4)")
    parser.add_argument("--together", type=int, default=24, help="links of a farm that are disturbed at one time, at most (default: 24)")
    parser.add_argument("--outage", type=float, default=28, help="seconds that each lasts, at least (default: 28)")
    parser.add_argument("--only", action="append", choices=list(KINDS), help="these kinds alone; may be repeated")
    arguments = parser.parse_args()
    network_namespaces.enter()
    kinds = [kind for kind in KINDS if not arguments.only or kind in arguments.only]
    missing = {"one way": network_namespaces.why_no_filters(), "slow": network_namespaces.why_no_relay()}
    missing["lossy"] = missing["one way"]
    possible = [kind for kind in kinds if not missing.get(kind)]
    farms = [([kind for kind in possible if kind != "slow"], Link), ([kind for kind in possible if kind == "slow"], RelayedLink)]
    problems = []
    with concurrent.futures.ThreadPoolExecutor(len(farms)) as side_by_side:
        for done in [side_by_side.submit(test, arguments, *farm) for farm in farms if farm[0]]:
            try:
                problems += done.result()
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")
    if problems:
        sys.exit("\n".join(problems))
    skipped = [f"{kind}: {missing[kind]}" for kind in kinds if missing.get(kind)]
    if skipped:
        network_namespaces.skip("; ".join(skipped))


if __name__ == "__main__":
    main()
