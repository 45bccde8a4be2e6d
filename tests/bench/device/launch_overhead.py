#!/usr/bin/env python3
"""What a call of an exported folder's fused_launch costs the host beside bare launches of the same kernels, on the GPU of this machine.

    tests/bench/device/launch_overhead.py FOLDER... --size n=1024 --size m=1024     # exported CUDA folders; needs nvcc

Each folder's code is compiled into a program that records the launches of one call, and then times, in turn, calls, and the same launches with
arguments and attributes at hand. A second pair are replays: of the graph that fused_graph made, and of one captured from the bare launches.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HARNESS = r"""
#include <cuda_runtime.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>
struct Recorded {
  cudaLaunchConfig_t config;
  std::vector<cudaLaunchAttribute> attributes;
  const void* kernel;
  std::vector<std::vector<char>> values;
  std::vector<void*> arguments;
};
static std::vector<Recorded> recorded;
static bool recording = false;
static cudaError_t RecordedLaunch(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  if (recording) {
    Recorded r{*config, {config->attrs, config->attrs + config->numAttrs}, kernel, {}, {}};
    size_t offset = 0, size = 0;
    cudaFunction_t function;
    if (cudaGetFuncBySymbol(&function, kernel) != cudaSuccess) return cudaErrorUnknown;
    for (size_t i = 0; cudaFuncGetParamInfo(kernel, i, &offset, &size) == cudaSuccess; ++i)
      r.values.emplace_back((char*)arguments[i], (char*)arguments[i] + size);
    cudaGetLastError();
    recorded.push_back(std::move(r));
  }
  return cudaLaunchKernelExC(config, kernel, arguments);
}
#define cudaLaunchKernelExC RecordedLaunch
#include "fused.cu"
#undef cudaLaunchKernelExC
static cudaStream_t stream;
static int Bare() {
  for (Recorded& r : recorded)
    if (cudaLaunchKernelExC(&r.config, r.kernel, r.arguments.data()) != cudaSuccess) return 1;
  return 0;
}
template <class Call>
static double MicrosecondsOf(Call call) {
  constexpr int kCalls = 100;  // fewer than a stream holds
  cudaStreamSynchronize(stream);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i)
    if (call() != 0) return -1;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  cudaStreamSynchronize(stream);
  return seconds / kCalls * 1e6;
}
static double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
template <class A, class B>
static void Compare(const char* what, A a, B b) {
  std::vector<double> of_a, of_b;
  for (int round = 0; round < 101; ++round) of_a.push_back(MicrosecondsOf(a)), of_b.push_back(MicrosecondsOf(b));
  std::printf(" %s %.2f us, bare %.2f us, %+.2f;", what, Median(of_a), Median(of_b), Median(of_a) - Median(of_b));
}
int main() {
  cudaStreamCreate(&stream);
  POINTERS
  const size_t workspace_bytes = fused_workspace_bytes(SIZES);
  void* workspace;
  cudaMalloc(&workspace, workspace_bytes + 256);
  const auto call = [&] { return fused_launch(ARGUMENTS, workspace, workspace_bytes, stream); };
  recording = true;
  if (const int code = call(); code != 0) return std::printf("fused_launch: %s\n", fused_error_string(code)), 1;
  recording = false;
  for (Recorded& r : recorded) {
    r.config.attrs = r.attributes.data();
    for (auto& value : r.values) r.arguments.push_back(value.data());
  }
  std::printf("%zu kernels:", recorded.size());
  Compare("fused_launch", call, Bare);
  cudaGraphExec_t ours, bare;
  cudaGraph_t graph;
  if (fused_graph(ARGUMENTS, workspace, workspace_bytes, 1, &ours) != 0) return 1;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (Recorded& r : recorded) r.config.stream = stream;
  if (Bare() != 0) return 1;
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || cudaGraphInstantiate(&bare, graph, 0) != cudaSuccess) return 1;
  Compare("replay", [&] { return (int)cudaGraphLaunch(ours, stream); }, [&] { return (int)cudaGraphLaunch(bare, stream); });
  std::printf(" %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--size", action="append", default=[], help="NAME=VALUE")
    parser.add_argument("--arch", default="native")
    arguments = parser.parse_args()
    sizes = dict(size.split("=") for size in arguments.size)
    for folder in arguments.folders:
        prototype = re.search(r"int fused_launch\(([^)]*)\)", pathlib.Path(folder, "fused.h").read_text()).group(1)
        pointers, values, of_sizes = [], [], []
        for parameter in prototype.split(",")[:-3]:
            name = parameter.split()[-1]
            if "*" in parameter:
                kind = parameter.replace("const", "").split("*")[0].strip()
                pointers.append(f"{kind}* p_{name}; cudaMalloc(&p_{name}, 64 << 20); cudaMemset(p_{name}, 0, 64 << 20);")
                values.append(f"p_{name}")
            elif name.startswith("n_"):
                if name[2:] not in sizes:
                    sys.exit(f"{folder}: --size {name[2:]}=VALUE is missing")
                of_sizes.append(sizes[name[2:]])
            else:
                values.append("1")
        text = HARNESS.replace("POINTERS", " ".join(pointers)).replace("SIZES", ", ".join(of_sizes)).replace("ARGUMENTS", ", ".join(values + of_sizes))
        with tempfile.TemporaryDirectory() as build:
            pathlib.Path(build, "main.cu").write_text(text)
            subprocess.run(["nvcc", "-O3", "-std=c++17", f"-arch={arguments.arch}", "-I", folder, f"{build}/main.cu", "-o", f"{build}/main"], check=True)
            print(folder, subprocess.run([f"{build}/main"], capture_output=True, text=True, check=False).stdout.strip(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
