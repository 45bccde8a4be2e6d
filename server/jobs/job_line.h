// Jobs that wait for a thread of the server, and which of them have one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace fusion {

// The next job belongs to the user who has the fewest running; among such users, to the one who was served
// longest ago; among his jobs it is the one of the highest priority, among these the oldest. So a user with a
// thousand jobs delays the others by one each. When all places are taken a few more are kept for users who
// have fewer running than their share of the places, which is the same for all users with jobs; a user who
// has none running has fewer. Not thread safe.
class JobLine {
 public:
  JobLine(int places, int kept_places) : places_(places), kept_places_(kept_places) {}

  // Names are unique among the jobs that are here. The job waits.
  void Add(const std::string& job, const std::string& user, int priority);
  // The job will not be taken. Returns false if it is not waiting.
  bool Remove(const std::string& job);
  // Returns the next job that can have a place, which it has until Ended; none: no job waits, or none can.
  std::optional<std::string> Take();

  // A running job leaves its place until TakeBack: it has to wait for something else.
  void Rest(const std::string& job);
  // The job need not wait any more: it is given the next place, before all jobs that wait, though not before
  // users who have less than their share where a place is kept for them.
  void Return(const std::string& job);
  // Returns whether a job that returns has a place again.
  bool TakeBack(const std::string& job);
  // A job that returns and ends at once has a place again even where none is free.
  void TakeBackAnyway(const std::string& job);

  // The job has ended, whether it ran, rested or returned.
  void Ended(const std::string& job);

  int size() const { return static_cast<int>(waiting_.size() + begun_.size()); }  // jobs that are here
  int size(const std::string& user) const;
  int running() const { return running_; }                                    // jobs that have places
  int resting() const { return static_cast<int>(begun_.size()) - running_; }  // jobs that have left them

 private:
  using Order = std::pair<int, int64_t>;  // -priority, order of coming
  struct User {
    std::map<Order, std::string> waiting;
    int begun = 0;  // running and resting
    int running = 0;
    int64_t last_served = 0;
  };
  enum class State { kRunning, kResting, kReturning };
  struct Begun {
    std::string user;
    State state = State::kRunning;
  };
  bool IsFull() const { return running_ - static_cast<int>(on_kept_.size()) >= places_; }
  bool HasKept() const { return static_cast<int>(on_kept_.size()) < kept_places_; }
  bool IsBelowShare(const User& user) const;
  User* Next();  // returns the user whose turn it is; null: nobody waits
  void Run(Begun& begun);
  void LeavePlace(const std::string& job, Begun& begun);
  // Jobs on places that are kept count as on others as soon as these are free.
  void Settle();

  const int places_;
  const int kept_places_;
  std::map<std::string, User> users_;
  std::map<std::string, std::pair<std::string, Order>> waiting_;  // job to user and order
  std::map<std::string, Begun> begun_;                            // by job
  std::set<std::string> on_kept_;                                 // jobs on places that are kept
  int running_ = 0, returning_ = 0;
  int64_t added_ = 0;
  int64_t served_ = 0;
};

}  // namespace fusion
