// Jobs that wait for a thread of the server.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace fusion {

// The next job is one of the user who has the fewest running; among such users, of the one who was served
// longest ago; of his jobs the one of the highest priority, of these the oldest. So a user with a thousand
// jobs delays the others by one each. Not thread safe.
class JobLine {
 public:
  // Names are unique among the jobs that wait or run.
  void Add(const std::string& job, const std::string& user, int priority);
  // It will not be taken. False: it is not waiting.
  bool Remove(const std::string& job);
  // The next job, which runs until Ended; none: none waits.
  std::optional<std::string> Take();
  // The same, if it is one of a user who has fewer running than his share of so many places, which all who
  // have jobs have alike; one who has none running has fewer.
  std::optional<std::string> TakeBelowShare(int places);
  void Ended(const std::string& job);

  int size() const { return static_cast<int>(waiting_.size() + running_.size()); }  // waiting and running
  int size(const std::string& user) const;

 private:
  using Order = std::pair<int, int64_t>;  // -priority, order of coming
  struct User {
    std::map<Order, std::string> waiting;
    int running = 0;
    int64_t last_served = 0;
  };
  User* Next();                          // whose turn it is; null: nobody waits
  std::string TakeOf(User* user);        // who has jobs that wait
  void Forget(const std::string& user);  // when nothing is left of him

  std::map<std::string, User> users_;
  std::map<std::string, std::pair<std::string, Order>> waiting_;  // job to user and order
  std::map<std::string, std::string> running_;                    // job to user
  int64_t added_ = 0;
  int64_t served_ = 0;
};

}  // namespace fusion
