// The stages of a job share this context: what they ask, and what they tell.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "db/store/store.h"
#include "fusion/v1/optimizer.pb.h"
#include "library/catalog/catalog.h"
#include "server/dispatch/cancellation.h"
#include "server/dispatch/dispatcher.h"
#include "server/optimize/search_process.h"

namespace fusion {

class ServerMetrics;

struct PipelineContext {
  Store& store;
  Dispatcher& dispatcher;
  SearchPool& searches;
  std::shared_ptr<const Catalog> catalog;
  std::string job;  // "jobs/<id>"; empty for explain
  CancellationToken cancellation;
  std::function<void(v1::JobEvent)> emit;  // progress; may be empty
  std::string dump_directory;              // each stage writes its value here as text; empty: nothing
  ServerMetrics* metrics = nullptr;        // may be null
  v1::JobLimits limits = {};               // those of the request; 0: the server's own
  // This is called with true before the job waits for a device that is not there, and with false afterwards:
  // meanwhile the job leaves its place among those that run to another. May be empty.
  std::function<void(bool)> waits_for_device = {};
  // This is called with what the job waits for, for people, and how long it will wait at most; with "" when
  // it waits no longer. May be empty.
  std::function<void(const std::string& what, std::chrono::milliseconds left)> waits_for = {};
};

// Writes text into the dump directory, if there is one.
void Dump(const PipelineContext& context, const std::string& file_name, const std::string& text);

}  // namespace fusion
