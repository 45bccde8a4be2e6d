// Checks fused_graph of the exported folder of examples/axpydot.fuse without a device. The functions of the
// CUDA runtime that a capture needs are replaced by ones that count what is open and fail on demand. Exit
// code 0: wherever it fails, fused_graph says so and leaves nothing open. Built into the folder, see
// folders_test.cc.
#include <fused.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace {

struct Fake {
  int fail_at = -1;  // which call of Step fails; -1: none
  int steps = 0;
  int streams = 0, captures = 0, graphs = 0, execs = 0;  // now open
  int loads = 0, launches = 0;

  cudaError_t Step() { return steps++ == fail_at ? cudaErrorUnknown : cudaSuccess; }
  bool NothingOpen() const { return streams == 0 && captures == 0 && graphs == 0 && execs == 0; }
} fake;

char stream_object, graph_object, exec_object;  // what the handles point to
const auto kStream = reinterpret_cast<cudaStream_t>(&stream_object);

void Require(bool condition, const char* text, int line) {
  if (condition) return;
  std::fprintf(stderr, "line %d, fail_at %d: %s\n", line, fake.fail_at, text);
  std::exit(1);
}
#define REQUIRE(condition) Require(condition, #condition, __LINE__)

cudaError_t Launch(cudaStream_t stream) {
  REQUIRE(stream == kStream && fake.captures == 1 && fake.loads > 0);
  ++fake.launches;
  return fake.Step();
}

}  // namespace

extern "C" {

cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 4, cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  REQUIRE(fake.captures == 0);
  ++fake.loads;
  return fake.Step();
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  const cudaError_t error = fake.Step();
  if (error == cudaSuccess) *stream = kStream, ++fake.streams;
  return error;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  REQUIRE(stream == kStream && fake.captures == 0);
  --fake.streams;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  REQUIRE(stream == kStream && mode == cudaStreamCaptureModeThreadLocal);
  const cudaError_t error = fake.Step();
  if (error == cudaSuccess) ++fake.captures;
  return error;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  REQUIRE(stream == kStream && fake.captures == 1);
  --fake.captures;
  const cudaError_t error = fake.Step();
  *graph = nullptr;
  if (error == cudaSuccess) *graph = reinterpret_cast<cudaGraph_t>(&graph_object), ++fake.graphs;
  return error;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  REQUIRE(graph == reinterpret_cast<cudaGraph_t>(&graph_object));
  --fake.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t, unsigned long long) {
  REQUIRE(fake.graphs == 1);
  const cudaError_t error = fake.Step();
  if (error == cudaSuccess) *exec = reinterpret_cast<cudaGraphExec_t>(&exec_object), ++fake.execs;
  return error;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  REQUIRE(config->gridDim.x > 0 && config->blockDim.x > 0);
  return Launch(config->stream);
}

}  // extern "C"

int main() {
  float memory[4] = {};
  char workspace[1 << 16];
  cudaGraphExec_t exec;
  auto graph = [&](float* z, int64_t n, size_t workspace_bytes, int repetitions) {
    exec = reinterpret_cast<cudaGraphExec_t>(&memory);  // a failure must replace it
    return fused_graph(memory, memory, memory, 2.0f, z, memory, n, workspace, workspace_bytes, repetitions,
                       &exec);
  };
  auto left_nothing = [&] { return exec == nullptr && fake.NothingOpen(); };

  REQUIRE(fused_workspace_bytes(4) <= sizeof(workspace));
  REQUIRE(fused_graph(memory, memory, memory, 2.0f, memory, memory, 4, workspace, sizeof(workspace), 1,
                      nullptr) == FUSED_INVALID_ARGUMENT);
  REQUIRE(fake.NothingOpen());
  REQUIRE(graph(memory, 4, sizeof(workspace), 0) == FUSED_INVALID_ARGUMENT && left_nothing());
  REQUIRE(graph(memory, -1, sizeof(workspace), 1) == FUSED_INVALID_ARGUMENT && left_nothing());
  REQUIRE(graph(nullptr, 4, sizeof(workspace), 1) == FUSED_INVALID_ARGUMENT && left_nothing());
  if (fused_workspace_bytes(4) > 0)
    REQUIRE(graph(memory, 4, 0, 1) == FUSED_WORKSPACE_TOO_SMALL && left_nothing());
  REQUIRE(fake.launches == 0);

  for (const int64_t n : {0, 4}) {
    fake = Fake();
    REQUIRE(graph(memory, n, sizeof(workspace), 1) == FUSED_OK);
    const int of_one_call = fake.launches;
    fake = Fake();
    REQUIRE(graph(memory, n, sizeof(workspace), 20) == FUSED_OK);
    REQUIRE(fake.launches == 20 * of_one_call && (n == 0 || of_one_call > 0));
    REQUIRE(exec != nullptr && fake.streams == 0 && fake.captures == 0 && fake.graphs == 0 &&
            fake.execs == 1);
  }
  const int steps = fake.steps;
  REQUIRE(steps >= 24);  // the kernel, the stream, the beginning, 20 launches, the end, the instance
  for (int i = 0; i < steps; ++i) {
    fake = Fake();
    fake.fail_at = i;
    REQUIRE(graph(memory, 4, sizeof(workspace), 20) == FUSED_DEVICE_ERROR && left_nothing());
  }
  std::printf("%d failures reported\n", steps);
  return 0;
}
