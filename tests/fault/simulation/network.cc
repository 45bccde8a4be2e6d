#include "tests/fault/simulation/network.h"

#include <algorithm>

namespace fusion {

std::vector<SimulatedNetwork::Trouble> SimulatedNetwork::Present(const std::string& worker) {
  std::vector<Trouble>& troubles = troubles_[worker];
  std::erase_if(troubles, [&](const Trouble& trouble) { return trouble.until <= loop_.now(); });
  return troubles;
}

SimulatedNetwork::Duration SimulatedNetwork::Delay(const std::vector<Trouble>& troubles) {
  Duration longest{2000};
  for (const Trouble& trouble : troubles) longest = std::max(longest, trouble.delay);
  return Duration(std::uniform_int_distribution<int64_t>(200, longest.count())(random_));
}

void SimulatedNetwork::Send(const v1::SynchronizeRequest& request, Answer answer) {
  const std::vector<Trouble> troubles = Present(request.worker());
  for (const Trouble& trouble : troubles) {
    if (trouble.requests_lost || Lost(trouble.loss)) return;
    if (trouble.duplicated)
      loop_.After(Duration(std::uniform_int_distribution<int64_t>(0, 60'000'000)(random_)),
                  [this, request] { Deliver(request, nullptr); });
  }
  loop_.After(Delay(troubles), [this, request, answer = std::move(answer)] { Deliver(request, answer); });
}

void SimulatedNetwork::Deliver(const v1::SynchronizeRequest& request, const Answer& answer) {
  v1::SynchronizeResponse response;
  if (!handler_(request, &response) || answer == nullptr) return;
  const std::vector<Trouble> troubles = Present(request.worker());
  for (const Trouble& trouble : troubles)
    if (trouble.answers_lost || Lost(trouble.loss)) return;
  loop_.After(Delay(troubles), [answer, response] { answer(response); });
}

}  // namespace fusion
