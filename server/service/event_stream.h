// WatchJob: the stored events of a job, then new ones as they come.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <string>

#include "db/store/store.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/service/job_watchers.h"

namespace fusion {

// Streams the events after `after_sequence`; ends with OK after the last event of the job, NotFound when
// there is no such job, Unavailable when the server goes down. The events are read on the pool. All arguments
// outlive the call.
grpc::ServerWriteReactor<v1::JobEvent>* StreamEvents(Store& store, JobWatchers& watchers,
                                                     boost::asio::thread_pool& pool, const std::string& job,
                                                     int64_t after_sequence);

}  // namespace fusion
