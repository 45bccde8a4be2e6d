#include "server/model/cost_model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace fusion {
namespace {

// The least share of the bandwidth ever assumed.
constexpr double kLeastShare = 0.02;

// Returns the time of parts of the work that overlap badly: their sum where `overlap` is 1, less above.
double Together(std::initializer_list<double> parts, double overlap) {
  double sum = 0;
  for (double part : parts) sum += std::pow(part, overlap);
  return std::pow(sum, 1 / overlap);
}

// The share of its copy rate, measured on data far larger than its caches, that a host reaches: more where a
// part of the data did not leave the caches, less where lines that are stored to are read first.
double HostShare(const KernelTraits& traits, const DeviceDescription& device,
                 const v1::TargetProfile& profile) {
  const double bytes = traits.bytes_read + traits.bytes_written;
  if (bytes <= std::min(double(device.l2_bytes()), profile.cached_bytes().value()))
    return profile.cached_rate().value();
  return bytes / (bytes + profile.read_before_written().value() * traits.bytes_written);
}

}  // namespace

int ResidentBlocks(const DeviceDescription& device, int threads, int registers, int64_t shared_bytes) {
  if (threads > device.max_threads_per_block() || shared_bytes > device.shared_bytes_per_block()) return 0;
  int64_t blocks = std::min<int64_t>(device.max_blocks_per_multiprocessor(),
                                     device.max_threads_per_multiprocessor() / threads);
  // Registers are given to warps in units of 8 per thread.
  const int64_t per_block = int64_t{(registers + 7) / 8 * 8} * threads;
  blocks = std::min(blocks, device.registers_per_multiprocessor() / std::max<int64_t>(per_block, 1));
  if (shared_bytes > 0)  // 1 KiB of each block's shared memory belongs to the system
    blocks = std::min(blocks, device.shared_bytes_per_multiprocessor() / (shared_bytes + 1024));
  return static_cast<int>(blocks);
}

RunTimeEstimate CostModel::Estimate(const KernelTraits& traits) const {
  const v1::TargetProfile& profile = target_->profile();
  const double overlap = profile.memory_overlap().value(),
               cache_ratio = profile.cache_bandwidth_ratio().value();
  RunTimeEstimate estimate;
  estimate.bytes = traits.bytes_read + traits.bytes_written;
  estimate.flops = traits.flops;
  estimate.registers = traits.registers;
  estimate.shared_bytes = traits.shared_bytes;
  double share = 1;
  double busy = 1;  // share of the multiprocessors that have a block
  if (target_->simt()) {
    const int resident =
        std::max(1, ResidentBlocks(device_, traits.threads, traits.registers, traits.shared_bytes));
    const double per_multiprocessor =
        std::min<double>(resident, std::max(1.0, double(traits.blocks) / device_.multiprocessors()));
    busy = std::min(1.0, double(traits.blocks) / device_.multiprocessors());
    estimate.occupancy =
        std::min(1.0, per_multiprocessor * traits.threads / device_.max_threads_per_multiprocessor());
    // Little's law, for what is read: stores wait for nothing.
    const double read_share = estimate.bytes > 0 ? traits.bytes_read / estimate.bytes : 1;
    const double needed = device_.copy_bytes_per_second() * read_share *
                          profile.memory_latency_seconds().value() / device_.multiprocessors();
    const double in_flight = per_multiprocessor * traits.bytes_in_flight_per_block;
    const double load = in_flight / std::max(needed, 1.0);
    estimate.load = load > 0 ? load : 1;
    estimate.resident_blocks = resident;
    estimate.waves = std::max(1.0, double(traits.blocks) / (double(device_.multiprocessors()) * resident));
    const double knee = profile.bandwidth_knee().value();
    share = load / std::pow(1 + std::pow(load, knee), 1 / knee);
    if (traits.bytes_in_flight_per_block <= 0) share = 1;
    share = std::clamp(share * busy, kLeastShare, 1.0);
  } else {
    busy = std::min(1.0, double(traits.blocks) / device_.multiprocessors());
    share = HostShare(traits, device_, profile);
  }
  // Bytes as if all came from device memory; warm, all come from the cache.
  const double cached = (estimate.bytes + traits.cache_bytes) / cache_ratio;
  estimate.memory_seconds =
      (warm_ ? cached : std::max(estimate.bytes, cached)) /
      (device_.copy_bytes_per_second() * share * std::max(traits.access_efficiency, kLeastShare));
  if (traits.latency_seconds > 0)
    estimate.memory_seconds = Together({estimate.memory_seconds, traits.latency_seconds}, overlap);
  estimate.compute_seconds =
      traits.flops /
      (device_.peak_flops() * std::max(traits.compute_efficiency, 1e-3) * std::max(busy, 1e-3));
  // Two operations an instruction at the peak.
  estimate.issue_seconds = traits.instructions / (device_.peak_flops() / 2 * std::max(busy, 1e-3));
  estimate.missing_routine = traits.missing_routine;
  if (traits.routines) {
    // Loads and stores were measured where nothing was in the caches.
    if (!warm_) estimate.memory_seconds = traits.routines->memory;
    estimate.compute_seconds = traits.routines->compute;
    estimate.measured_routines = true;
    estimate.extended_routines = traits.routines->extended;
    estimate.alone_seconds = warm_ ? 0 : traits.routines->alone;
  }
  estimate.memory_seconds = std::max(
      estimate.memory_seconds, traits.scattered_bytes / (cache_ratio * device_.copy_bytes_per_second()));
  estimate.launch_seconds = traits.launches * device_.launch_seconds();
  const double longest =
      std::max({estimate.memory_seconds, estimate.compute_seconds, estimate.alone_seconds});
  double together = std::max(estimate.memory_seconds, estimate.compute_seconds);
  if (traits.issue_overlap > 0)
    together =
        std::max(together, Together({estimate.memory_seconds, estimate.issue_seconds}, traits.issue_overlap));
  if (traits.phases_apart)
    together = Together({estimate.memory_seconds, estimate.compute_seconds, traits.waiting_seconds}, overlap);
  else if (traits.waiting_seconds > 0)
    together = Together({together, traits.waiting_seconds}, overlap);
  estimate.waiting_seconds = std::max(0.0, together - longest);
  estimate.total_seconds =
      longest + estimate.waiting_seconds + traits.barrier_seconds + estimate.launch_seconds;
  estimate.barrier_seconds = traits.barrier_seconds;
  return estimate;
}

double CostModel::LeastSeconds(double bytes) const {
  const v1::TargetProfile& profile = target_->profile();
  const double share = target_->simt() ? 1 : HostShare({.bytes_read = bytes}, device_, profile);
  return bytes / (device_.copy_bytes_per_second() * share *
                  (warm_ ? profile.cache_bandwidth_ratio().value() : 1)) +
         device_.launch_seconds();
}

double CostModel::StartSeconds() const { return cold_ ? target_->profile().start_seconds().value() : 0; }

double CostModel::FloorSeconds(double bytes) const {
  const v1::TargetProfile& profile = target_->profile();
  const bool from_memory = cold_ && bytes > static_cast<double>(device_.l2_bytes());
  const double share = !target_->simt() ? HostShare({.bytes_read = bytes}, device_, profile)
                       : from_memory    ? 1
                                        : profile.cache_bandwidth_ratio().value();
  return bytes / (device_.copy_bytes_per_second() * (1 + device_.copy_spread()) * share);
}

void CostModel::Multiply(double correction, double floor, RunTimeEstimate* estimate) const {
  const double corrected = correction * estimate->total_seconds;
  estimate->correction = corrected < floor ? floor / estimate->total_seconds : correction;
  estimate->total_seconds = std::max(corrected, floor);
}

void CostModel::Correct(const ResidualFeatures& features, RunTimeEstimate* estimate) const {
  Multiply(residual_.Correction(features), FloorSeconds(estimate->floor_bytes), estimate);
}

void CostModel::Correct(const FamilyTimes& measured, const std::string& variant,
                        const ResidualFeatures& features, RunTimeEstimate* estimate) const {
  const FamilyTimes::Answer answer = measured.Of(variant, features);
  // A host reads faster than it copies, and the floor knows copies alone.
  const bool believed = answer.seconds.has_value() && !target_->simt();
  Multiply(answer.seconds ? *answer.seconds / estimate->total_seconds
                          : residual_.Correction(features) * answer.factor,
           believed ? 0 : FloorSeconds(estimate->floor_bytes), estimate);
  estimate->measured = answer.seconds.has_value();
  estimate->measured_jobs = answer.jobs;
  estimate->measured_micros = answer.learned_micros;
}

}  // namespace fusion
