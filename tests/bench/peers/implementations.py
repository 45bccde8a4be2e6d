"""The implementations that are compared, each a call without arguments on the same data. Needs torch and a GPU.

make(peer, data, options) gives an implementation whose __call__ computes the outputs once, on torch's current stream if
`on_stream`, and returns them in order; raises Missing when the peer is not on this machine or has no such sequence.
"""
import ctypes
import functools
import glob
import math
import os
import site

import torch

import sequences
import torch_sequences
from fused_program import FusedProgram

DEVICE = "cuda"
TORCH_TYPES = {"f32": torch.float32, "f64": torch.float64}
CUBLAS_WORKSPACE_BYTES = 32 << 20


class Missing(Exception):
    """This peer cannot be compared here; the text says why."""


class Data:
    """Inputs, output buffers and the f64 reference of a case. `device`: where the tensors are."""

    def __init__(self, case, device=DEVICE):
        self.case = case
        self.sequence = sequences.BY_NAME[case.sequence]
        self.type = TORCH_TYPES[case.type]
        self.scalars = self.sequence.scalar_values(case.side)
        generator = torch.Generator(device=device).manual_seed(20090 + sum(self.sequence.letters(case.side).values()))
        low, high = (0.25, 1.25) if self.sequence.positive else (-1.0, 1.0)
        self.inputs = {}
        for name, text in self.sequence.inputs.items():
            tensor = torch.empty(self.sequence.shape(text, case.side), dtype=self.type, device=device)
            self.inputs[name] = tensor.uniform_(low, high, generator=generator)
        self.outputs = {name: torch.empty(self.sequence.shape(text, case.side), dtype=self.type, device=device)
                        for name, text in self.sequence.outputs.items()}

    def reference(self):
        """The outputs by torch in f64, one operation after the other."""
        function = torch_sequences.SEQUENCES[self.sequence.function]
        wide = [tensor.double() for tensor in self.inputs.values()]
        return function(*wide, **torch_sequences.keywords(self.scalars))

    def poison(self):
        for tensor in self.outputs.values():
            tensor.fill_(math.nan)


def _on_device(size):
    memory = torch.empty(max(size, 1), dtype=torch.uint8, device=DEVICE)
    return memory.data_ptr(), memory


class Ours:
    """The folder of rank 1 that fusion-client wrote, loaded without a compiler."""
    capturable = on_stream = True

    def __init__(self, data, folder):
        self._program = FusedProgram(folder, _on_device)
        for buffer in self._program.inputs + self._program.outputs:
            tensor = {**data.inputs, **data.outputs}.get(buffer["name"])
            if tensor is not None and tensor.numel() != int(buffer["count"]):
                raise ValueError(f"{folder}: {buffer['name']} has {buffer['count']} entries, the data {tensor.numel()}")
        try:
            self._bound = self._program.bind(data.inputs, data.outputs, data.scalars)
        except Exception:
            self._program.close()
            raise
        self._outputs = tuple(data.outputs.values())

    def __call__(self):
        self._bound.launch(torch.cuda.current_stream().cuda_stream)
        return self._outputs

    def close(self):
        self._program.close()


def cublas_candidates():
    """Where cuBLAS may be: what torch has loaded or brought, then the system's."""
    names = ["libcublas.so.13", "libcublas.so.12"]
    found = []
    for folder in {os.path.dirname(os.path.dirname(torch.__file__)), *site.getsitepackages()}:
        for name in names:
            found += sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", name)))
    major = (torch.version.cuda or "").split(".")[0]
    wanted = sorted(names, key=lambda name: not name.endswith("." + major))
    return wanted + found + ["/usr/local/cuda/lib64/libcublas.so"]


@functools.lru_cache
def open_cublas(path):
    """The compiled sequences with cuBLAS loaded. Its workspace lives as long as the process."""
    if not path or not os.path.exists(path):
        raise Missing("libfusion_cublas_sequences.so was not built (no CUDA headers) or is not in the package")
    library = ctypes.CDLL(path)
    library.fusion_cublas_error.restype = ctypes.c_char_p
    library.fusion_cublas_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    library.fusion_cublas_run.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64,
                                          ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p]
    address, owner = _on_device(CUBLAS_WORKSPACE_BYTES)
    library.workspace = owner
    for candidate in cublas_candidates():
        if library.fusion_cublas_open(candidate.encode(), address, CUBLAS_WORKSPACE_BYTES) == 0:
            return library
    raise Missing(f"cuBLAS: {library.fusion_cublas_error().decode()}")


def cublas_version(path):
    version = ctypes.c_int()
    return version.value if open_cublas(path).fusion_cublas_version(ctypes.byref(version)) == 0 else None


class Cublas:
    capturable = on_stream = True

    def __init__(self, data, path):
        if data.sequence.cublas is None:
            raise Missing("cuBLAS has no calls for this")
        self._library = open_cublas(path)
        self._number = self._library.fusion_cublas_find(data.sequence.name.encode())
        if self._number < 0:
            raise Missing("the library has no such sequence")
        side = data.case.side
        self._temporaries = [torch.empty(data.sequence.shape(text, side), dtype=data.type, device=DEVICE)
                             for text in data.sequence.cublas.values()]
        buffers = [*data.inputs.values(), *data.outputs.values(), *self._temporaries]
        self._buffers = (ctypes.c_void_p * len(buffers))(*(tensor.data_ptr() for tensor in buffers))
        self._scalars = (ctypes.c_double * max(len(data.scalars), 1))(*data.scalars.values())
        letters = data.sequence.letters(side)
        rows = letters.get("m", letters["n"])
        self._arguments = (self._number, sequences.ENTRY_BYTES[data.case.type], rows, letters["n"])
        self._outputs = tuple(data.outputs.values())

    def __call__(self):
        result = self._library.fusion_cublas_run(*self._arguments, self._scalars, self._buffers,
                                                 torch.cuda.current_stream().cuda_stream)
        if result:
            raise RuntimeError(self._library.fusion_cublas_error().decode())
        return self._outputs

    def close(self):
        pass


class Torch:
    """Eager, or compiled with a mode. max-autotune replays CUDA graphs of its own, so it cannot be captured into another."""
    on_stream = True

    def __init__(self, data, function, mode=None):
        scalars = torch_sequences.keywords(data.scalars)
        self._inputs = list(data.inputs.values())
        self._own_graphs = mode == "max-autotune"
        self.capturable = not self._own_graphs

        def run(*inputs):
            return function(*inputs, **scalars)

        if mode:
            if self._own_graphs:  # or every replay copies the inputs first
                for tensor in self._inputs:
                    torch._dynamo.mark_static_address(tensor)
            run = torch.compile(run, mode=mode, dynamic=False, fullgraph=True)
        self._run = run

    def __call__(self):
        if self._own_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            return self._run(*self._inputs)

    def close(self):
        self._run = None


class Jax:
    """Runs on a stream of its own, so it is timed from the host over many calls."""
    capturable = on_stream = False

    def __init__(self, data):
        try:
            import jax
            import jax_sequences
        except Exception as error:  # a broken installation is a missing one
            raise Missing(f"JAX cannot be imported: {error}") from error
        if jax.default_backend() not in ("gpu", "cuda"):
            raise Missing(f"JAX has no GPU here, only {jax.default_backend()}")
        self._to_torch = functools.partial(jax_sequences.to_torch, torch)
        self._wait = jax.block_until_ready
        torch.cuda.synchronize()
        self._inputs = [jax_sequences.from_torch(tensor) for tensor in data.inputs.values()]
        self._run = jax_sequences.compiled(data.sequence.function, torch_sequences.keywords(data.scalars))

    def call(self):
        """One asynchronous call; what it returns is not looked at."""
        return self._run(*self._inputs)

    def wait(self, outputs):
        self._wait(outputs)

    def __call__(self):
        outputs = self._run(*self._inputs)
        self._wait(outputs)
        return tuple(self._to_torch(output) for output in outputs)

    def close(self):
        self._run = self._inputs = None


def make(peer, data, folder, cublas_library):
    """An implementation of a case; see Missing."""
    name = data.sequence.function
    if peer == "ours":
        return Ours(data, folder)
    if peer == "cublas":
        return Cublas(data, cublas_library)
    if peer == "jax":
        return Jax(data)
    if peer == "compile_products" and name not in torch_sequences.PRODUCTS:
        raise Missing("no mapped products in this sequence")
    functions = torch_sequences.PRODUCTS if peer == "compile_products" else torch_sequences.SEQUENCES
    mode = {"eager": None, "compile": "max-autotune-no-cudagraphs", "compile_graphs": "max-autotune",
            "compile_products": "max-autotune-no-cudagraphs"}[peer]
    return Torch(data, functions[name], mode)
