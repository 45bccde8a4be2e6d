// The gRPC adapters share this context.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>

#include "db/store/store.h"
#include "library/catalog/catalog.h"
#include "server/dispatch/dispatcher.h"
#include "server/identity/access_gate.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/job_watchers.h"
#include "server/optimize/search_process.h"

namespace fusion {

// References outlive the adapters. The pools are joined after the gRPC server has been shut down.
struct ServiceContext {
  Store& store;
  Dispatcher& dispatcher;
  SearchPool& search_pool;
  std::shared_ptr<const Catalog> catalog;
  JobRunner& runner;
  JobWatchers& watchers;
  AccessGate& gate;                    // every call goes through it
  boost::asio::thread_pool& requests;  // short work: reads, writes, parsing
  // Short work for calls of workers, which are many: users do not wait behind them.
  boost::asio::thread_pool& workers;
  boost::asio::thread_pool& searches;  // longer work: Explain, ReportModel
  std::string dump_directory;          // see PipelineContext
  ServerMetrics* metrics = nullptr;    // never null in a server
};

}  // namespace fusion
