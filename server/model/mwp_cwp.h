// The MWP-CWP model: execution cycles of a kernel from its instruction counts and the memory system, without
// measured tables.
//
// S. Hong and H. Kim, "An Analytical Model for a GPU Architecture with Memory-level and Thread-level
// Parallelism Awareness", ISCA 2009, equations (5) to (27); Moreno Maza 2017, "Determining MWP and CWP", has
// a worked table. Names are the paper's. MWP (memory warp parallelism): warps of an SM whose memory accesses
// overlap. CWP (computation warp parallelism): warps that can compute during one memory waiting period, plus
// one. N: active warps of an SM.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace fusion {

// Cycles are those of the SM clock. All fields must be positive.
struct MwpCwpHardware {
  double freq_hz = 0;                         // Freq, of the SM clock
  double mem_bandwidth_bytes_per_second = 0;  // Mem_Bandwidth, between device memory and all SMs
  double mem_ld_cycles = 0;                   // Mem_LD, latency of device memory
  double departure_del_coal_cycles = 0;       // Departure_del_coal, between coalesced accesses of two warps
  double departure_del_uncoal_cycles = 0;     // Departure_del_uncoal, between transactions of a warp
  double issue_cycles = 0;                    // #Issue_cycles, to issue one instruction of a warp
  int64_t threads_per_warp = 32;              // #Threads_per_warp
};

// Instructions are dynamic counts of one thread, which are those of its warp. #Coal_per_mw of the table is 1
// by definition and in no equation, so it is no field.
struct MwpCwpProgram {
  // These are positive.
  int64_t threads_per_block = 0;     // #Threads_per_block
  int64_t blocks = 0;                // #Blocks, of the grid
  int64_t active_blocks_per_sm = 0;  // #Active_blocks_per_SM, blocks that an SM has at once
  int64_t active_sms = 0;            // #Active_SMs, SMs that have a block
  double load_bytes_per_warp = 0;    // Load_bytes_per_warp, that one memory instruction of a warp moves
  double uncoal_per_mw = 1;          // #Uncoal_per_mw, transactions of an uncoalesced access; >= 1
  // These are zero or positive; the sum of both kinds of memory instructions is positive.
  double comp_insts = 0;        // #Comp_insts, all that are not memory instructions
  double coal_mem_insts = 0;    // #Coal_Mem_insts
  double uncoal_mem_insts = 0;  // #Uncoal_Mem_insts
  double synch_insts = 0;       // #Synch_insts
};

// The equation that gives Exec_cycles_app.
enum class MwpCwpCase {
  kNotEnoughWarps,  // (22): MWP = N and CWP = N
  kCwpAtLeastMwp,   // (23): CWP >= MWP or Comp_cycles > Mem_cycles; memory dominates
  kMwpAboveCwp,     // (24): MWP > CWP; computation dominates
};

// Every quantity of the model, in the order of its computation; the number is that of the equation.
struct MwpCwpEstimate {
  double active_warps_per_sm = 0;           // #Active_warps_per_SM = N (20)
  double mem_insts = 0;                     // #Mem_insts = #Coal_Mem_insts + #Uncoal_Mem_insts
  double total_insts = 0;                   // #Total_insts = #Comp_insts + #Mem_insts
  double mem_l_uncoal_cycles = 0;           // Mem_L_Uncoal (10)
  double mem_l_coal_cycles = 0;             // Mem_L_Coal (11)
  double mem_l_cycles = 0;                  // Mem_L (12)
  double weight_uncoal = 0;                 // Weight_uncoal (13)
  double weight_coal = 0;                   // Weight_coal (14)
  double departure_delay_cycles = 0;        // Departure_delay (15)
  double mwp_without_bw_full = 0;           // MWP_Without_BW_full (16), warps
  double mwp_without_bw = 0;                // MWP_Without_BW (17), warps
  double bw_per_warp_bytes_per_second = 0;  // BW_per_warp (7)
  double mwp_peak_bw = 0;                   // MWP_peak_BW (6), warps
  double mwp = 0;                           // MWP (5), warps
  double mem_cycles = 0;                    // Mem_cycles (18), of one warp
  double comp_cycles = 0;                   // Comp_cycles (19), of one warp
  double cwp_full = 0;                      // CWP_full (8), warps
  double cwp = 0;                           // CWP (9), warps
  double rep = 0;                           // #Rep (21), times that an SM runs its active blocks; not rounded
  MwpCwpCase which_case = MwpCwpCase::kCwpAtLeastMwp;
  double exec_cycles_app = 0;    // Exec_cycles_app (22), (23) or (24): without synchronization
  double synch_cost_cycles = 0;  // Synch_cost (26)
  double exec_cycles = 0;        // (27): Exec_cycles_app + Synch_cost
  double cpi = 0;                // CPI (25): Exec_cycles_app over what the warps of an SM issue
  double exec_seconds = 0;       // exec_cycles / Freq; no launch
};

// The model as published, with two additions for inputs that its equations do not foresee: a block of a
// number of threads that is no multiple of the warp has one more warp, and where MWP is below 1 (one warp
// asks for more than the bandwidth of its SM) MWP - 1 counts as 0 rather than as a negative time.
//
// Where Comp_cycles > Mem_cycles, (23) counts (MWP - 1) / #Mem_insts of a warp's computation and so may be
// below the N * Comp_cycles * #Rep cycles that issuing takes: the paper's condition, kept.
//
// InvalidArgument, naming the field: a value outside its range, infinite or not a number; no memory
// instruction (the weights of (13) and (14) have no value); inputs so large that the result is not finite.
// Pure; thread safe.
absl::StatusOr<MwpCwpEstimate> EstimateMwpCwp(const MwpCwpHardware& hardware, const MwpCwpProgram& program);

}  // namespace fusion
