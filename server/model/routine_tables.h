// Measured times of routines, and what follows from them between the points that were measured (Fousek 2010,
// section 4.4.3, where the table is the function psi of a routine, a number of elements and extra shared
// memory). Extra shared memory costs time by leaving room for fewer blocks on a multiprocessor, so times are
// asked for by the number of resident blocks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fusion/v1/model.pb.h"

namespace fusion {

// The version of what the times in a table mean. Tables of another version are refused.
inline constexpr int kRoutineTableVersion = 1;

struct RoutineTime {
  double seconds = 0;
  bool extended = false;  // beyond what was measured
};

class RoutineTables {
 public:
  // Adds a table, in the place of another one of the same routine. InvalidArgument, with nothing added:
  // another version, no name, no points, a point twice, counts below 1, or times that are not positive or
  // more than an hour.
  absl::Status Add(const v1::RoutineTable& table);

  // Returns tables that Add takes, by routine, with what Time goes by, without what they say of where they
  // were measured.
  std::vector<v1::RoutineTable> ToMessages() const;

  bool Has(const std::string& routine) const { return tables_.count(routine) > 0; }
  bool empty() const { return tables_.empty(); }

  // Returns the time that a block of so many threads takes for its elements while `resident_blocks` are on
  // each multiprocessor; linear between points. A benchmark of one routine may need more registers or shared
  // memory than its share of a fusion, so times are extended to at most four times the largest number of
  // blocks that was measured, along the last two points, and marked as extended. There are no other times
  // outside of what was measured.
  std::optional<RoutineTime> Time(const std::string& routine, int threads, int elements,
                                  double resident_blocks) const;

 private:
  using Curve = std::map<double, double>;  // seconds by resident blocks
  using ByElements = std::map<int, Curve>;
  std::map<std::string, std::map<int, ByElements>> tables_;  // by threads
};

// Adds a measured point. Where a point has two times, as when several programs measure the same store, the
// smaller one stands: something else ran beside the other.
void AddPoint(const v1::RoutineTable::Point& point, v1::RoutineTable* table);

}  // namespace fusion
