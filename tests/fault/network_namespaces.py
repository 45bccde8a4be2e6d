"""Links between this process and commands in network namespaces of their own, and faults of these links.

`enter` runs the calling program again in namespaces that are its own (network, mounts, processes). All others are made within, so the
kernel removes every process, namespace and device when the program ends, however it ends.
"""
import os
import shutil
import subprocess
import sys

from delaying_relay import DelayingRelay, open_tun

SKIPPED = 77
INSIDE = "FUSION_TEST_INSIDE_NAMESPACES"
# Programs of the kernel's classic packet filter, as `tc` takes them; what they return is TC_ACT_OK (0) or TC_ACT_SHOT (2).
DROP_ALL = "1,6 0 0 2"
LOAD_RANDOM = 0xFFFFF000 + 56  # SKF_AD_OFF + SKF_AD_RANDOM


def drop_share(share):
    return f"4,32 0 0 {LOAD_RANDOM},53 0 1 {int(share * 2**32)},6 0 0 0,6 0 0 2"


def skip(reason):
    print(f"SKIP: {reason}", flush=True)
    sys.exit(SKIPPED)


def enter():
    """Returns inside the namespaces; without a right to make them, the program says SKIP and why, and ends."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.environ.pop(INSIDE, None):
        # `ip netns` keeps its names below /run.
        run("mount", "-t", "tmpfs", "none", "/run")
        run("ip", "link", "set", "lo", "up")
        return
    for tool in ("unshare", "nsenter", "ip", "tc", "mount"):
        if shutil.which(tool) is None:
            skip(f"there is no program {tool}")
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    tried = subprocess.run([*unshare, "sh", "-c", "mount -t tmpfs none /run && ip link set lo up && ip netns add a"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if tried.returncode != 0:
        skip(f"network namespaces cannot be made here: {tried.stdout.strip()}")
    os.environ[INSIDE] = "1"
    sys.stdout.flush()
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout.strip()}")


class Link:
    """A network namespace, joined to this one by a pair of devices. `prefix` makes a command run in it."""

    def __init__(self, number):
        self.namespace, self.device, self.peer = f"n{number}", f"to{number}", f"from{number}"
        subnet = f"10.{77 + number // 4096}.{number // 16 % 256}"
        self.here, self.there = (f"{subnet}.{number % 16 * 4 + end}" for end in (1, 2))
        self.prefix = ["nsenter", f"--net=/run/netns/{self.namespace}"]
        run("ip", "netns", "add", self.namespace)
        self.make_devices()
        run("ip", "addr", "add", f"{self.here}/30", "dev", self.device)
        run("ip", "link", "set", self.device, "up")
        run("ip", "-n", self.namespace, "addr", "add", f"{self.there}/30", "dev", self.peer)
        run("ip", "-n", self.namespace, "link", "set", self.peer, "up")
        run("ip", "-n", self.namespace, "link", "set", "lo", "up")
        self.faults = []  # commands that end them

    def make_devices(self):
        run("ip", "link", "add", self.device, "type", "veth", "peer", "name", self.peer, "netns", self.namespace)

    def cut_here(self):
        run("ip", "link", "set", self.device, "down")
        self.faults.append(("ip", "link", "set", self.device, "up"))

    def cut_there(self):
        run("ip", "-n", self.namespace, "link", "set", self.peer, "down")
        self.faults.append(("ip", "-n", self.namespace, "link", "set", self.peer, "up"))

    def filter(self, *directions_and_programs):
        run("tc", "qdisc", "add", "dev", self.device, "clsact")
        self.faults.append(("tc", "qdisc", "del", "dev", self.device, "clsact"))
        for direction, program in directions_and_programs:
            run("tc", "filter", "add", "dev", self.device, direction, "bpf", "direct-action", "bytecode", program)

    def drop_what_comes(self):
        self.filter(("ingress", DROP_ALL))

    def drop_what_goes(self):
        self.filter(("egress", DROP_ALL))

    def lose(self, share):
        self.filter(("ingress", drop_share(share)), ("egress", drop_share(share)))

    def mend(self):
        while self.faults:
            run(*self.faults.pop())


class RelayedLink(Link):
    """A link of two TUN devices, whose packets a relay can hold back."""

    relay = None  # of all links

    def make_devices(self):
        RelayedLink.relay = RelayedLink.relay or DelayingRelay()
        self.ends = [open_tun(self.device), open_tun(self.peer)]
        run("ip", "link", "set", self.peer, "netns", self.namespace)
        self.relay.join(*self.ends)

    def delay_what_comes(self, seconds):
        self.relay.delay(self.ends[1], seconds)

    def delay_what_goes(self, seconds):
        self.relay.delay(self.ends[0], seconds)

    def mend(self):
        super().mend()
        for end in self.ends:
            self.relay.delay(end, 0)


def why_no_filters():
    """Why this kernel cannot drop packets as `Link.filter` asks it to; "": it can."""
    try:
        run("ip", "link", "add", "probe", "type", "veth", "peer", "name", "eborp")
        for program in (DROP_ALL, drop_share(0.3)):
            run("tc", "qdisc", "add", "dev", "probe", "clsact")
            run("tc", "filter", "add", "dev", "probe", "egress", "bpf", "direct-action", "bytecode", program)
            run("tc", "qdisc", "del", "dev", "probe", "clsact")
        run("ip", "link", "del", "probe")
    except RuntimeError as error:
        return str(error)
    return ""


def why_no_relay():
    """Why there are no TUN devices; "": there are."""
    try:
        os.close(open_tun("probe"))
    except OSError as error:
        return f"/dev/net/tun: {error}"
    return ""
