#include "server/dispatch/long_poll.h"

#include <boost/asio/post.hpp>
#include <optional>
#include <utility>

namespace fusion {

struct LongPolls::Call {
  v1::SynchronizeRequest request;  // constant, as number
  int64_t number = 0;
  // Held while the call is looked at, so that two events do not claim tasks for it at once.
  std::mutex mutex;
  v1::SynchronizeResponse response;                // guarded by mutex
  Done done;                                       // guarded by mutex
  bool answered = false;                           // guarded by mutex
  std::optional<boost::asio::steady_timer> timer;  // guarded by mutex
};

LongPolls::LongPolls(boost::asio::any_io_executor executor, Look look)
    : executor_(std::move(executor)), look_(std::move(look)) {}

LongPolls::~LongPolls() { Close(); }

void LongPolls::Hold(v1::SynchronizeRequest request, v1::SynchronizeResponse response,
                     std::chrono::milliseconds wait, Done done, int64_t number) {
  auto call = std::make_shared<Call>();
  call->number = number;
  call->request = std::move(request);
  call->response = std::move(response);
  call->done = std::move(done);
  std::shared_ptr<Call> older;
  bool no_more = false;
  {
    // Known before it is first looked at: what happens in between wakes it.
    std::lock_guard<std::mutex> lock(mutex_);
    no_more = closed_;
    if (!no_more) {
      std::shared_ptr<Call>& held = calls_[call->request.worker()];
      no_more = held != nullptr && number != 0 && number < held->number;
      if (!no_more) older = std::exchange(held, call);
    }
  }
  if (no_more) return Finish(call);
  if (older != nullptr) Finish(older);
  if (wait <= std::chrono::milliseconds::zero()) return Evaluate(call, /*last=*/true);
  Evaluate(call, /*last=*/false);

  std::lock_guard<std::mutex> lock(call->mutex);
  if (call->answered) return;
  call->timer.emplace(executor_, wait);
  call->timer->async_wait([this, gate = gate_, call](const boost::system::error_code& error) {
    Gate::Pass pass(*gate);
    if (pass && !error) Evaluate(call, /*last=*/true);
  });
}

void LongPolls::GiveUpOlder(const std::string& worker, int64_t number) {
  std::shared_ptr<Call> older;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(worker);
    if (found == calls_.end() || (number != 0 && number < found->second->number)) return;
    older = found->second;
    calls_.erase(found);
  }
  Finish(older);
}

void LongPolls::Evaluate(const std::shared_ptr<Call>& call, bool last) {
  v1::SynchronizeResponse response;
  Done done;
  {
    std::lock_guard<std::mutex> lock(call->mutex);
    if (call->answered) return;
    if (!look_(call->request, call->response) && !last) return;
    call->answered = true;
    if (call->timer.has_value()) call->timer->cancel();
    response = std::move(call->response);
    done = std::move(call->done);
  }
  Forget(call);
  done(std::move(response));
}

void LongPolls::Finish(const std::shared_ptr<Call>& call) {
  v1::SynchronizeResponse response;
  Done done;
  {
    std::lock_guard<std::mutex> lock(call->mutex);
    if (call->answered) return;
    call->answered = true;
    if (call->timer.has_value()) call->timer->cancel();
    response = std::move(call->response);
    done = std::move(call->done);
  }
  done(std::move(response));
}

void LongPolls::Forget(const std::shared_ptr<Call>& call) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = calls_.find(call->request.worker());
  if (found != calls_.end() && found->second == call) calls_.erase(found);
}

void LongPolls::Post(std::shared_ptr<Call> call) {
  boost::asio::post(executor_, [this, gate = gate_, call = std::move(call)] {
    Gate::Pass pass(*gate);
    if (pass) Evaluate(call, /*last=*/false);
  });
}

void LongPolls::Wake(const std::string& worker) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = calls_.find(worker);
  if (found != calls_.end()) Post(found->second);
}

void LongPolls::WakeAfter(const std::string& worker, std::chrono::microseconds wait) {
  const auto when = std::chrono::steady_clock::now() + wait;
  {
    // One that comes earlier looks again, and asks for this one then.
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = wakes_.find(worker);
    if (closed_ || (found != wakes_.end() && found->second <= when)) return;
    wakes_[worker] = when;
  }
  auto timer = std::make_shared<boost::asio::steady_timer>(executor_, when);
  timer->async_wait([this, gate = gate_, timer, worker, when](const boost::system::error_code& error) {
    Gate::Pass pass(*gate);
    if (!pass || error) return;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (const auto found = wakes_.find(worker); found != wakes_.end() && found->second == when)
        wakes_.erase(found);
    }
    Wake(worker);
  });
}

void LongPolls::WakeAll() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [worker, call] : calls_) Post(call);
}

void LongPolls::WakeIf(const std::function<bool(const v1::SynchronizeRequest&)>& wanted) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [worker, call] : calls_)
    if (wanted(call->request)) Post(call);
}

void LongPolls::Close() {
  std::map<std::string, std::shared_ptr<Call>> calls;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    calls.swap(calls_);
  }
  for (const auto& [worker, call] : calls) Finish(call);
  gate_->Close();
}

}  // namespace fusion
