#include "server/dispatch/ready_queue.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace fusion {
namespace {

// A lane is kept for this part of the time of a usual timing, for the one that may follow.
constexpr double kKept = 0.25;

// Returns the lane that a task of the kind needs.
std::string LaneOf(TaskKind kind, const std::string& device_uuid) {
  return kind == TaskKind::kTime ? device_uuid : "";
}

bool MayHave(const ReadyTask& task, const std::string& worker, Timestamp now) {
  return (task.avoid_worker.empty() || task.avoid_worker != worker) &&
         (now >= task.not_before || task.failed_worker != worker);
}

}  // namespace

ReadyTask ReadyTaskOf(const TaskRecord& task) {
  return ReadyTask{.number = task.number,
                   .id = task.id,
                   .kind = task.kind,
                   .requirements = task.requirements,
                   .user = task.user,
                   .priority = task.priority,
                   .avoid_worker = task.avoid_worker,
                   .failed_worker = task.worker,
                   .not_before = task.not_before,
                   .queue_until = task.queue_until};
}

void ReadyQueue::Add(ReadyTask task) {
  std::lock_guard lock(mutex_);
  if (!places_.contains(task.id)) Insert(std::move(task));
}

void ReadyQueue::Insert(ReadyTask task) {
  const Class key{task.kind, task.requirements.target, task.requirements.arch, task.requirements.device_uuid};
  const Order order{task.priority, task.number};
  if (++waiting_of_user_[task.user] == 1) shares_.BeginsToWait(task.user);
  if (task.queue_until > Timestamp()) limited_.emplace(task.queue_until, task.id);
  places_[task.id] = Place{key, task.user, order};
  TasksOfUser& tasks = classes_[key][task.user];
  tasks.emplace(order, std::move(task));
}

void ReadyQueue::Remove(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (auto found = places_.find(id); found != places_.end()) Erase(Place(found->second));
}

void ReadyQueue::Erase(const Place& place) {
  auto users = classes_.find(place.key);
  auto tasks = users->second.find(place.user);
  auto task = tasks->second.find(place.order);
  limited_.erase({task->second.queue_until, task->second.id});
  places_.erase(task->second.id);
  tasks->second.erase(task);
  if (tasks->second.empty()) users->second.erase(tasks);
  if (users->second.empty()) classes_.erase(users);
  auto waiting = waiting_of_user_.find(place.user);
  if (--waiting->second == 0) {
    waiting_of_user_.erase(waiting);
    shares_.Forget(place.user);
  }
}

std::vector<const ReadyQueue::TasksOfClass*> ReadyQueue::Choices(const Demand& demand,
                                                                 const std::set<std::string>& given) const {
  std::vector<const TasksOfClass*> choices;
  const auto add = [&](std::map<Class, TasksOfClass>::const_iterator found) {
    if (found == classes_.end()) return;
    const std::string lane = LaneOf(demand.kind, found->first.device_uuid);
    const auto taken = lanes_.find(lane);
    if (given.contains(lane) || (taken != lanes_.end() && taken->second.worker != demand.worker)) return;
    if (std::find(choices.begin(), choices.end(), &found->second) == choices.end())
      choices.push_back(&found->second);
  };
  for (const Capability& capability : demand.capabilities) {
    std::vector<std::string> devices = {""};
    if (!capability.device_uuid.empty()) devices.push_back(capability.device_uuid);
    for (const std::string& device : devices) {
      if (!capability.arch.empty()) {
        for (const char* arch : {"", capability.arch.c_str()})
          add(classes_.find(Class{demand.kind, capability.target, arch, device}));
        continue;
      }
      for (auto found = classes_.lower_bound(Class{demand.kind, capability.target, "", ""});
           found != classes_.end() && found->first.kind == demand.kind &&
           found->first.target == capability.target;
           ++found)
        if (found->first.device_uuid == device) add(found);
    }
  }
  return choices;
}

const ReadyTask* ReadyQueue::Best(const Demand& demand, Timestamp now, const std::set<std::string>& given) {
  const ReadyTask* best = nullptr;
  double least_served = std::numeric_limits<double>::infinity();
  for (const TasksOfClass* users : Choices(demand, given)) {
    const ReadyTask& any = users->begin()->second.begin()->second;
    const auto kept = kept_.find(LaneOf(any.kind, any.requirements.device_uuid));
    const bool is_kept = kept != kept_.end() && now < kept->second.until;
    const double keeper_served = is_kept ? ServedIfHeAsks(kept->second.user) : 0;
    for (const auto& [user, tasks] : *users) {
      const double served = shares_.Served(user);
      if (served > least_served) continue;
      for (const auto& [order, task] : tasks) {
        if (!MayHave(task, demand.worker, now)) continue;
        if (is_kept && user != kept->second.user && keeper_served < served) {
          if (!kept->second.refused.has_value()) kept->second.refused = now;
          break;
        }
        const Order best_order = best == nullptr ? order : Order{best->priority, best->number};
        // Priorities are a user's own: between users that have had the same, the older task comes first.
        const bool earlier =
            best != nullptr && (best->user == user ? order < best_order : task.number < best->number);
        if (best == nullptr || served < least_served || earlier) {
          best = &task;
          least_served = served;
        }
        break;
      }
    }
  }
  return best;
}

std::vector<ReadyTask> ReadyQueue::Take(const Demand& demand, Timestamp now,
                                        std::optional<Timestamp>* look_again) {
  std::vector<ReadyTask> taken;
  std::set<std::string> given = demand.given;
  std::lock_guard lock(mutex_);
  while (static_cast<int>(taken.size()) < demand.count) {
    const ReadyTask* best = Best(demand, now, given);
    if (best == nullptr) {
      if (look_again != nullptr) *look_again = EndOfKept(demand, now);
      break;
    }
    if (const std::string lane = LaneOf(best->kind, best->requirements.device_uuid); !lane.empty()) {
      given.insert(lane);
      EndKept(lane, now);
    }
    taken.push_back(*best);
    HandOut(taken.back(), demand.worker);
    Erase(Place(places_.at(taken.back().id)));
  }
  return taken;
}

void ReadyQueue::HandOut(const ReadyTask& task, const std::string& worker) {
  HandedOut& out = handed_out_[task.id];
  out = HandedOut{task.user, task.kind, LaneOf(task.kind, task.requirements.device_uuid),
                  shares_.Charge(task.user, task.kind)};
  if (out.lane.empty()) return;
  Lane& lane = lanes_[out.lane];
  lane.worker = worker;
  ++lane.tasks;
}

void ReadyQueue::LeaveLane(const std::string& lane) {
  auto taken = lanes_.find(lane);
  if (taken != lanes_.end() && --taken->second.tasks == 0) lanes_.erase(taken);
}

void ReadyQueue::GiveBack(const std::vector<ReadyTask>& tasks) {
  std::lock_guard lock(mutex_);
  for (const ReadyTask& task : tasks) {
    Refund(task.id);
    if (!places_.contains(task.id)) Insert(task);
  }
}

void ReadyQueue::Released(const std::string& id) {
  std::lock_guard lock(mutex_);
  Refund(id);
}

void ReadyQueue::Refund(const std::string& id) {
  auto out = handed_out_.find(id);
  if (out == handed_out_.end()) return;
  shares_.Refund(out->second.user, out->second.charged_seconds);
  LeaveLane(out->second.lane);
  handed_out_.erase(out);
}

void ReadyQueue::Resume(const ReadyTask& task, const std::string& worker) {
  std::lock_guard lock(mutex_);
  HandOut(task, worker);
}

std::optional<ReadyQueue::HandedOut> ReadyQueue::TakeEnded(const std::string& id, double seconds) {
  auto out = handed_out_.find(id);
  if (out == handed_out_.end()) return std::nullopt;
  HandedOut ended = std::move(out->second);
  handed_out_.erase(out);
  shares_.Correct(ended.user, ended.kind, ended.charged_seconds, seconds);
  LeaveLane(ended.lane);
  return ended;
}

void ReadyQueue::Ended(const std::string& id, double seconds) {
  std::lock_guard lock(mutex_);
  TakeEnded(id, seconds);
}

void ReadyQueue::Done(const std::string& id, double seconds, Timestamp now) {
  std::lock_guard lock(mutex_);
  const std::optional<HandedOut> done = TakeEnded(id, seconds);
  if (!done.has_value() || done->lane.empty() || lanes_.contains(done->lane)) return;
  EndKept(done->lane, now);
  if (const auto refusals = refusals_.find(done->lane);
      refusals != refusals_.end() && refusals->second >= kMostRefusals) {
    refusals_.erase(refusals);
    return;
  }
  const auto usual =
      std::chrono::microseconds(static_cast<int64_t>(kKept * 1e6 * shares_.UsualSeconds(done->kind)));
  kept_[done->lane] = {done->user, now + std::min<std::chrono::microseconds>(usual, kLongestKept), {}};
}

bool ReadyQueue::LetGo(const std::string& device_uuid, const std::string& user, Timestamp now) {
  std::lock_guard lock(mutex_);
  const auto found = kept_.find(device_uuid);
  if (found == kept_.end() || found->second.user != user) return false;
  const bool refused = found->second.refused.has_value() && now < found->second.until;
  EndKept(device_uuid, now);
  return refused;
}

double ReadyQueue::ServedIfHeAsks(const std::string& user) const {
  return waiting_of_user_.contains(user) ? shares_.Served(user) : shares_.ServedIfHeAsks(user);
}

void ReadyQueue::EndKept(const std::string& lane, Timestamp now) {
  const auto found = kept_.find(lane);
  if (found == kept_.end()) return;
  const Kept kept = std::move(found->second);
  kept_.erase(found);
  if (kept.refused.has_value()) {
    ++refusals_[lane];
    const auto idle = std::min(now, kept.until) - *kept.refused;
    const double seconds = std::max(0.0, std::chrono::duration<double>(idle).count());
    if (waiting_of_user_.contains(kept.user))
      shares_.Refund(kept.user, -seconds);
    else
      shares_.Add(kept.user, seconds);
  }
}

std::optional<Timestamp> ReadyQueue::EndOfKept(const Demand& demand, Timestamp now) const {
  std::optional<Timestamp> end;
  for (const Capability& capability : demand.capabilities) {
    const auto kept = kept_.find(LaneOf(demand.kind, capability.device_uuid));
    if (kept == kept_.end() || !kept->second.refused.has_value() || kept->second.until <= now) continue;
    if (!end.has_value() || kept->second.until < *end) end = kept->second.until;
  }
  return end;
}

std::vector<ReadyTask> ReadyQueue::TakeOverdue(Timestamp now) {
  std::vector<ReadyTask> overdue;
  std::lock_guard lock(mutex_);
  while (!limited_.empty() && limited_.begin()->first < now) {
    const Place place = places_.at(limited_.begin()->second);
    overdue.push_back(classes_.at(place.key).at(place.user).at(place.order));
    Erase(place);
  }
  return overdue;
}

std::vector<ReadyQueue::Waiting> ReadyQueue::Summary() const {
  std::vector<Waiting> summary;
  std::lock_guard lock(mutex_);
  for (const auto& [key, users] : classes_) {
    Waiting& waiting = summary.emplace_back(Waiting{key.kind, {key.target, key.arch, key.device_uuid}, 0});
    for (const auto& [user, tasks] : users) waiting.count += static_cast<int>(tasks.size());
  }
  return summary;
}

int64_t ReadyQueue::size(TaskKind kind) const {
  std::lock_guard lock(mutex_);
  int64_t size = 0;
  for (const auto& [key, users] : classes_)
    if (key.kind == kind)
      for (const auto& [user, tasks] : users) size += static_cast<int64_t>(tasks.size());
  return size;
}

}  // namespace fusion
