// The CUDA side of partitioned loops: one device, three streams, and the errors of the runtime as text.
// Compiled by the user's program, with nvcc or with the host's compiler and the runtime's headers; links with
// the CUDA runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "client/tuner/partitioned_loop.h"

namespace fusion {

// All functions return "" or what went wrong. The streams do not wait for the default stream, nor it for
// them: kernels of a device part belong on the stream that it is given. One thread at a time.
class CudaPartitionDevice {
 public:
  using Stream = cudaStream_t;

  // index -1: the device that is current in the calling thread.
  explicit CudaPartitionDevice(int index = -1) : index_(index) {
    int count = 0;
    problem_ = Text("cudaGetDeviceCount", cudaGetDeviceCount(&count));
    if (problem_.empty() && count == 0) problem_ = "CUDA sees no device";
    if (problem_.empty() && index_ < 0) problem_ = Text("cudaGetDevice", cudaGetDevice(&index_));
    if (problem_.empty()) problem_ = Text("cudaSetDevice", cudaSetDevice(index_));
    for (cudaStream_t& stream : streams_) {
      if (problem_.empty())
        problem_ = Text("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    for (auto& events : events_) {
      for (cudaEvent_t& event : events) {
        if (problem_.empty())
          problem_ = Text("cudaEventCreate", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      }
    }
  }
  CudaPartitionDevice(const CudaPartitionDevice&) = delete;
  CudaPartitionDevice& operator=(const CudaPartitionDevice&) = delete;
  ~CudaPartitionDevice() {
    for (cudaStream_t stream : streams_) {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
    for (auto& events : events_) {
      for (cudaEvent_t event : events) {
        if (event != nullptr) cudaEventDestroy(event);
      }
    }
  }

  // Returns why this device cannot be used at all.
  const std::string& Problem() const { return problem_; }
  std::string Name() const {
    cudaDeviceProp properties;
    return problem_.empty() && cudaGetDeviceProperties(&properties, index_) == cudaSuccess ? properties.name
                                                                                           : "";
  }

  std::string Allocate(size_t bytes, void** memory) {
    cudaSetDevice(index_);
    return Text("cudaMalloc", cudaMalloc(memory, bytes));
  }
  void Free(void* memory) {
    cudaSetDevice(index_);
    Text("cudaFree", cudaFree(memory));
  }
  std::string AllocatePinned(size_t bytes, void** memory) {
    cudaSetDevice(index_);
    return Text("cudaHostAlloc", cudaHostAlloc(memory, bytes, cudaHostAllocPortable));
  }
  void FreePinned(void* memory) { Text("cudaFreeHost", cudaFreeHost(memory)); }
  // Returns whether all of the memory is pinned, by the runtime's own allocation or by cudaHostRegister.
  bool IsPinned(const void* memory, size_t bytes) {
    cudaSetDevice(index_);
    const auto pinned = [](const void* byte) {
      cudaPointerAttributes attributes;
      const cudaError_t error = cudaPointerGetAttributes(&attributes, byte);
      return Text("", error).empty() && attributes.type == cudaMemoryTypeHost;
    };
    return pinned(memory) && pinned(static_cast<const char*>(memory) + bytes - 1);
  }
  std::string Pin(void* memory, size_t bytes) {
    return Text("cudaHostRegister", cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
  }
  void Unpin(void* memory) { Text("cudaHostUnregister", cudaHostUnregister(memory)); }

  // A run calls this before it enqueues anything: the thread may have another device.
  std::string Begin() { return Text("cudaSetDevice", cudaSetDevice(index_)); }
  Stream ComputeStream() const { return streams_[static_cast<int>(PartitionStream::kCompute)]; }
  // Copies `rows` rows of `width` bytes, `stride` bytes from one to the next in both memories, on the upload
  // stream.
  std::string Upload(void* device, const void* host, size_t width, size_t rows, size_t stride) {
    return Copy(device, host, width, rows, stride, cudaMemcpyHostToDevice, PartitionStream::kUpload);
  }
  std::string Download(void* host, const void* device, size_t width, size_t rows, size_t stride) {
    return Copy(host, device, width, rows, stride, cudaMemcpyDeviceToHost, PartitionStream::kDownload);
  }
  // Work that comes next on `later` waits for all that is on `earlier` by now. A pair of streams has one
  // event for each chunk.
  std::string Follow(PartitionStream later, PartitionStream earlier, int chunk) {
    cudaEvent_t event = events_[static_cast<int>(earlier)][chunk];
    const std::string error =
        Text("cudaEventRecord", cudaEventRecord(event, streams_[static_cast<int>(earlier)]));
    if (!error.empty()) return error;
    return Text("cudaStreamWaitEvent", cudaStreamWaitEvent(streams_[static_cast<int>(later)], event, 0));
  }
  std::string LaunchError() { return Text("the launch", cudaGetLastError()); }
  // Waits for all three streams, also where one has failed.
  std::string Synchronize() {
    std::string first;
    for (cudaStream_t stream : streams_) {
      const std::string error = Text("cudaStreamSynchronize", cudaStreamSynchronize(stream));
      if (first.empty()) first = error;
    }
    return first;
  }

 private:
  static std::string Text(const char* call, cudaError_t error) {
    if (error == cudaSuccess) return "";
    cudaGetLastError();  // so that the next launch is not blamed for it
    return std::string(call) + ": " + cudaGetErrorString(error);
  }

  std::string Copy(void* to, const void* from, size_t width, size_t rows, size_t stride, cudaMemcpyKind kind,
                   PartitionStream on) {
    const cudaStream_t stream = streams_[static_cast<int>(on)];
    if (rows == 1 || width == stride)
      return Text("cudaMemcpyAsync", cudaMemcpyAsync(to, from, width * rows, kind, stream));
    return Text("cudaMemcpy2DAsync", cudaMemcpy2DAsync(to, stride, from, stride, width, rows, kind, stream));
  }

  int index_;
  std::string problem_;
  cudaStream_t streams_[3] = {};
  cudaEvent_t events_[2][kMaxPartitionChunks] = {};  // of the upload and the compute stream
};

using PartitionedLoop = BasicPartitionedLoop<CudaPartitionDevice>;

}  // namespace fusion
