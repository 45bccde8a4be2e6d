#include "server/rpc/tuning_watch.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/rpc/status_conversion.h"
#include "server/identity/shown_credentials.h"

namespace fusion {
namespace {

constexpr std::chrono::milliseconds kInterval{100};

// At any time the stream is in one of these steps. A wake-up in any step but kIdle is remembered in `woken_`.
//   kIdle --wake--> kReading --changed--> kWriting --written--> kPausing --interval, woken--> kReading
//                   kReading --same--> kIdle                    kPausing --interval--> kIdle
class TuningWatch : public grpc::ServerWriteReactor<v1::Tuning> {
 public:
  TuningWatch(TuningRegistry& tunings, JobWatchers& watchers, boost::asio::thread_pool& pool,
              AccessGate& gate, const IncomingCall& incoming, std::string tuning)
      : tunings_(tunings),
        watchers_(watchers),
        pool_(pool),
        gate_(gate),
        method_(incoming.method),
        shown_(ShownBy(incoming.context, gate)),
        tuning_(std::move(tuning)),
        pause_(pool),
        link_(std::make_shared<Link>()) {
    link_->stream = this;
  }

  void Begin(size_t request_bytes) {
    absl::StatusOr<Principal> caller = gate_.Admit(shown_, method_, request_bytes);
    if (!caller.ok()) return End(caller.status());
    absl::StatusOr<std::shared_ptr<void>> ticket = gate_.AdmitStream(*caller);
    if (!ticket.ok()) return End(ticket.status());
    ticket_ = *std::move(ticket);
    subscription_ = watchers_.Subscribe(tuning_, [link = link_] {
      std::lock_guard lock(link->mutex);
      if (link->stream != nullptr) link->stream->Wake();
    });
    Wake();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(absl::CancelledError("the watcher has gone"));
    std::lock_guard lock(mutex_);
    step_ = Step::kPausing;
    pause_.expires_after(kInterval);
    pause_.async_wait([this](const boost::system::error_code&) { Paused(); });
    if (cancelled_ || watchers_.closed()) pause_.cancel();
  }
  void OnCancel() override {
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    if (step_ == Step::kPausing) pause_.cancel();
    if (step_ != Step::kIdle) return;
    step_ = Step::kEnded;  // nothing wakes it any more
    lock.unlock();
    Finish(ToGrpcStatus(absl::CancelledError("cancelled")));
  }
  void OnDone() override {
    {
      std::lock_guard lock(link_->mutex);
      link_->stream = nullptr;
    }
    delete this;
  }

 private:
  enum class Step { kIdle, kReading, kWriting, kPausing, kEnded };
  // Wake-ups reach the stream through this, so that one that comes late finds nothing.
  struct Link {
    std::mutex mutex;
    TuningWatch* stream = nullptr;  // guarded by mutex
  };

  void Wake() {
    std::lock_guard lock(mutex_);
    if (step_ != Step::kIdle) {
      woken_ = true;
      if (step_ == Step::kPausing && watchers_.closed()) pause_.cancel();
      return;
    }
    step_ = Step::kReading;
    boost::asio::post(pool_, [this] { Read(); });
  }

  void Paused() {
    {
      std::unique_lock lock(mutex_);
      if (!cancelled_ && !woken_) {
        step_ = Step::kIdle;
        return;
      }
      step_ = Step::kReading;
    }
    Read();
  }

  void Read() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        woken_ = false;
        if (cancelled_) {
          lock.unlock();
          return End(absl::CancelledError("cancelled"));
        }
      }
      if (watchers_.closed())
        return End(absl::UnavailableError("the server is going down; watch again later"));
      if (absl::Status good = gate_.Authenticate(shown_).status(); !good.ok()) {
        gate_.RecordEnd(nullptr, shown_, method_, tuning_, good);
        return End(good);
      }
      absl::StatusOr<v1::Tuning> tuning = tunings_.Get(tuning_);
      if (!tuning.ok()) return End(tuning.status());
      std::string bytes = tuning->SerializeAsString();
      std::unique_lock lock(mutex_);
      if (bytes != sent_) {
        sent_ = std::move(bytes);
        current_ = *std::move(tuning);
        step_ = Step::kWriting;
        lock.unlock();
        StartWrite(&current_);
        return;
      }
      if (!woken_ && !cancelled_) {
        step_ = Step::kIdle;
        return;
      }
    }
  }

  void End(const absl::Status& status) {
    {
      std::lock_guard lock(mutex_);
      if (step_ == Step::kEnded) return;
      step_ = Step::kEnded;
    }
    Finish(ToGrpcStatus(status));
  }

  TuningRegistry& tunings_;
  JobWatchers& watchers_;
  boost::asio::thread_pool& pool_;
  AccessGate& gate_;
  const char* const method_;
  const ShownCredentials shown_;
  const std::string tuning_;
  std::shared_ptr<void> ticket_;  // constant after Begin

  // Used by the one thread that reads or writes.
  v1::Tuning current_;
  std::string sent_;

  std::mutex mutex_;
  boost::asio::steady_timer pause_;  // guarded by mutex_
  Step step_ = Step::kIdle;          // guarded by mutex_
  bool woken_ = false;               // guarded by mutex_
  bool cancelled_ = false;           // guarded by mutex_

  const std::shared_ptr<Link> link_;
  std::unique_ptr<JobWatchers::Subscription> subscription_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Tuning>* StartTuningWatch(TuningRegistry& tunings, JobWatchers& watchers,
                                                       boost::asio::thread_pool& pool, AccessGate& gate,
                                                       const IncomingCall& incoming,
                                                       const std::string& tuning) {
  auto* stream = new TuningWatch(tunings, watchers, pool, gate, incoming, tuning);
  stream->Begin(incoming.request.ByteSizeLong());
  return stream;
}

}  // namespace fusion
