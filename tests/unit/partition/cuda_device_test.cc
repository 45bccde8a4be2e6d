// The CUDA device, with a driver that is a few functions of this test, and with the real one where there is
// one.
#include "client/partition/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "client/partition/array_copies.h"
#include "tests/unit/partition/test_site.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kIllegalAddress = 700;
constexpr int kInvalidPtx = 218;
constexpr int kNotFound = 500;

struct FakeKernel {
  fusion_partition_body body;
  uint32_t context_bytes;
  void (*column)(int64_t iteration, int64_t column, void* context) = nullptr;  // of kernels by columns
};

// A GPU whose memory is the process's and whose kernels are the loops' bodies.
struct FakeGpu {
  ~FakeGpu() {
    for (const auto& [address, bytes] : blocks)
      ::operator delete (reinterpret_cast<void*>(address), std::align_val_t{256});
  }

  std::map<std::string, FakeKernel> kernels;
  std::map<uint64_t, size_t> blocks;
  std::vector<std::unique_ptr<char[]>> pinned;
  int64_t failing_call = 0;  // counted from 1; 0: none fails
  bool stays_broken = false;
  int error = kIllegalAddress;
  bool takes_code = true, keeps_grids_only = false;

  int64_t calls = 0, launches = 0, modules = 0, functions = 0, pool_blocks = 0;
  uint64_t pool_keeps = 0;
  std::vector<std::pair<int64_t, int64_t>> grids;     // the iterations of each launch
  int context = 0, stream = 0, pool = 0, module = 0;  // their addresses are what the driver gives
};

FakeGpu* g_gpu = nullptr;
thread_local std::vector<void*> t_contexts;

int CallGpu() {
  ++g_gpu->calls;
  if (g_gpu->failing_call == 0 || g_gpu->calls < g_gpu->failing_call) return 0;
  return g_gpu->calls == g_gpu->failing_call || g_gpu->stays_broken ? g_gpu->error : 0;
}

// Calls that need the device's context.
int CallGpuInContext() {
  EXPECT_FALSE(t_contexts.empty());
  EXPECT_EQ(t_contexts.back(), &g_gpu->context);
  return CallGpu();
}

bool IsInBlock(uint64_t address, size_t bytes) {
  auto block = g_gpu->blocks.upper_bound(address);
  if (block == g_gpu->blocks.begin()) return false;
  --block;
  return address + bytes <= block->first + block->second;
}

int FakeAllocate(uint64_t* address, size_t bytes) {
  if (const int error = CallGpuInContext()) return error;
  void* const memory = ::operator new (bytes, std::align_val_t{256});
  std::memset(memory, 0xA5, bytes);
  *address = reinterpret_cast<uint64_t>(memory);
  g_gpu->blocks.emplace(*address, bytes);
  return 0;
}

int FakeFree(uint64_t address) {
  if (const int error = CallGpuInContext()) return error;
  EXPECT_EQ(g_gpu->blocks.erase(address), 1u);
  ::operator delete (reinterpret_cast<void*>(address), std::align_val_t{256});
  return 0;
}

int FakeLaunch(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
               unsigned block_y, unsigned block_z, unsigned, void* stream, void** parameters, void**) {
  if (const int error = CallGpuInContext()) return error;
  EXPECT_EQ(stream, &g_gpu->stream);
  EXPECT_EQ(grid_z * block_z, 1u);
  const FakeKernel& kernel = *static_cast<const FakeKernel*>(function);
  const int64_t first = *static_cast<int64_t*>(parameters[0]), last = *static_cast<int64_t*>(parameters[1]);
  const int64_t threads = static_cast<int64_t>(grid_x) * block_x;
  ++g_gpu->launches;
  g_gpu->grids.push_back({first, last});
  if (g_gpu->keeps_grids_only) return 0;
  std::vector<char> context(kernel.context_bytes);
  std::memcpy(context.data(), parameters[2], kernel.context_bytes);
  if (kernel.column != nullptr) {
    const int64_t constant = *static_cast<int64_t*>(parameters[3]),
                  slope = *static_cast<int64_t*>(parameters[4]);
    const int64_t height = static_cast<int64_t>(grid_y) * block_y;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t i = first + y; i < last; i += height)
        for (int64_t x = 0; x < threads; ++x)
          if (x <= std::max<int64_t>(constant + slope * i, 0)) kernel.column(i, x, context.data());
    return 0;
  }
  EXPECT_EQ(grid_y * block_y, 1u);
  EXPECT_GE(threads, last - first);
  for (int64_t thread = 0; thread < threads; ++thread)
    if (first + thread < last) kernel.body(first + thread, first + thread + 1, context.data());
  return 0;
}

int FakeLoadModule(void** module, const void* image, unsigned options, int* option, void** values) {
  if (const int error = CallGpuInContext()) return error;
  ++g_gpu->modules;
  EXPECT_EQ(options, 2u);
  EXPECT_EQ(option[0], kCudaErrorLog);
  EXPECT_EQ(option[1], kCudaErrorLogBytes);
  if (!g_gpu->takes_code) {
    std::snprintf(static_cast<char*>(values[0]), reinterpret_cast<size_t>(values[1]), "line 1; %s is wrong\n",
                  static_cast<const char*>(image));
    return kInvalidPtx;
  }
  *module = &g_gpu->module;
  return 0;
}

int FakeFunction(void** function, void* module, const char* name) {
  if (const int error = CallGpuInContext()) return error;
  ++g_gpu->functions;
  EXPECT_EQ(module, &g_gpu->module);
  const auto found = g_gpu->kernels.find(name);
  if (found == g_gpu->kernels.end()) return kNotFound;
  *function = &found->second;
  return 0;
}

CudaDriver FakeDriver(bool has_pools) {
  CudaDriver driver{};
  driver.init = [](unsigned) { return CallGpu(); };
  driver.error_text = [](int error, const char** text) {
    *text = "an illegal address";
    return error == kIllegalAddress ? 0 : 1;
  };
  driver.device = [](int*, int) { return CallGpu(); };
  driver.device_attribute = [](int* value, int attribute, int) {
    *value = attribute == kCudaHasPools ? 1 : attribute == kCudaMultiprocessors ? 4 : 0;
    return CallGpu();
  };
  driver.retain_context = [](void** context, int) {
    *context = &g_gpu->context;
    return CallGpu();
  };
  driver.push_context = [](void* context) {
    const int error = CallGpu();
    if (error == 0) t_contexts.push_back(context);
    return error;
  };
  driver.pop_context = [](void** context) {
    *context = t_contexts.back();
    t_contexts.pop_back();
    return CallGpu();
  };
  driver.create_stream = [](void** stream, unsigned flags) {
    EXPECT_EQ(flags, 1u);
    *stream = &g_gpu->stream;
    return CallGpuInContext();
  };
  driver.synchronize = [](void*) { return CallGpuInContext(); };
  driver.allocate = FakeAllocate;
  driver.free = FakeFree;
  driver.upload = [](uint64_t to, const void* from, size_t bytes, void*) {
    const int error = CallGpuInContext();
    EXPECT_TRUE(IsInBlock(to, bytes));
    if (error == 0) std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return error;
  };
  // A copy that fails has come half way.
  driver.download = [](void* to, uint64_t from, size_t bytes, void*) {
    const int error = CallGpuInContext();
    EXPECT_TRUE(IsInBlock(from, bytes));
    std::memcpy(to, reinterpret_cast<void*>(from), error == 0 ? bytes : bytes / 2);
    return error;
  };
  driver.copy_within = [](uint64_t to, uint64_t from, size_t bytes, void*) {
    const int error = CallGpuInContext();
    EXPECT_TRUE(IsInBlock(to, bytes) && IsInBlock(from, bytes));
    if (error == 0) std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return error;
  };
  driver.allocate_host = [](void** memory, size_t bytes) {
    const int error = CallGpuInContext();
    if (error == 0) *memory = g_gpu->pinned.emplace_back(new char[bytes]).get();
    return error;
  };
  driver.free_host = [](void* memory) {
    EXPECT_EQ(std::erase_if(g_gpu->pinned, [memory](const auto& known) { return known.get() == memory; }),
              1u);
    return CallGpuInContext();
  };
  driver.load_module = FakeLoadModule;
  driver.function = FakeFunction;
  driver.function_attribute = [](int* value, int attribute, void*) {
    EXPECT_EQ(attribute, kCudaMostThreads);
    *value = 512;
    return CallGpuInContext();
  };
  driver.launch = FakeLaunch;
  if (!has_pools) return driver;
  driver.default_pool = [](void** pool, int) {
    *pool = &g_gpu->pool;
    return CallGpu();
  };
  driver.set_pool = [](void*, int attribute, void* value) {
    EXPECT_EQ(attribute, kCudaPoolKeeps);
    std::memcpy(&g_gpu->pool_keeps, value, sizeof(uint64_t));
    return CallGpu();
  };
  driver.allocate_in_pool = [](uint64_t* address, size_t bytes, void*) {
    ++g_gpu->pool_blocks;
    return FakeAllocate(address, bytes);
  };
  driver.free_in_pool = [](uint64_t address, void*) { return FakeFree(address); };
  return driver;
}

const CudaDriver& DriverWithPools() {
  static const CudaDriver driver = FakeDriver(true);
  return driver;
}

std::unique_ptr<PartitionDevice> MakeFakeDevice() { return CudaDevice::Make(DriverWithPools()); }

constexpr int64_t kLength = 1037;

struct ScaleContext {
  double *a, *b;
  double factor;
};

void Scale(int64_t first, int64_t last, void* context) {
  const ScaleContext& c = *static_cast<ScaleContext*>(context);
  for (int64_t i = first; i < last; ++i) c.b[i] = c.factor * c.a[i] + c.b[i];
}

// b[i] = 3 * a[i] + b[i], a loop that has a kernel.
class ScaleLoop {
 public:
  ScaleLoop()
      : a_(kLength),
        b_(kLength),
        context_{a_.data(), b_.data(), 3},
        site_(Scale, {a_.data(), b_.data()}, {{0, kRead, 0, 8, 8, 8}, {1, kRead | kWritten, 0, 8, 8, 8}},
              {{offsetof(ScaleContext, a), 0}, {offsetof(ScaleContext, b), 1}}, sizeof(ScaleContext),
              {{0, 1}}) {
    for (size_t i = 0; i < a_.size(); ++i) a_[i] = static_cast<double>(i % 101);
    expected_ = b_;
    site_.get()->device_code = "code";
    site_.get()->kernel = "Scale";
  }

  fusion_partition_site* site() { return site_.get(); }
  // Returns false where the results are wrong.
  bool Run(Partitioner& partitioner, int64_t iterations = kLength, double work = 1e6) {
    if (site_.Enter(partitioner, iterations, &context_, work) != 1) return false;
    for (size_t i = 0; i < static_cast<size_t>(iterations); ++i) expected_[i] = 3 * a_[i] + expected_[i];
    return b_ == expected_;
  }
  int Enter(Partitioner& partitioner) { return site_.Enter(partitioner, kLength, &context_); }

 private:
  std::vector<double> a_, b_, expected_;
  ScaleContext context_;
  TestSite site_;
};

PartitionSettings OnCuda(double split = 0.6) {
  PartitionSettings settings = OnSimulatedDevice(split);
  settings.device = PartitionDeviceKind::kCuda;
  settings.threads = 2;
  return settings;
}

class CudaDeviceTest : public ::testing::Test {
 protected:
  CudaDeviceTest() { Reset(); }
  ~CudaDeviceTest() override {
    EXPECT_EQ(t_contexts, std::vector<void*>{&programs_context_});
    t_contexts.clear();
    g_gpu = nullptr;
  }
  void Reset() {
    gpu_ = std::make_unique<FakeGpu>();
    gpu_->kernels["Scale"] = {Scale, sizeof(ScaleContext)};
    g_gpu = gpu_.get();
    t_contexts = {&programs_context_};
  }

  std::unique_ptr<FakeGpu> gpu_;
  int programs_context_ = 0;
};

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(CudaDeviceTest, LoopsRunOnIt) {
  for (const bool has_pools : {false, true})
    for (const double split : {0.001, 0.3, 1.0}) {
      SCOPED_TRACE(std::to_string(split) + (has_pools ? ", pools" : ""));
      Reset();
      const CudaDriver driver = FakeDriver(has_pools);
      Partitioner partitioner(OnCuda(split), [&] { return CudaDevice::Make(driver); });
      ScaleLoop loop, other;
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(loop.Run(partitioner));
        ASSERT_TRUE(other.Run(partitioner));
        EXPECT_EQ(t_contexts.size(), 1u);
      }
      EXPECT_EQ(gpu_->modules, 1);
      EXPECT_EQ(gpu_->functions, 2);
      EXPECT_EQ(gpu_->launches, split < 0.01 || split == 1 ? 6 : 24);
      EXPECT_EQ(gpu_->pool_blocks > 0, has_pools);
      EXPECT_EQ(gpu_->pool_keeps, has_pools ? UINT64_MAX : 0);
      EXPECT_TRUE(gpu_->blocks.empty());
      EXPECT_THAT(partitioner.Report(),
                  HasSubstr("calls 3, split " + std::to_string(static_cast<int>(split * 100 + 0.5)) + "%"));
      EXPECT_THAT(partitioner.Report(), HasSubstr("unreadable 0\n"));
    }
}

TEST_F(CudaDeviceTest, TheHostDoesItWhereAnyCallFails) {
  for (const bool stays_broken : {false, true})
    for (const int error : {kIllegalAddress, kCudaOutOfMemory, kCudaDeinitialized}) {
      bool has_failed = true;
      for (int64_t call = 1; has_failed; ++call) {
        SCOPED_TRACE("call " + std::to_string(call) + ", error " + std::to_string(error) +
                     (stays_broken ? " for ever" : ""));
        Reset();
        gpu_->failing_call = call;
        gpu_->stays_broken = stays_broken;
        gpu_->error = error;
        Partitioner partitioner(OnCuda(), MakeFakeDevice);
        ScaleLoop loop;
        ::testing::internal::CaptureStderr();
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(loop.Run(partitioner));
        const std::string said = ::testing::internal::GetCapturedStderr();
        has_failed = gpu_->calls >= call;
        ASSERT_EQ(t_contexts.size(), 1u);
        EXPECT_LE(CountOf(said, "\n"), 1) << said;
        if (CountOf(said, "the GPU failed") != 0) {
          EXPECT_EQ(said, error == kIllegalAddress
                              ? "fusion: the GPU failed (an illegal address): loops run on the host\n"
                              : "fusion: the GPU failed (unknown error): loops run on the host\n");
          const int64_t calls = gpu_->calls;
          EXPECT_TRUE(loop.Run(partitioner));
          EXPECT_EQ(gpu_->calls, calls) << "it is lost";
          EXPECT_THAT(partitioner.Report(), HasSubstr("fault "));
        }
        EXPECT_TRUE(has_failed || said.empty()) << said;
        ASSERT_LT(call, 200);
      }
    }
}

TEST_F(CudaDeviceTest, TooLittleMemoryIsNotTheEnd) {
  Partitioner partitioner(OnCuda(), MakeFakeDevice);
  ScaleLoop loop;
  ASSERT_TRUE(loop.Run(partitioner));
  gpu_->failing_call = gpu_->calls + 2;  // the first one enters the context
  gpu_->error = kCudaOutOfMemory;
  const int64_t launches = gpu_->launches;
  ASSERT_TRUE(loop.Run(partitioner));
  EXPECT_EQ(gpu_->launches, launches);
  ASSERT_TRUE(loop.Run(partitioner));
  EXPECT_GT(gpu_->launches, launches);
  EXPECT_THAT(partitioner.Report(), HasSubstr("unreadable 0, memory 1\n"));
}

TEST_F(CudaDeviceTest, CodeThatTheDriverDoesNotTakeIsTriedOnce) {
  gpu_->takes_code = false;
  Partitioner partitioner(OnCuda(), MakeFakeDevice);
  ScaleLoop loop, other;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(loop.Run(partitioner));
    EXPECT_TRUE(other.Run(partitioner));
  }
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "fusion: loop.c: the GPU's driver does not take the loops (error 218: line 1; code is wrong): they "
      "run on the host\n");
  EXPECT_EQ(gpu_->modules, 1);
  EXPECT_THAT(partitioner.Report(), HasSubstr("unreadable 0, no kernel 3\n"));
  // Another program part may come to lie where one was that is unloaded.
  gpu_->takes_code = true;
  ScaleLoop third;
  char code[] = "aaaa";
  third.site()->device_code = code;
  EXPECT_TRUE(third.Run(partitioner));
  std::strcpy(code, "bbbb");
  third.site()->state = nullptr;
  EXPECT_TRUE(third.Run(partitioner));
  EXPECT_EQ(gpu_->modules, 3);
}

TEST_F(CudaDeviceTest, LoopsWithoutAKernelRunOnTheHost) {
  Partitioner partitioner(OnCuda(), MakeFakeDevice);
  ScaleLoop no_kernel, no_code, not_found;
  no_kernel.site()->kernel = nullptr;
  no_code.site()->device_code = nullptr;
  not_found.site()->kernel = "Other";
  ::testing::internal::CaptureStderr();
  for (ScaleLoop* loop : {&no_kernel, &no_code, &not_found}) EXPECT_TRUE(loop->Run(partitioner));
  EXPECT_TRUE(not_found.Run(partitioner));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fusion: loop.c: the GPU's driver does not take the loops (Other: error 500): they run on the "
            "host\n");
  EXPECT_EQ(CountOf(partitioner.Report(), "no kernel 1\n"), 2);
  EXPECT_EQ(CountOf(partitioner.Report(), "no kernel 2\n"), 1);
  EXPECT_EQ(gpu_->launches, 0);
}

struct TriangleContext {
  std::vector<int>* counts;
};

// Iteration i has i - 2 columns, the first ones none: there column 0 runs for what else is in an iteration.
// There are more iterations than a grid is high.
TEST_F(CudaDeviceTest, EachColumnOfEachIterationRunsOnce) {
  std::vector<int> counts;
  const auto count = [](int64_t iteration, int64_t column, void* context) {
    std::vector<int>& all = *static_cast<TriangleContext*>(context)->counts;
    const size_t at = static_cast<size_t>(iteration * 4 + column);
    if (all.size() <= at) all.resize(at + 1);
    ++all[at];
  };
  gpu_->kernels["Columns"] = {Scale, sizeof(TriangleContext), count};
  const std::unique_ptr<PartitionDevice> device = MakeFakeDevice();
  TestSite site(Scale, {}, {}, {}, sizeof(TriangleContext));
  site.get()->device_code = "code";
  site.get()->kernel = "Columns";
  site.get()->has_columns = 1;
  TriangleContext context{&counts};
  const int64_t growing[] = {-3, 1}, even[] = {3, 0};
  ASSERT_TRUE(device->Run(*site.get(), 0, 7, &context, growing, BlockShape()));
  EXPECT_EQ(counts, (std::vector<int>{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0,
                                      0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1}));
  counts.clear();
  constexpr int64_t kRows = 300'000;
  ASSERT_TRUE(device->Run(*site.get(), 5, kRows, &context, even, BlockShape()));
  ASSERT_EQ(counts.size(), static_cast<size_t>(4 * kRows));
  for (int64_t at = 0; at < 4 * kRows; ++at)
    ASSERT_EQ(counts[static_cast<size_t>(at)], at < 20 ? 0 : 1) << at;
  counts.clear();
  const int64_t none[] = {-1, 0};
  EXPECT_TRUE(device->Run(*site.get(), 0, 2, &context, none, BlockShape()));
  EXPECT_EQ(counts, (std::vector<int>{1, 0, 0, 0, 1}));
}

TEST_F(CudaDeviceTest, LargeContextsAreNoParameters) {
  const auto device = MakeFakeDevice();
  ScaleLoop loop;
  loop.site()->context_bytes = CudaDevice::kMostContextBytes + 1;
  EXPECT_FALSE(device->CanRun(*loop.site()));
  loop.site()->context_bytes = CudaDevice::kMostContextBytes;
  EXPECT_TRUE(device->CanRun(*loop.site()));
}

TEST_F(CudaDeviceTest, MoreIterationsThanAGridHas) {
  const auto device = MakeFakeDevice();
  ScaleLoop loop;
  gpu_->keeps_grids_only = true;
  const int64_t last = (int64_t{1} << 40) + 5;
  EXPECT_TRUE(device->Run(*loop.site(), 5, last, nullptr, nullptr, BlockShape()));
  ASSERT_EQ(gpu_->grids.size(), 3u);
  EXPECT_EQ(gpu_->grids.front().first, 5);
  EXPECT_EQ(gpu_->grids.back().second, last);
  for (size_t i = 1; i < 3; ++i) EXPECT_EQ(gpu_->grids[i].first, gpu_->grids[i - 1].second);
}

TEST_F(CudaDeviceTest, ResultsPassTheCheck) {
  PartitionSettings settings = OnCuda();
  settings.mode = PartitionMode::kCheck;
  Partitioner partitioner(settings, MakeFakeDevice);
  ScaleLoop loop;
  EXPECT_TRUE(loop.Run(partitioner));
  EXPECT_EQ(gpu_->launches, 4);
}

TEST_F(CudaDeviceTest, AChildDoesNotTouchIt) {
  Partitioner partitioner(OnCuda(), MakeFakeDevice);
  const auto device = MakeFakeDevice();
  ScaleLoop loop;
  ASSERT_TRUE(loop.Run(partitioner));
  const pid_t process = fork();
  if (process == 0) {
    alarm(60);
    const int64_t calls = gpu_->calls;
    const bool refuses = loop.Enter(partitioner) == 0 && device->IsLost() && !device->CanRun(*loop.site()) &&
                         device->Allocate(8) == 0;
    partitioner.End();
    _exit(refuses && gpu_->calls == calls ? 0 : 1);
  }
  int status = 0;
  waitpid(process, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(loop.Run(partitioner));
}

TEST_F(CudaDeviceTest, LoopsDoNotWaitForItInModeAuto) {
  std::promise<void> may_begin;
  PartitionSettings settings = OnCuda();
  settings.mode = PartitionMode::kAuto;
  settings.earned_seconds = 0;
  Partitioner partitioner(settings, [&] {
    may_begin.get_future().wait();
    return MakeFakeDevice();
  });
  ScaleLoop loop;
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(loop.Run(partitioner));
  EXPECT_TRUE(partitioner.HasThreads());
  EXPECT_THAT(partitioner.Report(), HasSubstr("calls 200, split 0%"));
  const pid_t process = fork();
  if (process == 0) {
    alarm(60);
    partitioner.End();
    _exit(loop.Enter(partitioner) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(process, &status, 0);
  EXPECT_EQ(status, 0);
  may_begin.set_value();
  partitioner.End();
  for (int i = 0; i < 1000000 && gpu_->launches == 0; ++i) ASSERT_TRUE(loop.Run(partitioner));
  EXPECT_GT(gpu_->launches, 0);
}

// On the host an iteration takes a millisecond, on the GPU none: the times are what the choice is made of.
void ScaleSlowly(int64_t first, int64_t last, void* context) {
  std::this_thread::sleep_for(std::chrono::milliseconds(last - first));
  Scale(first, last, context);
}

TEST_F(CudaDeviceTest, ModeAutoGivesItTheLoopsThatItIsFasterFor) {
  PartitionSettings settings = OnCuda();
  settings.mode = PartitionMode::kAuto;
  settings.earned_seconds = 0.01;
  settings.device_seconds = 0.02;
  settings.split.reset();
  Partitioner partitioner(settings, MakeFakeDevice);
  ScaleLoop slow, of_host;
  slow.site()->body = ScaleSlowly;
  of_host.site()->body = ScaleSlowly;
  of_host.site()->kernel = nullptr;
  for (int i = 0; i < 1000 && gpu_->launches == 0; ++i) ASSERT_TRUE(slow.Run(partitioner, 20));
  const int64_t launches = gpu_->launches;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(slow.Run(partitioner, 20));
  EXPECT_GE(gpu_->launches, launches + 9);
  const int64_t of_slow = gpu_->launches;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(of_host.Run(partitioner, 20));
  EXPECT_EQ(gpu_->launches, of_slow);
}

// While loops may come to stay on the device, small ones between them do not end the episode, but for many of
// them.
TEST_F(CudaDeviceTest, SmallLoopsBelongToAnEpisode) {
  std::promise<void> may_begin;
  PartitionSettings settings = OnCuda();
  settings.mode = PartitionMode::kAuto;
  settings.earned_seconds = 0.01;
  settings.split.reset();
  Partitioner partitioner(settings, [&] {
    may_begin.get_future().wait();
    return MakeFakeDevice();
  });
  ScaleLoop slow, small;
  slow.site()->body = ScaleSlowly;
  for (int i = 0; i < 1000 && fusion_partition_open == 0; ++i) ASSERT_TRUE(slow.Run(partitioner, 20));
  ASSERT_EQ(fusion_partition_open, 1);
  EXPECT_LT(fusion_partition_least_work, 0);
  const double work = settings.least_work / 2;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(small.Run(partitioner, 20, work));
    ASSERT_TRUE(slow.Run(partitioner, 20));
  }
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(small.Run(partitioner, 20, work));
  EXPECT_FALSE(small.Run(partitioner, 20, work));
  EXPECT_EQ(fusion_partition_open, 0);
  EXPECT_EQ(fusion_partition_least_work, settings.least_work);
  may_begin.set_value();
  partitioner.End();
}

TEST_F(CudaDeviceTest, NoDriverIsLoadedThatNothingNeeds) {
  int made = 0;
  const auto run = [&made](const PartitionSettings& settings, bool has_kernel = true) {
    Partitioner partitioner(settings, [&made] {
      ++made;
      return nullptr;
    });
    ScaleLoop loop;
    if (!has_kernel) loop.site()->kernel = nullptr;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(loop.Run(partitioner));
  };
  PartitionSettings settings = OnCuda();
  settings.mode = PartitionMode::kHost;
  run(settings);
  run(OnCuda(0));
  settings.mode = PartitionMode::kAuto;
  settings.earned_seconds = 1e9;
  run(settings);
  settings.earned_seconds = 0;
  settings.device_seconds = -1e9;
  settings.split.reset();
  run(settings, /*has_kernel=*/false);
  EXPECT_EQ(made, 0);
  ::testing::internal::CaptureStderr();
  run(OnCuda());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fusion: FUSION_PARTITION=device, but there is no device: loops run on the host's threads\n");
  EXPECT_EQ(made, 1);
}

TEST_F(CudaDeviceTest, NothingBeginsAtTheEndOfTheProcess) {
  PartitionSettings settings = OnCuda();
  settings.mode = PartitionMode::kCheck;
  Partitioner partitioner(settings, []() -> std::unique_ptr<PartitionDevice> { throw std::bad_alloc(); });
  ScaleLoop loop;
  EXPECT_TRUE(loop.Run(partitioner));
  Partitioner ended(settings, MakeFakeDevice);
  ended.End();
  EXPECT_TRUE(loop.Run(ended));
  EXPECT_EQ(gpu_->calls, 0);
}

// b[i] = 3 * a[i] + b[i]
constexpr char kScalePtx[] = R"(
.version 6.3
.target sm_75
.address_size 64
.visible .entry Scale(.param .u64 first, .param .u64 last, .param .align 8 .b8 context[24]) {
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %n<7>;
  .reg .f64 %f<4>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  cvt.u64.u32 %n0, %r2;
  mad.wide.u32 %n1, %r0, %r1, %n0;
  ld.param.u64 %n2, [first];
  add.s64 %n1, %n1, %n2;
  ld.param.u64 %n3, [last];
  setp.ge.s64 %p, %n1, %n3;
  @%p ret;
  ld.param.u64 %n4, [context];
  ld.param.u64 %n5, [context+8];
  ld.param.f64 %f0, [context+16];
  shl.b64 %n6, %n1, 3;
  add.s64 %n4, %n4, %n6;
  add.s64 %n5, %n5, %n6;
  ld.global.f64 %f1, [%n4];
  ld.global.f64 %f2, [%n5];
  fma.rn.f64 %f3, %f0, %f1, %f2;
  st.global.f64 [%n5], %f3;
  ret;
}
)";

TEST(RealCudaTest, LoopsRunOnTheGpu) {
  const CudaDriver* const driver = LoadCudaDriver();
  if (driver == nullptr) GTEST_SKIP() << "there is no driver";
  if (CudaDevice::Make(*driver) == nullptr) GTEST_SKIP() << "there is no GPU";
  for (const PartitionMode mode : {PartitionMode::kDevice, PartitionMode::kCheck}) {
    PartitionSettings settings = OnCuda();
    settings.mode = mode;
    Partitioner partitioner(settings);
    ScaleLoop loop, bad;
    loop.site()->device_code = kScalePtx;
    bad.site()->device_code = ".version 6.3\n.target sm_75\nnothing\n";
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(loop.Run(partitioner));
    EXPECT_THAT(partitioner.Report(), HasSubstr("calls 20, split 60% device"));
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(bad.Run(partitioner));
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("the GPU's driver does not take the loops"));
    EXPECT_THAT(said, Not(HasSubstr("the GPU failed")));
    EXPECT_TRUE(loop.Run(partitioner));
    EXPECT_THAT(partitioner.Report(), HasSubstr("no kernel 2"));
    const auto device = CudaDevice::Make(*driver);
    EXPECT_EQ(device->Allocate(size_t{1} << 50), 0u);
    EXPECT_FALSE(device->IsLost()) << "too little memory is not the end";
  }
}

}  // namespace
}  // namespace fusion
