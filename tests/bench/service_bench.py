#!/usr/bin/env python3
"""Times of the service itself: explain, a submit on the host, and the server's memory at rest.

    tests/bench/service_bench.py --bin build/release/bin --output tests/bench/results/service.json
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time


def resident_megabytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    client = os.path.join(arguments.bin, "fusion-client")
    example = str(root / "examples" / "function1.fuse")
    data = tempfile.mkdtemp(prefix="fusion-bench-")
    environment = dict(os.environ, FUSION_DATA_DIR=data)

    def run(command):
        start = time.monotonic()
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return time.monotonic() - start, json.loads(done.stdout)

    try:
        explain = sorted(run([client, "explain", example, "--json"]) for _ in range(5))[2]
        submit_seconds, submit = run([client, "submit", example, "--target", "host", "--candidates", "30", "--json"])
        again_seconds, again = run([client, "submit", example, "--target", "host", "--candidates", "30", "--json"])
        server = subprocess.Popen([os.path.join(arguments.bin, "fusion-server"), "--listen", "127.0.0.1:50991", "--data",
                                   tempfile.mkdtemp(dir=data)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(5)
        memory = resident_megabytes(server.pid)
        server.terminate()
        server.wait(30)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    document = {
        "title": "The service itself",
        "date": datetime.date.today().isoformat(),
        "command": "tests/bench/service_bench.py --bin build/release/bin --output tests/bench/results/service.json",
        "figures": [
            {"what": "`explain` of Function I, whole process, median of 5", "value": f"{explain[0]:.3f} s",
             "target": "0.2 s"},
            {"what": "of it, search and covers", "value": f"{explain[1]['search']['seconds']:.3f} s", "target": ""},
            {"what": "`submit` of Function I with 30 candidates, host, 2 cores", "value": f"{submit_seconds:.1f} s",
             "target": "90 s"},
            {"what": "the same again, builds reused",
             "value": f"{again_seconds:.1f} s ({again.get('builds_reused')} of {again.get('builds')})", "target": ""},
            {"what": "server at rest, resident memory", "value": f"{memory:.0f} MB", "target": "100 MB"},
        ],
    }
    pathlib.Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
    for figure in document["figures"]:
        print(f"{figure['what']}: {figure['value']} (target {figure['target'] or 'none'})")


if __name__ == "__main__":
    main()
