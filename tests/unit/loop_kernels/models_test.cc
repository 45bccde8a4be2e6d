#include "server/loop_kernels/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "server/loop_kernels/modelled_program.h"
#include "server/loops/check.h"
#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;

std::string Listing(const std::string& name) {
  std::ifstream file(testing::SourceFolder() + "/examples/loops/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

ModelledProgram Modelled(const std::string& text, const std::set<std::string>& sizes = {}) {
  const auto checked = CheckLoops(text, "text.c", sizes);
  EXPECT_TRUE(checked.ok()) << checked.status();
  ErrorList errors("text.c");
  MappedLoops mapped = MapLoops(*checked, {.in_strips = false}, &errors);
  EXPECT_TRUE(errors.empty()) << errors.ToStatus();
  return ModelledProgram(mapped);
}

// "NAME = FORMULA" of each measure of a model.
std::vector<std::string> Formulas(const ModelledProgram& program, const std::string& model) {
  std::vector<std::string> lines;
  for (const auto& measure : MeasuresOf(program.Launches(), Formula(program.Cells()), SymbolicMachine()))
    if (measure.model == model) lines.push_back(measure.name + " = " + program.Text(measure.value));
  return lines;
}

std::vector<LaunchCounts<double>> At(const ModelledProgram& program, const IntegerValues& sizes,
                                     const IntegerValues& parameters, bool cached = false) {
  const auto launches = program.LaunchesAt(sizes, parameters, cached);
  EXPECT_TRUE(launches.ok()) << launches.status();
  return launches.ok() ? *launches : std::vector<LaunchCounts<double>>();
}

// 4 multiprocessors of 8 cores.
constexpr MachineParameters<double> kMachine{.latency = 100,
                                             .cores = 32,
                                             .width = 4,
                                             .private_words = 1024,
                                             .cores_of_group = 8,
                                             .threads_per_core = 16,
                                             .transfer = 10,
                                             .burden = 15000};

constexpr char kVectorSum[] = R"(
int N, s, B;
#pragma fusion parameter s in 1..64
#pragma fusion parameter B in 1..1024
int G = N/(s*B);
float a[N], b[N], c[N];
meta_schedule {
  meta_for (int v = 0; v < G; v++)
    meta_for (int u = 0; u < B; u++)
      for (int k = 0; k < s; k++) {
        int i = (v*s + k)*B + u;
        c[i] = a[i] + b[i];
      }
}
)";

TEST(ModelsTest, SumOfVectorsInSymbols) {
  const ModelledProgram program = Modelled(kVectorSum);
  EXPECT_THAT(program.meanings(), ElementsAre("G = floor(N/(s*B))"));
  EXPECT_THAT(Formulas(program, "PRAM"), ElementsAre("time = s", "processors = B*G", "cells = 3*N"));
  EXPECT_THAT(Formulas(program, "fork-join"), ElementsAre("work = s*B*G", "span = s + log2_up(B*G)",
                                                          "burdened_span = s + 15001*log2_up(B*G)"));
  EXPECT_THAT(Formulas(program, "TMM"), ElementsAre("work = s*B*G", "span = s", "memory = 3*s*B*G/C",
                                                    "threads = min(X, B*Z/(3*s*B*Q))"));
  EXPECT_THAT(Formulas(program, "MCM"),
              ElementsAre("work = s*B*G", "span = s", "overhead = 3*s*G*U", "vertices = G", "edges = 0",
                          "antichain = G", "most = 3*s*U + s"));
}

// N = 4096 = 4 * 64 * 16: 16 blocks of 64 threads, of which each adds 4 times, reads 8 words and writes 4.
TEST(ModelsTest, SumOfVectorsInNumbers) {
  const ModelledProgram program = Modelled(kVectorSum);
  const auto launches = At(program, {{"N", 4096}}, {{"s", 4}, {"B", 64}});
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(program.CellsAt({{"N", 4096}}, {{"s", 4}, {"B", 64}}), 12288);
  const auto pram = Pram(launches);
  EXPECT_EQ(pram.time, 4);
  EXPECT_EQ(pram.processors, 1024);
  // 1024 iterations are forked in 10 levels.
  const auto fork_join = ForkJoin(launches, kMachine.burden);
  EXPECT_EQ(fork_join.work, 4096);
  EXPECT_EQ(fork_join.span, 14);
  EXPECT_EQ(fork_join.burdened_span, 150014);
  // 12,288 words in accesses of 4; nothing is cached, so a core has 16 threads: 3072 * 100 / (16 * 32) = 600
  // cycles, above 4096 / 32 = 128 and 4.
  const auto tmm = Tmm(launches, kMachine);
  EXPECT_EQ(tmm.memory, 3072);
  EXPECT_EQ(tmm.threads, 16);
  EXPECT_EQ(TmmTime(tmm, kMachine), 600);
  // A block transfers 12 words in 120 cycles. Of 16 blocks 4 run at once: (16 / 4 + 0) * (4 + 120) = 496.
  const auto mcm = Mcm(launches, kMachine.transfer);
  EXPECT_EQ(mcm.work, 4096);
  EXPECT_EQ(mcm.overhead, 1920);
  EXPECT_EQ(mcm.most, 124);
  EXPECT_EQ(GrahamBrentBound(mcm, 4), 496);
  EXPECT_EQ(GrahamBrentBound(mcm, 100), 124);
  // The bound is (64 / s / 4) * 31 * s = 496 for s = 1 to 16, and more where fewer than 4 blocks are left.
  EXPECT_EQ(program.PreferredGranularity("s", {{"N", 4096}}, {{"s", 4}, {"B", 64}}, false, kMachine), 1);
}

// With s = 2, B = B0 = B1 = 8 and N = 32 there are 4 * 2 blocks of 64 threads; a thread multiplies and adds
// s * N = 64 times each. In each of 4 rounds of 8 steps it reads 2 * 8 words of b and 8 of a, and reads and
// writes 2 of c: 4 * (16 + 8 + 2 + 2) = 112. Shared memory has 2 * 64 words of b and 64 of a, 3 for each
// thread: of 192 words for 8 cores each has 192 / (8 * 3) = 8 threads.
TEST(ModelsTest, MultiplicationOfMatrices) {
  const ModelledProgram program = Modelled(Listing("matmul.c"));
  EXPECT_THAT(program.meanings(),
              ElementsAre("dim0 = floor(N/B0)", "dim1 = floor(N/(s*B1))", "dim = floor(N/B)"));
  EXPECT_EQ(Formulas(program, "MCM")[0], "work = 2*s*B0*B1*B*dim*dim0*dim1");
  EXPECT_EQ(Formulas(program, "TMM")[3], "threads = min(X, B0*B1*Z/(s*B0*B1*Q + s*B1*B*Q + B0*B*Q))");
  const IntegerValues parameters = {{"s", 2}, {"B", 8}, {"B0", 8}, {"B1", 8}};
  const auto launches = At(program, {{"N", 32}}, parameters, true);
  const auto mcm = Mcm(launches, kMachine.transfer);
  EXPECT_EQ(mcm.work, 2 * 32 * 32 * 32);
  EXPECT_EQ(mcm.span, 128);
  EXPECT_EQ(mcm.overhead, 8 * 112 * 10);
  EXPECT_EQ(GrahamBrentBound(mcm, 4), (8 / 4 + 0) * (128 + 1120));
  // Two buffers for 8 rows of 8 entries of a and 8 rows of 16 of b, with 4 words behind each row.
  EXPECT_EQ(launches[0].block_words, 2 * (8 * (8 + 4) + 8 * (16 + 4)));
  EXPECT_EQ(Tmm(launches, kMachine).threads, 16);
  MachineParameters<double> small = kMachine;
  small.private_words = 512;
  EXPECT_EQ(Tmm(launches, small).threads, 8);
  // 4 * (64 + 720) = 3136 for s = 1, 2496 for 2, 1 * (256 + 1920) = 2176 for 4; 8 would leave columns out.
  EXPECT_EQ(program.PreferredGranularity("s", {{"N", 32}}, parameters, false, kMachine), 4);
}

// Either branch adds twice and divides once, and the condition divides, too.
TEST(ModelsTest, OfBranchesOneCounts) {
  const ModelledProgram program = Modelled(Listing("jacobi.c"));
  const ThreadWork& thread = program.kernels()[0].counts.thread;
  EXPECT_EQ(program.Text(thread.operations), "4*s");
  EXPECT_EQ(program.Text(thread.coalesced_reads), "3*s");
  EXPECT_EQ(program.Text(thread.coalesced_writes), "s");
  EXPECT_EQ(program.Text(program.kernels()[0].launches), "T");
  EXPECT_EQ(Formulas(program, "MCM")[4], "edges = T - 1");
  EXPECT_THAT(Formulas(program, "fork-join"),
              ElementsAre("work = 4*s*B*T*dim", "span = T*(4*s + log2_up(B*dim))",
                          "burdened_span = T*(4*s + 15001*log2_up(B*dim))"));
}

// N = 4, tiles of 2 x 1: the first kernel has 2 blocks for each k, the second 2 * (4 - k): 8 + 2*(4+3+2+1) =
// 28 blocks of 8 launches. Threads do 5 and 9 operations and touch 3 and 4 words.
TEST(ModelsTest, LaunchesOfTheHostMayDiffer) {
  const ModelledProgram program = Modelled(Listing("lu.c"), {"N"});
  EXPECT_THAT(program.meanings(),
              ElementsAre("q1 = ceil(N/(B0*s0))", "q2 = ceil((N - k)/(B1*s1))", "q3 = ceil(N/(B1*s1))"));
  EXPECT_EQ(program.Text(program.kernels()[1].counts.blocks), "q1*q2");
  EXPECT_EQ(program.Text(program.kernels()[1].most.blocks), "q1*q3");
  EXPECT_EQ(Formulas(program, "MCM")[4], "edges = 2*N - 1");
  const auto launches =
      At(program, {{"N", 4}, {"G", 1}, {"B", 1}}, {{"B0", 2}, {"s0", 1}, {"B1", 1}, {"s1", 1}});
  const auto mcm = Mcm(launches, kMachine.transfer);
  EXPECT_EQ(mcm.vertices, 28);
  EXPECT_EQ(mcm.edges, 7);
  EXPECT_EQ(mcm.antichain, 8);
  EXPECT_EQ(mcm.work, 8 * 2 * 5 + 20 * 2 * 9);
  EXPECT_EQ(mcm.span, 4 * 5 + 4 * 9);
  EXPECT_EQ(mcm.overhead, (8 * 3 + 20 * 4) * 10);
  EXPECT_EQ(GrahamBrentBound(mcm, 4), (28 / 4 + 7) * 49);
}

// Threads go through a row each, so that neighbours read entries that lie a row apart: with a block of 2
// threads, n = 2 and m = 3, the 3 words of each thread come one after the other. A register holds b[i].
TEST(ModelsTest, ScatteredAccessesCostATransferForEachThread) {
  const ModelledProgram program = Modelled(
      "int n, m;\nfloat a[n][m], b[n];\n#pragma fusion parametric\nfor (int i = 0; i < n; i++)\n"
      "  for (int j = 0; j < m; j++)\n    b[i] += a[i][j];\n");
  const ThreadWork& thread = program.kernels()[0].counts.thread;
  EXPECT_EQ(program.Text(thread.scattered_reads), "s0*m");
  const auto launches = At(program, {{"n", 2}, {"m", 3}}, {{"B0", 2}, {"s0", 1}});
  const auto mcm = Mcm(launches, kMachine.transfer);
  EXPECT_EQ(mcm.overhead, (2 + 2 * 3) * 10);
  EXPECT_EQ(Tmm(launches, kMachine).memory, 2 * 2 / 4.0 + 2 * 3);
}

// Inner loops count as long as the longest.
TEST(ModelsTest, LoopsOfDifferentLengthsCountTheLongest) {
  const ModelledProgram program = Modelled(
      "int n, B;\n#pragma fusion parameter B in 1..64\nfloat a[n][n], b[n];\nint dim = n/B;\nmeta_schedule "
      "{\n"
      "  meta_for (int v = 0; v < dim; v++)\n    meta_for (int u = 0; u < B; u++)\n"
      "      for (int i = 0; i < n; i++)\n        for (int j = i; j < n; j++)\n"
      "          b[v * B + u] += a[v * B + u][j];\n}\n");
  EXPECT_EQ(program.Text(program.kernels()[0].counts.thread.operations), "n^2");
}

// A machine's figures follow from a device's: 2 multiprocessors of 128 cores with 1024 threads and 64 KiB.
TEST(ModelsTest, FiguresOfDevices) {
  DeviceDescription device;
  device.set_target(v1::CUDA);
  device.set_arch("sm_90");
  device.set_multiprocessors(2);
  device.set_max_threads_per_multiprocessor(1024);
  device.set_shared_bytes_per_multiprocessor(65536);
  const MachineParameters<double> machine = MachineOf(device);
  EXPECT_EQ(machine.cores, 256);
  EXPECT_EQ(machine.threads_per_core, 8);
  EXPECT_EQ(machine.private_words, 16384);
  device.set_arch("sm_80");
  EXPECT_EQ(MachineOf(device).cores, 128);
}

TEST(ModelsTest, WhatIsNoPolynomialIsUnknown) {
  const ModelledProgram program = Modelled(
      "int n, k[1];\nfloat a[n];\n#pragma fusion parametric\nfor (int i = 0; i < n; i++)\n"
      "  for (int j = 0; j < k[0]; j++)\n    a[i] += 1;\n");
  EXPECT_EQ(Formulas(program, "PRAM")[0], "time = unknown");
  EXPECT_FALSE(program.LaunchesAt({{"n", 8}}, {{"B0", 2}, {"s0", 1}}, false).ok());
}

TEST(ModelsTest, LettersOfMachinesAreApartFromNamesOfTheText) {
  const ModelledProgram program = Modelled(
      "int P, U;\nfloat a[P];\n#pragma fusion parametric\nfor (int i = 0; i < P; i++)\n  a[i] = U;\n");
  EXPECT_THAT(program.meanings(), ElementsAre("q1 = ceil(P'/(B0*s0))"));
  EXPECT_EQ(Formulas(program, "PRAM")[2], "cells = P'");
}

}  // namespace
}  // namespace fusion
