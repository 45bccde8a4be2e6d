// Chooses the queued task that a worker gets next. It lives in memory; the store says what is queued, and is
// asked before a task is handed out.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "db/store/records.h"
#include "server/dispatch/fair_share.h"

namespace fusion {

// A task that waits for a worker.
struct ReadyTask {
  int64_t number = 0;  // order of queueing
  std::string id;
  TaskKind kind = TaskKind::kBuild;
  TaskRequirements requirements;
  std::string user;
  int priority = 0;
  std::string avoid_worker;   // this one never gets it
  std::string failed_worker;  // this one gets it again only from not_before on
  Timestamp not_before{};
  Timestamp queue_until{};  // 0: may wait for ever
};
ReadyTask ReadyTaskOf(const TaskRecord& task);

// Among the users with tasks that a worker can do, the one who has had the least of the farm comes first
// (FairShare); among his tasks that of the highest priority, among these the oldest. The lane of a device
// belongs to one worker at a time, which says how many tasks it takes for the lane. The lane is kept for a
// moment for the user whose timing has just ended there: his job needs some milliseconds to ask for its next
// one, and would wait for a whole timing of another user each time. Thread safe.
class ReadyQueue {
 public:
  // Known tasks stay as they are.
  void Add(ReadyTask task);
  void Remove(const std::string& id);

  // A worker asks for these tasks.
  struct Demand {
    std::string worker;
    TaskKind kind = TaskKind::kBuild;
    std::vector<Capability> capabilities;  // for TIME tasks one for each device whose lane it offers
    int count = 0;
    std::set<std::string> given;  // devices for whose lanes it has a task already
  };
  // Removes up to `count` tasks, best first, and at most one for each lane; each is charged to its user as
  // expected (FairShare), and the lanes that they need are the worker's. The caller either hands them out or
  // gives them back. look_again, unless null: when there will be more, if a lane that is kept is why there
  // are fewer.
  std::vector<ReadyTask> Take(const Demand& demand, Timestamp now,
                              std::optional<Timestamp>* look_again = nullptr);
  // Puts tasks back that were not handed out, as if they had not been taken; their lanes are kept no more.
  void GiveBack(const std::vector<ReadyTask>& tasks);

  // Notes a task that was handed out before this object was made, and still runs.
  void Resume(const ReadyTask& task, const std::string& worker);
  // A task that was handed out has ended: it leaves its lane, and its user is charged for the time that it
  // took.
  void Ended(const std::string& id, double seconds);
  // Does what Ended does for a task whose job goes on: its lane is kept for its user, for a quarter of what
  // timings usually take and kLongestKept at most. Users who have had less than he come first all the same.
  // He is charged for the time in which others could not have the lane. After kMostRefusals such times the
  // lane is not kept once, for anybody, so that no job of a user who has had more elsewhere stands still for
  // it.
  void Done(const std::string& id, double seconds, Timestamp now);
  static constexpr std::chrono::milliseconds kLongestKept{100};
  static constexpr int kMostRefusals = 16;
  // The device is kept for the user no more. Returns whether another user could have had it.
  bool LetGo(const std::string& device_uuid, const std::string& user, Timestamp now);
  // A task ended for reasons that are not its own: it leaves its lane, its user is charged nothing, and its
  // time with the worker says nothing of how long tasks of its kind take.
  void Released(const std::string& id);

  // Removes and returns the tasks that have waited too long.
  std::vector<ReadyTask> TakeOverdue(Timestamp now);

  // Tasks that wait: each kind of demand once, with the number of its tasks.
  struct Waiting {
    TaskKind kind = TaskKind::kBuild;
    TaskRequirements requirements;
    int count = 0;
  };
  std::vector<Waiting> Summary() const;
  int64_t size(TaskKind kind) const;

 private:
  // Tasks that the same workers can do.
  struct Class {
    TaskKind kind;
    std::string target, arch, device_uuid;
    auto operator<=>(const Class&) const = default;
  };
  struct Order {
    int priority;
    int64_t number;
    bool operator<(const Order& other) const {
      return priority != other.priority ? priority > other.priority : number < other.number;
    }
  };
  using TasksOfUser = std::map<Order, ReadyTask>;
  using TasksOfClass = std::map<std::string, TasksOfUser>;  // by user; none is empty
  struct Place {
    Class key;
    std::string user;
    Order order;
  };
  // A task in a worker's hands.
  struct HandedOut {
    std::string user;
    TaskKind kind;
    std::string lane;  // the device; "": none
    double charged_seconds = 0;
  };

  // All private functions: mutex_ is held.
  void Insert(ReadyTask task);
  void Erase(const Place& place);
  // Returns the tasks that the worker could be given now, by user, of classes that one of its capabilities
  // allows. given: lanes for which it has a task already.
  std::vector<const TasksOfClass*> Choices(const Demand& demand, const std::set<std::string>& given) const;
  const ReadyTask* Best(const Demand& demand, Timestamp now, const std::set<std::string>& given);
  void HandOut(const ReadyTask& task, const std::string& worker);
  // The task has left its worker, and is taken from the tasks handed out; none: it was not handed out.
  std::optional<HandedOut> TakeEnded(const std::string& id, double seconds);
  void Refund(const std::string& id);
  double ServedIfHeAsks(const std::string& user) const;  // Served of the user, if he asked now
  void EndKept(const std::string& lane, Timestamp now);
  // Returns the earliest time at which a lane is kept no more that the worker offers and others could have.
  std::optional<Timestamp> EndOfKept(const Demand& demand, Timestamp now) const;
  void LeaveLane(const std::string& lane);

  mutable std::mutex mutex_;
  std::map<Class, TasksOfClass> classes_;          // guarded by mutex_, as all below; none is empty
  std::unordered_map<std::string, Place> places_;  // by id
  // queue_until and id of tasks that may not wait for ever.
  std::set<std::pair<Timestamp, std::string>> limited_;
  std::unordered_map<std::string, HandedOut> handed_out_;  // by id
  struct Lane {
    std::string worker;
    int tasks = 0;
  };
  std::map<std::string, Lane> lanes_;  // by device; only the lanes that are taken
  struct Kept {
    std::string user;
    Timestamp until;
    std::optional<Timestamp> refused;  // when another user could first have had it
  };
  std::map<std::string, Kept> kept_;     // by device; some are over
  std::map<std::string, int> refusals_;  // by device; times it was kept from others since it last was not
  std::map<std::string, int> waiting_of_user_;
  FairShare shares_;
};

}  // namespace fusion
