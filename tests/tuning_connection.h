// A program that tunes, as the protocol sees it: the raw stream of TunerService.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fusion/v1/tuner.grpc.pb.h"

namespace fusion::testing {

// A channel of its own connection; to a server that was started again it connects soon.
inline std::shared_ptr<grpc::Channel> TuningChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // Also how long an attempt may take: one that a busy machine is slow to answer must not be given up.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

inline v1::TuningReport TuningRun(std::vector<double> values, double value, uint64_t proposal = 0,
                                  uint32_t section = 1) {
  v1::TuningReport report;
  report.set_section(section);
  report.set_proposal(proposal);
  report.mutable_configuration()->mutable_values()->Add(values.begin(), values.end());
  report.set_count(1);
  report.set_mean(value);
  report.set_minimum(value);
  return report;
}

// One stream. Calls from one thread; what comes is read by another.
class TuningConnection {
 public:
  explicit TuningConnection(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::TunerService::NewStub(channel)) {
    stream_ = stub_->Tune(&context_);
    reader_ = std::thread([this] {
      v1::TuneResponse response;
      while (stream_->Read(&response)) {
        std::lock_guard lock(mutex_);
        received_.push_back(response);
        changed_.notify_all();
      }
      std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    });
  }
  ~TuningConnection() {
    if (reader_.joinable()) {
      context_.TryCancel();
      Finish();
    }
  }

  // False: the stream is broken.
  bool Send(const v1::TuneRequest& request) { return stream_->Write(request); }
  bool Hello(const std::string& process) {
    v1::TuneRequest request;
    request.mutable_hello()->set_process(process);
    return Send(request);
  }
  bool Declare(const v1::SectionDeclaration& declaration, uint32_t section = 1) {
    v1::TuneRequest request;
    request.mutable_declare()->set_section(section);
    *request.mutable_declare()->mutable_declaration() = declaration;
    return Send(request);
  }
  bool Report(uint64_t sequence, const std::vector<v1::TuningReport>& reports, int wanted = -1,
              uint32_t section = 1) {
    v1::TuneRequest request;
    request.mutable_reports()->set_sequence(sequence);
    for (const v1::TuningReport& report : reports) *request.mutable_reports()->add_reports() = report;
    if (wanted >= 0) {
      v1::ProposalDemand* demand = request.mutable_reports()->add_demands();
      demand->set_section(section);
      demand->set_wanted(static_cast<uint32_t>(wanted));
    }
    return Send(request);
  }

  // The next message that is of this kind, others stay; none: it did not come, or the stream has ended
  // without.
  std::optional<v1::TuneResponse> Wait(const std::function<bool(const v1::TuneResponse&)>& is,
                                       std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::unique_lock lock(mutex_);
    for (;;) {
      for (auto response = received_.begin(); response != received_.end(); ++response) {
        if (!is(*response)) continue;
        v1::TuneResponse found = std::move(*response);
        received_.erase(response);
        return found;
      }
      if (ended_ || changed_.wait_until(lock, deadline) == std::cv_status::timeout) return std::nullopt;
    }
  }
  std::optional<v1::TuneResponse> Wait(bool (v1::TuneResponse::*kind)() const) {
    return Wait([kind](const v1::TuneResponse& response) { return (response.*kind)(); });
  }
  bool WaitAcknowledged(uint64_t to) {
    return Wait([to](const v1::TuneResponse& response) {
             return response.has_acknowledged() && response.acknowledged().sequence() >= to;
           })
        .has_value();
  }

  // Says that nothing more comes; the status with which the server ends the stream.
  grpc::Status Close() {
    stream_->WritesDone();
    return Finish();
  }
  // The status of a stream that ends.
  grpc::Status Finish() {
    reader_.join();
    return stream_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  std::unique_ptr<v1::TunerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::TuneRequest, v1::TuneResponse>> stream_;
  std::thread reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::TuneResponse> received_;  // guarded by mutex_
  bool ended_ = false;                     // guarded by mutex_
};

}  // namespace fusion::testing
