#include "server/rpc/event_stream.h"

#include <boost/asio/post.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/rpc/status_conversion.h"
#include "server/identity/shown_credentials.h"
#include "server/jobs/job_messages.h"
#include "server/rpc/job_access.h"

namespace fusion {
namespace {

constexpr int kEventsPerRead = 64;

// At any time the stream is in one of these steps. A wake-up in any step but kIdle is remembered in `woken_`.
//   kIdle --wake--> kReading --events--> kWriting --all written--> kReading --none--> kIdle
class EventStream : public grpc::ServerWriteReactor<v1::JobEvent> {
 public:
  EventStream(const StreamParts& parts, const IncomingCall& incoming, std::string job, int64_t after,
              std::function<void()> begin)
      : store_(parts.store),
        watchers_(parts.watchers),
        pool_(parts.pool),
        gate_(parts.gate),
        method_(incoming.method),
        shown_(ShownBy(incoming.context, parts.gate)),
        begin_(std::move(begin)),
        job_(std::move(job)),
        sequence_(after),
        link_(std::make_shared<Link>()) {
    link_->stream = this;
  }

  // Apart from the constructor, because a wake-up may come before the constructor ends.
  void Begin(size_t request_bytes) {
    absl::StatusOr<Principal> caller = gate_.Admit(shown_, method_, request_bytes);
    if (!caller.ok()) return End(ToGrpcStatus(caller.status()));
    absl::StatusOr<std::shared_ptr<void>> ticket = gate_.AdmitStream(*caller);
    if (!ticket.ok()) return End(ToGrpcStatus(ticket.status()));
    ticket_ = *std::move(ticket);
    subscription_ = watchers_.Subscribe(job_, [link = link_] {
      std::lock_guard lock(link->mutex);
      if (link->stream != nullptr) link->stream->Wake();
    });
    Wake();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher has gone"));
    WriteNext();
  }
  // Nothing else would notice a caller that leaves while no event comes.
  void OnCancel() override {
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    if (step_ != Step::kIdle) return;
    step_ = Step::kEnded;
    lock.unlock();
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
  }
  void OnDone() override {
    {
      std::lock_guard lock(link_->mutex);
      link_->stream = nullptr;
    }
    delete this;
  }

 private:
  enum class Step { kIdle, kReading, kWriting, kEnded };
  // Wake-ups reach the stream through this, so that one that comes late finds nothing.
  struct Link {
    std::mutex mutex;
    EventStream* stream = nullptr;  // guarded by mutex
  };

  void Wake() {
    std::lock_guard lock(mutex_);
    if (step_ != Step::kIdle) {
      woken_ = true;
      return;
    }
    step_ = Step::kReading;
    boost::asio::post(pool_, [this] { Read(); });
  }

  void Read() {
    for (;;) {
      {
        std::lock_guard lock(mutex_);
        woken_ = false;
      }
      if (watchers_.closed())
        return End(
            grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is going down; watch again later"));
      // The state first: events that come between the two reads are then read, not missed.
      absl::StatusOr<JobRecord> record = store_.GetJob(job_);
      if (!record.ok()) return End(ToGrpcStatus(record.status()));
      if (absl::Status may = CheckMaySee(*record); !may.ok()) return End(ToGrpcStatus(may));
      if (begin_) {
        begin_();
        begin_ = nullptr;
      }
      absl::StatusOr<std::vector<EventRecord>> events = store_.EventsAfter(job_, sequence_, kEventsPerRead);
      if (!events.ok()) return End(ToGrpcStatus(events.status()));
      if (!events->empty()) {
        for (const EventRecord& event : *events) pending_.push_back(ToMessage(event));
        {
          std::lock_guard lock(mutex_);
          step_ = Step::kWriting;
        }
        return WriteNext();
      }
      if (IsTerminal(record->state)) return End(grpc::Status::OK);
      std::unique_lock lock(mutex_);
      if (cancelled_) {
        lock.unlock();
        return End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"));
      }
      if (!woken_) {
        step_ = Step::kIdle;
        return;
      }
    }
  }

  absl::Status CheckMaySee(const JobRecord& record) {
    absl::StatusOr<Principal> caller = gate_.Authenticate(shown_);
    if (caller.ok() && MaySeeJobsOf(*caller, record.user)) return absl::OkStatus();
    gate_.RecordEnd(caller.ok() ? &*caller : nullptr, shown_, method_, job_,
                    caller.ok() ? absl::PermissionDeniedError("") : caller.status());
    return caller.ok() ? NoSuchJob(job_) : caller.status();
  }

  void WriteNext() {
    if (current_ && current_->has_finished()) return End(grpc::Status::OK);
    if (pending_.empty()) {
      {
        std::lock_guard lock(mutex_);
        step_ = Step::kReading;
      }
      boost::asio::post(pool_, [this] { Read(); });
      return;
    }
    current_ = std::move(pending_.front());
    pending_.pop_front();
    sequence_ = current_->sequence();
    StartWrite(&*current_);
  }

  void End(grpc::Status status) {
    {
      std::lock_guard lock(mutex_);
      step_ = Step::kEnded;
    }
    Finish(std::move(status));
  }

  JobStore& store_;
  JobWatchers& watchers_;
  boost::asio::thread_pool& pool_;
  AccessGate& gate_;
  const char* const method_;
  const ShownCredentials shown_;
  std::shared_ptr<void> ticket_;  // constant after Begin

  // Used by the one thread that reads or writes.
  std::function<void()> begin_;
  const std::string job_;
  int64_t sequence_;
  std::deque<v1::JobEvent> pending_;
  std::optional<v1::JobEvent> current_;

  std::mutex mutex_;
  Step step_ = Step::kIdle;  // guarded by mutex_
  bool woken_ = false;       // guarded by mutex_
  bool cancelled_ = false;   // guarded by mutex_

  const std::shared_ptr<Link> link_;
  std::unique_ptr<JobWatchers::Subscription> subscription_;
};

}  // namespace

grpc::ServerWriteReactor<v1::JobEvent>* StreamEvents(const StreamParts& parts, const IncomingCall& incoming,
                                                     const std::string& job, int64_t after_sequence,
                                                     std::function<void()> begin) {
  auto* stream = new EventStream(parts, incoming, job, after_sequence, std::move(begin));
  stream->Begin(incoming.request.ByteSizeLong());
  return stream;
}

}  // namespace fusion
