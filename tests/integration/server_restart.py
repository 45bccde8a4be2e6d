#!/usr/bin/env python3
"""Server and worker as separate processes; the server is killed with SIGKILL, or stopped as for an upgrade, while it times candidates
and started again: the client that watches goes on, the job completes, and a second submission reuses its builds.

    tests/integration/server_restart.py BIN_DIRECTORY EXAMPLE [--candidates N] [--signal SIGTERM]
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


def start_server(binaries, data, port, log):
    return subprocess.Popen([os.path.join(binaries, "fusion-server"), "--listen", f"127.0.0.1:{port}", "--data", data],
                            stdout=log, stderr=log)


def wait_until_listening(port, server):
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit("the server does not listen")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries")
    parser.add_argument("example")
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--kill-in", choices=["building", "timing"], default="timing")
    parser.add_argument("--signal", choices=["SIGKILL", "SIGTERM"], default="SIGKILL")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="fusion-restart-")
    data = os.path.join(folder, "data")
    os.mkdir(data)
    port = free_port()
    address = f"127.0.0.1:{port}"
    processes = []
    environment = dict(os.environ, FUSION_DATA_DIR=os.path.join(folder, "client"))
    submit = [os.path.join(arguments.binaries, "fusion-client"), "submit", arguments.example, "--target", "host",
              "--candidates", str(arguments.candidates), "--server", address, "--json"]
    with open(os.path.join(folder, "log"), "wb") as log:
        try:
            server = start_server(arguments.binaries, data, port, log)
            processes.append(server)
            wait_until_listening(port, server)
            worker = subprocess.Popen([os.path.join(arguments.binaries, "fusion-worker"), "--server", address,
                                       "--target", "host"], stdout=log, stderr=log)
            processes.append(worker)
            client = subprocess.Popen(submit, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
            processes.append(client)
            killed = False
            progress = []
            for line in client.stderr:
                progress.append(line.rstrip())
                if not killed and re.match(r"\[\d+:\d\d\] " + arguments.kill_in + r" \d+ of \d+", line):
                    server.send_signal(signal.Signals[arguments.signal])
                    server.wait()
                    time.sleep(1)
                    processes.remove(server)
                    server = start_server(arguments.binaries, data, port, log)
                    processes.append(server)
                    killed = True
            output = client.stdout.read()
            code = client.wait(600)
            if not killed:
                sys.exit("the job ended before the server could be killed:\n" + "\n".join(progress))
            if code != 0:
                sys.exit(f"submit: exit code {code}\n" + "\n".join(progress))
            result = json.loads(output)
            outcomes = [candidate["outcome"] for candidate in result["candidates"]]
            assert result["state"] == "SUCCEEDED", result["state"]
            assert outcomes.count("OK") == arguments.candidates, outcomes
            print(f"the job completed after {arguments.signal} to the server while {arguments.kill_in}: {outcomes.count('OK')} candidates OK, "
                  f"rank 1 {result['candidates'][0]['speedup']:.2f}x")
            again = subprocess.run(submit, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                   timeout=600)
            assert again.returncode == 0, again.stderr
            second = json.loads(again.stdout)
            assert second["builds_reused"] > 0, second
            assert second["job"] != result["job"]
            print(f"the second submission reused {second['builds_reused']} of {second['builds']} builds")
        finally:
            for process in reversed(processes):
                if process.poll() is None:
                    process.terminate()
                    try:
                        process.wait(20)
                    except subprocess.TimeoutExpired:
                        process.kill()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
