#!/usr/bin/env python3
"""What exploring costs a tuned program on a busy machine: as `fusion-client tune list` says, and by the program's own clock.

  tests/bench/tuning/tuning_beside_busy.py                     20 runs of 15 s each beside 8 busy processes
  ... --runs 3 --seconds 30 --busy 0                           fewer, longer, on a machine that is idle
  ... --bin build/release/bin --output busy.json               other programs; the figures as JSON

Each run is a program of its own with a tuning of its own, at a server that is started for all. It adds up checksums of 256 KiB in
pieces of a tuned size, again and again, and tunes from the default, which is bad. By its own clock exploring cost what runs with
other values than the best took, less what as many runs with the best took on average.
Exit status: 0 at most 2 % in every run, by `tune list`; 1 more; 77 there are no programs.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROMISED = 0.02
BYTES = 256 << 10


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("program", ctypes.c_char_p), ("server", ctypes.c_char_p),
                ("device_class", ctypes.c_char_p), ("data_directory", ctypes.c_char_p), ("strategy", ctypes.c_char_p),
                ("exploration_share", ctypes.c_double), ("notice", ctypes.c_void_p), ("notice_data", ctypes.c_void_p)]


class Counters(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("reported", ctypes.c_uint64), ("acknowledged", ctypes.c_uint64),
                ("dropped", ctypes.c_uint64), ("explored", ctypes.c_uint64), ("reconnections", ctypes.c_uint64),
                ("connected", ctypes.c_int), ("refused", ctypes.c_uint64)]


def tuned_program(library, server, name, seconds):
    """Runs the section for so long; prints what it saw as a line of JSON."""
    tuner_library = ctypes.CDLL(library)
    tuner_library.fusion_tuner_next.restype = ctypes.POINTER(ctypes.c_int64)
    tuner_library.fusion_tuner_message.restype = ctypes.c_char_p

    def check(code):
        if code != 0:
            sys.exit(f"{name}: {tuner_library.fusion_tuner_message().decode()}")

    options = Options()
    tuner_library.fusion_tuner_options_init(ctypes.byref(options))
    options.program, options.server, options.device_class = name.encode(), server.encode(), b"busy"
    tuner, section, piece, lanes = (ctypes.c_void_p() for _ in range(4))
    check(tuner_library.fusion_tuner_create(ctypes.byref(options), ctypes.byref(tuner)))
    check(tuner_library.fusion_tuner_power_of_two(tuner, b"piece", ctypes.c_int64(256), ctypes.c_int64(BYTES), ctypes.byref(piece)))
    check(tuner_library.fusion_tuner_parameter_default(piece, ctypes.c_double(1024)))
    check(tuner_library.fusion_tuner_integer_range(tuner, b"passes", ctypes.c_int64(1), ctypes.c_int64(4), ctypes.c_int64(1), ctypes.byref(lanes)))
    check(tuner_library.fusion_tuner_parameter_default(lanes, ctypes.c_double(2)))
    check(tuner_library.fusion_tuner_section_create(tuner, b"checksum", ctypes.byref(section)))
    check(tuner_library.fusion_tuner_section_parameter(section, piece))
    check(tuner_library.fusion_tuner_section_parameter(section, lanes))
    check(tuner_library.fusion_tuner_section_declare(section))

    data = memoryview(os.urandom(BYTES))
    best = (ctypes.c_int64 * 2)()
    of_best, of_others = [0, 0.0], [0, 0.0]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        values = tuner_library.fusion_tuner_next(section)
        size, passes = values[0], values[1]
        check(tuner_library.fusion_tuner_best(section, best, ctypes.c_size_t(2)))
        begin = time.perf_counter()
        check(tuner_library.fusion_tuner_start(section))
        for _ in range(passes):
            checksum = 0
            for first in range(0, BYTES, size):
                checksum = zlib.crc32(data[first:first + size], checksum)
        check(tuner_library.fusion_tuner_stop(section))
        runs = of_best if (size, passes) == (best[0], best[1]) else of_others
        runs[0] += 1
        runs[1] += time.perf_counter() - begin
    check(tuner_library.fusion_tuner_flush(tuner, ctypes.c_double(30)))
    counters = Counters(size=ctypes.sizeof(Counters))
    check(tuner_library.fusion_tuner_counters(tuner, ctypes.byref(counters)))
    tuner_library.fusion_tuner_destroy(tuner)
    usual = of_best[1] / max(of_best[0], 1)
    print(json.dumps({"runs": counters.reported, "acknowledged": counters.acknowledged, "explored": counters.explored,
                      "mean_ms": 1e3 * usual, "share_by_clock": (of_others[1] - of_others[0] * usual) / (of_best[1] + of_others[1])}))


def busy_process():
    """Until its parent has gone."""
    parent = os.getppid()
    data = os.urandom(1 << 20)
    while os.getppid() == parent:
        zlib.crc32(data)


def free_port():
    import socket
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--busy", type=int, default=8)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--tuned", nargs=3, metavar=("LIBRARY", "SERVER", "NAME"), help=argparse.SUPPRESS)
    parser.add_argument("--keep-busy", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.keep_busy:
        return busy_process()
    if arguments.tuned:
        return tuned_program(*arguments.tuned, arguments.seconds)

    library = arguments.bin.parent / "lib/libfusion_tuner.so"
    if not library.is_file() or not (arguments.bin / "fusion-server").is_file():
        print(f"SKIP: there is no {library} or no fusion-server in {arguments.bin}")
        return 77
    children = []
    results = []
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, HOME=folder)
        server = f"127.0.0.1:{free_port()}"
        try:
            with open(os.path.join(folder, "server.log"), "w", encoding="utf-8") as log:
                children.append(subprocess.Popen([arguments.bin / "fusion-server", "--listen", server, "--data", folder + "/data"],
                                                 stdout=log, stderr=log, env=environment))
            for _ in range(arguments.busy):
                children.append(subprocess.Popen([sys.executable, __file__, "--keep-busy"]))
            for run in range(arguments.runs):
                name = f"run-{run}"
                program = subprocess.run([sys.executable, __file__, "--seconds", str(arguments.seconds), "--tuned", library, server, name],
                                         env=environment, capture_output=True, text=True, check=False)
                if program.returncode != 0:
                    sys.exit(f"{name} failed: {program.stderr}")
                result = json.loads(program.stdout)
                listed = subprocess.run([arguments.bin / "fusion-client", "tune", "list", "--json", "--program", name, "--server", server],
                                        env=environment, capture_output=True, text=True, check=True)
                tuning = json.loads(listed.stdout)["tunings"][0]
                result.update(share=tuning["exploration_share"], phase=tuning["phase"], best=tuning["best"], speedup=tuning["speedup"])
                results.append(result)
                print(f"{name}: exploring cost {100 * result['share']:.2f} % by tune list, {100 * result['share_by_clock']:.2f} % by its clock; "
                      f"{result['runs']} runs of {result['mean_ms']:.2f} ms, {result['explored']} explored; {result['phase']}, {result['best']}",
                      flush=True)
        finally:
            for child in children:
                child.terminate()
            for child in children:
                child.wait()
    worst = max(result["share"] for result in results)
    kept = sum(result["share"] <= PROMISED for result in results)
    print(f"{len(results)} runs beside {arguments.busy} busy processes: exploring cost {100 * worst:.2f} % at most, "
          f"{100 * sum(result['share'] for result in results) / len(results):.2f} % on average; within {100 * PROMISED:g} % in {kept}")
    if arguments.output:
        arguments.output.write_text(json.dumps({"busy": arguments.busy, "seconds": arguments.seconds, "runs": results}, indent=1) + "\n",
                                    encoding="utf-8")
    return 0 if kept == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
