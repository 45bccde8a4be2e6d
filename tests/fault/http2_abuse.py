#!/usr/bin/env python3
"""Abuse of HTTP/2 against a fusion-server behind a proxy, while an honest caller asks for health, functions and a job.

    tests/fault/http2_abuse.py BIN_DIRECTORY [--front proxy|tls] [--judge] [--only NAME] [--connections N] [--seconds N]

--front: what the callers reach. proxy: HAProxy with deploy/proxy/haproxy.cfg, which the server believes; tls: the server itself. The honest
caller shows a certificate; attackers show none and come from an address of their own. The server must live, answer all the honest calls, and
take new connections afterwards. Their times are printed; --judge fails when the p99 under an attack is more than twice that without one (for a
machine with nothing else to do: attackers, proxy and server share its cores). With FUSION_LONG_TESTS=1 more connections are held and each
attack lasts longer. At the end a server runs out of descriptors, and must end.
"""
import argparse
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

from farm_processes import tell_figure
from http2_frames import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, PUSH_PROMISE,
                          RST_STREAM, SETTINGS, Connection, call, frame, header, request_headers, reset, settings, window_update)

HEALTH = b"/grpc.health.v1.Health/Check"
FUNCTIONS = b"/fusion.v1.OptimizerService/ListFunctions"
SUBMIT = b"/fusion.v1.OptimizerService/Submit"
GET_JOB = b"/fusion.v1.OptimizerService/GetJob"
HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MOST_MEGABYTES = 250  # of the server's memory, under attack
LONG = os.environ.get("FUSION_LONG_TESTS") == "1"
SOURCE = b"size n = 1000;\nvector[n] x, y, z;\ninput x, y;\nz = vadd(x, y);\nreturn z;\n"


def field(number, data):
    """A string or message of a protobuf message."""
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


# ---- Attacks: each sends until `end` and returns (what it counted, how often the server closed its connections). ----

def repeat(port, end, burst, begin=PREFACE + settings(), read=True):
    """burst(connection) -> bytes, sent again and again; a connection that was closed is replaced."""
    bursts, closed = 0, 0
    while time.monotonic() < end:
        try:
            connection = Connection(port, begin, timeout=1.0)
        except OSError:
            closed += 1
            time.sleep(0.01)
            continue
        while time.monotonic() < end:
            if not connection.send(burst(connection)) or (read and not connection.is_open()):
                closed += 1
                break
            connection.socket.settimeout(1.0)
            bursts += 1
        connection.close()
    return bursts, closed


def rapid_reset(port, end):
    def burst(connection):
        streams = [connection.stream() for _ in range(100)]
        return b"".join(call(stream, FUNCTIONS) + reset(stream) for stream in streams)
    return repeat(port, end, burst)


def reset_before_data(port, end):
    def burst(connection):
        streams = [connection.stream() for _ in range(200)]
        return b"".join(frame(HEADERS, END_HEADERS, stream, request_headers(HEALTH)) + reset(stream) for stream in streams)
    return repeat(port, end, burst)


def header_flood(port, end):
    many = b"".join(header(b"x-%d" % i, b"v" * 100) for i in range(150))[:16000]
    return repeat(port, end, lambda connection: b"".join(
        frame(HEADERS, END_HEADERS | END_STREAM, connection.stream(), request_headers(HEALTH, many)[:16384]) for _ in range(20)))


def header_bomb(port, end):
    """One header of 4,000 bytes that the server remembers, named a thousand times by one byte each."""
    def burst(connection):
        stream = connection.stream()
        block = request_headers(HEALTH, header(b"x", b"v" * 3900, indexed=True) + b"\xbe" * 1000)
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
    return repeat(port, end, burst)


def continuation_flood(port, end):
    def burst(connection):
        if connection.next_stream == 1:
            return frame(HEADERS, END_STREAM, connection.stream(), request_headers(HEALTH))
        return b"".join(frame(CONTINUATION, 0, 1, header(b"x-%d" % i, b"v" * 50) if i % 2 else b"") for i in range(100))
    return repeat(port, end, burst)


def ping_flood(port, end):
    return repeat(port, end, lambda _: frame(PING, 0, 0, b"12345678") * 1000)


def unread_ping_flood(port, end):
    return repeat(port, end, lambda _: frame(PING, 0, 0, b"12345678") * 1000, read=False)


def settings_flood(port, end):
    return repeat(port, end, lambda _: settings(window=65535, header_table=4096) * 500)


def unread_settings_flood(port, end):
    return repeat(port, end, lambda _: settings(window=65535, header_table=0) * 500, read=False)


def empty_frames(port, end):
    """Frames that carry nothing, of a call that never ends."""
    def burst(connection):
        if connection.next_stream == 1:
            return frame(HEADERS, END_HEADERS, connection.stream(), request_headers(HEALTH))
        return (frame(DATA, 0, 1) + frame(PRIORITY, 0, 1, b"\0\0\0\0\x10")) * 500
    return repeat(port, end, burst)


def zero_windows(port, end):
    return repeat(port, end, lambda connection: call(connection.stream(), HEALTH) + window_update(0, 0) + window_update(1, 0x7FFFFFFF) * 2)


def ask_and_take_nothing(port, end, more=lambda _: b""):
    """Sixteen connections ask for large answers, with windows of nothing, as many as the server lets them; more(connection) is sent besides."""
    connections, asked = [], 0
    while time.monotonic() < end:
        if len(connections) < 16:
            try:
                connections.append(Connection(port, PREFACE + settings(window=0), timeout=1.0))
            except OSError:  # it took longer than that: another, in the next turn
                pass
        for connection in connections:
            for _ in range(20):
                asked += connection.send(call(connection.stream(), FUNCTIONS))
            if extra := more(connection):
                connection.send(extra)
        time.sleep(0.05)
    closed = sum(not connection.is_open() for connection in connections)
    for connection in connections:
        connection.close()
    return asked, closed


def slow_readers(port, end):
    return ask_and_take_nothing(port, end)


def trickling_readers(port, end):
    """The same with a little room now and then, for the connection and for each stream: they do take something."""
    return ask_and_take_nothing(port, end, lambda connection: b"".join(
        window_update(stream, 1024) for stream in (0, *range(1, connection.next_stream, 2))))


def garbage(port, end):
    dice = random.Random(7)

    def begin():
        return dice.choice([
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
            PREFACE[:10], bytes(1000), dice.randbytes(2000), PREFACE + dice.randbytes(500),
            PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, dice.randbytes(200)),
            PREFACE + settings() + frame(DATA, 0, 5, b"no stream"), PREFACE + settings() + frame(DATA, 0, 0, b"stream 0"),
            PREFACE + settings() + frame(HEADERS, END_HEADERS, 2, request_headers(HEALTH)),
            PREFACE + settings() + frame(SETTINGS, 0, 0, b"odd"), PREFACE + settings() + frame(SETTINGS, ACK, 0, b"123456"),
            PREFACE + settings(window=0xFFFFFFFF), PREFACE + settings(frame=1), PREFACE + settings() + frame(PING, 0, 3, b"x"),
            PREFACE + settings() + frame(PUSH_PROMISE, END_HEADERS, 1, bytes(8)), PREFACE + settings() + frame(GOAWAY, 0, 0, bytes(3)),
            PREFACE + settings() + frame(RST_STREAM, 0, 99, bytes(4)), PREFACE + settings() + frame(dice.randrange(256), 255, 1, bytes(9)),
            PREFACE + settings() + frame(DATA, 0, 1, b"", length=0xFFFFFF) + bytes(1000)])
    sent = 0
    while time.monotonic() < end:
        try:
            connection = Connection(port, begin(), timeout=1.0)
        except OSError:
            continue
        sent += 1
        if sent % 2:
            connection.is_open()
        connection.close()
    return sent, 0


ATTACKS = [rapid_reset, reset_before_data, header_flood, header_bomb, continuation_flood, ping_flood, unread_ping_flood,
           settings_flood, unread_settings_flood, empty_frames, zero_windows, slow_readers, trickling_readers, garbage]


def attacker(attack, port, end, tls, results):
    Connection.tls = tls
    Connection.source = "127.0.0.2"
    results.put(attack(port, end))


# ---- The server and its honest caller ----

def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """What is behind `port`: a server, or a proxy and the server behind it. `front` None: a server without TLS. `files`: how many descriptors the server may have."""

    def __init__(self, binaries, front, files=None):
        self.folder = tempfile.mkdtemp(prefix="fusion-abuse-")
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.proxy = None
        options = []
        if front:
            subprocess.run([REPOSITORY / "deploy/make-certificates.sh", self.file(""), "--server", "localhost", "--user", "eva", "--proxy", "edge"],
                           check=True, stdout=subprocess.DEVNULL)
            options = ["--tls-cert", self.file("server-localhost.pem"), "--tls-key", self.file("server-localhost.key"),
                       "--tls-ca", self.file("ca.pem"), "--proxy-identity", "edge"]
        self.port = free_port()
        limit = files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
        self.process = self.start([os.path.join(binaries, "fusion-server"), "--listen", f"127.0.0.1:{self.port}", "--data",
                                   os.path.join(self.folder, "data"), "--log-level", "error", *options], preexec_fn=limit)
        if front == "proxy":
            self.put_proxy_in_front()

    def start(self, command, **how):
        process = subprocess.Popen(command, stdout=self.log, stderr=self.log, **how)
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.1)
        raise RuntimeError(f"{command[0]} does not listen")

    def put_proxy_in_front(self):
        for certificate, name in (("server-localhost", "front"), ("proxy-edge", "proxy")):
            with open(self.file(name + ".pem"), "wb") as both:
                both.write(b"".join(pathlib.Path(self.file(certificate + end)).read_bytes() for end in (".pem", ".key")))
        server, self.port = self.port, free_port()
        settings = {"FUSION_PROXY_LISTEN": f"127.0.0.1:{self.port}", "FUSION_SERVER": f"127.0.0.1:{server}", "FUSION_SERVER_NAME": "localhost",
                    "FUSION_PROXY_FILES": self.file("")}
        self.proxy = self.start([HAPROXY, "-db", "-f", REPOSITORY / "deploy/proxy/haproxy.cfg"], env={**os.environ, **settings})

    def file(self, name):
        return os.path.join(self.folder, "certificates", name)

    def tls_context(self, user=None):
        """Of a client that trusts the server, and shows a certificate if it is a user's."""
        context = ssl.create_default_context(cafile=self.file("ca.pem"))
        context.set_alpn_protocols(["h2"])
        if user:
            context.load_cert_chain(self.file(f"user-{user}.pem"), self.file(f"user-{user}.key"))
        return context

    def processes(self):
        return [process for process in (self.proxy, self.process) if process]

    def megabytes(self):
        """Of the server; and of the proxy."""
        sizes = []
        for process in (self.process, self.proxy):
            if process:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                    sizes.append(int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) // 1024)
        return sizes

    def descriptors(self):
        """Of what the callers are connected to."""
        return len(os.listdir(f"/proc/{self.processes()[0].pid}/fd"))

    def close(self):
        for process in self.processes():
            process.kill()
            process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class HonestCaller:
    """Calls that must all be answered, on one connection that must not be closed."""

    def __init__(self, port):
        self.connection = Connection(port, timeout=60.0)
        self.job = re.search(rb"jobs/[0-9a-f]+", self.connection.ask(SUBMIT, field(2, field(1, SOURCE)))).group(0)

    def call_until(self, end):
        """Seconds of each call, sorted."""
        seconds = []
        while time.monotonic() < end or not seconds:
            for path, message, expected in ((HEALTH, b"", b"\x08\x01"), (FUNCTIONS, field(1, b"vadd"), b"vadd"),
                                            (GET_JOB, field(1, self.job), self.job)):
                begin = time.monotonic()
                answer = self.connection.ask(path, message)
                seconds.append(time.monotonic() - begin)
                if expected not in answer:
                    raise RuntimeError(f"{path!r} was not answered: {answer[:100]!r}")
            # A user with a certificate has 200 calls a second.
            time.sleep(0.02)
        return sorted(seconds)


def p99(seconds):
    return seconds[min(len(seconds) - 1, int(len(seconds) * 0.99))]


def hold_idle(server, wanted):
    """Connections that say nothing, or only that they are HTTP/2, from several addresses; as many as the limit of open files permits."""
    held, ours = [], Connection.source
    for i in range(wanted):
        Connection.source = f"127.0.1.{1 + i % 4}"
        try:
            held.append(Connection(server.port, PREFACE + settings() if i % 2 else b""))
        except OSError as error:
            print(f"connection {i}: {error}")
            break
    Connection.source = ours
    return held


def exhaust_descriptors(binaries):
    """More connections than a server has descriptors: gRPC takes none from then on, so the server must end, for its unit to start it again."""
    server = Server(binaries, front=None, files=100)
    try:
        Connection(server.port, timeout=60.0).ask(HEALTH)
        begin = time.monotonic()
        held = hold_idle(server, 300)
        status = server.process.wait(timeout=60)
        said = pathlib.Path(server.log.name).read_text(encoding="utf-8")
        if status != 1 or "connections can be taken no more: Too many open files" not in said:
            raise RuntimeError(f"without descriptors the server ended with {status} and said: {said}")
        print(f"{'few descriptors':22} {len(held)} connections for 100 descriptors; the server ended after {time.monotonic() - begin:.2f} s", flush=True)
    finally:
        server.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--front", choices=["proxy", "tls"], default="proxy")
    parser.add_argument("--only")
    parser.add_argument("--connections", type=int, default=10000 if LONG else 2000)
    parser.add_argument("--seconds", type=float, default=10 if LONG else 2)
    arguments = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # The server has two descriptors for each, and as many as we may have.
    connections = arguments.connections if most == resource.RLIM_INFINITY else min(arguments.connections, (most - 400) // 2)
    if arguments.front == "proxy" and not HAPROXY:
        sys.exit("HAProxy is not there; deploy/install-deps.sh --tests installs it")
    slower, ratios = [], []
    server = Server(arguments.binaries, arguments.front)
    stranger, Connection.tls = server.tls_context(), server.tls_context("eva")
    try:
        honest = HonestCaller(server.port)
        honest.call_until(time.monotonic() + 1)
        # Without an attack: all such calls so far, since the slowest hundredth of a few hundred is a matter of luck.
        quiet = honest.call_until(time.monotonic() + 2 * arguments.seconds)

        def call_quietly(seconds):
            quiet.extend(honest.call_until(time.monotonic() + seconds))
            quiet.sort()

        def judge(name, during, what):
            ratio = p99(during) / p99(quiet)
            print(f"{name:22} {len(during):5} calls, median {during[len(during) // 2] * 1e3:6.2f} ms, p99 {p99(during) * 1e3:7.2f} ms "
                  f"({ratio:4.1f} x), longest {during[-1] * 1e3:5.0f} ms; server {' and proxy '.join(map(str, server.megabytes()))} MB; {what}", flush=True)
            ratios.append(ratio)
            if ratio > 2:
                slower.append(name)
            if ended := [process for process in server.processes() if process.poll() is not None]:
                raise RuntimeError(f"{name}: {ended[0].args[0]} ended with {ended[0].returncode}")
            Connection(server.port, timeout=60.0).ask(HEALTH)

        for attack in ATTACKS:
            if arguments.only and attack.__name__ != arguments.only:
                continue
            call_quietly(arguments.seconds / 2)
            results = multiprocessing.Queue()
            end = time.monotonic() + arguments.seconds
            process = multiprocessing.Process(target=attacker, args=(attack, server.port, end, stranger, results))
            process.start()
            during = honest.call_until(end)
            count, closed = results.get(timeout=60)
            process.join()
            judge(attack.__name__, during, f"sent {count}, closed {closed}")
            if server.megabytes()[0] > MOST_MEGABYTES:
                raise RuntimeError(f"{attack.__name__}: the server has {server.megabytes()[0]} MB, not {MOST_MEGABYTES} at most")
            # What is closed within its first burst is not counted as one.
            if count + closed == 0:
                raise RuntimeError(f"{attack.__name__}: nothing was sent")

        if not arguments.only or arguments.only == "idle":
            call_quietly(arguments.seconds)
            held = hold_idle(server, connections)
            during = honest.call_until(time.monotonic() + arguments.seconds)
            judge("idle connections", during,
                  f"{len(held)} of {arguments.connections} held, {server.descriptors()} descriptors in the server")
            if len(held) < connections or server.descriptors() < connections:
                raise RuntimeError(f"{len(held)} connections were taken, not {connections}; the server has {server.descriptors()} descriptors")
            tell_figure("idle connections", len(held))
            for connection in held:
                connection.close()
        Connection(server.port, timeout=60.0).ask(HEALTH)
        print(f"the server lives and answered every honest call; without an attack {len(quiet)} calls, "
              f"median {quiet[len(quiet) // 2] * 1e3:.2f} ms, p99 {p99(quiet) * 1e3:.2f} ms")
        tell_figure("kinds of abuse that the server outlived", len(ratios))
        tell_figure("others' p99, times that without", max(ratios, default=0.0))
    except Exception:
        server.log.flush()
        with open(server.log.name, "rb") as log:
            sys.stderr.write(log.read()[-4000:].decode("utf-8", "replace"))
        raise
    finally:
        server.close()
    Connection.tls = None
    if not arguments.only or arguments.only == "descriptors":
        exhaust_descriptors(arguments.binaries)
    if slower:
        print("p99 more than doubled under:", ", ".join(slower))
    return 1 if arguments.judge and slower else 0


if __name__ == "__main__":
    sys.exit(main())
