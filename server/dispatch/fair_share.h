// Counts what each user has had of the farm, so that all get the same, however much they ask for.
//
// Start-time fair queueing (Goyal, Vin and Cheng, 1996) with tasks as packets: a user's next task begins, in
// virtual time, when his last one was done or at the virtual time of the farm, whichever is later; so nobody
// saves up what he did not use.
#pragma once

#include <map>
#include <string>

#include "db/store/records.h"

namespace fusion {

// Not thread safe. Forgets everything when the server ends: all begin anew as equals.
class FairShare {
 public:
  // Returns seconds of the farm, in virtual time. The user who has the least comes next.
  double Served(const std::string& user) const;

  // The user, who had nothing waiting, has something now.
  void BeginsToWait(const std::string& user);
  // Charges a task of the kind to the user, as tasks of that kind took lately; returns what was charged.
  double Charge(const std::string& user, TaskKind kind);
  // The task has ended: charges what it took instead.
  void Correct(const std::string& user, TaskKind kind, double charged, double seconds);
  // Returns what Served would be if the user, who has nothing waiting, asked now.
  double ServedIfHeAsks(const std::string& user) const;
  // The user, who has nothing waiting, has kept others from the farm for so long without a task of his.
  void Add(const std::string& user, double seconds);
  // Returns the seconds that tasks of the kind took lately.
  double UsualSeconds(TaskKind kind) const;
  // Takes the charge back: the task was not handed out.
  void Refund(const std::string& user, double charged);
  // Forgets the user, who has nothing waiting, if he has had no more than a new user is taken to have had.
  void Forget(const std::string& user);

 private:
  std::map<std::string, double> served_;
  std::map<TaskKind, double> usual_seconds_;
  double virtual_time_ = 0;  // Served() of the user who was served last, before his task
};

}  // namespace fusion
