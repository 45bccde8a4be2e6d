// Holds calls of workers until there is something to tell them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fusion/v1/worker.pb.h"
#include "server/dispatch/gate.h"

namespace fusion {

// At most one call of each worker is held, the newest that has come: it means that the worker has given up
// the older one, which is answered with nothing. Thread safe. Callbacks run on the executor or on the thread
// that calls Hold or Close.
class LongPolls {
 public:
  using Done = std::function<void(v1::SynchronizeResponse)>;
  // Adds what there is to tell now to the response; true when there is something. It is not called for one
  // request from two threads at a time, and not after it returned true.
  using Look = std::function<bool(const v1::SynchronizeRequest&, v1::SynchronizeResponse&)>;

  LongPolls(boost::asio::any_io_executor executor, Look look);
  ~LongPolls();
  LongPolls(const LongPolls&) = delete;
  LongPolls& operator=(const LongPolls&) = delete;

  // Calls done exactly once: as soon as look says that there is something, or after `wait` with what there
  // is; at once, where a newer call has come. `number` is the call's number in the order of arrival; 0:
  // unknown, newer than all before.
  void Hold(v1::SynchronizeRequest request, v1::SynchronizeResponse response, std::chrono::milliseconds wait,
            Done done, int64_t number = 0);
  // A call of that number has come: an older one that is held is answered.
  void GiveUpOlder(const std::string& worker, int64_t number);
  // Looks again for this worker, or for all.
  void Wake(const std::string& worker);
  // Does what Wake does when so long has passed, or earlier where that has been asked for.
  void WakeAfter(const std::string& worker, std::chrono::microseconds wait);
  void WakeAll();
  // Looks again for workers whose request `wanted` accepts; `wanted` is called for one after another, and
  // must not use this object.
  void WakeIf(const std::function<bool(const v1::SynchronizeRequest&)>& wanted);
  // Answers all held calls with nothing; calls that come later are answered at once. Waits for callbacks in
  // progress, so it must not be called from one.
  void Close();

 private:
  struct Call;
  // `last`: the call is answered in any case.
  void Evaluate(const std::shared_ptr<Call>& call, bool last);
  void Finish(const std::shared_ptr<Call>& call);  // answers with nothing
  void Post(std::shared_ptr<Call> call);
  void Forget(const std::shared_ptr<Call>& call);

  const boost::asio::any_io_executor executor_;
  const Look look_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();

  std::mutex mutex_;
  bool closed_ = false;                                                 // guarded by mutex_
  std::map<std::string, std::shared_ptr<Call>> calls_;                  // by worker; guarded by mutex_
  std::map<std::string, std::chrono::steady_clock::time_point> wakes_;  // WakeAfter; guarded by mutex_
};

}  // namespace fusion
