"""Packets between pairs of TUN devices, each direction of each pair with a delay that can be set while it runs.

It stands in for the kernel's netem, which many kernels lack: what is delayed are real packets between two real TCP stacks.
"""
import fcntl
import heapq
import os
import select
import struct
import threading
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
LONGEST_PACKET = 65536


def open_tun(name):
    """The descriptor of a new TUN device in the network namespace of this process; the device goes when it is closed."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class DelayingRelay:
    """One thread for all pairs. All functions may be called from any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.targets, self.seconds = {}, {}  # by descriptor from which packets come; guarded by lock
        self.poll = select.epoll()
        threading.Thread(target=self.run, daemon=True).start()

    def join(self, one, other):
        with self.lock:
            self.targets.update({one: other, other: one})
            self.seconds.update({one: 0.0, other: 0.0})
        for descriptor in (one, other):
            self.poll.register(descriptor, select.EPOLLIN)

    def delay(self, source, seconds):
        """From now on packets that come from the descriptor are held back for so long; those that are held already stay so."""
        with self.lock:
            self.seconds[source] = seconds

    def run(self):
        held, count = [], 0
        while True:
            wait = max(0.0, held[0][0] - time.monotonic()) if held else 1.0
            for source, _ in self.poll.poll(min(wait, 1.0)):
                try:
                    packet = os.read(source, LONGEST_PACKET)
                except OSError:  # none any more, or its link is down
                    continue
                with self.lock:
                    target, seconds = self.targets[source], self.seconds[source]
                count += 1
                heapq.heappush(held, (time.monotonic() + seconds, count, target, packet))
            while held and held[0][0] <= time.monotonic():
                _, _, target, packet = heapq.heappop(held)
                try:
                    os.write(target, packet)
                except OSError:  # as on a link that is down, the packet is lost
                    pass
