#include "client/tuner/exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random_id.h"

namespace fusion::tuning {
namespace {

constexpr uint64_t kFirstDelay = 50'000'000;
constexpr uint64_t kLongestDelay = 5'000'000'000;
constexpr uint64_t kWelcomeTime = 5'000'000'000;

}  // namespace

// The threads of one stream leave here what the background thread takes.
class Exchange::Inbox : public LinkEvents {
 public:
  explicit Inbox(const std::function<void()>& wake) : wake_(wake) {}

  void Received(v1::TuneResponse response) override {
    {
      std::lock_guard lock(mutex_);
      received_.push_back(std::move(response));
    }
    wake_();
  }
  void Written() override {
    {
      std::lock_guard lock(mutex_);
      written_ = true;
    }
    wake_();
  }
  void Closed(const absl::Status& status) override {
    {
      std::lock_guard lock(mutex_);
      closed_ = status;
    }
    wake_();
  }

  struct Content {
    std::vector<v1::TuneResponse> received;
    bool written = false;
    std::optional<absl::Status> closed;
  };
  Content Take() {
    Content content;
    std::lock_guard lock(mutex_);
    content.received.swap(received_);
    content.written = std::exchange(written_, false);
    content.closed = std::exchange(closed_, std::nullopt);
    return content;
  }

 private:
  const std::function<void()>& wake_;
  std::mutex mutex_;
  std::vector<v1::TuneResponse> received_;  // guarded by mutex_, like the others
  bool written_ = false;
  std::optional<absl::Status> closed_;
};

Exchange::Exchange(ExchangeOptions options, Outbox& outbox)
    : options_(std::move(options)),
      outbox_(outbox),
      process_(RandomHex(4)),
      delay_nanoseconds_(kFirstDelay),
      random_(std::random_device()()) {}

Exchange::~Exchange() { Close(); }

void Exchange::Close() {
  link_.reset();
  inbox_.reset();
}

void Exchange::Declare(const v1::DeclareSection& section) {
  sections_.push_back(section);
  if (link_) *control_.emplace_back().mutable_declare() = section;
}

uint64_t Exchange::next_step() const {
  if (!link_) return connect_at_;
  return ready_ ? kNever : welcome_until_;
}

void Exchange::Step(uint64_t now) {
  if (link_) {
    Inbox::Content content = inbox_->Take();
    if (content.written) writing_ = false;
    for (const v1::TuneResponse& response : content.received) Receive(response, now);
    if (content.closed)
      Disconnected(*content.closed, now);
    else if (!ready_ && now >= welcome_until_)
      Disconnected(absl::UnavailableError("it does not answer"), now);
  }
  if (!link_ && now >= connect_at_) Connect(now);
  Write(now);
}

void Exchange::Connect(uint64_t now) {
  inbox_ = std::make_unique<Inbox>(options_.wake);
  writing_ = false;
  welcome_until_ = now + kWelcomeTime;
  control_.clear();
  control_.emplace_back().mutable_hello()->set_process(process_);
  for (const v1::DeclareSection& section : sections_) *control_.emplace_back().mutable_declare() = section;
  link_ = options_.dial(*inbox_);
}

void Exchange::Disconnected(const absl::Status& status, uint64_t now) {
  link_.reset();
  inbox_.reset();
  timed_sequence_ = 0;
  failure_ = status.ok() ? "it ended the connection" : std::string(status.message());
  // A server that was there a moment ago is asked again soon; one that stays away, ever more rarely, and by
  // all its programs at different times.
  if (ready_) delay_nanoseconds_ = kFirstDelay;
  ready_ = false;
  connect_at_ = now + delay_nanoseconds_ / 2 + random_() % delay_nanoseconds_;
  delay_nanoseconds_ = std::min(delay_nanoseconds_ * 2, kLongestDelay);
  unreachable_ = true;
  if (std::exchange(told_, true)) return;
  options_.notice(absl::StrCat(options_.server, connections_ == 0 ? " cannot be reached (" : " is gone (",
                               failure_, "); this program goes on with ",
                               connections_ == 0 ? "its defaults" : "its last choice", " and tries again"));
}

void Exchange::Receive(const v1::TuneResponse& response, uint64_t now) {
  switch (response.kind_case()) {
    case v1::TuneResponse::kWelcome:
      ready_ = true;
      unreachable_ = false;
      delay_nanoseconds_ = kFirstDelay;
      ++connections_;
      Acknowledge(response.welcome().last_sequence());
      outbox_.Restart();
      if (std::exchange(told_, false)) options_.notice(absl::StrCat(options_.server, " is back"));
      break;
    case v1::TuneResponse::kAcknowledged: {
      const uint64_t sequence = response.acknowledged().sequence();
      Acknowledge(sequence);
      if (timed_sequence_ != 0 && sequence >= timed_sequence_) {
        round_trip_nanoseconds_ +=
            (static_cast<int64_t>(now - timed_since_) - static_cast<int64_t>(round_trip_nanoseconds_)) / 4;
        timed_sequence_ = 0;
      }
      break;
    }
    case v1::TuneResponse::kRefused:
      refused_runs_ += response.refused().runs();
      refused_waiting_ += response.refused().runs();
      options_.answer(response);
      break;
    case v1::TuneResponse::kDeclared:
    case v1::TuneResponse::kChoice:
      options_.answer(response);
      break;
    case v1::TuneResponse::KIND_NOT_SET:
      break;  // of a newer server
  }
}

void Exchange::Acknowledge(uint64_t sequence) {
  const uint64_t runs = outbox_.Acknowledge(sequence);
  const uint64_t refused = std::min(runs, refused_waiting_);
  refused_waiting_ -= refused;
  acknowledged_runs_ += runs - refused;
}

void Exchange::Write(uint64_t now) {
  if (!link_ || writing_) return;
  v1::TuneRequest request;
  if (!control_.empty()) {
    request = std::move(control_.front());
    control_.pop_front();
  } else if (const v1::ReportBatch* batch = ready_ ? outbox_.Next() : nullptr) {
    *request.mutable_reports() = *batch;
    if (timed_sequence_ == 0) {
      timed_sequence_ = batch->sequence();
      timed_since_ = now;
    }
    outbox_.MarkSent();
  } else {
    return;
  }
  writing_ = true;
  link_->Write(request);
}

}  // namespace fusion::tuning
