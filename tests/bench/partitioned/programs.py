"""The programs that partition_device.py measures: PolyBench's kernels as plain C, compiled by clang and by fusion-cc, and with OpenMP's
directives by hand. The sizes are arguments, so that compilers know nothing of them."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(ROOT / "tests" / "integration" / "partition"))

import openmp_kernels
import polybench_kernels as polybench

FLAGS = ["-std=gnu11", "-O3", "-march=x86-64-v3", "-fno-math-errno"]
OFFLOAD = ["-fopenmp", "-fopenmp-targets=nvptx64-nvidia-cuda", "--offload-arch=sm_90"]
SETS = ["MINI", "SMALL", "MEDIUM", "LARGE", "EXTRALARGE"]

# The sizes of PolyBench/C 4.2's five data sets, in the order of SETS.
SIZES = {
    "2mm": "ni=16/40/180/800/1600 nj=18/50/190/900/1800 nk=22/70/210/1100/2200 nl=24/80/220/1200/2400",
    "3mm": "ni=16/40/180/800/1600 nj=18/50/190/900/1800 nk=20/60/200/1000/2000 nl=22/70/210/1100/2200 nm=24/80/220/1200/2400",
    "adi": "tsteps=20/40/100/500/1000 n=20/60/200/1000/2000",
    "atax": "m=38/116/390/1900/1800 n=42/124/410/2100/2200",
    "bicg": "m=38/116/390/1900/1800 n=42/124/410/2100/2200",
    "cholesky": "n=40/120/400/2000/4000",
    "correlation": "m=28/80/240/1200/2600 n=32/100/260/1400/3000",
    "covariance": "m=28/80/240/1200/2600 n=32/100/260/1400/3000",
    "deriche": "w=64/192/720/4096/7680 h=64/128/480/2160/4320",
    "doitgen": "nr=10/25/50/150/250 nq=8/20/40/140/220 np=12/30/60/160/270",
    "durbin": "n=40/120/400/2000/4000",
    "fdtd-2d": "tmax=20/40/100/500/1000 nx=20/60/200/1000/2000 ny=30/80/240/1200/2600",
    "floyd-warshall": "n=60/180/500/2800/5600",
    "gemm": "ni=20/60/200/1000/2000 nj=25/70/220/1100/2300 nk=30/80/240/1200/2600",
    "gemver": "n=40/120/400/2000/4000",
    "gesummv": "n=30/90/250/1300/2800",
    "gramschmidt": "m=20/60/200/1000/2000 n=30/80/240/1200/2600",
    "heat-3d": "tsteps=20/40/100/500/1000 n=10/20/40/120/200",
    "jacobi-1d": "tsteps=20/40/100/500/1000 n=30/120/400/2000/4000",
    "jacobi-2d": "tsteps=20/40/100/500/1000 n=30/90/250/1300/2800",
    "lu": "n=40/120/400/2000/4000",
    "ludcmp": "n=40/120/400/2000/4000",
    "mvt": "n=40/120/400/2000/4000",
    "nussinov": "n=60/180/500/2500/5500",
    "seidel-2d": "tsteps=20/40/100/500/1000 n=40/120/400/2000/4000",
    "symm": "m=20/60/200/1000/2000 n=30/80/240/1200/2600",
    "syr2k": "m=20/60/200/1000/2000 n=30/80/240/1200/2600",
    "syrk": "m=20/60/200/1000/2000 n=30/80/240/1200/2600",
    "trisolv": "n=40/120/400/2000/4000",
    "trmm": "m=20/60/200/1000/2000 n=30/80/240/1200/2600",
}

# `call SECONDS HASH` is printed for each call, `sample SUM` of some entries at the end, `start SECONDS` where a device is started before.
DRIVER_HEAD = polybench.DRIVER_START + r"""/* Four lanes of eight bytes: a product at a time would take longer than some of the kernels. */
static uint64_t hash(uint64_t so_far, const void *memory, size_t bytes)
{
  const uint64_t prime = 1099511628211u;
  uint64_t a = so_far, b = so_far + 1, c = so_far + 2, d = so_far + 3, words[4];
  size_t at = 0;
  for (; at + 32 <= bytes; at += 32) {
    memcpy(words, (const char *)memory + at, 32);
    a = ((a ^ words[0]) * prime) ^ (a >> 29);
    b = ((b ^ words[1]) * prime) ^ (b >> 29);
    c = ((c ^ words[2]) * prime) ^ (c >> 29);
    d = ((d ^ words[3]) * prime) ^ (d >> 29);
  }
  for (; at < bytes; at++) a = (a ^ ((const unsigned char *)memory)[at]) * prime;
  return (((a * prime ^ b) * prime ^ c) * prime ^ d) * prime;
}

static void *allocate(size_t bytes)
{
  void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == NULL) exit(2);
  return memory;
}
"""


def sizes_of(name, data_set):
    """The sizes of a kernel as numbers, in the order of its parameters."""
    values = dict(item.split("=") for item in SIZES[name].split())
    return [int(values[size].split("/")[SETS.index(data_set)]) for size in polybench.KERNELS[name].sizes]


def written(kernel):
    """The arrays that a kernel stores to."""
    return [array for array in kernel.arrays if re.search(rf"\b{array}(\[[^\[\]]*\])+ *[-+*/]?=(?!=)", kernel.body)]


def fill_lines(kernel):
    """C that allocates and fills the arrays, and keeps copies of what the kernel stores to where it is called more than once."""
    lines = []
    for array, dimensions in kernel.arrays.items():
        wish = kernel.inputs.get(array)
        value = f"{'1e-4 * ' if wish == 'tiny' else ''}(.5 + uniform())"
        if kernel.type == "int":
            value = f"(int)({4 if wish == 'bases' else 1000} * uniform())"
        lines += [f"  const size_t {array}_count = (size_t){' * '.join(dimensions)};",
                  f"  {kernel.type} *{array} = allocate(sizeof(*{array}) * {array}_count);",
                  f"  for (size_t k = 0; k < {array}_count; k++) {array}[k] = {value};"]
        if wish == "dominant":
            size = dimensions[0]
            lines.append(f"  for (size_t k = 0; k < {size}; k++) {array}[k * {size} + k] = 2. * {size} + uniform();")
        if array in written(kernel):
            lines += [f"  {kernel.type} *{array}_input = calls > 1 ? allocate(sizeof(*{array}) * {array}_count) : NULL;",
                      f"  if (calls > 1) memcpy({array}_input, {array}, sizeof(*{array}) * {array}_count);"]
    return lines


def driver_text(kernel):
    """The program around a kernel; its arguments are the sizes, and after them the number of calls and the seconds after which none begins."""
    types = ["int"] * len(kernel.sizes) + [kernel.type] * len(kernel.scalars) + ["void *"] * len(kernel.arrays)
    scalars = [value if value in kernel.sizes else repr(value) for value in kernel.scalars.values()]
    count = len(kernel.sizes)
    lines = [DRIVER_HEAD, f"void {kernel.function}({', '.join(types)});", "#ifdef STARTED", "void start_device(void);", "#endif", "",
             "int main(int count, char **arguments)", "{", f"  if (count <= {count}) return 2;"]
    lines += [f"  const int {size} = atoi(arguments[{at}]);" for at, size in enumerate(kernel.sizes, 1)]
    lines += [f"  const int calls = count > {count + 1} ? atoi(arguments[{count + 1}]) : 1;",
              f"  const double longest = count > {count + 2} ? atof(arguments[{count + 2}]) : 1e9;"]
    lines += fill_lines(kernel)
    lines += ["#ifdef STARTED", "  const double begin = now();", "  start_device();", '  printf("start %.6f\\n", now() - begin);', "#endif",
              "  const double first = now();", "  for (int call = 0; call < calls && now() - first < longest; call++) {"]
    lines += [f"    if (call > 0) memcpy({array}, {array}_input, sizeof(*{array}) * {array}_count);" for array in written(kernel)]
    lines += ["    const double call_start = now();", f"    {kernel.function}({', '.join([*kernel.sizes, *scalars, *kernel.arrays])});",
              "    const double taken = now() - call_start;", "    uint64_t so_far = 14695981039346656037u;"]
    lines += [f"    so_far = hash(so_far, {array}, sizeof(*{array}) * {array}_count);" for array in kernel.arrays]
    lines += ['    printf("call %.9f %016llx\\n", taken, (unsigned long long)so_far);', "    fflush(stdout);", "  }", "  double sum_of_all = 0;"]
    lines += [f"  for (size_t k = 0; k < {array}_count; k += 31) sum_of_all += {array}[k];" for array in kernel.arrays]
    lines += ['  printf("sample %.17g\\n", sum_of_all);', "  return 0;", "}", ""]
    return "\n".join(lines)


def openmp_text(kernel):
    """The file of a kernel with OpenMP's directives."""
    head = f"void {kernel.function}({polybench.parameters(kernel, 'vla', {})})"
    start = "void start_device(void)\n{\n  int made = 0;\n#pragma omp target map(tofrom: made)\n  made = 1;\n  if (!made) exit(3);\n}\n"
    return f"#include <math.h>\n#include <stdlib.h>\n\n{start}\n{head}\n{{\n{openmp_kernels.BODIES[kernel.name]}\n}}\n"


def compile_with(command, path=None):
    """Runs a compiler; returns its stderr. Raises RuntimeError where it fails."""
    environment = dict(os.environ, PATH=path) if path else None
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-3000:]}")
    return done.stderr


class Builder:
    """Compiles programs into a folder: sequential/NAME, ours/NAME and openmp/NAME."""

    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(options.output).resolve()
        self.work = self.folder.parent / (self.folder.name + ".work")
        for folder in (self.work, *(self.folder / side for side in ("sequential", "ours", "openmp", "lib", "lib-openmp"))):
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, name, text):
        path = self.work / name
        path.write_text(text)
        return path

    def plain(self, kernel):
        """Both programs of the same text. Returns the remarks about partitioned loops."""
        source = self.write(f"{kernel.name}.c", polybench.text("vla", "large", [kernel.name]))
        driver = self.write(f"{kernel.name}_driver.c", driver_text(kernel))
        compile_with([self.options.plain, *FLAGS, source, driver, "-lm", "-s", "-o", self.folder / "sequential" / kernel.name])
        remarks = compile_with([self.options.cc, *FLAGS, "-Rpass=fusion", source, driver, "-lm", "-s", "-o", self.folder / "ours" / kernel.name])
        return [line.split("remark: loop partitioned: ")[1] for line in remarks.splitlines()
                if "remark: loop partitioned: " in line and "_driver.c:" not in line]

    def same_code(self, kernel):
        """Whether both compilers make the same object of a kernel, byte for byte."""
        objects = []
        for compiler in (self.options.plain, self.options.cc):
            target = self.work / f"{kernel.name}.o"
            compile_with([compiler, *FLAGS, "-c", self.work / f"{kernel.name}.c", "-o", target])
            objects.append(target.read_bytes())
        return objects[0] == objects[1]

    def openmp(self, kernel):
        """The program with OpenMP's directives; its libraries have to be beside it."""
        tools = pathlib.Path(self.options.openmp)
        path = os.pathsep.join([*([self.options.cuda_path + "/bin"] if self.options.cuda_path else []), str(tools / "bin"), "/usr/lib/llvm-19/bin",
                                os.environ["PATH"]])
        source = self.write(f"{kernel.name}_openmp.c", openmp_text(kernel))
        command = [self.options.plain, *FLAGS, "-isystem", tools / "lib/clang/19/include", *OFFLOAD, f"--libomptarget-nvptx-bc-path={tools / 'lib'}",
                   f"-L{tools / 'lib'}"] + ([f"--cuda-path={self.options.cuda_path}"] if self.options.cuda_path else [])
        driver, kernel_object = self.work / f"{kernel.name}_driver.o", self.work / f"{kernel.name}_openmp.o"
        compile_with([self.options.plain, *FLAGS, "-DSTARTED", "-c", self.work / f"{kernel.name}_driver.c", "-o", driver])
        compile_with([*command, "-c", source, "-o", kernel_object], path)
        compile_with([*command, driver, kernel_object, "-lm", "-s", "-o", self.folder / "openmp" / kernel.name], path)

    def build(self, name):
        """What the list of programs says about a kernel."""
        kernel = polybench.KERNELS[name]
        remarks = self.plain(kernel)
        with_openmp = bool(self.options.openmp) and name in openmp_kernels.BODIES
        if with_openmp:
            self.openmp(kernel)
        return {"sizes": {data_set: sizes_of(name, data_set) for data_set in SETS}, "names": list(kernel.sizes), "type": kernel.type,
                "partitioned": len(remarks), "same_code": not remarks and self.same_code(kernel), "marked": kernel.marked, "openmp": with_openmp}


def libraries(options, folder):
    """Copies what the programs load: the run-time library with what stands beside it, and OpenMP's libraries."""
    beside = pathlib.Path(options.cc).resolve().parents[1] / "lib"
    shutil.copy2(beside / "libfusion_partition.so", folder / "lib")
    tuner = beside / "libfusion_partition_tuner.so"
    if tuner.exists():
        shutil.copy2(tuner, folder / "lib")
        listed = subprocess.run(["ldd", str(tuner)], capture_output=True, text=True, check=True).stdout
        for found in re.findall(r"=> (/\S+)", listed):
            if not re.match(r"(libc|libm|libdl|librt|libpthread|libresolv|ld-linux.*|libstdc\+\+|libgcc_s)\.so", pathlib.Path(found).name):
                shutil.copy2(found, folder / "lib" / pathlib.Path(found).name)
    if options.openmp:
        carried = pathlib.Path(options.openmp_lib or pathlib.Path(options.openmp) / "lib")
        names = ["libomp.so.5", "libomptarget.so.19.1"] if not options.openmp_lib else [path.name for path in carried.glob("*.so*")]
        for name in names:
            shutil.copy2((carried / name).resolve(), folder / "lib-openmp" / name)


def check_library(folder, name):
    """Ends the build where the run-time library does not take the loops of a program: a plugin and a library of two versions, which would
    measure the programs as written."""
    if name is None:
        return
    environment = dict(os.environ, LD_LIBRARY_PATH=str(folder / "lib"), FUSION_PARTITION="host", FUSION_PARTITION_REPORT="1", FUSION_DATA_DIR=str(folder) + ".learned",
                       FUSION_PARTITION_LEAST_WORK="0")
    done = subprocess.run([str(folder / "ours" / name), *map(str, sizes_of(name, "MEDIUM"))], env=environment, capture_output=True, text=True, check=False)
    shutil.rmtree(environment["FUSION_DATA_DIR"], ignore_errors=True)
    if done.returncode or "calls" not in done.stderr:
        sys.exit(f"{name}: its loops do not run by libfusion_partition.so; are fusion-cc and the library of one build? {done.stderr[-500:]}")


def build(options):
    """Builds all programs, and the list of them, programs.json."""
    builder = Builder(options)
    names = options.kernels.split(",") if options.kernels else list(SIZES)
    for name in names:
        if sizes_of(name, "LARGE") != list(polybench.KERNELS[name].values("large").values()):
            sys.exit(f"{name}: its LARGE sizes are {list(polybench.KERNELS[name].values('large').values())} elsewhere")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = dict(zip(names, pool.map(builder.build, names)))
    libraries(options, builder.folder)
    check_library(builder.folder, next((name for name, entry in kernels.items() if entry["partitioned"]), None))
    version = subprocess.run([options.plain, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    (builder.folder / "programs.json").write_text(json.dumps({"flags": FLAGS, "compiler": version, "kernels": kernels}, indent=1) + "\n")
    for name, entry in kernels.items():
        print(f"{name}: {entry['partitioned']} loops partitioned, {entry['marked']} marked" + (", OpenMP" if entry["openmp"] else ""))
    return 0
