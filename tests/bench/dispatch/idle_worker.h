// Workers that only speak the protocol.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "fusion/v1/worker.grpc.pb.h"

namespace fusion {

// Calls, reports everything at once as done, calls again.
class IdleWorker {
 public:
  IdleWorker(int number, v1::WorkerService::Stub* stub, std::atomic<int64_t>* done, std::atomic<bool>* stop)
      : stub_(stub), done_(done), stop_(stop) {
    request_.set_worker(absl::StrCat("worker", number));
    request_.set_instance("1");
    request_.add_builds()->set_target(v1::CUDA);
    request_.set_free_build_slots(4);
    request_.set_wait_seconds(5);
  }
  void Call() {
    if (*stop_) {
      ended_ = true;
      return;
    }
    context_ = std::make_unique<grpc::ClientContext>();
    stub_->async()->Synchronize(context_.get(), &request_, &response_, [this](grpc::Status status) {
      if (status.ok()) Take();
      Call();
    });
  }
  bool ended() const { return ended_; }

 private:
  void Take() {
    *done_ += response_.accepted_size();
    request_.clear_tasks();
    for (const v1::Assignment& assignment : response_.assignments()) {
      v1::TaskReport* report = request_.add_tasks();
      report->set_task(assignment.task());
      report->set_fence(assignment.fence());
      report->mutable_build()->set_outcome(v1::COMPILE_ERROR);
      report->mutable_build()->set_log("nothing is built here");
    }
  }
  v1::WorkerService::Stub* const stub_;
  std::atomic<int64_t>* const done_;
  std::atomic<bool>* const stop_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::SynchronizeRequest request_;
  v1::SynchronizeResponse response_;
  std::atomic<bool> ended_ = false;
};

}  // namespace fusion
