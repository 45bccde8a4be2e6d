// CudaBackend's timed runs: once, or back to back as one CUDA graph.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/measure/cuda_backend.h"

namespace fusion {
namespace {

// One graph for each number of runs that was asked for.
class CudaGraphs : public RepeatedLaunches {
 public:
  explicit CudaGraphs(const CudaDriver& driver) : driver_(driver) {}
  ~CudaGraphs() override { Clear(); }
  // Null: none is kept yet.
  CudaGraphExec Find(int repeat) const {
    const auto found = graphs_.find(repeat);
    return found == graphs_.end() ? nullptr : found->second;
  }
  void Keep(int repeat, CudaGraphExec graph) {
    constexpr size_t kMostGraphs = 8;
    if (graphs_.size() == kMostGraphs) Clear();
    graphs_[repeat] = graph;
  }

 private:
  void Clear() {
    for (const auto& [repeat, graph] : graphs_) driver_.GraphExecDestroy(graph);
    graphs_.clear();
  }
  const CudaDriver& driver_;
  std::map<int, CudaGraphExec> graphs_;
};

}  // namespace

absl::Status CudaBackend::Delay(int64_t nanoseconds) {
  uint64_t value = nanoseconds;
  void* arguments[] = {&value};
  return driver_.Check(driver_.LaunchKernel(delay_, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr),
                       "fusion_delay");
}

absl::StatusOr<double> CudaBackend::EventSeconds() {
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventSynchronize(end_), "running"));
  float milliseconds = 0;
  FUSION_RETURN_IF_ERROR(
      driver_.Check(driver_.EventElapsedTime(&milliseconds, start_, end_), "cuEventElapsedTime"));
  // Nothing takes no time, also where there is nothing to launch.
  return std::max(milliseconds * 1e-3, 1e-9);
}

absl::StatusOr<double> CudaBackend::Run(const std::vector<PreparedLaunch>& launches,
                                        const RunOptions& options) {
  for (const MemoryRange& range : options.poison) {
    if (range.bytes == 0) continue;
    // Buffers are multiples of 4 bytes; words are set faster than bytes.
    FUSION_RETURN_IF_ERROR(driver_.Check(
        range.bytes % 4 == 0 ? driver_.MemsetD32Async(range.address, ~0u, range.bytes / 4, stream_)
                             : driver_.MemsetD8Async(range.address, 0xFF, range.bytes, stream_),
        "poisoning"));
  }
  for (const MemoryCopy& copy : options.restore)
    if (copy.from.bytes > 0)
      FUSION_RETURN_IF_ERROR(driver_.Check(
          driver_.MemcpyDtoDAsync(copy.to, copy.from.address, copy.from.bytes, stream_), "restoring"));
  FUSION_RETURN_IF_ERROR(QueueGuards(options.guards));
  if (options.flush_cache) {
    // Written, not read: afterwards the cache is full of changed lines of something else, as it is in a
    // program that runs other kernels before. The run pays for writing them back, and leaves as many of its
    // own unwritten.
    if (flush_buffer_ == 0) {
      flush_bytes_ = std::max<size_t>(2 * static_cast<size_t>(Attribute(kL2CacheBytes)), 64 << 20);
      FUSION_ASSIGN_OR_RETURN(flush_buffer_, Allocate(static_cast<int64_t>(flush_bytes_)));
    }
    FUSION_RETURN_IF_ERROR(driver_.Check(driver_.MemsetD32Async(flush_buffer_, 0, flush_bytes_ / 4, stream_),
                                         "flushing the cache"));
  }
  absl::StatusOr<double> seconds = 0.0;
  if (options.repeat > 1) {
    seconds = RunGraph(launches, options);
  } else {
    if (options.before_launch) options.before_launch();
    FUSION_RETURN_IF_ERROR(Launch(launches, options.lead));
    // While the device waits the host queues everything behind: the time between the events holds no launch
    // latency of the host. About 3 us a launch on a slow host.
    seconds = Time([&] { return Launch(launches); }, 10000 + 5000 * static_cast<int64_t>(launches.size()),
                   [&] { return QueueInspections(options.inspections); });
  }
  if (!seconds.ok()) return seconds;
  if (options.after_run) options.after_run();
  if (!options.inspections.empty()) {
    const auto start = std::chrono::steady_clock::now();
    if (options.repeat > 1) FUSION_RETURN_IF_ERROR(QueueInspections(options.inspections));
    FUSION_ASSIGN_OR_RETURN(options.inspected->found, support_.inspect != nullptr
                                                          ? FetchInspected(options.inspections.size())
                                                          : ExecutionBackend::Inspect(options.inspections));
    options.inspected->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return *seconds / options.repeat;
}

absl::StatusOr<double> CudaBackend::RunGraph(const std::vector<PreparedLaunch>& launches,
                                             const RunOptions& options) {
  std::unique_ptr<RepeatedLaunches> own;  // for this run alone
  std::unique_ptr<RepeatedLaunches>& kept = options.kept != nullptr ? *options.kept : own;
  if (kept == nullptr) kept = std::make_unique<CudaGraphs>(driver_);
  auto& graphs = static_cast<CudaGraphs&>(*kept);
  CudaGraphExec graph = graphs.Find(options.repeat);
  if (graph == nullptr) {
    FUSION_ASSIGN_OR_RETURN(graph, Capture(launches, options.repeat));
    graphs.Keep(options.repeat, graph);
    if (options.before_launch) options.before_launch();
    FUSION_RETURN_IF_ERROR(driver_.Check(driver_.GraphUpload(graph, stream_), "cuGraphUpload"));
  } else if (options.before_launch) {
    options.before_launch();
  }
  FUSION_RETURN_IF_ERROR(Launch(launches, options.lead));
  return Time([&] { return driver_.Check(driver_.GraphLaunch(graph, stream_), "cuGraphLaunch"); }, 50000);
}

absl::StatusOr<double> CudaBackend::Time(const std::function<absl::Status()>& work, int64_t delay_nanoseconds,
                                         const std::function<absl::Status()>& queue_more) {
  FUSION_RETURN_IF_ERROR(Delay(delay_nanoseconds));
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventRecord(start_, stream_), "cuEventRecord"));
  FUSION_RETURN_IF_ERROR(work());
  FUSION_RETURN_IF_ERROR(driver_.Check(driver_.EventRecord(end_, stream_), "cuEventRecord"));
  if (queue_more) FUSION_RETURN_IF_ERROR(queue_more());
  return EventSeconds();
}

absl::Status CudaBackend::Launch(const std::vector<PreparedLaunch>& launches, int times) {
  for (int i = 0; i < times; ++i)
    for (const PreparedLaunch& launch : launches) {
      if (launch.grid <= 0) continue;
      auto* function = static_cast<CudaFunction>(launch.kernel);
      CudaLaunchAttribute attributes[2];
      CudaLaunchConfig config;
      config.grid_x = static_cast<unsigned int>(launch.grid);
      config.block_x = static_cast<unsigned int>(launch.threads);
      config.shared_bytes = static_cast<unsigned int>(launch.shared_bytes);
      config.stream = stream_;
      config.attributes = attributes;
      auto set = [&](CudaLaunchAttributeId id) {
        attributes[config.attribute_count].id = id;
        attributes[config.attribute_count++].value[0] = 1;
      };
      if (launch.cooperative) set(kLaunchCooperative);
      if (launch.programmatic) set(kLaunchProgrammaticSerialization);
      FUSION_RETURN_IF_ERROR(driver_.Check(
          driver_.LaunchKernelEx(&config, function, const_cast<void**>(launch.arguments.data()), nullptr),
          absl::StrCat("launching ", launch.name).c_str()));
    }
  return absl::OkStatus();
}

absl::StatusOr<CudaGraphExec> CudaBackend::Capture(const std::vector<PreparedLaunch>& launches, int repeat) {
  constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  FUSION_RETURN_IF_ERROR(
      driver_.Check(driver_.StreamBeginCapture(stream_, kThreadLocal), "cuStreamBeginCapture"));
  absl::Status captured = Launch(launches, repeat);
  CudaGraph graph = nullptr;
  const absl::Status ended = driver_.Check(driver_.StreamEndCapture(stream_, &graph), "cuStreamEndCapture");
  captured.Update(ended);
  CudaGraphExec exec = nullptr;
  if (captured.ok())
    captured = driver_.Check(driver_.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
  if (graph != nullptr) driver_.GraphDestroy(graph);
  if (!captured.ok()) return captured;
  return exec;
}

}  // namespace fusion
