#include "server/model/mwp_cwp.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

MwpCwpEstimate Estimate(const MwpCwpHardware& hardware, const MwpCwpProgram& program) {
  absl::StatusOr<MwpCwpEstimate> estimate = EstimateMwpCwp(hardware, program);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  return estimate.ok() ? *estimate : MwpCwpEstimate{};
}

// The table of Moreno Maza 2017, "Determining MWP and CWP". It gives no Departure_del_coal: nothing depends
// on it where no access is coalesced.
MwpCwpHardware TableHardware() {
  return {.freq_hz = 1e9,
          .mem_bandwidth_bytes_per_second = 80e9,
          .mem_ld_cycles = 420,
          .departure_del_coal_cycles = 4,
          .departure_del_uncoal_cycles = 10,
          .issue_cycles = 4};
}

MwpCwpProgram TableProgram() {
  return {.threads_per_block = 128,
          .blocks = 80,
          .active_blocks_per_sm = 5,
          .active_sms = 16,
          .load_bytes_per_warp = 4 * 32,
          .uncoal_per_mw = 32,
          .comp_insts = 27,
          .uncoal_mem_insts = 6,
          .synch_insts = 2 * 3};
}

// What the table prints, to 0.1 %.
#define EXPECT_PRINTED(value, printed) EXPECT_NEAR(value, printed, 1e-3 * (printed))

TEST(MwpCwp, TableOfTheSeed) {
  const MwpCwpEstimate e = Estimate(TableHardware(), TableProgram());
  EXPECT_EQ(e.active_warps_per_sm, 20);
  EXPECT_EQ(e.departure_delay_cycles, 320);
  EXPECT_EQ(e.mem_l_cycles, 730);
  EXPECT_PRINTED(e.mwp_without_bw_full, 2.28);  // 2.28125
  EXPECT_PRINTED(e.mwp, 2.28);
  EXPECT_EQ(e.comp_cycles, 132);
  EXPECT_EQ(e.mem_cycles, 4380);
  EXPECT_PRINTED(e.cwp_full, 34.18);
  EXPECT_EQ(e.cwp, 20);
  EXPECT_EQ(e.rep, 1);
  EXPECT_EQ(e.which_case, MwpCwpCase::kCwpAtLeastMwp) << "the table names equation (23)";
  EXPECT_PRINTED(e.exec_cycles_app, 38450);    // 38428.2
  EXPECT_PRINTED(e.synch_cost_cycles, 12288);  // 12300
  EXPECT_PRINTED(e.exec_cycles, 50738);        // 50728.2
}

// Two entries of the table are 0.2 % off because it goes on with BW_per_warp = 128 / 730 = 0.17534 GB/s as
// the 0.175 that it prints: 80 / (0.175 * 16) = 28.57, and 80 / (0.17534 * 16) = 80 * 730 / (128 * 16)
// = 28.516.
TEST(MwpCwp, TableOfTheSeedWhereItRoundsTheBandwidth) {
  const MwpCwpEstimate e = Estimate(TableHardware(), TableProgram());
  const double gigabytes = e.bw_per_warp_bytes_per_second / 1e9;
  EXPECT_DOUBLE_EQ(gigabytes, 128.0 / 730);
  EXPECT_DOUBLE_EQ(e.mwp_peak_bw, 28.515625);
  const double printed = std::round(gigabytes * 1e3) / 1e3;
  EXPECT_DOUBLE_EQ(printed, 0.175);
  EXPECT_PRINTED(80 / (printed * 16), 28.57);
}

// The last three entries are those of MWP = 2.28 instead of 730 / 320 = 2.28125. Synch_cost is then exact;
// Exec_cycles_app is 38449.2, printed as 38450 (20 / 2.28 taken as 8.772 gives 38449.5).
TEST(MwpCwp, TableOfTheSeedWhereItRoundsMwp) {
  const MwpCwpEstimate e = Estimate(TableHardware(), TableProgram());
  EXPECT_DOUBLE_EQ(e.mwp, 2.28125);
  EXPECT_DOUBLE_EQ(e.exec_cycles_app, 4380 * 20 / 2.28125 + 132.0 / 6 * 1.28125);
  EXPECT_DOUBLE_EQ(e.synch_cost_cycles, 12300);
  const double mwp = std::round(e.mwp * 100) / 100;
  EXPECT_NEAR(e.mem_cycles * e.active_warps_per_sm / mwp + e.comp_cycles / e.mem_insts * (mwp - 1), 38450, 1);
  EXPECT_NEAR(e.departure_delay_cycles * (mwp - 1) * 6 * 5, 12288, 1e-6);
}

TEST(MwpCwp, CoalescedDelayDoesNotMatterWhereNothingIsCoalesced) {
  MwpCwpHardware hardware = TableHardware();
  hardware.departure_del_coal_cycles = 1000;
  EXPECT_EQ(Estimate(hardware, TableProgram()).exec_cycles,
            Estimate(TableHardware(), TableProgram()).exec_cycles);
}

// #Mem_insts and #Synch_insts are both 6 in the table: here they differ. Seconds and CPI are not in it.
TEST(MwpCwp, SynchronizationIsNoInstruction) {
  MwpCwpProgram program = TableProgram();
  const MwpCwpEstimate with = Estimate(TableHardware(), program);
  EXPECT_DOUBLE_EQ(with.exec_seconds, with.exec_cycles / 1e9);
  EXPECT_DOUBLE_EQ(with.cpi, with.exec_cycles_app / (33 * 4 * 5));
  program.synch_insts = 0;
  const MwpCwpEstimate without = Estimate(TableHardware(), program);
  EXPECT_EQ(without.total_insts, 33);
  EXPECT_EQ(without.comp_cycles, 132);
  EXPECT_EQ(without.synch_cost_cycles, 0);
  EXPECT_EQ(without.exec_cycles, with.exec_cycles_app);
  EXPECT_EQ(without.cpi, with.cpi);
}

// One coalesced load of 480 cycles each 160 cycles of computation, 20 warps: MWP = 480 / 120 = 4 = CWP = 640
// / 160.
MwpCwpHardware Hardware() {
  return {.freq_hz = 1e9,
          .mem_bandwidth_bytes_per_second = 1e15,
          .mem_ld_cycles = 480,
          .departure_del_coal_cycles = 120,
          .departure_del_uncoal_cycles = 60,
          .issue_cycles = 4};
}

MwpCwpProgram Program() {
  return {.threads_per_block = 128,
          .blocks = 160,
          .active_blocks_per_sm = 5,
          .active_sms = 16,
          .load_bytes_per_warp = 128,
          .comp_insts = 39,
          .coal_mem_insts = 1};
}

TEST(MwpCwp, MixedAccessesAreWeighted) {
  MwpCwpProgram program = Program();
  program.uncoal_per_mw = 4;
  program.coal_mem_insts = 3;
  program.uncoal_mem_insts = 1;
  const MwpCwpEstimate e = Estimate(Hardware(), program);
  EXPECT_EQ(e.weight_coal, 0.75);
  EXPECT_EQ(e.weight_uncoal, 0.25);
  EXPECT_EQ(e.mem_l_coal_cycles, 480);
  EXPECT_EQ(e.mem_l_uncoal_cycles, 480 + 3 * 60);
  EXPECT_EQ(e.mem_l_cycles, 0.75 * 480 + 0.25 * 660);
  EXPECT_EQ(e.departure_delay_cycles, 0.75 * 120 + 0.25 * 4 * 60);
  EXPECT_EQ(e.mem_cycles, 3 * 480 + 660);
  EXPECT_EQ(e.total_insts, 43);
}

TEST(MwpCwp, TheBandwidthLimitsMwp) {
  MwpCwpHardware hardware = Hardware();
  hardware.mem_bandwidth_bytes_per_second = 2 * 16 * 1e9 * 128 / 480;  // two warps of each of 16 SMs
  const MwpCwpEstimate e = Estimate(hardware, Program());
  EXPECT_DOUBLE_EQ(e.mwp_peak_bw, 2);
  EXPECT_DOUBLE_EQ(e.mwp, 2);
  EXPECT_EQ(e.mwp_without_bw, 4);
}

TEST(MwpCwp, BelowOneWarpOfBandwidthNothingIsNegative) {
  MwpCwpHardware hardware = Hardware();
  hardware.mem_bandwidth_bytes_per_second = 0.5 * 16 * 1e9 * 128 / 480;
  MwpCwpProgram program = Program();
  program.synch_insts = 3;
  const MwpCwpEstimate e = Estimate(hardware, program);
  EXPECT_DOUBLE_EQ(e.mwp, 0.5);
  EXPECT_EQ(e.synch_cost_cycles, 0);
  EXPECT_DOUBLE_EQ(e.exec_cycles, 480 * 20 / 0.5 * 2);
}

TEST(MwpCwp, CwpEqualToMwpIsMemoryBound) {
  MwpCwpProgram program = Program();
  const MwpCwpEstimate equal = Estimate(Hardware(), program);
  EXPECT_EQ(equal.cwp, equal.mwp);
  EXPECT_EQ(equal.which_case, MwpCwpCase::kCwpAtLeastMwp);
  EXPECT_EQ(equal.exec_cycles_app, (480.0 * 20 / 4 + 160 * 3) * 2);

  program.comp_insts = 40;
  const MwpCwpEstimate below = Estimate(Hardware(), program);
  EXPECT_LT(below.cwp, below.mwp);
  EXPECT_EQ(below.which_case, MwpCwpCase::kMwpAboveCwp);
  EXPECT_EQ(below.exec_cycles_app, (480.0 + 164 * 20) * 2);
}

// (24) has the latency of one access, not the Mem_cycles of all.
TEST(MwpCwp, ComputeBoundExposesOneMemoryPeriod) {
  MwpCwpProgram program = Program();
  program.coal_mem_insts = 2;
  program.comp_insts = 98;
  const MwpCwpEstimate e = Estimate(Hardware(), program);
  EXPECT_EQ(e.which_case, MwpCwpCase::kMwpAboveCwp);
  EXPECT_EQ(e.exec_cycles_app, (480.0 + 400 * 20) * 2);
}

TEST(MwpCwp, MoreComputationThanMemoryTakesEquation23) {
  MwpCwpProgram program = Program();
  program.comp_insts = 119;  // Comp_cycles = Mem_cycles = 480
  const MwpCwpEstimate equal = Estimate(Hardware(), program);
  EXPECT_EQ(equal.cwp, 2);
  EXPECT_EQ(equal.which_case, MwpCwpCase::kMwpAboveCwp);

  program.comp_insts = 120;
  const MwpCwpEstimate more = Estimate(Hardware(), program);
  EXPECT_LT(more.cwp, more.mwp);
  EXPECT_EQ(more.which_case, MwpCwpCase::kCwpAtLeastMwp);
  EXPECT_EQ(more.exec_cycles_app, (480.0 * 20 / 4 + 484 * 3) * 2);
}

TEST(MwpCwp, NotEnoughWarpsNeedsBothLimits) {
  MwpCwpProgram program = Program();
  program.threads_per_block = 32;
  program.active_blocks_per_sm = 4;  // N = 4 = MWP_Without_BW_full = CWP_full
  const MwpCwpEstimate both = Estimate(Hardware(), program);
  EXPECT_EQ(both.which_case, MwpCwpCase::kNotEnoughWarps);
  EXPECT_EQ(both.exec_cycles_app, (480.0 + 160 + 160 * 3) * 2.5);

  program.comp_insts = 40;  // CWP < N
  EXPECT_EQ(Estimate(Hardware(), program).which_case, MwpCwpCase::kMwpAboveCwp);
  program.comp_insts = 39;
  MwpCwpHardware hardware = Hardware();
  hardware.departure_del_coal_cycles = 121;  // MWP < N
  EXPECT_EQ(Estimate(hardware, program).which_case, MwpCwpCase::kCwpAtLeastMwp);
}

TEST(MwpCwp, OneWarpOverlapsNothing) {
  MwpCwpProgram program = Program();
  program.threads_per_block = 1;
  program.active_blocks_per_sm = 1;
  program.synch_insts = 5;
  const MwpCwpEstimate e = Estimate(Hardware(), program);
  EXPECT_EQ(e.active_warps_per_sm, 1);
  EXPECT_EQ(e.which_case, MwpCwpCase::kNotEnoughWarps);
  EXPECT_EQ(e.rep, 10);
  EXPECT_EQ(e.exec_cycles, (480 + 160) * 10);
}

TEST(MwpCwp, WarpsAreWholeAndWavesAreNot) {
  MwpCwpProgram program = Program();
  program.threads_per_block = 97;
  EXPECT_EQ(Estimate(Hardware(), program).active_warps_per_sm, 4 * 5);
  program.blocks = 100;
  EXPECT_EQ(Estimate(Hardware(), program).rep, 1.25);
}

TEST(MwpCwp, BadInputsAreNamed) {
  struct Input {
    const char* name;
    std::function<void(MwpCwpHardware&, MwpCwpProgram&, double)> set;
  };
#define HARDWARE(field)                                                               \
  {                                                                                   \
#field, [](MwpCwpHardware & h, MwpCwpProgram&, double value) { h.field = value; } \
  }
#define PROGRAM(field)                                                                \
  {                                                                                   \
#field, [](MwpCwpHardware&, MwpCwpProgram & p, double value) { p.field = value; } \
  }
  auto expect_refused = [](const Input& input, double value) {
    MwpCwpHardware hardware = TableHardware();
    MwpCwpProgram program = TableProgram();
    input.set(hardware, program, value);
    const absl::Status status = EstimateMwpCwp(hardware, program).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << input.name << " " << value;
    EXPECT_THAT(std::string(status.message()), HasSubstr(input.name));
  };
  const Input positive[] = {HARDWARE(freq_hz),
                            HARDWARE(mem_bandwidth_bytes_per_second),
                            HARDWARE(mem_ld_cycles),
                            HARDWARE(departure_del_coal_cycles),
                            HARDWARE(departure_del_uncoal_cycles),
                            HARDWARE(issue_cycles),
                            PROGRAM(load_bytes_per_warp),
                            PROGRAM(uncoal_per_mw)};
  for (const Input& input : positive)
    for (double value : {0.0, -1.0, kNaN, kInfinity, -kInfinity}) expect_refused(input, value);
  const Input whole[] = {HARDWARE(threads_per_warp), PROGRAM(threads_per_block), PROGRAM(blocks),
                         PROGRAM(active_blocks_per_sm), PROGRAM(active_sms)};
  for (const Input& input : whole)
    for (double value : {0.0, -1.0}) expect_refused(input, value);
  const Input not_negative[] = {PROGRAM(comp_insts), PROGRAM(coal_mem_insts), PROGRAM(uncoal_mem_insts),
                                PROGRAM(synch_insts)};
  for (const Input& input : not_negative)
    for (double value : {-1.0, kNaN, kInfinity, -kInfinity}) expect_refused(input, value);
  expect_refused(PROGRAM(uncoal_per_mw), 0.5);
#undef HARDWARE
#undef PROGRAM
}

TEST(MwpCwp, NothingSetIsRefused) {
  EXPECT_EQ(EstimateMwpCwp({}, TableProgram()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(EstimateMwpCwp(TableHardware(), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MwpCwp, AKernelWithoutMemoryInstructionsIsRefused) {
  MwpCwpProgram program = TableProgram();
  program.uncoal_mem_insts = 0;
  const absl::Status status = EstimateMwpCwp(TableHardware(), program).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("access memory"));
  program.uncoal_mem_insts = 1;
  program.comp_insts = 0;
  EXPECT_TRUE(EstimateMwpCwp(TableHardware(), program).ok()) << "a copy computes nothing";
}

TEST(MwpCwp, AnEstimateIsFinite) {
  MwpCwpProgram program = TableProgram();
  program.uncoal_mem_insts = 1e308;
  EXPECT_EQ(EstimateMwpCwp(TableHardware(), program).status().code(), absl::StatusCode::kInvalidArgument);
  program = TableProgram();
  program.blocks = std::numeric_limits<int64_t>::max();
  program.threads_per_block = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(EstimateMwpCwp(TableHardware(), program).ok());
}

}  // namespace
}  // namespace fusion
