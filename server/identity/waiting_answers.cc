#include "server/identity/waiting_answers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/identity/network.h"
#include "server/service/status_conversion.h"

namespace fusion {
namespace {

// What a call costs in gRPC and here, beside its answer.
constexpr size_t kOverhead = 16 << 10;
constexpr std::chrono::seconds kTryAgain{1};

absl::Status Refusal(const char* whose, size_t limit) {
  return RetryLater(absl::StrCat("answers of ", limit >> 20, " MB wait that ", whose,
                                 " asked for and did not take; take them first"),
                    kTryAgain);
}

WaitingAnswers::Time::duration Transfer(size_t bytes, size_t bytes_per_second) {
  return std::chrono::duration_cast<WaitingAnswers::Time::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(bytes_per_second)));
}

}  // namespace

size_t WaitingAnswers::Address::OfConnection(const std::string& peer) const {
  const auto connection = of_connection.find(peer);
  return connection == of_connection.end() ? 0 : connection->second;
}

std::string WaitingAnswers::Book::HoldsMost() const {
  const auto most = std::max_element(
      addresses.begin(), addresses.end(),
      [](const auto& one, const auto& other) { return one.second.bytes < other.second.bytes; });
  return most == addresses.end() ? "" : most->first;
}

void WaitingAnswers::Book::Release(const std::string& network, const Answer& answer) {
  const auto address = addresses.find(network);
  const auto connection = address->second.of_connection.find(answer.peer);
  bytes -= answer.bytes;
  address->second.bytes -= answer.bytes;
  connection->second -= answer.bytes;
  if (connection->second == 0) address->second.of_connection.erase(connection);
}

void WaitingAnswers::Book::GiveUp(const std::string& network, Answers::iterator answer) {
  Release(network, *answer);
  Answers& waiting = addresses.find(network)->second.answers;
  ending.splice(ending.end(), waiting, answer);
  ++given_up;
  if (waiting.empty()) addresses.erase(network);
  answer->given_up = true;
  if (answer->give_up) answer->give_up();
}

bool WaitingAnswers::MakeRoom(const std::string& network, Time now) {
  const auto address = book_->addresses.find(network);
  if (address == book_->addresses.end()) return false;
  Answers& answers = address->second.answers;
  const auto longest = std::find_if(answers.begin(), answers.end(),
                                    [&](const Answer& answer) { return now >= answer.for_others; });
  if (longest == answers.end()) return false;
  book_->GiveUp(network, longest);
  return true;
}

absl::Status WaitingAnswers::Admit(const std::string& peer, Time now) {
  const std::string network = NetworkOfPeer(peer);
  if (network.empty()) return absl::OkStatus();
  std::lock_guard lock(book_->mutex);
  const auto limit_for = [](size_t limit, bool little) { return little ? limit + limit / 4 : limit; };
  for (;;) {
    const auto own = book_->addresses.find(network);
    const size_t of_address = own == book_->addresses.end() ? 0 : own->second.bytes;
    const size_t of_connection = own == book_->addresses.end() ? 0 : own->second.OfConnection(peer);
    const bool little = of_connection < limits_.little;
    if (of_connection >= limits_.of_connection) return Refusal("this connection", limits_.of_connection);
    if (of_address >= limit_for(limits_.of_address, little)) {
      if (little && MakeRoom(network, now)) continue;
      return Refusal("connections of this address", limits_.of_address);
    }
    if (book_->bytes < limit_for(limits_.of_all, little)) return absl::OkStatus();
    if (!little || !MakeRoom(book_->HoldsMost(), now)) return Refusal("others", limits_.of_all);
  }
}

std::shared_ptr<void> WaitingAnswers::Hold(const std::string& peer, size_t bytes, Time now,
                                           std::function<void()> give_up) {
  std::string network = NetworkOfPeer(peer);
  if (network.empty()) return nullptr;
  const size_t memory = kOverhead + bytes;
  Answers::iterator entry;
  {
    std::lock_guard lock(book_->mutex);
    Address& address = book_->addresses[network];
    book_->bytes += memory;
    address.bytes += memory;
    const size_t of_connection = address.of_connection[peer] += memory;
    entry = address.answers.insert(
        address.answers.end(),
        Answer{peer, memory, now + limits_.moment + Transfer(memory, limits_.swift_bytes_per_second),
               now + limits_.patience + Transfer(of_connection, limits_.bytes_per_second),
               std::move(give_up)});
  }
  // Not with the mutex: the deleter takes it, if there is no memory for the pointer too.
  return {nullptr, [book = book_, network = std::move(network), entry](void*) {
            std::lock_guard lock(book->mutex);
            if (entry->given_up) {
              book->ending.erase(entry);
              return;
            }
            book->Release(network, *entry);
            const auto address = book->addresses.find(network);
            address->second.answers.erase(entry);
            if (address->second.answers.empty()) book->addresses.erase(address);
          }};
}

void WaitingAnswers::GiveUpOverdue(Time now) {
  std::lock_guard lock(book_->mutex);
  std::vector<std::pair<std::string, Answers::iterator>> overdue;
  for (auto& [network, address] : book_->addresses)
    for (auto answer = address.answers.begin(); answer != address.answers.end(); ++answer)
      if (now >= answer->overdue) overdue.emplace_back(network, answer);
  for (const auto& [network, answer] : overdue) book_->GiveUp(network, answer);
}

size_t WaitingAnswers::bytes() const {
  std::lock_guard lock(book_->mutex);
  return book_->bytes;
}

size_t WaitingAnswers::given_up() const {
  std::lock_guard lock(book_->mutex);
  return book_->given_up;
}

}  // namespace fusion
