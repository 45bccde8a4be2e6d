// Partitions in order of time, each once (Lawler-Murty).
//
// Fousek 2010, Listing 4.5, takes members of the best cover away one at a time and queues what is left; the
// same cover then turns up in several queued problems, and the queue's order is not that of the covers. Here
// the space of covers without the best one, {S1 .. Sk}, is split into disjoint parts: part i holds the covers
// with S1 .. S(i-1) and without Si. (E. L. Lawler, "A procedure for computing the K best solutions to
// discrete optimization problems", Management Science 18 (1972); K. G. Murty, Operations Research 16 (1968).)
#pragma once

#include <limits>
#include <optional>
#include <queue>
#include <vector>

#include "server/cover/partition_solver.h"

namespace fusion {

class RankedPartitions {
 public:
  // `solver` must outlive this.
  explicit RankedPartitions(PartitionSolver& solver);

  // Returns the next partition; nothing when there is none left. The seconds do not decrease as long as
  // complete().
  std::optional<Partition> Next();
  // Returns a bound: Next() is not faster; infinity when there is none. A part not solved yet counts with its
  // parent's time.
  double NextBound() const;
  // Returns a bound: no partition that is missing, because its part of the space could not be solved, is
  // faster; infinity when none is missing.
  double lost_bound() const { return lost_bound_; }
  bool complete() const { return lost_bound_ == std::numeric_limits<double>::infinity(); }
  // The first partition is the fastest of all.
  bool first_is_optimal() const { return first_is_optimal_; }

 private:
  struct Part {
    double seconds = 0;  // of the partition, or a bound on it
    int number = 0;      // in order of creation: breaks ties
    bool solved = false;
    bool lost = false;  // there was no time to split it
    Branch branch;
    Partition partition;
  };
  struct Later {
    bool operator()(const Part& a, const Part& b) const;
  };
  void Push(Part part);
  // Splits the part into parts without its partition, which was given. This is put off until something of
  // them is asked for.
  void Split(const Part& part);

  PartitionSolver& solver_;
  std::priority_queue<Part, std::vector<Part>, Later> parts_;
  std::optional<Part> given_;  // to be split
  int parts_made_ = 0;
  double lost_bound_ = std::numeric_limits<double>::infinity();
  bool first_is_optimal_ = false;
};

}  // namespace fusion
