// The functions that compiled programs call, and the process's one Partitioner.
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "client/partition/learned.h"
#include "client/partition/own_threads.h"
#include "client/partition/partitioner.h"
#include "client/partition/site.h"

// Programs whose loops run before the library has begun, or with FUSION_PARTITION=off, never call it.
double fusion_partition_least_work = std::numeric_limits<double>::infinity();

int fusion_partition_open = 0;

namespace fusion {
namespace {

// Never destroyed: threads may run loops while the process ends.
Partitioner* g_partitioner = nullptr;
bool g_is_child = false;

const char* ReadVariable(const char* name) { return std::getenv(name); }

void AfterForkInChild() {
  g_is_child = true;
  fusion_partition_open = 0;
  fusion_partition_least_work = g_partitioner->HasThreads() ? std::numeric_limits<double>::infinity()
                                                            : g_partitioner->settings().least_work;
}

[[gnu::constructor]] void BeginPartitioning() {
  try {
    std::vector<std::string> complaints;
    PartitionSettings settings = ReadPartitionSettings(ReadVariable, complaints);
    for (const std::string& complaint : complaints) std::fprintf(stderr, "fusion: %s\n", complaint.c_str());
    if (settings.mode == PartitionMode::kOff) return;
    if (settings.mode == PartitionMode::kAuto)
      settings.learned_path = LearnedPath(ReadVariable, ExecutablePath());
    g_partitioner = new Partitioner(settings);
    pthread_atfork(nullptr, nullptr, AfterForkInChild);
    AtEnd([] { g_partitioner->End(); });
    fusion_partition_least_work = settings.least_work;
  } catch (const std::exception&) {
    // Without memory programs run as written.
  }
}

// The loops of a child count from its parent's: it reports nothing.
[[gnu::destructor]] void EndPartitioning() {
  if (g_partitioner == nullptr || !g_partitioner->settings().report || g_is_child) return;
  try {
    const std::string report = g_partitioner->Report();
    for (size_t written = 0; written < report.size();) {
      // The program may have closed its streams by now.
      const ssize_t count = write(STDERR_FILENO, report.data() + written, report.size() - written);
      if (count <= 0) return;
      written += static_cast<size_t>(count);
    }
  } catch (const std::exception&) {
  }
}

}  // namespace
}  // namespace fusion

int fusion_partition_enter(fusion_partition_site* site, int64_t iterations, double work, void* context,
                           const int64_t* facts) {
  if (fusion::g_partitioner == nullptr) return 0;
  return fusion::g_partitioner->Enter(site, iterations, work, context, facts);
}

int fusion_partition_reorders(fusion_partition_site* site, int64_t iterations, double work,
                              const int64_t* facts) {
  if (fusion::g_partitioner == nullptr) return 0;
  return fusion::g_partitioner->Reorders(site, iterations, work, facts);
}

void fusion_partition_refuse(fusion_partition_site* site) {
  if (fusion::g_partitioner != nullptr) fusion::g_partitioner->Refuse(site);
}

void fusion_partition_touch(const void* address, int64_t bytes, int written) {
  if (fusion::g_partitioner != nullptr) fusion::g_partitioner->Touch(address, bytes, written != 0);
}

void fusion_partition_sync() {
  if (fusion::g_partitioner != nullptr) fusion::g_partitioner->Sync();
}
