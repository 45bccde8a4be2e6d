#include "server/connection/connection_table.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "server/identity/network.h"

namespace fusion {
namespace {

namespace ip = boost::asio::ip;

constexpr std::chrono::milliseconds kLeastRest{20};
constexpr int kRest = 9;  // times as long as a look took
// The store, the log, gRPC's own, the page of metrics, backups.
constexpr rlim_t kOtherDescriptors = 256;
// Its own, and both ends of the one to gRPC.
constexpr rlim_t kDescriptorsOfConnection = 3;
constexpr rlim_t kMostByDefault = 65536;

// Of the open socket; 0: there is none.
ino_t InodeOf(int descriptor) {
  struct stat file {};
  return fstat(descriptor, &file) == 0 && S_ISSOCK(file.st_mode) ? file.st_ino : 0;
}

}  // namespace

ConnectionLimits WithDefaults(ConnectionLimits limits) {
  if (limits.most <= 0) {
    rlimit files{};
    const rlim_t open = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 1024;
    const rlim_t left = open > 2 * kOtherDescriptors ? open - kOtherDescriptors : open / 2;
    limits.most = static_cast<int>(std::min(left / kDescriptorsOfConnection, kMostByDefault));
  }
  limits.most = std::max(limits.most, 1);
  if (limits.most_of_address <= 0) limits.most_of_address = limits.most / 2;
  limits.most_of_address = std::clamp(limits.most_of_address, 1, limits.most);
  return limits;
}

ConnectionTable::Verdict ConnectionTable::Take(int descriptor, const ip::address& address) {
  const ip::address network = NetworkOf(address);
  // The number is free again, so the connection that had it is no more.
  if (auto before = connections_.find(descriptor); before != connections_.end()) {
    Forget(before->second.network);
    connections_.erase(before);
  }
  Verdict verdict = Verdict::kTaken;
  if (IsFull(network, &verdict)) {
    if (std::chrono::steady_clock::now() < next_look_) return verdict;
    RemoveClosed();
    if (IsFull(network, &verdict)) return verdict;
  }
  connections_[descriptor] = {InodeOf(descriptor), network};
  ++of_network_[network];
  return Verdict::kTaken;
}

void ConnectionTable::RemoveClosed() {
  const auto begin = std::chrono::steady_clock::now();
  std::erase_if(connections_, [&](const std::pair<const int, Connection>& entry) {
    if (InodeOf(entry.first) == entry.second.inode) return false;
    Forget(entry.second.network);
    return true;
  });
  const auto end = std::chrono::steady_clock::now();
  next_look_ = end + std::max<std::chrono::steady_clock::duration>(kLeastRest, kRest * (end - begin));
}

bool ConnectionTable::IsFull(const ip::address& network, Verdict* verdict) const {
  const auto count = of_network_.find(network);
  if (size() >= limits_.most)
    *verdict = Verdict::kFull;
  else if (count != of_network_.end() && count->second >= limits_.most_of_address)
    *verdict = Verdict::kAddressFull;
  else
    *verdict = Verdict::kTaken;
  return *verdict != Verdict::kTaken;
}

void ConnectionTable::Forget(const ip::address& network) {
  if (auto count = of_network_.find(network); --count->second == 0) of_network_.erase(count);
}

}  // namespace fusion
