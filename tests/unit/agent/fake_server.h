// A small server for workers, in the test's process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "fusion/v1/worker.grpc.pb.h"

namespace fusion {

// Hands out assignments, keeps blobs and results. Accepts every result unless told otherwise. A call that it
// holds ends when a newer one comes, as the real server's.
class FakeServer : public v1::WorkerService::Service {
 public:
  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override {
    std::unique_lock lock(mutex_);
    const int number = ++calls_;
    changed_.notify_all();
    while (held_ > 0) changed_.wait_for(lock, std::chrono::milliseconds(10));
    last_ = *request;
    std::set<std::string> listed;
    for (const v1::TaskReport& report : request->tasks()) {
      listed.insert(report.task());
      if (report.has_running()) continue;
      ++reports_[report.task()];
      if (reports_[report.task()] <= refusals_) continue;
      results_[report.task()] = report;
      assignments_.erase(report.task());
      response->add_accepted(report.task());
    }
    changed_.notify_all();
    auto news = [&] {
      if (number != calls_) return true;
      if (request->draining() || shut_) return shut_;
      for (const auto& [task, assignment] : assignments_)
        if (!listed.contains(task)) return true;
      for (const std::string& task : cancelled_)
        if (listed.contains(task)) return true;
      return drain_ && !request->draining();
    };
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(request->wait_seconds());
    ++held_;
    while (response->accepted().empty() && !news() && !context->IsCancelled() &&
           std::chrono::steady_clock::now() < until)
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    --held_;
    changed_.notify_all();
    if (context->IsCancelled()) ++cancelled_calls_;
    if (number != calls_) return grpc::Status::OK;  // with nothing
    for (const auto& [task, assignment] : assignments_)
      if (!listed.contains(task) && !request->draining() && !cancelled_.contains(task))
        *response->add_assignments() = assignment;
    for (const std::string& task : cancelled_) response->add_cancelled(task);
    response->set_drain(drain_);
    if (request->wait_seconds() == 0) response->set_next_contact_seconds(poll_seconds_);
    return grpc::Status::OK;
  }

  grpc::Status ReadBlob(grpc::ServerContext*, const v1::ReadBlobRequest* request,
                        grpc::ServerWriter<v1::Chunk>* writer) override {
    std::lock_guard lock(mutex_);
    ++blob_reads_;
    const auto found = blobs_.find(request->digest());
    if (found == blobs_.end()) return {grpc::StatusCode::NOT_FOUND, "no blob " + request->digest()};
    for (size_t offset = 0; offset < found->second.size(); offset += 1000) {
      v1::Chunk chunk;
      chunk.set_offset(static_cast<int64_t>(offset));
      chunk.set_data(found->second.substr(offset, 1000));
      writer->Write(chunk);
    }
    return grpc::Status::OK;
  }

  grpc::Status WriteBlob(grpc::ServerContext*, grpc::ServerReader<v1::Chunk>* reader,
                         v1::WriteBlobResponse* response) override {
    v1::Chunk chunk;
    std::string content;
    while (reader->Read(&chunk)) content += chunk.data();
    response->set_digest(absl::StrCat("sha256:", Sha256Hex(content)));
    std::lock_guard lock(mutex_);
    blobs_[response->digest()] = content;
    return grpc::Status::OK;
  }

  void Assign(v1::Assignment assignment) {
    std::lock_guard lock(mutex_);
    const std::string task = assignment.task();
    assignments_[task] = std::move(assignment);
    changed_.notify_all();
  }
  void Cancel(const std::string& task) {
    std::lock_guard lock(mutex_);
    cancelled_.insert(task);
    assignments_.erase(task);
    changed_.notify_all();
  }
  void Drain() {
    std::lock_guard lock(mutex_);
    drain_ = true;
    changed_.notify_all();
  }
  void Shut() {
    std::lock_guard lock(mutex_);
    shut_ = true;
    changed_.notify_all();
  }
  void RefuseEachResult(int times) {
    std::lock_guard lock(mutex_);
    refusals_ = times;
  }
  void PutBlob(const std::string& digest, const std::string& content) {
    std::lock_guard lock(mutex_);
    blobs_[digest] = content;
  }
  int BlobReads() {
    std::lock_guard lock(mutex_);
    return blob_reads_;
  }
  // Waits until the condition holds for the state; false after a minute or more.
  template <class Condition>
  bool WaitUntil(Condition condition) {
    std::unique_lock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!condition(*this)) {
      if (std::chrono::steady_clock::now() > until) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    return true;
  }
  // An empty report when there is none in time.
  v1::TaskReport WaitFor(const std::string& task) {
    WaitUntil([&](FakeServer& server) { return server.results_.contains(task); });
    std::lock_guard lock(mutex_);
    return results_[task];
  }

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::map<std::string, v1::Assignment> assignments_;
  std::map<std::string, v1::TaskReport> results_;
  std::map<std::string, int> reports_;
  std::set<std::string> cancelled_;
  std::map<std::string, std::string> blobs_;
  v1::SynchronizeRequest last_;
  int refusals_ = 0;
  int calls_ = 0, held_ = 0;
  int blob_reads_ = 0;
  int cancelled_calls_ = 0;
  double poll_seconds_ = 0;  // asked of workers whose call was not to be held
  bool drain_ = false;
  bool shut_ = false;
};

}  // namespace fusion
