#include "server/model/cost_model.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

DeviceDescription Gpu() { return DescribedDevice(v1::CUDA); }

TEST(ResidentBlocks, EachLimitBinds) {
  EXPECT_EQ(ResidentBlocks(Gpu(), 1024, 32, 0), 2) << "threads: 2048 per multiprocessor";
  EXPECT_EQ(ResidentBlocks(Gpu(), 32, 16, 0), 32) << "blocks";
  EXPECT_EQ(ResidentBlocks(Gpu(), 256, 128, 0), 2) << "registers: 65536 / (128 * 256)";
  EXPECT_EQ(ResidentBlocks(Gpu(), 128, 32, 100 << 10), 2) << "shared memory: 228 KiB / 101 KiB";
  EXPECT_EQ(ResidentBlocks(Gpu(), 128, 32, 300 << 10), 0) << "more shared memory than a block may have";
  EXPECT_EQ(ResidentBlocks(Gpu(), 2048, 32, 0), 0) << "more threads than a block may have";
}

TEST(CostModel, HostTimeIsBytesOverBandwidthPlusLaunch) {
  const CostModel model(DescribedDevice(v1::HOST));
  KernelTraits traits{.bytes_read = 4e9, .launches = 2, .blocks = 8};
  const RunTimeEstimate estimate = model.Estimate(traits);
  EXPECT_DOUBLE_EQ(estimate.memory_seconds, 4e9 / 2.0e10);
  EXPECT_DOUBLE_EQ(estimate.launch_seconds, 2 * 5e-6);
  EXPECT_DOUBLE_EQ(estimate.total_seconds, estimate.memory_seconds + estimate.launch_seconds);
}

TEST(CostModel, HostsReadLinesBeforeTheyWriteThemAndKeepSmallData) {
  const CostModel model(DescribedDevice(v1::HOST));
  const auto seconds = [&](double read, double written) {
    return model.Estimate({.bytes_read = read, .bytes_written = written, .blocks = 8}).memory_seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(3e9, 1e9), 4.5e9 / 2.0e10);
  EXPECT_DOUBLE_EQ(seconds(3e6, 1e6), 4e6 / (1.5 * 2.0e10));
}

TEST(CostModel, WarmDataComeFasterWhereTheCacheHoldsThem) {
  KernelTraits traits{.bytes_read = 1e6, .launches = 1, .threads = 256, .blocks = 132 * 8};
  const double cold = CostModel(Gpu()).Estimate(traits).memory_seconds;
  EXPECT_LT(CostModel(Gpu(), 1e6).Estimate(traits).memory_seconds, cold);
  EXPECT_LT(CostModel(Gpu(), 0.79 * Gpu().l2_bytes()).Estimate(traits).memory_seconds, cold);
  EXPECT_EQ(CostModel(Gpu(), 0.81 * Gpu().l2_bytes()).Estimate(traits).memory_seconds, cold);
}

TEST(CostModel, TheLargerOfMemoryAndComputeCounts) {
  const CostModel model(DescribedDevice(v1::HOST));
  KernelTraits traits{.bytes_read = 1, .flops = 1e11, .blocks = 8};
  const RunTimeEstimate estimate = model.Estimate(traits);
  EXPECT_NEAR(estimate.total_seconds, 1.0, 1e-4);
  traits.compute_efficiency = 0.5;
  EXPECT_NEAR(model.Estimate(traits).total_seconds, 2.0, 1e-4);
}

TEST(CostModel, FewBytesInFlightLeaveBandwidthUnused) {
  const CostModel model(Gpu());
  KernelTraits traits{.bytes_read = 1e9, .threads = 256, .blocks = 132 * 8};
  traits.bytes_in_flight_per_block = 512;
  const double starved = model.Estimate(traits).memory_seconds;
  traits.bytes_in_flight_per_block = 64 << 10;
  const double fed = model.Estimate(traits).memory_seconds;
  EXPECT_GT(starved, 3 * fed);
  EXPECT_GE(fed, 1e9 / 3.0e12) << "never faster than the copy rate";
}

// Waiting for loads adds to the memory's own time, less than all of it; memory of any rate is no faster than
// that.
TEST(CostModel, LoadsThatWaitOverlapBadlyWithMemory) {
  DeviceDescription fast = Gpu();
  fast.set_copy_bytes_per_second(1e6 * fast.copy_bytes_per_second());
  KernelTraits traits{.bytes_read = 1e9, .threads = 256, .blocks = 132 * 8};
  const double memory = CostModel(Gpu()).Estimate(traits).memory_seconds;
  traits.latency_seconds = memory;
  const double both = CostModel(Gpu()).Estimate(traits).memory_seconds;
  EXPECT_GT(both, 1.3 * memory);
  EXPECT_LT(both, 2 * memory);
  EXPECT_NEAR(CostModel(fast).Estimate(traits).memory_seconds, traits.latency_seconds, 1e-3 * memory);
}

TEST(CostModel, AGridSmallerThanTheDeviceIsSlower) {
  const CostModel model(Gpu());
  KernelTraits traits{.bytes_read = 1e8, .threads = 1024, .blocks = 13, .bytes_in_flight_per_block = 1 << 20};
  const double part = model.Estimate(traits).memory_seconds;
  traits.blocks = 264;
  EXPECT_GT(part, 5 * model.Estimate(traits).memory_seconds);
}

TEST(RunTimeEstimate, PrintsItsTerms) {
  KernelTraits traits{.bytes_read = 1e6, .blocks = 2};
  const std::string text = CostModel(DescribedDevice(v1::HOST)).Estimate(traits).ToString();
  for (const char* term : {"memory", "compute", "barriers", "launch", "occupancy", "registers", "shared"})
    EXPECT_NE(text.find(term), std::string::npos) << term << " in " << text;
}

// Of a kernel with memory_seconds of some 80 us and issue_seconds of about as many.
KernelTraits LongKernel() {
  return {.bytes_read = 2.5e8, .flops = 1e9, .instructions = 2e9, .blocks = 10'000};
}

TEST(CostModel, TermsAddUpToTheTotal) {
  const CostModel model(DescribedDevice(v1::CUDA));
  KernelTraits issuing = LongKernel(), waiting = LongKernel(), phases = LongKernel();
  issuing.issue_overlap = 2;
  waiting.waiting_seconds = phases.waiting_seconds = 2e-5;
  phases.phases_apart = true;
  phases.barrier_seconds = 3e-6;
  for (const KernelTraits& traits : {LongKernel(), issuing, waiting, phases}) {
    const RunTimeEstimate e = model.Estimate(traits);
    EXPECT_DOUBLE_EQ(std::max({e.memory_seconds, e.compute_seconds, e.alone_seconds}) + e.waiting_seconds +
                         e.barrier_seconds + e.launch_seconds,
                     e.total_seconds);
    EXPECT_NE(e.ToString().find("waits"), std::string::npos);
  }
  EXPECT_DOUBLE_EQ(model.Estimate(LongKernel()).waiting_seconds, 0);
}

TEST(CostModel, WhatOverlapsBadlyCostsMoreTheWorseItDoes) {
  const CostModel model(DescribedDevice(v1::CUDA));
  const auto waits = [&](double issue_overlap, double waiting_seconds, bool phases_apart) {
    KernelTraits traits = LongKernel();
    traits.issue_overlap = issue_overlap;
    traits.waiting_seconds = waiting_seconds;
    traits.phases_apart = phases_apart;
    return model.Estimate(traits).waiting_seconds;
  };
  EXPECT_GT(waits(1.2, 0, false), 1.5 * waits(2, 0, false));
  EXPECT_GT(waits(2, 0, false), 1.5 * waits(4, 0, false));
  EXPECT_GT(waits(4, 0, false), 0);
  EXPECT_GT(waits(0, 4e-5, false), 1.5 * waits(0, 2e-5, false));
  EXPECT_GT(waits(0, 2e-5, true), waits(0, 2e-5, false));  // what is computed, too
  EXPECT_GT(waits(0, 2e-5, false), 0);
}

TEST(CostModel, ScatteredStoresTakeTheTimeOfTheCache) {
  const CostModel model(DescribedDevice(v1::CUDA));
  KernelTraits traits = LongKernel();
  const double before = model.Estimate(traits).memory_seconds;
  traits.scattered_bytes = 2.5e8;  // no more than what is read anyway
  EXPECT_DOUBLE_EQ(model.Estimate(traits).memory_seconds, before);
  traits.scattered_bytes = 2.5e9;
  EXPECT_GT(model.Estimate(traits).memory_seconds, 3 * before);
}

TEST(DeviceDescription, DefaultsFillOnlyWhatIsMissing) {
  DeviceDescription device;
  device.set_target(v1::CUDA);
  device.set_multiprocessors(80);
  const DeviceDescription filled = WithDefaults(device);
  EXPECT_EQ(filled.multiprocessors(), 80);
  EXPECT_GT(filled.copy_bytes_per_second(), 0);
  EXPECT_EQ(filled.shared_bytes_per_block(), 227 << 10);
}

}  // namespace
}  // namespace fusion
