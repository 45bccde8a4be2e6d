// Which connections a listener has handed on and are still open, by the address that made them.
#pragma once

#include <sys/types.h>

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <unordered_map>

namespace fusion {

struct ConnectionLimits {
  // Open at a time. 0: 65,536 (each takes tens of kilobytes), or what the limit of open files of this process
  // leaves.
  int most = 0;
  // Of one address (IPv4), or of one network of a site (IPv6, /64). 0: half of `most`, so that one machine
  // cannot keep all others out.
  int most_of_address = 0;
};

// The limits with 0 replaced. At least 1 each.
ConnectionLimits WithDefaults(ConnectionLimits limits);

// Counts descriptors that somebody else owns and closes without a word: a descriptor is still the connection
// that was noted while it is the same inode. Not thread safe.
class ConnectionTable {
 public:
  explicit ConnectionTable(const ConnectionLimits& limits) : limits_(WithDefaults(limits)) {}

  enum class Verdict { kTaken, kFull, kAddressFull };
  // Notes an open socket, unless as many as may be are open. When that looks so, closed ones are looked for
  // first, but not more often than every 20 ms nor for more than a tenth of the time: a flood
  // of connections is not to cost a look each.
  Verdict Take(int descriptor, const boost::asio::ip::address& address);
  // Forgets those that have been closed.
  void RemoveClosed();

  // Those open, or closed since the last look.
  int size() const { return static_cast<int>(connections_.size()); }
  const ConnectionLimits& limits() const { return limits_; }

 private:
  struct Connection {
    ino_t inode = 0;
    boost::asio::ip::address network;
  };
  bool IsFull(const boost::asio::ip::address& network, Verdict* verdict) const;
  void Forget(const boost::asio::ip::address& network);

  const ConnectionLimits limits_;
  std::unordered_map<int, Connection> connections_;  // by descriptor
  std::map<boost::asio::ip::address, int> of_network_;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace fusion
