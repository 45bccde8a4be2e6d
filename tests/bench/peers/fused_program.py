"""Loads the `binary` part of an exported folder (fusion.v1.LoadableProgram and cubins) and launches it.

Needs the NVIDIA driver alone: no compiler, no CUDA Toolkit. Everything is resolved when a program is bound to its buffers,
so launching allocates nothing and synchronizes nothing: it can be captured into a CUDA graph.

    program = FusedProgram("folder", allocate)
    bound = program.bind(inputs, outputs, scalars)    # device addresses by name; values by name
    bound.launch(stream)                              # a CUstream as an integer

Structures and numbers as in cuda.h of the CUDA Toolkit 12 and 13.
"""
import ctypes
import json
import pathlib

COOPERATIVE = 2                 # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
CLUSTER_DIMENSION = 4           # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
PROGRAMMATIC_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
MAX_DYNAMIC_SHARED_BYTES = 8    # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14       # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
PORTABLE_CLUSTER = 8            # blocks

ENTRY_BYTES = {"F32": 4, "F64": 8}
ALIGNMENT = 256
KNOWN_LAUNCH_FIELDS = {"binary", "kernel", "grid", "threads", "shared_bytes", "arguments", "cooperative", "programmatic",
                       "cluster"}


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id, padded to 8 bytes, and a union of 64 bytes."""
    _fields_ = [("id", ctypes.c_uint32), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [("grid_x", ctypes.c_uint32), ("grid_y", ctypes.c_uint32), ("grid_z", ctypes.c_uint32),
                ("block_x", ctypes.c_uint32), ("block_y", ctypes.c_uint32), ("block_z", ctypes.c_uint32),
                ("shared_bytes", ctypes.c_uint32), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(LaunchAttribute)), ("attribute_count", ctypes.c_uint32)]


class DriverError(RuntimeError):
    """A driver call failed; says which, and the driver's name of the error."""


class MisalignedError(ValueError):
    """A buffer is not aligned as the kernels of the folder need it."""


class Driver:
    """The driver calls used here. The caller's thread has a current context (with torch: after torch.cuda.init and a first
    allocation); without one, that of device 0 is made current."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")
        self.check(self._library.cuInit(0), "cuInit")
        context = ctypes.c_void_p()
        self.check(self._library.cuCtxGetCurrent(ctypes.byref(context)), "cuCtxGetCurrent")
        if not context.value:
            self.check(self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
            self.check(self._library.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        self._launch = self._library.cuLaunchKernelEx
        self._launch.argtypes = [ctypes.POINTER(LaunchConfig), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

    def check(self, result, what):
        if result == 0:
            return
        name = ctypes.c_char_p()
        self._library.cuGetErrorName(result, ctypes.byref(name))
        raise DriverError(f"{what}: {name.value.decode() if name.value else 'unknown error'} ({result})")

    def load_module(self, image):
        module = ctypes.c_void_p()
        self.check(self._library.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(image)), "cuModuleLoadData")
        return module.value

    def unload_module(self, module):
        self.check(self._library.cuModuleUnload(ctypes.c_void_p(module)), "cuModuleUnload")

    def find_kernel(self, module, name):
        function = ctypes.c_void_p()
        result = self._library.cuModuleGetFunction(ctypes.byref(function), ctypes.c_void_p(module), name.encode())
        self.check(result, f"kernel {name}")
        return function.value

    def set_attribute(self, function, attribute, value):
        self.check(self._library.cuFuncSetAttribute(ctypes.c_void_p(function), attribute, value), "cuFuncSetAttribute")

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.check(self._library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(size, 1))), "cuMemAlloc")
        return address.value

    def free(self, address):
        self.check(self._library.cuMemFree_v2(ctypes.c_uint64(address)), "cuMemFree")

    def zero(self, address, size):
        self.check(self._library.cuMemsetD8_v2(ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(size)),
                   "cuMemsetD8")
        self.check(self._library.cuCtxSynchronize(), "cuCtxSynchronize")

    def launch(self, config, function, parameters):
        result = self._launch(config, function, parameters, None)
        if result:
            self.check(result, "cuLaunchKernelEx")


class FusedProgram:
    """A loaded program. Owns its device code, temporaries and workspace, all filled with zeros once.

    allocate(bytes) -> (address, owner): where memory comes from; the owner is kept. Default: the driver, freed by close().
    Raises DriverError, and ValueError for a folder that asks for what this loader does not know.
    """

    def __init__(self, folder, allocate=None, driver=None):
        binary = pathlib.Path(folder) / "binary"
        self.description = json.loads((binary / "program.json").read_text())
        self.program = self.description["program"]
        self.inputs = self.description["inputs"]
        self.outputs = self.description["outputs"]
        self.pointer_alignment = int(self.description.get("pointer_alignment", 0))
        for launch in self.program["launches"]:
            unknown = sorted(key for key, value in launch.items() if key not in KNOWN_LAUNCH_FIELDS and value)
            if unknown:
                raise ValueError(f"{folder}: kernel {launch['kernel']} is launched with {', '.join(unknown)}, "
                                 "which this loader does not know")
        self._driver = driver or Driver()
        self._owned, self._memory, self._modules = [], [], {}
        self._kernels = []
        for launch in self.program["launches"]:
            digest = launch["binary"]
            if digest not in self._modules:
                image = (binary / (digest.removeprefix("sha256:") + ".cubin")).read_bytes()
                self._modules[digest] = self._driver.load_module(image)
            kernel = self._driver.find_kernel(self._modules[digest], launch["kernel"])
            shared = int(launch["shared_bytes"])
            if shared > 0:
                self._driver.set_attribute(kernel, MAX_DYNAMIC_SHARED_BYTES, shared)
            if int(launch.get("cluster", 0)) > PORTABLE_CLUSTER:
                self._driver.set_attribute(kernel, NON_PORTABLE_CLUSTER, 1)
            self._kernels.append(kernel)
        sizes = [ENTRY_BYTES[t["data_type"]] * int(t["count"]) for t in self.program["temporaries"]]
        sizes.append(int(self.program["workspace_bytes"]))
        starts, total = [], 0
        for size in sizes:
            starts.append(total)
            total += (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        base = self._allocate(total, allocate) if total else 0
        self._temporaries = {t["id"]: base + start for t, start in zip(self.program["temporaries"], starts)}
        self._workspace = base + starts[-1]

    def _allocate(self, size, allocate):
        if allocate is None:
            address = self._driver.allocate(size)
            self._owned.append(address)
        else:
            address, owner = allocate(size)
            self._memory.append(owner)
            if self.pointer_alignment and address % self.pointer_alignment:
                raise MisalignedError(f"the memory for intermediate results is at {address:#x}, no multiple of the {self.pointer_alignment} "
                                      "bytes that these kernels need")
        self._driver.zero(address, size)
        return address

    def bind(self, inputs, outputs, scalars):
        """Fixes the buffers: {name: device address or tensor} and, for inputs by value, {name: number}. The caller keeps
        them alive. KeyError: one is not given. MisalignedError: one is not aligned as the kernels need it."""
        def address(name, places):
            place = places[name]
            found = place if isinstance(place, int) else place.data_ptr()
            if self.pointer_alignment and found % self.pointer_alignment:
                raise MisalignedError(f"{name} is at {found:#x}, no multiple of the {self.pointer_alignment} bytes that these kernels need")
            return found

        addresses, values = dict(self._temporaries), {}
        for buffer in self.inputs:
            if buffer["by_value"]:
                kind = ctypes.c_double if buffer["data_type"] == "F64" else ctypes.c_float
                values[buffer["id"]] = kind(scalars[buffer["name"]])
            else:
                addresses[buffer["id"]] = address(buffer["name"], inputs)
        for buffer in self.outputs:
            addresses[buffer["id"]] = address(buffer["name"], outputs)
        launches = []
        for launch, kernel in zip(self.program["launches"], self._kernels):
            arguments = [self._argument(argument, addresses, values) for argument in launch["arguments"]]
            launches.append(_BoundLaunch(launch, kernel, arguments))
        return BoundProgram(self, self._driver, launches)

    def _argument(self, argument, addresses, values):
        if "buffer" in argument:
            return ctypes.c_uint64(addresses[argument["buffer"]])
        if "scalar_buffer" in argument:
            return values[argument["scalar_buffer"]]
        if "integer" in argument:
            return ctypes.c_int64(int(argument["integer"]))
        if "workspace_offset" in argument:
            return ctypes.c_uint64(self._workspace + int(argument["workspace_offset"]))
        raise ValueError(f"an argument of a kind that this loader does not know: {argument}")

    def launch(self, stream, inputs, outputs, scalars):
        """bind and launch at once."""
        self.bind(inputs, outputs, scalars).launch(stream)

    def close(self):
        """Unloads the code and frees what the driver allocated. No launch may be pending."""
        for module in self._modules.values():
            self._driver.unload_module(module)
        for address in self._owned:
            self._driver.free(address)
        self._modules, self._owned, self._memory = {}, [], []


class _BoundLaunch:
    def __init__(self, launch, kernel, arguments):
        self.kernel = kernel
        self._arguments = arguments
        self.parameters = (ctypes.c_void_p * max(len(arguments), 1))(
            *(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
        wanted = []
        if launch.get("cooperative"):
            wanted.append((COOPERATIVE, [1]))
        if launch.get("programmatic"):
            wanted.append((PROGRAMMATIC_SERIALIZATION, [1]))
        if int(launch.get("cluster", 0)) > 1:
            wanted.append((CLUSTER_DIMENSION, [int(launch["cluster"]), 1, 1]))
        self._attributes = (LaunchAttribute * max(len(wanted), 1))()
        for attribute, (number, value) in zip(self._attributes, wanted):
            attribute.id = number
            attribute.value[:len(value)] = value
        self.config = LaunchConfig(
            int(launch["grid"]), 1, 1, int(launch["threads"]), 1, 1, int(launch["shared_bytes"]), None,
            ctypes.cast(self._attributes, ctypes.POINTER(LaunchAttribute)), len(wanted))


class BoundProgram:
    """A program with its buffers. Not thread safe."""

    def __init__(self, program, driver, launches):
        self._program = program  # keeps code and workspace alive
        self._driver = driver
        self._launches = launches

    def launch(self, stream):
        """Puts all kernels on the stream, in order. Asynchronous; capturable."""
        for launch in self._launches:
            launch.config.stream = stream
            self._driver.launch(launch.config, launch.kernel, launch.parameters)
