// Answers that are made and that their callers have not taken yet: what bounds the memory that callers cost
// who ask and do not take, however they go about it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"

namespace fusion {

// Bytes of memory. Whoever is at a limit gets no further answer made; one alone may be larger.
struct AnswerLimits {
  size_t of_connection = 16 << 20;
  // A quarter more for connections that hold little: those of callers who take what they ask for.
  size_t of_address = 64 << 20, of_all = 512 << 20;
  size_t little = 1 << 20;
  // An answer is given up that is not taken within this time and that of all that its connection holds, at
  // this rate.
  std::chrono::milliseconds patience{60'000};
  size_t bytes_per_second = 64 << 10;
  // Where an address, or all, are at their limit: one that has waited for as long, and that of its memory at
  // this rate, is given up for another.
  std::chrono::milliseconds moment{100};
  size_t swift_bytes_per_second = 1 << 20;
};

// Thread safe.
class WaitingAnswers {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit WaitingAnswers(const AnswerLimits& limits) : limits_(limits) {}

  // Before an answer is made for `peer` ("ipv4:10.0.0.7:51234"; of one without an address, such as the
  // server's own process, nothing is held). Where even what is for connections that hold little is taken, the
  // longest waiting answer is given up for theirs: of their address, or of the one that holds most.
  // ResourceExhausted with google.rpc.RetryInfo: no further one is made.
  absl::Status Admit(const std::string& peer, Time now);

  // An answer that takes so many bytes of memory is on its way until the ticket is destroyed, which may be
  // after this. `give_up` ends the call: it is called once at most, never after the ticket, and must not wait
  // for the ticket's destruction.
  std::shared_ptr<void> Hold(const std::string& peer, size_t bytes, Time now, std::function<void()> give_up);

  // Gives up what is overdue. To be called now and then.
  void GiveUpOverdue(Time now);

  // Of all that wait.
  size_t bytes() const;
  // Answers, so far.
  size_t given_up() const;

 private:
  struct Answer {
    std::string peer;
    size_t bytes = 0;
    Time for_others{}, overdue{};  // when it may be given up for others, and is without
    std::function<void()> give_up;
    bool given_up = false;
  };
  using Answers = std::list<Answer>;
  struct Address {
    size_t bytes = 0;
    size_t OfConnection(const std::string& peer) const;
    std::map<std::string, size_t> of_connection;  // above 0
    Answers answers;                              // the longest waiting first
  };
  // Guarded by mutex.
  struct Book {
    std::string HoldsMost() const;  // the address
    // The answer, which is there, counts no more.
    void Release(const std::string& network, const Answer& answer);
    // The same, and ends it.
    void GiveUp(const std::string& network, Answers::iterator answer);

    mutable std::mutex mutex;
    std::map<std::string, Address> addresses;  // that have answers
    size_t bytes = 0;
    size_t given_up = 0;
    Answers ending;  // given up, as long as their tickets live
  };

  // Gives up the longest waiting of an address, if it has waited for long enough.
  bool MakeRoom(const std::string& network, Time now);

  const AnswerLimits limits_;
  const std::shared_ptr<Book> book_ = std::make_shared<Book>();
};

}  // namespace fusion
