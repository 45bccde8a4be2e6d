#include "server/identity/audit_log.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr size_t kMaximumTextBytes = 200;
// Until entries that could not be stored are tried again.
constexpr std::chrono::milliseconds kRetry{200};

void Cut(std::string* text) {
  if (text->size() > kMaximumTextBytes) text->resize(kMaximumTextBytes);
  // Texts that callers send are shown on terminals.
  for (char& letter : *text)
    if (static_cast<unsigned char>(letter) < ' ' || static_cast<unsigned char>(letter) > '~') letter = '?';
}

// "ipv4:10.0.0.7" of "ipv4:10.0.0.7:51234".
std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

}  // namespace

AuditLog::AuditLog(IdentityStore& store, AuditOptions options)
    : store_(store), options_(options), thread_([this] { Write(); }) {}

AuditLog::~AuditLog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool AuditLog::MayRecord(const AuditRecord& entry) {
  if (entry.outcome == "OK") return true;
  const auto now = std::chrono::steady_clock::now();
  const std::string one = entry.principal.empty()
                              ? absl::StrCat("peer ", HostOf(entry.peer))
                              : absl::StrCat("principal ", entry.role, " ", entry.principal);
  return rates_.Take(one, options_.refusals_of_one, now).count() == 0 &&
         rates_.Take("all", options_.refusals, now).count() == 0;
}

void AuditLog::Record(AuditRecord entry) {
  for (std::string* text : {&entry.principal, &entry.peer, &entry.method, &entry.subject, &entry.outcome})
    Cut(text);
  const bool may = MayRecord(entry);
  {
    std::lock_guard lock(mutex_);
    if (!may || waiting_.size() >= options_.waiting) {
      ++left_out_;
      return;
    }
    if (left_out_ > 0) {
      AuditRecord note;
      note.time = entry.time;
      note.subject = absl::StrCat(left_out_, " entries were left out");
      note.outcome = "RESOURCE_EXHAUSTED";
      waiting_.push_back(std::move(note));
      ++recorded_;
      left_out_ = 0;
    }
    waiting_.push_back(std::move(entry));
    ++recorded_;
  }
  wake_.notify_one();
}

void AuditLog::Flush() {
  std::unique_lock lock(mutex_);
  const uint64_t until = recorded_;
  written_.wait(lock, [&] { return stored_ >= until || failing_; });
}

void AuditLog::Write() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::vector<AuditRecord> entries(std::make_move_iterator(waiting_.begin()),
                                           std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    lock.unlock();
    const absl::Status added = store_.AddAuditEntries(entries, options_.keep);
    lock.lock();
    if (!added.ok() && !failing_)
      spdlog::error("{} entries of the audit log are not stored yet: {}", entries.size(), added.ToString());
    failing_ = !added.ok();
    if (failing_ && !stopping_) {
      waiting_.insert(waiting_.begin(), entries.begin(), entries.end());
      written_.notify_all();
      wake_.wait_for(lock, kRetry, [this] { return stopping_; });
      continue;
    }
    if (failing_) spdlog::error("{} entries of the audit log are lost: {}", entries.size(), added.ToString());
    stored_ += entries.size();
    written_.notify_all();
  }
}

}  // namespace fusion
