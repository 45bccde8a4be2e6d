// The order of iterations along diagonals, and proofs that it keeps all dependences.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "server/loops/nest.h"
#include "server/polynomial/prover.h"

namespace fusion {

// One of several loops around one another, of which each is all that the one around it does. Its counter
// steps by 1.
struct BandLoop {
  int number = 0;  // in the nest
  bool down = false;
};

// The time of an iteration is the sum of the counters of a band, those that count down with a minus, each
// times a weight. Not thread safe.
class DiagonalOrder {
 public:
  // `nest` outlives this object.
  DiagonalOrder(const Nest& nest, std::vector<BandLoop> band);

  // Returns whether it is proved that of each two iterations of the band that touch the same entry, of which
  // one writes, the earlier one in the text has the smaller time. So iterations of one time are independent,
  // and times may be taken in their order. The last weight has to be positive. Of scalars nothing is said.
  // False says nothing.
  bool IsKept(const std::vector<int>& weights);

 private:
  // Two iterations that may touch the same entry, the later one in the text less the earlier one.
  struct Meeting {
    std::vector<Polynomial> distances;   // of the band's counters, those that count down with a minus
    std::vector<Polynomial> conditions;  // at least 0 where they meet
  };

  bool StaysInRows(const NestAccess& access) const;
  void AddMeetings();
  void AddMeeting(const NestAccess& earlier, const NestAccess& later, size_t level);

  const Nest& nest_;
  const std::vector<BandLoop> band_;
  Prover prover_;
  bool known_ = true;  // all pairs that may meet are in `meetings_`
  std::vector<Meeting> meetings_;
  std::set<std::string> seen_;  // meetings, as text
};

}  // namespace fusion
