// Serves WatchTuning: what is known of a tuning, as it changes.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/thread_pool.hpp>
#include <string>

#include "fusion/v1/tuner.pb.h"
#include "server/identity/access_gate.h"
#include "server/jobs/job_watchers.h"
#include "server/rpc/pooled_call.h"
#include "server/tuner/tuning_registry.h"

namespace fusion {

// Sends the tuning as it is, then after changes, at most ten times a second. `watchers` are told the names of
// tunings that changed. Ends with NotFound, Unauthenticated when the caller's credentials are good no more,
// Unavailable when the server goes down. All arguments but the call outlive the stream.
grpc::ServerWriteReactor<v1::Tuning>* StartTuningWatch(TuningRegistry& tunings, JobWatchers& watchers,
                                                       boost::asio::thread_pool& pool, AccessGate& gate,
                                                       const IncomingCall& incoming,
                                                       const std::string& tuning);

}  // namespace fusion
