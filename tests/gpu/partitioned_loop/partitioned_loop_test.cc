// Partitioned loops on a real device; what needs none is in tests/unit/partitioned_loop.
#include <gtest/gtest.h>

#ifdef FUSION_HAS_CUDA_RUNTIME

#include <atomic>
#include <cstdlib>
#include <vector>

#include "client/tuner/cuda_partition_device.h"
#include "tests/gpu/partitioned_loop/kernels.h"

namespace fusion {
namespace {

constexpr double kUntouched = -7;

class CudaPartitionedLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!device_.Problem().empty()) GTEST_SKIP() << "SKIP: " << device_.Problem();
  }
  static PartitionedLoopOptions Options() {
    PartitionedLoopOptions options;
    options.host_threads = 3;
    return options;
  }
  CudaPartitionDevice device_;
  FixedPartition split_;
};

TEST_F(CudaPartitionedLoopTest, EachIterationOnceAndOnlyItsOwnRows) {
  constexpr int64_t kStride = 37, kLength = 33;
  for (int64_t n : {1, 2, 1000, 50021}) {
    for (double ratio : {0.0, 0.001, 0.37, 0.5, 1.0}) {
      for (int chunks : {1, 3, 16}) {
        std::vector<double> in(n * kStride), out(n * kStride, kUntouched), scale{3};
        std::vector<int64_t> counts(n, 0);
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i % 1013);
        PartitionedLoop loop(&device_, &split_, Options());
        split_ = FixedPartition(ratio, chunks);
        const int on_in = loop.AddArray(PartitionArray::ReadRows(in.data(), n, kLength, kStride));
        const int on_out = loop.AddArray(PartitionArray::WriteRows(out.data(), n, kLength, kStride));
        const int on_scale = loop.AddArray(PartitionArray::ReadWhole(scale.data(), 1));
        const int on_counts = loop.AddArray(PartitionArray::ReadWriteRows(counts.data(), n, 1));
        const auto run = [&] {
          return loop.Run(
              n,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  for (int64_t j = 0; j < kLength; ++j) {
                    out[i * kStride + j] = scale[0] * in[i * kStride + j] + in[i / 2 * kStride + 1];
                  }
                  ++counts[i];
                }
              },
              [&](cudaStream_t stream, int64_t begin, int64_t end, const DevicePointers& on_device) {
                testing::LaunchRows(
                    stream, begin, end,
                    {kStride, kLength, on_device.Get<double>(on_in), on_device.Get<double>(on_scale),
                     on_device.Get<double>(on_out), on_device.Get<int64_t>(on_counts)});
                return std::string();
              });
        };
        // Again and again on the same device memory, with a changed array that is read as a whole.
        for (int64_t times = 1; times <= 3; ++times) {
          const PartitionedRun done = run();
          ASSERT_EQ(done.status.code, PartitionCode::kOk) << done.status.message;
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(counts[i], times) << i << " of " << n << " at " << ratio << " in " << chunks;
            for (int64_t j = 0; j < kStride; ++j) {
              const double expected = scale[0] * in[i * kStride + j] + in[i / 2 * kStride + 1];
              ASSERT_EQ(out[i * kStride + j], j < kLength ? expected : kUntouched) << i << ", " << j;
            }
          }
          scale[0] += 1;
          loop.MarkChanged(on_scale);
        }
        // Large arrays are pinned where they are; the others go through memory of the loop.
        const std::vector<int> all = {on_in, on_out, on_scale, on_counts}, large = {on_scale};
        EXPECT_EQ(loop.staged(), n < 1000    ? all
                                 : n < 50000 ? std::vector<int>({on_scale, on_counts})
                                             : large);
      }
    }
  }
}

TEST_F(CudaPartitionedLoopTest, Triangles) {
  constexpr int64_t kSize = 1531;
  for (double ratio : {0.3, 1.0}) {
    for (int chunks : {1, 8}) {
      PartitionedLoop loop(&device_, &split_, Options());
      split_ = FixedPartition(ratio, chunks);
      auto* const c = static_cast<double*>(loop.Allocate(kSize * kSize * sizeof(double)));
      ASSERT_NE(c, nullptr);
      for (int64_t i = 0; i < kSize * kSize; ++i) c[i] = 1;
      std::vector<double> factors(kSize);
      for (int64_t j = 0; j < kSize; ++j) factors[j] = static_cast<double>(j);
      const int on_c = loop.AddArray(PartitionArray::ReadWriteRows(c, kSize, kSize).LowerTriangle());
      const int on_factors = loop.AddArray(PartitionArray::ReadWhole(factors.data(), kSize));
      const PartitionedRun run = loop.Run(
          kSize,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              for (int64_t j = 0; j <= i; ++j) c[i * kSize + j] += factors[j];
            }
          },
          [&](cudaStream_t stream, int64_t begin, int64_t end, const DevicePointers& on_device) {
            testing::LaunchTriangle(stream, begin, end, kSize, on_device.Get<double>(on_factors),
                                    on_device.Get<double>(on_c));
            return std::string();
          });
      ASSERT_EQ(run.status.code, PartitionCode::kOk) << run.status.message;
      for (int64_t i = 0; i < kSize; ++i) {
        for (int64_t j = 0; j < kSize; ++j) {
          ASSERT_EQ(c[i * kSize + j], j <= i ? 1 + static_cast<double>(j) : 1) << i << ", " << j;
        }
      }
    }
  }
}

// Counts what the host did of eight iterations.
template <class Launch>
PartitionedRun RunEight(PartitionedLoop& loop, std::atomic<int>* on_host, Launch launch) {
  return loop.Run(
      8, [&](int64_t begin, int64_t end) { *on_host += static_cast<int>(end - begin); },
      [&](cudaStream_t stream, int64_t, int64_t, const DevicePointers&) {
        launch(stream);
        return std::string();
      });
}

TEST_F(CudaPartitionedLoopTest, MoreMemoryThanThereIsLeavesAllToTheHost) {
  PartitionedLoop loop(&device_, &split_, Options());
  split_ = FixedPartition(0.5);
  double one = 0;
  loop.AddArray(PartitionArray::ReadRows(&one, 8, int64_t{1} << 40));
  std::atomic<int> on_host{0};
  const PartitionedRun run = RunEight(loop, &on_host, [](cudaStream_t) {});
  EXPECT_EQ(run.status.code, PartitionCode::kHostOnly);
  EXPECT_NE(run.status.message.find("cudaMalloc: out of memory"), std::string::npos) << run.status.message;
  EXPECT_EQ(on_host, 8);
  // The device is still good for what fits.
  loop.ClearArrays();
  EXPECT_EQ(RunEight(loop, &on_host, [](cudaStream_t) {}).status.code, PartitionCode::kOk);
}

TEST_F(CudaPartitionedLoopTest, LaunchesThatFailAreReported) {
  PartitionedLoop loop(&device_, &split_, Options());
  split_ = FixedPartition(0.5);
  std::atomic<int> on_host{0};
  const PartitionedRun run =
      RunEight(loop, &on_host, [](cudaStream_t stream) { testing::LaunchImpossible(stream); });
  EXPECT_EQ(run.status.code, PartitionCode::kDeviceError);
  EXPECT_NE(run.status.message.find("invalid"), std::string::npos) << run.status.message;
  EXPECT_EQ(on_host, 4);
  EXPECT_EQ(RunEight(loop, &on_host, [](cudaStream_t) {}).status.code, PartitionCode::kHostOnly);
  EXPECT_EQ(on_host, 12);
}

// A fault ends what a process can do with the device, so it has a process of its own.
TEST_F(CudaPartitionedLoopTest, KernelsThatFaultAreReportedAndTheHostGoesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        CudaPartitionDevice device;
        PartitionedLoop loop(&device, &split_, Options());
        split_ = FixedPartition(0.5);
        std::atomic<int> on_host{0};
        const PartitionedRun run =
            RunEight(loop, &on_host, [](cudaStream_t stream) { testing::LaunchFault(stream); });
        const PartitionedRun next = RunEight(loop, &on_host, [](cudaStream_t) {});
        const bool right = run.status.code == PartitionCode::kDeviceError &&
                           next.status.code == PartitionCode::kHostOnly && next.status.done() &&
                           on_host == 12;
        std::fprintf(stderr, "%s\n", run.status.message.c_str());
        std::_Exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "cuda|launch");
}

TEST_F(CudaPartitionedLoopTest, MemoryThatTheProgramPinnedStaysPinned) {
  void* memory = nullptr;
  ASSERT_EQ(device_.AllocatePinned(8 * sizeof(double), &memory), "");
  {
    PartitionedLoop loop(&device_, &split_, Options());
    loop.AddArray(PartitionArray::ReadRows(static_cast<double*>(memory), 8, 1));
    EXPECT_EQ(loop.Prepare(), "");
    EXPECT_TRUE(loop.staged().empty());
  }
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  device_.FreePinned(memory);
}

}  // namespace
}  // namespace fusion

#else

TEST(CudaPartitionedLoopTest, NeedsTheCudaRuntime) { GTEST_SKIP() << "SKIP: built without nvcc"; }

#endif
