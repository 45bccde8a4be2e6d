#include "server/loop_kernels/loop_time.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/loop_kernels/prediction.h"
#include "server/loops/check.h"
#include "server/target/device_description.h"

namespace fusion {
namespace {

constexpr char kSmoothing[] = R"(
int n, B;
#pragma fusion parameter B in 1..1024
float a[n], b[n];
meta_schedule {
    meta_for (int v = 0; v < n / B; v++)
        meta_for (int u = 0; u < B; u++) {
            int p = v * B + u;
            b[p] = a[p] * 2;
        }
}
)";

// Each row to the diagonal, or whole.
std::string Rows(const std::string& condition) {
  return R"(
int n;
float a[n][n], b[n][n];
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
        if ()" +
         condition + R"()
            b[i][j] = a[i][j] + 1;
)";
}

constexpr char kProduct[] = R"(
int n, B0, B1, s;
#pragma fusion parameter B0 in 1..1024
#pragma fusion parameter B1 in 1..1024
#pragma fusion parameter s in 1..64
float a[n][n], b[n][n], c[n][n];
meta_schedule {
    meta_for (int v0 = 0; v0 < n / B0; v0++)
    meta_for (int v1 = 0; v1 < n / (s * B1); v1++)
        meta_for (int u0 = 0; u0 < B0; u0++)
        meta_for (int u1 = 0; u1 < B1; u1++)
            for (int k = 0; k < s; ++k) {
                int i = v0 * B0 + u0;
                int j = (v1 * s + k) * B1 + u1;
                for (int z = 0; z < n; z++)
                    c[i][j] += a[i][z] * b[z][j];
            }
}
)";

constexpr char kTurns[] = R"(
int n, t, B;
#pragma fusion parameter B in 1..1024
float a[n], b[n];
meta_schedule {
    meta_for (int v = 0; v < n / B; v++)
        meta_for (int u = 0; u < B; u++) {
            int p = v * B + u;
            if (t % 2)
                a[p] = b[p] + 1;
            else
                b[p] = a[p] + a[p] * b[p];
        }
}
)";

const DeviceDescription& Device() {
  static const DeviceDescription device = DescribedDevice(v1::CUDA, "sm_90");
  return device;
}

LoopWork WorkOf(const std::string& text, const IntegerValues& values, bool cached = false) {
  const auto checked = CheckLoops(text, "text.c");
  EXPECT_TRUE(checked.ok()) << checked.status();
  ErrorList errors("text.c");
  const MappedLoops mapped = MapLoops(*checked, {}, &errors);
  EXPECT_TRUE(errors.empty()) << errors.ToStatus();
  std::set<std::string> constants;
  for (const CParameter& parameter : mapped.program.parameters) constants.insert(parameter.name);
  const LoopPredictor predictor(mapped, constants);
  EXPECT_EQ(predictor.kernels(), 1u);
  return predictor.Work(0, values, cached, false);
}

double SecondsOf(const LoopWork& work) { return EstimateLoopKernel(work, CostModel(Device())).total_seconds; }

IntegerValues Tiles(int64_t n, int64_t b0, int64_t b1, int64_t s0, int64_t s1) {
  return {{"n", n}, {"B0", b0}, {"B1", b1}, {"s0", s0}, {"s1", s1}};
}

IntegerValues Parts(int64_t b0, int64_t b1, int64_t s) {
  return {{"n", 1024}, {"B0", b0}, {"B1", b1}, {"s", s}};
}

TEST(LoopTime, MoreResidentBlocksAreNeverSlower) {
  LoopWork work = WorkOf(kSmoothing, {{"n", 1 << 24}, {"B", 256}});
  double before = 0;
  for (int registers = 16; registers <= 255; registers += 8) {
    work.registers = registers;
    EXPECT_GE(SecondsOf(work), before) << registers;
    before = SecondsOf(work);
  }
  work.registers = 16;
  EXPECT_LT(SecondsOf(work), before / 2);
}

TEST(LoopTime, TinyBlocksCostTheirLaunches) {
  const auto seconds = [](int64_t threads) {
    return SecondsOf(WorkOf(kSmoothing, {{"n", 1 << 24}, {"B", threads}}));
  };
  EXPECT_GT(seconds(32), 1.9 * seconds(64));
  EXPECT_GT(seconds(64), 2 * seconds(256));
  EXPECT_LT(seconds(512), 1.2 * seconds(256));
}

TEST(LoopTime, WhatIsLeftOverForOneMultiprocessorTakesLonger) {
  LoopWork work = WorkOf(kProduct, Parts(8, 32, 16));
  work.instructions = work.waits = work.far_waits = work.additions = 0;
  work.turns = 1e5;  // so that the first caches decide
  work.blocks = 4.0 * Device().multiprocessors();
  const double even = SecondsOf(work);
  work.blocks += 1;
  EXPECT_NEAR(SecondsOf(work), even * 5 / 4, even * 0.05);
}

TEST(LoopTime, NothingIsFasterThanItsMemory) {
  const LoopWork work = WorkOf(kSmoothing, {{"n", 1 << 26}, {"B", 512}});
  EXPECT_NEAR(work.memory_bytes, 2.0 * (1 << 26) * 4, 1e6);
  EXPECT_GE(SecondsOf(work), work.memory_bytes / Device().copy_bytes_per_second());
}

TEST(LoopWork, ATriangleHasHalfTheWork) {
  const IntegerValues values = Tiles(4096, 32, 8, 1, 1);
  const LoopWork square = WorkOf(Rows("i >= 0"), values), triangle = WorkOf(Rows("i >= j"), values);
  EXPECT_EQ(triangle.blocks, square.blocks);
  EXPECT_NEAR(square.active, 1, 0.01);
  EXPECT_NEAR(triangle.active, 0.5, 0.05);
  EXPECT_NEAR(triangle.memory_bytes, square.memory_bytes / 2, square.memory_bytes * 0.05);
  EXPECT_NEAR(triangle.turns, square.turns / 2, square.turns * 0.05);
  EXPECT_LT(SecondsOf(triangle), SecondsOf(square));
}

TEST(LoopWork, OnlyTheBranchThatIsTakenCounts) {
  const IntegerValues even = {{"n", 1 << 20}, {"B", 256}, {"t", 0}},
                      odd = {{"n", 1 << 20}, {"B", 256}, {"t", 1}};
  EXPECT_NEAR(WorkOf(kTurns, odd).memory_bytes, 2.0 * (1 << 20) * 4, 1e4);   // of b, to a
  EXPECT_NEAR(WorkOf(kTurns, even).memory_bytes, 3.0 * (1 << 20) * 4, 1e4);  // of both, to b
}

TEST(LoopWork, RegistersGrowWithPartsAsFarAsTheBlockHasThem) {
  const int one = WorkOf(kProduct, Parts(8, 32, 1)).registers;
  const int many = WorkOf(kProduct, Parts(8, 32, 64)).registers;
  EXPECT_GT(many, one + 64);
  const LoopWork crowded = WorkOf(kProduct, Parts(32, 32, 64));
  EXPECT_LE(crowded.registers, 64);
  // Registers that do not fit go to memory and back.
  EXPECT_GT(crowded.turns, 2 * WorkOf(kProduct, Parts(8, 32, 64)).turns);
}

TEST(LoopWork, PartsShareWhatTheyRead) {
  const LoopWork one = WorkOf(kProduct, Parts(32, 8, 1)), parts = WorkOf(kProduct, Parts(32, 8, 4));
  EXPECT_EQ(one.blocks, 4 * parts.blocks);
  EXPECT_LT(parts.blocks * parts.turns, 0.8 * one.blocks * one.turns);
  EXPECT_LT(parts.reused_bytes, 0.5 * one.reused_bytes);
}

TEST(LoopWork, LanesThatLieApartTouchMoreSectors) {
  const std::string transpose = R"(
int n;
float a[n][n], b[n][n];
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
        b[j][i] = a[i][j];
)";
  const double square = 4096.0 * 4096 * 4;
  EXPECT_NEAR(WorkOf(transpose, Tiles(4096, 32, 8, 1, 1)).stored_bytes, 8 * square, square * 0.01);
  EXPECT_NEAR(WorkOf(transpose, Tiles(4096, 4, 8, 1, 1)).stored_bytes, square, square * 0.01);
}

TEST(LoopWork, LoadsOfALoopThatIsUnrolledWaitTogether) {
  const LoopWork one = WorkOf(kProduct, Parts(8, 32, 1));
  EXPECT_NEAR(one.waits, 1024.0 / 4, 4);
  const LoopWork many = WorkOf(kProduct, Parts(8, 32, 64));
  EXPECT_GE(many.waits, 1024);
}

}  // namespace
}  // namespace fusion
