#include "client/tuner/partitioned_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "tests/unit/partitioned_loop/fake_partition_device.h"

namespace fusion {
namespace {

using testing::FakePartitionDevice;
using Loop = BasicPartitionedLoop<FakePartitionDevice>;
using Queue = FakePartitionDevice::Stream;

constexpr double kUntouched = -7;

// out[i, 0..2) = scale[0] * in[i, 0] + in[i / 2, 1], with rows that are longer than what is touched of them;
// counts[i] counts.
class RowsLoop {
 public:
  static constexpr int64_t kStride = 5, kLength = 2;

  RowsLoop(int64_t n, unsigned seed, PartitionedLoopOptions options)
      : device(seed),
        loop(&device, &split, options),
        n_(n),
        in(n * kStride),
        out(n * kStride, kUntouched),
        scale{3},
        counts(n) {
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i);
    in_ = loop.AddArray(PartitionArray::ReadRows(in.data(), n, kLength, kStride));
    out_ = loop.AddArray(PartitionArray::WriteRows(out.data(), n, kLength, kStride));
    scale_ = loop.AddArray(PartitionArray::ReadWhole(scale.data(), 1));
  }

  PartitionedRun Run() {
    return loop.Run(
        n_, [this](int64_t begin, int64_t end) { Body(begin, end, in.data(), out.data(), scale.data()); },
        [this](Queue stream, int64_t begin, int64_t end, const DevicePointers& pointers) {
          chunk_begins.push_back(begin);
          stream->Launch([=, this] {
            Body(begin, end, pointers.Get<double>(in_), pointers.Get<double>(out_),
                 pointers.Get<double>(scale_));
          });
          return std::string();
        });
  }
  void ExpectRight() {
    for (int64_t i = 0; i < n_; ++i) {
      ASSERT_EQ(counts[i], 1) << "iteration " << i << " of " << n_;
      const double expected = scale[0] * in[i * kStride] + in[i / 2 * kStride + 1];
      for (int64_t j = 0; j < kStride; ++j) {
        ASSERT_EQ(out[i * kStride + j], j < kLength ? expected + static_cast<double>(j) : kUntouched)
            << i << ", " << j;
      }
    }
    EXPECT_EQ(device.misuses, 0);
  }

  FixedPartition split;
  FakePartitionDevice device;
  Loop loop;
  int64_t n_;
  std::vector<double> in, out, scale;
  std::vector<std::atomic<int>> counts;
  std::vector<int64_t> chunk_begins;
  int in_ = 0, out_ = 0, scale_ = 0;

 private:
  void Body(int64_t begin, int64_t end, const double* in, double* out, const double* scale) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < kLength; ++j) {
        out[i * kStride + j] = scale[0] * in[i * kStride] + in[i / 2 * kStride + 1] + static_cast<double>(j);
      }
      ++counts[i];
    }
  }
};

// All arrays are pinned where they are, unless pin_from_bytes says otherwise.
PartitionedLoopOptions Options(int host_threads, int64_t alignment = 1, int64_t pin_from_bytes = 0) {
  PartitionedLoopOptions options;
  options.host_threads = host_threads;
  options.device_alignment = alignment;
  options.pin_from_bytes = pin_from_bytes;
  return options;
}

TEST(PartitionedLoopTest, DoesEachIterationOnceForAllRatiosSizesAndChunks) {
  unsigned seed = 0;
  for (int64_t n : {1, 2, 3, 16, 17, 100, 1001}) {
    for (int tenth = 0; tenth <= 10; ++tenth) {
      for (int chunks : {1, 2, 3, 16, 1000}) {
        for (int64_t alignment : {1, 8}) {
          ++seed;
          const int64_t pin_from_bytes = seed % 2 == 0 ? 0 : 64 << 10;
          RowsLoop rows(n, seed, Options(static_cast<int>(seed % 3), alignment, pin_from_bytes));
          rows.split = FixedPartition(tenth / 10.0, chunks);
          const PartitionedRun run = rows.Run();
          ASSERT_EQ(run.status.code, PartitionCode::kOk) << run.status.message;
          rows.ExpectRight();
          if (::testing::Test::HasFatalFailure()) return;
          for (size_t i = 0; i < rows.chunk_begins.size(); ++i)
            EXPECT_EQ(rows.chunk_begins[i] % alignment, 0);
          EXPECT_GT(run.seconds, 0);
        }
      }
    }
  }
}

TEST(PartitionedLoopTest, CopiesOnlyWhatThePartsTouch) {
  constexpr int64_t kRow = RowsLoop::kLength * static_cast<int64_t>(sizeof(double));
  for (int chunks : {1, 4}) {
    RowsLoop rows(100, 1, Options(0));
    rows.split = FixedPartition(0.37, chunks);
    rows.Run();
    EXPECT_EQ(rows.device.uploaded_bytes, 37 * kRow + 8);
    EXPECT_EQ(rows.device.downloaded_bytes, 37 * kRow);
    // What is read as a whole stays on the device until it is said to have changed.
    rows.Run();
    EXPECT_EQ(rows.device.uploaded_bytes, 2 * 37 * kRow + 8);
    rows.scale[0] = 5;
    rows.loop.MarkChanged(rows.scale_);
    for (auto& count : rows.counts) count = 0;
    rows.Run();
    EXPECT_EQ(rows.device.uploaded_bytes, 3 * 37 * kRow + 16);
    rows.ExpectRight();
  }
}

TEST(PartitionedLoopTest, EndsLeaveTheDeviceOrTheHostOut) {
  RowsLoop rows(50, 1, Options(2));
  rows.split = FixedPartition(0);
  rows.Run();
  EXPECT_EQ(rows.device.uploaded_bytes + rows.device.downloaded_bytes, 0);
  EXPECT_EQ(rows.device.synchronizations, 0);
  EXPECT_TRUE(rows.chunk_begins.empty());
  rows.split = FixedPartition(1);
  int host_calls = 0;
  rows.loop.Run(
      50, [&](int64_t, int64_t) { ++host_calls; },
      [](Queue, int64_t, int64_t, const DevicePointers&) { return std::string(); });
  EXPECT_EQ(host_calls, 0);
}

TEST(PartitionedLoopTest, NoIterationsAreNoRun) {
  RowsLoop rows(0, 1, Options(2));
  rows.split = FixedPartition(1);
  EXPECT_EQ(rows.Run().status.code, PartitionCode::kOk);
  EXPECT_EQ(rows.device.calls, 0);
}

// c[i, j] = 2 * c[i, j] for j <= i: the rest of c is neither read nor changed, and little of it is copied.
TEST(PartitionedLoopTest, TrianglesAreCopiedInBands) {
  constexpr int64_t kSize = 1000;
  for (int chunks : {1, 2, 8}) {
    FakePartitionDevice device(static_cast<unsigned>(chunks));
    FixedPartition split(0.8, chunks);
    Loop loop(&device, &split, Options(0));
    std::vector<double> c(kSize * kSize, 1);
    loop.AddArray(PartitionArray::ReadWriteRows(c.data(), kSize, kSize).LowerTriangle());
    const auto body = [](int64_t begin, int64_t end, double* c) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j <= i; ++j) c[i * kSize + j] *= 2;
      }
    };
    const PartitionedRun run = loop.Run(
        kSize, [&](int64_t begin, int64_t end) { body(begin, end, c.data()); },
        [&](Queue stream, int64_t begin, int64_t end, const DevicePointers& pointers) {
          stream->Launch([=] { body(begin, end, pointers.Get<double>(0)); });
          return std::string();
        });
    ASSERT_EQ(run.status.code, PartitionCode::kOk);
    for (int64_t i = 0; i < kSize; ++i) {
      for (int64_t j = 0; j < kSize; ++j) ASSERT_EQ(c[i * kSize + j], j <= i ? 2 : 1) << i << ", " << j;
    }
    const int64_t triangle = 800 * 801 / 2 * 8;
    EXPECT_GE(device.uploaded_bytes, triangle);
    EXPECT_LE(device.uploaded_bytes, triangle * 11 / 10);
    EXPECT_EQ(device.downloaded_bytes, device.uploaded_bytes);
    EXPECT_EQ(device.misuses, 0);
  }
}

TEST(PartitionedLoopTest, WithoutADeviceTheHostDoesAll) {
  RowsLoop rows(10, 1, Options(2));
  rows.split = FixedPartition(0.5);
  Loop without(static_cast<FakePartitionDevice*>(nullptr), &rows.split, Options(2));
  std::atomic<int> done{0};
  const PartitionedRun run = without.Run(
      10, [&](int64_t begin, int64_t end) { done += static_cast<int>(end - begin); },
      [](Queue, int64_t, int64_t, const DevicePointers&) { return std::string("not called"); });
  EXPECT_EQ(run.status.code, PartitionCode::kHostOnly);
  EXPECT_EQ(run.status.message, "no device was given");
  EXPECT_EQ(done, 10);
  EXPECT_EQ(run.partition.device_iterations, 0);

  FakePartitionDevice broken(1);
  broken.problem = "CUDA sees no device";
  Loop with_broken(&broken, &rows.split, Options(0));
  EXPECT_EQ(with_broken.Prepare(), "CUDA sees no device");
  double* memory = static_cast<double*>(with_broken.Allocate(80));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(broken.pinned_allocations, 0);
}

class Recorder : public PartitionChooser {
 public:
  Partition Next(int64_t n) override {
    ++asked;
    return {n / 2, 4};
  }
  void Done(double) override { ++done; }
  void Failed() override { ++failed; }
  int asked = 0, done = 0, failed = 0;
};

// Whatever call fails, the run says so, the host's iterations are done, nothing is left behind and later runs
// are right.
TEST(PartitionedLoopTest, EveryErrorOfTheDeviceIsReportedAndTheHostGoesOn) {
  bool failed_once = false;
  for (int fails_at = 1; fails_at < 100; ++fails_at) {
    FakePartitionDevice device(static_cast<unsigned>(fails_at));
    device.fails_at = fails_at;
    Recorder recorder;
    {
      Loop loop(&device, &recorder, Options(fails_at % 3, 1, 64 << 10));
      std::vector<double> in(64, 1), out(64, 0);
      loop.AddArray(PartitionArray::ReadRows(in.data(), 64, 1));
      loop.AddArray(PartitionArray::WriteRows(out.data(), 64, 1));
      const auto run = [&] {
        return loop.Run(
            64,
            [&](int64_t begin, int64_t end) {
              std::copy(&in[begin], &in[begin] + (end - begin), &out[begin]);
            },
            [](Queue stream, int64_t begin, int64_t end, const DevicePointers& pointers) {
              stream->Launch([=] {
                std::copy(pointers.Get<double>(0) + begin, pointers.Get<double>(0) + end,
                          pointers.Get<double>(1) + begin);
              });
              return std::string();
            });
      };
      const PartitionedRun first = run();
      if (device.calls < fails_at) {
        EXPECT_EQ(first.status.code, PartitionCode::kOk);
        EXPECT_TRUE(failed_once);
        return;  // there is no such call any more
      }
      failed_once = true;
      const std::string error = "call " + std::to_string(fails_at) + " fails";
      EXPECT_NE(first.status.message.find(error), std::string::npos) << first.status.message;
      if (first.status.code == PartitionCode::kDeviceError) {
        EXPECT_EQ(recorder.failed, 1);
        for (size_t i = 32; i < 64; ++i) EXPECT_EQ(out[i], 1);
      } else {
        EXPECT_EQ(first.status.code, PartitionCode::kHostOnly);  // there was no memory
        EXPECT_EQ(recorder.asked, 0);
      }
      EXPECT_EQ(recorder.done, 0);
      EXPECT_EQ(device.allocations(), 0u);
      out.assign(64, 0);
      EXPECT_EQ(run().status.code, PartitionCode::kHostOnly);
      EXPECT_EQ(out, in);
    }
    EXPECT_TRUE(device.pinned_pages.empty());
    EXPECT_EQ(device.pinned_allocations, 0);
    EXPECT_EQ(device.misuses, 0);
  }
  FAIL() << "no run without an error";
}

TEST(PartitionedLoopTest, ErrorsOfKernelsAndOfTheProgramsPartAreReported) {
  Recorder recorder;
  FakePartitionDevice device(1);
  Loop loop(&device, &recorder, Options(0));
  device.late_error = "an illegal memory access";
  const auto nothing = [](int64_t, int64_t) {};
  const auto launched = [](Queue, int64_t, int64_t, const DevicePointers&) { return std::string(); };
  EXPECT_EQ(loop.Run(8, nothing, launched).status.message, "an illegal memory access");
  EXPECT_EQ(recorder.failed, 1);
  // The same device for other arrays: the program's to decide.
  loop.ClearArrays();
  EXPECT_EQ(loop.Run(8, nothing, launched).status.code, PartitionCode::kOk);
  EXPECT_EQ(recorder.done, 1);
  const auto refuses = [](Queue, int64_t, int64_t, const DevicePointers&) {
    return std::string("no workspace");
  };
  EXPECT_EQ(loop.Run(8, nothing, refuses).status.message, "no workspace");
}

TEST(PartitionedLoopTest, WhatTheHostPartThrowsArrivesWhenTheDeviceIsAtRest) {
  for (int threads : {0, 1, 3}) {
    Recorder recorder;
    FakePartitionDevice device(1);
    Loop loop(&device, &recorder, Options(threads));
    const auto throws = [](int64_t, int64_t) { throw std::runtime_error("from the loop's body"); };
    const auto launched = [](Queue, int64_t, int64_t, const DevicePointers&) { return std::string(); };
    EXPECT_THROW(loop.Run(100, throws, launched), std::runtime_error);
    EXPECT_EQ(device.synchronizations, 1);
    EXPECT_EQ(recorder.failed, 1);
    EXPECT_EQ(loop.Run(
                      100, [](int64_t, int64_t) {}, launched)
                  .status.code,
              PartitionCode::kOk);
  }
}

TEST(PartitionedLoopTest, WrongArraysAreSaidBeforeAnythingRuns) {
  FakePartitionDevice device(1);
  FixedPartition split(0.5);
  std::vector<double> data(100);
  const auto message = [&](const PartitionArray& array, int64_t n) {
    Loop loop(&device, &split, Options(0));
    loop.AddArray(array);
    int ran = 0;
    const PartitionedRun run = loop.Run(
        n, [&](int64_t, int64_t) { ++ran; },
        [&](Queue, int64_t, int64_t, const DevicePointers&) { return ++ran, std::string(); });
    EXPECT_EQ(run.status.code, PartitionCode::kInvalidArgument);
    EXPECT_EQ(ran, 0);
    return run.status.message;
  };
  EXPECT_EQ(message(PartitionArray::ReadRows(data.data(), 10, 10), 11),
            "array 0 has 10 rows for 11 iterations");
  EXPECT_EQ(message(PartitionArray::ReadRows(data.data(), 10, 10, 9), 10),
            "array 0 has rows that overlap: its stride is less than its length");
  EXPECT_EQ(message(PartitionArray::WriteRows(data.data(), 10, 10).LowerTriangle(), 10),
            "array 0 is a triangle and is not read by rows");
  EXPECT_EQ(message(PartitionArray::ReadWhole<double>(nullptr, 10), 10),
            "array 0 has no memory, or a negative size");
  EXPECT_EQ(message(PartitionArray::ReadRows(data.data(), 10, 10), -1), "a loop of -1 iterations");
}

TEST(PartitionedLoopTest, WhatCannotBePinnedGoesThroughMemoryOfTheLoop) {
  RowsLoop rows(20, 1, Options(0));
  rows.device.pinning_works = false;
  rows.split = FixedPartition(0.5, 2);
  EXPECT_EQ(rows.Run().status.code, PartitionCode::kOk);
  rows.ExpectRight();
  EXPECT_EQ(rows.loop.staged(), (std::vector<int>{0, 1, 2}));

  RowsLoop small(20, 1, Options(0, 1, 20 * RowsLoop::kStride * 8 - 24));
  small.split = FixedPartition(0.5, 2);
  small.Run();
  small.ExpectRight();
  EXPECT_EQ(small.loop.staged(), std::vector<int>{small.scale_});
}

TEST(PartitionedLoopTest, ArraysThatSharePagesArePinnedTogether) {
  FakePartitionDevice device(1);
  FixedPartition split(0.5);
  {
    Loop loop(&device, &split, Options(0));
    auto* const memory = static_cast<char*>(loop.Allocate(10 * 4096));
    char* const page = memory + (4096 - reinterpret_cast<uintptr_t>(memory) % 4096) % 4096;
    loop.AddArray(PartitionArray::ReadRows(page + 5000, 8, 100));
    loop.AddArray(PartitionArray::ReadRows(page + 3 * 4096, 8, 1));
    loop.AddArray(PartitionArray::ReadRows(page + 100, 8, 600));
    EXPECT_EQ(loop.Prepare(), "");
    EXPECT_EQ(device.pinned_pages.size(), 3u);
    EXPECT_EQ(device.pinned_pages.count(reinterpret_cast<uintptr_t>(page + 2 * 4096)), 0u);
    // One more, on a page that is pinned already; and one that the program has pinned.
    loop.AddArray(PartitionArray::ReadRows(page + 7000, 8, 100));
    loop.AddArray(PartitionArray::ReadRows(page + 5 * 4096, 8, 100));
    device.pinned_by_the_program = page + 5 * 4096;
    EXPECT_EQ(loop.Prepare(), "");
    EXPECT_EQ(device.pinned_pages.size(), 3u);
    EXPECT_TRUE(loop.staged().empty());
  }
  EXPECT_TRUE(device.pinned_pages.empty());
  EXPECT_EQ(device.misuses, 0);
}

TEST(PartitionedLoopTest, MemoryOfTheLoopIsPinnedAndGivenBack) {
  FakePartitionDevice device(1);
  FixedPartition split;
  {
    Loop loop(&device, &split, Options(0));
    EXPECT_NE(loop.Allocate(100), nullptr);
    EXPECT_EQ(device.pinned_allocations, 1);
  }
  EXPECT_EQ(device.pinned_allocations, 0);
}

}  // namespace
}  // namespace fusion
