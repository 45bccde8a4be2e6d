// Any bytes as what a worker says, to a dispatcher with a store, tasks that wait and tasks that a worker has.
// Tasks are called t0, t1, ... in the input, because their names are made at random.
#include <spdlog/spdlog.h>

#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/dispatch/dispatcher.h"
#include "tests/fuzz/message_input.h"

namespace fusion {
namespace {

constexpr int kInputsOfStore =
    3000;  // what workers said is remembered, so that a farm begins anew after so many

class Farm {
 public:
  Farm() {
    spdlog::set_level(spdlog::level::off);
    // In memory where there is such a file system.
    std::string path =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/fusion-fuzz-XXXXXX" : "/tmp/fusion-fuzz-XXXXXX";
    Require(mkdtemp(path.data()) != nullptr, "no folder");
    folder_ = path;
    store_ = *OpenSqliteStore(folder_ + "/fusion.db");
    dispatcher_ = std::make_unique<Dispatcher>(*store_, pool_.get_executor(), clock_);
    Require(dispatcher_->Start().ok(), "the dispatcher does not start");
    Refill();
  }
  ~Farm() {
    dispatcher_.reset();
    pool_.join();
    Require(store_->CheckIntegrity().ok(), "the store is not sound");
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  // A new job with tasks, some of which the worker "holder" takes; their names take the place of earlier
  // ones.
  void Refill() {
    const auto job = store_->CreateJob({}, clock_.Now());
    Require(job.ok(), "no job");
    std::vector<TaskSpec> specs;
    for (int i = 0; i < 4; ++i)
      specs.push_back({.key = absl::StrCat(job->job.id, i),
                       .kind = i < 2 ? TaskKind::kBuild : TaskKind::kTime,
                       .requirements = {"HOST", "x86-64", i < 2 ? "" : "CPU-1"},
                       .payload = ""});
    Require(dispatcher_->Enqueue(job->job.id, specs).ok(), "tasks are not queued");
    v1::SynchronizeRequest holder;
    holder.set_worker("holder");
    holder.set_instance("1");
    holder.add_builds()->set_target(v1::HOST);
    holder.set_free_build_slots(1);
    const v1::SynchronizeResponse answer = Say(holder);
    tasks_.clear();
    for (const auto& assignment : answer.assignments()) tasks_.push_back(assignment.task());
    const auto live = store_->LiveTasks();
    Require(live.ok(), "no tasks");
    for (const TaskRecord& task : *live)
      if (tasks_.size() < 6) tasks_.push_back(task.id);
  }

  v1::SynchronizeResponse Say(v1::SynchronizeRequest request) {
    request.set_wait_seconds(0);
    for (v1::TaskReport& report : *request.mutable_tasks()) {
      size_t number = 0;
      if (absl::string_view(report.task()).substr(0, 1) == "t" &&
          absl::SimpleAtoi(absl::string_view(report.task()).substr(1), &number) && number < tasks_.size())
        report.set_task(tasks_[number]);
    }
    int answers = 0;
    v1::SynchronizeResponse response;
    dispatcher_->Synchronize(request, [&](v1::SynchronizeResponse answer) {
      response = std::move(answer);
      ++answers;
    });
    Require(answers == 1, "a call that does not wait was not answered, or twice");
    return response;
  }

 private:
  std::string folder_;
  SystemClock clock_;
  boost::asio::thread_pool pool_{1};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::string> tasks_;
};

}  // namespace
}  // namespace fusion

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  static std::unique_ptr<Farm> farm;
  static int inputs = 0;
  v1::SynchronizeRequest request;
  if (!ReadMessage(std::string(reinterpret_cast<const char*>(data), size), &request) || !Decodable(request))
    return 0;
  if (inputs++ % kInputsOfStore == 0) {
    farm.reset();
    farm = std::make_unique<Farm>();
  } else if (inputs % 100 == 0) {
    farm->Refill();
  }
  const v1::SynchronizeResponse answer = farm->Say(request);
  Require(request.worker() == "holder" || answer.accepted_size() <= request.tasks_size(),
          "more was accepted than reported");
  return 0;
}
