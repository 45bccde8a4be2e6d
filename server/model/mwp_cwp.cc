#include "server/model/mwp_cwp.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

struct Bound {
  const char* name;
  double value;
  double least;
  bool open;  // `least` itself is not permitted
};

absl::Status Check(const MwpCwpHardware& hardware, const MwpCwpProgram& program) {
  const Bound bounds[] = {
      {"freq_hz", hardware.freq_hz, 0, true},
      {"mem_bandwidth_bytes_per_second", hardware.mem_bandwidth_bytes_per_second, 0, true},
      {"mem_ld_cycles", hardware.mem_ld_cycles, 0, true},
      {"departure_del_coal_cycles", hardware.departure_del_coal_cycles, 0, true},
      {"departure_del_uncoal_cycles", hardware.departure_del_uncoal_cycles, 0, true},
      {"issue_cycles", hardware.issue_cycles, 0, true},
      {"threads_per_warp", static_cast<double>(hardware.threads_per_warp), 0, true},
      {"threads_per_block", static_cast<double>(program.threads_per_block), 0, true},
      {"blocks", static_cast<double>(program.blocks), 0, true},
      {"active_blocks_per_sm", static_cast<double>(program.active_blocks_per_sm), 0, true},
      {"active_sms", static_cast<double>(program.active_sms), 0, true},
      {"load_bytes_per_warp", program.load_bytes_per_warp, 0, true},
      {"uncoal_per_mw", program.uncoal_per_mw, 1, false},
      {"comp_insts", program.comp_insts, 0, false},
      {"coal_mem_insts", program.coal_mem_insts, 0, false},
      {"uncoal_mem_insts", program.uncoal_mem_insts, 0, false},
      {"synch_insts", program.synch_insts, 0, false},
  };
  for (const Bound& bound : bounds)
    if (!std::isfinite(bound.value) || bound.value < bound.least ||
        (bound.open && bound.value == bound.least))
      return absl::InvalidArgumentError(absl::StrCat(bound.name, " must be finite and ",
                                                     bound.open ? "more than " : "at least ", bound.least,
                                                     ", not ", bound.value));
  if (program.coal_mem_insts + program.uncoal_mem_insts == 0)
    return absl::InvalidArgumentError(
        "coal_mem_insts + uncoal_mem_insts must be more than 0: the model is of kernels that access memory");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MwpCwpEstimate> EstimateMwpCwp(const MwpCwpHardware& hardware, const MwpCwpProgram& program) {
  FUSION_RETURN_IF_ERROR(Check(hardware, program));
  MwpCwpEstimate e;
  const double warps_per_block =
      static_cast<double>((program.threads_per_block - 1) / hardware.threads_per_warp + 1);
  const double active_blocks = static_cast<double>(program.active_blocks_per_sm);
  const double active_sms = static_cast<double>(program.active_sms);
  const double blocks = static_cast<double>(program.blocks);
  const double n = warps_per_block * active_blocks;
  e.active_warps_per_sm = n;
  e.mem_insts = program.coal_mem_insts + program.uncoal_mem_insts;
  e.total_insts = program.comp_insts + e.mem_insts;

  e.mem_l_uncoal_cycles =
      hardware.mem_ld_cycles + (program.uncoal_per_mw - 1) * hardware.departure_del_uncoal_cycles;
  e.mem_l_coal_cycles = hardware.mem_ld_cycles;
  e.weight_uncoal = program.uncoal_mem_insts / e.mem_insts;
  e.weight_coal = program.coal_mem_insts / e.mem_insts;
  e.mem_l_cycles = e.mem_l_uncoal_cycles * e.weight_uncoal + e.mem_l_coal_cycles * e.weight_coal;
  e.departure_delay_cycles = hardware.departure_del_uncoal_cycles * program.uncoal_per_mw * e.weight_uncoal +
                             hardware.departure_del_coal_cycles * e.weight_coal;

  e.mwp_without_bw_full = e.mem_l_cycles / e.departure_delay_cycles;
  e.mwp_without_bw = std::min(e.mwp_without_bw_full, n);
  e.bw_per_warp_bytes_per_second = hardware.freq_hz * program.load_bytes_per_warp / e.mem_l_cycles;
  e.mwp_peak_bw = hardware.mem_bandwidth_bytes_per_second / (e.bw_per_warp_bytes_per_second * active_sms);
  e.mwp = std::min({e.mwp_without_bw, e.mwp_peak_bw, n});

  e.mem_cycles =
      e.mem_l_uncoal_cycles * program.uncoal_mem_insts + e.mem_l_coal_cycles * program.coal_mem_insts;
  e.comp_cycles = hardware.issue_cycles * e.total_insts;
  e.cwp_full = (e.mem_cycles + e.comp_cycles) / e.comp_cycles;
  e.cwp = std::min(e.cwp_full, n);

  e.rep = blocks / (active_blocks * active_sms);
  const double comp_period = e.comp_cycles / e.mem_insts;  // between two memory instructions of a warp
  const double overlapped = std::max(e.mwp - 1, 0.0);      // warps behind the first of a memory period
  if (e.mwp == n && e.cwp == n) {                          // exact: the minimum is n itself
    e.which_case = MwpCwpCase::kNotEnoughWarps;
    e.exec_cycles_app = (e.mem_cycles + e.comp_cycles + comp_period * overlapped) * e.rep;
  } else if (e.cwp >= e.mwp || e.comp_cycles > e.mem_cycles) {
    e.which_case = MwpCwpCase::kCwpAtLeastMwp;
    e.exec_cycles_app = (e.mem_cycles * n / e.mwp + comp_period * overlapped) * e.rep;
  } else {
    e.which_case = MwpCwpCase::kMwpAboveCwp;
    e.exec_cycles_app = (e.mem_l_cycles + e.comp_cycles * n) * e.rep;
  }
  e.synch_cost_cycles = e.departure_delay_cycles * overlapped * program.synch_insts * active_blocks * e.rep;
  e.exec_cycles = e.exec_cycles_app + e.synch_cost_cycles;
  e.cpi = e.exec_cycles_app / (e.total_insts * warps_per_block * (blocks / active_sms));
  e.exec_seconds = e.exec_cycles / hardware.freq_hz;
  if (!std::isfinite(e.exec_cycles) || !std::isfinite(e.exec_seconds) || !std::isfinite(e.cpi))
    return absl::InvalidArgumentError("the inputs are too large or too small: the estimate is not finite");
  return e;
}

}  // namespace fusion
