// A finished job with three ranked candidates and two failed ones; workers of every kind.
#pragma once

#include <string>

#include "fusion/v1/optimizer.pb.h"

namespace fusion::testing {

inline void SetStatistics(v1::Statistics* statistics, double median, double low, double high) {
  statistics->set_median(median);
  statistics->set_low(low);
  statistics->set_high(high);
  statistics->set_samples(40);
}

inline v1::Candidate* AddCandidate(v1::JobResult* result, int rank, double median, double speedup) {
  v1::Candidate* candidate = result->add_candidates();
  candidate->set_rank(rank);
  candidate->set_outcome(v1::OK);
  candidate->set_predicted_rank(rank);
  candidate->set_predicted_seconds(median * 0.9);
  SetStatistics(candidate->mutable_measured(), median, median * 0.98, median * 1.01);
  candidate->set_speedup(speedup);
  candidate->set_max_relative_error(2.5e-7);
  candidate->set_tolerance(1e-5);
  candidate->set_key("sha256:0123");
  return candidate;
}

inline v1::Job SampleJob() {
  v1::Job job;
  job.set_name("jobs/1a2b");
  job.set_state(v1::SUCCEEDED);
  job.set_target(v1::HOST);
  job.mutable_create_time()->set_seconds(1714564800);
  v1::JobResult* result = job.mutable_result();
  result->mutable_device()->set_name("Example CPU");
  result->mutable_device()->set_target(v1::HOST);
  result->mutable_device()->set_arch("x86-64-avx512");
  result->mutable_device()->set_copy_bytes_per_second(2e10);
  result->mutable_graph()->set_name("function1");
  result->mutable_graph()->set_nodes(5);
  result->mutable_graph()->set_hash("sha256:feed");
  (*result->mutable_graph()->mutable_size_values())["elements"] = 31744;
  *job.mutable_graph() = result->graph();
  result->mutable_search()->set_fusions(12);
  result->mutable_search()->set_fusion_implementations(340);
  result->mutable_search()->set_covers(30);
  result->mutable_search()->set_proved_optimal(true);
  result->mutable_search()->set_seconds(0.125);
  result->set_floor_bytes(4e6);
  result->set_floor_seconds(2e-4);
  SetStatistics(result->mutable_unfused(), 6e-4, 5.9e-4, 6.1e-4);
  result->set_builds(9);
  result->set_builds_reused(4);

  v1::Candidate* best = AddCandidate(result, 1, 2.5e-4, 2.4);
  best->add_fusions()->add_results("M1");
  best->mutable_fusions(0)->add_results("v1");
  best->add_fusions()->add_results("F");
  best->set_predicted_rank(2);
  best->set_description("{M1 v1} element T128; {F} element T64");
  v1::KernelSummary* kernel = best->add_kernels();
  kernel->set_name("fused_0");
  kernel->set_skeleton("element");
  kernel->set_threads(128);
  kernel->set_blocks(264);
  kernel->set_shared_bytes(1024);
  kernel->set_registers(40);

  v1::Candidate* second = AddCandidate(result, 2, 2.52e-4, 2.38);
  second->set_tie(true);
  second->set_description("{M1} element T128");
  second->add_fusions()->add_results("M1");
  v1::Candidate* third = AddCandidate(result, 3, 1.5e-4, 4);
  third->set_below_floor(true);
  third->add_fusions()->add_results("M1");

  v1::Candidate* broken = result->add_candidates();
  broken->set_rank(4);
  broken->set_outcome(v1::COMPILE_ERROR);
  broken->set_message("error: no such thing\nsecond line");
  v1::Candidate* slow = result->add_candidates();
  slow->set_rank(5);
  slow->set_outcome(v1::TIMEOUT);
  return job;
}

inline v1::Worker* AddWorker(v1::ListWorkersResponse* response, const std::string& name, bool connected) {
  v1::Worker* worker = response->add_workers();
  worker->set_name("workers/" + name);
  worker->set_connected(connected);
  worker->set_version("0.9.0");
  worker->mutable_last_contact()->set_seconds(1714564800);
  return worker;
}

inline void AddDevice(v1::Worker* worker, const std::string& name, const std::string& uuid) {
  v1::DeviceDescription* device = worker->add_devices();
  device->set_name(name);
  device->set_target(v1::CUDA);
  device->set_arch("sm_90");
  device->set_uuid(uuid);
  device->set_copy_bytes_per_second(2e12);
  device->set_memory_bytes(80'000'000'000);
}

// workers/mixed: connected, one device in order and one that is out; workers/builder: connected, builds only;
// workers/leaving: draining; workers/gone: lost; workers/old: connected, of an earlier version, says no more
// than its device.
inline v1::ListWorkersResponse SampleWorkers() {
  v1::ListWorkersResponse response;
  v1::Worker* mixed = AddWorker(&response, "mixed", true);
  mixed->set_running_tasks(3);
  AddDevice(mixed, "GPU A", "GPU-0");
  AddDevice(mixed, "GPU B", "GPU-1");
  mixed->add_builds()->set_target(v1::CUDA);
  v1::DeviceProblem* problem = mixed->add_problems();
  problem->set_device_uuid("GPU-1");
  problem->set_reason("the probe was wrong\nat element 7");
  problem->set_seconds(95);
  mixed->mutable_confinement()->set_runner("bubblewrap, seccomp, limits");
  mixed->mutable_confinement()->set_host_code("refused");
  mixed->mutable_confinement()->set_compiler("seccomp, Landlock, limits");

  v1::Worker* builder = AddWorker(&response, "builder", true);
  builder->add_builds()->set_target(v1::CUDA);
  v1::BuildCapability* host = builder->add_builds();
  host->set_target(v1::HOST);
  host->set_arch("x86-64-avx512");
  builder->mutable_confinement()->set_runner("limits");
  builder->mutable_confinement()->set_compiler("limits");

  v1::Worker* leaving = AddWorker(&response, "leaving", true);
  leaving->set_draining(true);
  AddDevice(leaving, "GPU C", "GPU-2");
  v1::Worker* gone = AddWorker(&response, "gone", false);
  AddDevice(gone, "GPU D", "GPU-3");
  v1::Worker* old = AddWorker(&response, "old", true);
  old->clear_version();
  AddDevice(old, "GPU E", "GPU-4");
  return response;
}

}  // namespace fusion::testing
