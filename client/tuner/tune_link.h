// A stream to a server, apart from gRPC, so that tests need no network.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "fusion/v1/tuner.pb.h"

namespace fusion::tuning {

// Any thread tells these events, one at a time.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  virtual void Received(v1::TuneResponse response) = 0;
  // The message before may be followed by another.
  virtual void Written() = 0;
  // The last event. OK: the server ended the stream.
  virtual void Closed(const absl::Status& status) = 0;
};

class TuneLink {
 public:
  // Ends the stream; no event comes any more once it returns.
  virtual ~TuneLink() = default;
  // Messages are written one at a time: the next after LinkEvents::Written.
  virtual void Write(const v1::TuneRequest& request) = 0;
};

// Begins a stream; does not wait for the server. `events` outlives the link.
using TuneDialer = std::function<std::unique_ptr<TuneLink>(LinkEvents& events)>;

}  // namespace fusion::tuning
