"""How implementations are timed and verified on the device. Needs torch and a GPU.

large: one call at a time between two events, the cache filled with changed lines of another buffer before each, as
worker/measure does. small and fit: 20 calls in one CUDA graph, replayed once before the timed replay, so caches are warm.
What cannot be captured is called 20 times in a row; JAX, which has a stream of its own, is timed so by the host's clock in
both. The GPU is kept busy while the host queues the calls, so that the host's time does not count unless the host is slower
than the device over all of them.
"""
import time

import torch

from sequences import BOUNDS

CALLS = 20
FLUSH_BYTES = 256 << 20
QUEUEING_CYCLES = 2_000_000  # about 1 ms: the host queues the timed call or graph meanwhile
COPY_BYTES = 2 << 30


class Timer:
    """Times implementations of one case; `large` as above. Keeps a flush buffer."""

    def __init__(self, large):
        self.large = large
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda") if large else None
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def capture(self, implementation):
        """CALLS calls as one graph, and the outputs of the last."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                implementation()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                outputs = implementation()
        return graph, outputs

    def between_events(self, work, calls, captured=False):
        """Seconds per call of work(), which is so many calls, in one graph if captured."""
        if self.large:
            self._flush.fill_(1)
        torch.cuda._sleep(QUEUEING_CYCLES if calls == 1 or captured else calls * QUEUEING_CYCLES // 2)
        self._start.record()
        work()
        self._end.record()
        self._end.synchronize()
        return self._start.elapsed_time(self._end) * 1e-3 / calls

    def by_host(self, implementation):
        """Seconds per call of CALLS calls in a row."""
        implementation.wait(implementation.call())
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            outputs = implementation.call()
        implementation.wait(outputs)
        return (time.perf_counter() - start) / CALLS


class Subject:
    """An implementation made ready: warmed up, captured, verified."""

    def __init__(self, implementation, timer):
        self.implementation = implementation
        self._timer = timer
        self.graph = None
        self.samples = []
        for _ in range(3):
            self.outputs = None
            self.outputs = implementation()
        torch.cuda.synchronize()
        self.captured = not timer.large and implementation.capturable
        self.by_host = not implementation.on_stream
        if self.captured:
            self.graph, self.outputs = timer.capture(implementation)

    @property
    def protocol(self):
        if self.by_host:
            return f"{CALLS} calls in a row, by the host's clock"
        if self._timer.large:
            return "one call, cache flushed"
        return f"{CALLS} calls in one CUDA graph" if self.captured else f"{CALLS} calls in a row"

    def run(self):
        """The calls of one sample; the outputs."""
        if self.graph is not None:
            self.graph.replay()
        elif self._timer.large or self.by_host:
            self.outputs = None  # or those of two calls are in memory
            self.outputs = self.implementation()
        else:
            for _ in range(CALLS):
                self.outputs = self.implementation()
        return self.outputs

    def verify(self, reference, data):
        """(error in the 2-norm, largest error), of outputs that held NaN before where they are kept between calls."""
        data.poison()
        if self.graph is not None:
            for tensor in self.outputs:
                tensor.fill_(float("nan"))
        outputs = self.run()
        torch.cuda.synchronize()
        found = errors(outputs, reference)
        if self.graph is None:
            self.outputs = None
        return found

    def sample(self):
        if self.by_host:
            seconds = self._timer.by_host(self.implementation)
        elif self._timer.large:
            seconds = self._timer.between_events(self.run, 1)
        else:
            self.run()
            seconds = self._timer.between_events(self.run, CALLS, self.captured)
        self.samples.append(seconds)

    def release(self):
        self.graph = self.outputs = None
        self.implementation.close()
        self.implementation = None


def errors(outputs, reference):
    """The larger over the outputs of |out - ref|_2 / |ref|_2, and of max |out - ref| / max(|ref|, rms(ref)); infinite when a
    value is not finite or a shape differs."""
    if len(outputs) != len(reference):
        return float("inf"), float("inf")
    norm, largest = 0.0, 0.0
    for out, expected in zip(outputs, reference):
        if out.numel() != expected.numel():
            return float("inf"), float("inf")
        if expected.numel() == 0:
            continue
        expected = expected.reshape(-1)
        difference = (out.reshape(-1).double() - expected).abs_()
        scale = torch.linalg.vector_norm(expected)
        relative = (torch.linalg.vector_norm(difference) / scale).item()
        rms = (scale / expected.numel() ** 0.5).item()
        worst = difference.div_(expected.abs().clamp_(min=rms)).max().item()
        if not (relative < float("inf") and worst < float("inf")):  # NaN is not less either
            return float("inf"), float("inf")
        norm, largest = max(norm, relative), max(largest, worst)
    return norm, largest


def within_bounds(error, data_type):
    return error[0] <= BOUNDS[data_type][0] and error[1] <= BOUNDS[data_type][1]


def copy_bytes_per_second():
    """Bytes read plus bytes written per second of a device-to-device copy, median of 20."""
    source = torch.zeros(COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    seconds = []
    for number in range(25):
        torch.cuda._sleep(QUEUEING_CYCLES)
        start.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        if number >= 5:
            seconds.append(start.elapsed_time(end) * 1e-3)
    seconds.sort()
    return 2 * COPY_BYTES / ((seconds[9] + seconds[10]) / 2)
