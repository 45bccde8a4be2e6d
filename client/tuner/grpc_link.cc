#include "client/tuner/grpc_link.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "fusion/v1/tuner.grpc.pb.h"

namespace fusion::tuning {
namespace {

class GrpcLink : public TuneLink, private grpc::ClientBidiReactor<v1::TuneRequest, v1::TuneResponse> {
 public:
  GrpcLink(std::shared_ptr<grpc::Channel> channel, LinkEvents& events)
      : events_(events), channel_(std::move(channel)), stub_(v1::TunerService::NewStub(channel_)) {
    stub_->async()->Tune(&context_, this);
    // Until the end: another message may be written at any time.
    AddHold();
    StartRead(&response_);
    StartCall();
  }

  ~GrpcLink() override {
    context_.TryCancel();
    RemoveHoldOnce();
    std::unique_lock lock(mutex_);
    done_condition_.wait(lock, [this] { return done_; });
  }

  void Write(const v1::TuneRequest& request) override {
    // A call of gRPC may run the reactions below before it returns.
    std::lock_guard lock(hold_mutex_);
    if (hold_removed_) return;  // Closed is on its way
    request_ = request;
    StartWrite(&request_);
  }

 private:
  void OnReadDone(bool ok) override {
    // The stream has ended, or broken: nothing can be written any more.
    if (!ok) return RemoveHoldOnce();
    events_.Received(std::move(response_));
    response_.Clear();
    StartRead(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) events_.Written();
  }
  void OnDone(const grpc::Status& status) override {
    events_.Closed(absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message()));
    std::lock_guard lock(mutex_);
    done_ = true;
    done_condition_.notify_all();
  }

  void RemoveHoldOnce() {
    std::lock_guard lock(hold_mutex_);
    if (!std::exchange(hold_removed_, true)) RemoveHold();
  }

  LinkEvents& events_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::TunerService::Stub> stub_;
  grpc::ClientContext context_;
  v1::TuneRequest request_;
  v1::TuneResponse response_;
  std::recursive_mutex hold_mutex_;
  bool hold_removed_ = false;  // guarded by hold_mutex_: no message is written any more
  std::mutex mutex_;
  std::condition_variable done_condition_;
  bool done_ = false;  // guarded by mutex_
};

}  // namespace

TuneDialer DialChannel(std::shared_ptr<grpc::Channel> channel) {
  return [channel = std::move(channel)](LinkEvents& events) {
    return std::make_unique<GrpcLink>(channel, events);
  };
}

absl::StatusOr<TuneDialer> DialServer(const std::string& address, const ClientCredentials& credentials) {
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials =
      MakeChannelCredentials(address, credentials);
  if (!channel_credentials.ok()) return channel_credentials.status();
  return [address, channel_credentials = *std::move(channel_credentials)](LinkEvents& events) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
    FollowServerName(&arguments);
    // Otherwise channels to one address share a connection, and how long it waits after a failure.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return std::make_unique<GrpcLink>(grpc::CreateCustomChannel(address, channel_credentials, arguments),
                                      events);
  };
}

}  // namespace fusion::tuning
