// Messages between workers and the server, and what can become of them.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fusion/v1/worker.pb.h"
#include "tests/fault/simulation/event_loop.h"

namespace fusion {

class SimulatedNetwork {
 public:
  using Duration = EventLoop::Duration;
  using Answer = std::function<void(const v1::SynchronizeResponse&)>;
  // The server's side: false when there is no answer.
  using Handler = std::function<bool(const v1::SynchronizeRequest&, v1::SynchronizeResponse*)>;

  // Trouble with the link of a worker, for a while.
  struct Trouble {
    bool requests_lost = false;
    bool answers_lost = false;
    double loss = 0;          // share of messages, each way
    Duration delay{0};        // at most, each way
    bool duplicated = false;  // requests come again, up to a minute later
    Duration until{0};
  };

  SimulatedNetwork(EventLoop& loop, uint64_t seed, Handler handler)
      : loop_(loop), random_(seed), handler_(std::move(handler)) {}

  void Send(const v1::SynchronizeRequest& request, Answer answer);
  void AddTrouble(const std::string& worker, const Trouble& trouble) { troubles_[worker].push_back(trouble); }
  void Heal() { troubles_.clear(); }

 private:
  Duration Delay(const std::vector<Trouble>& troubles);
  std::vector<Trouble> Present(const std::string& worker);
  bool Lost(double probability) { return std::bernoulli_distribution(probability)(random_); }
  void Deliver(const v1::SynchronizeRequest& request, const Answer& answer);

  EventLoop& loop_;
  std::mt19937_64 random_;
  const Handler handler_;
  std::map<std::string, std::vector<Trouble>> troubles_;
};

}  // namespace fusion
