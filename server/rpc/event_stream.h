// WatchJob: the stored events of a job, then new ones as they come.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "db/store/job_store.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/identity/access_gate.h"
#include "server/jobs/job_watchers.h"
#include "server/rpc/pooled_call.h"

namespace fusion {

// Streams are made of these parts, which outlive them.
struct StreamParts {
  JobStore& store;
  JobWatchers& watchers;
  boost::asio::thread_pool& pool;
  AccessGate& gate;
};

// Streams the events after `after_sequence`; ends with OK after the last event of the job, NotFound when
// there is no such job or it is another user's, Unavailable when the server goes down. The caller's
// credentials are checked again before events are read: when they are good no more, the stream ends with
// Unauthenticated.
// The events are read on the pool; `begin` is called there first, if the caller may see the job.
grpc::ServerWriteReactor<v1::JobEvent>* StreamEvents(const StreamParts& parts, const IncomingCall& incoming,
                                                     const std::string& job, int64_t after_sequence,
                                                     std::function<void()> begin);

}  // namespace fusion
