#include "server/model/routine_tables.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr double kMostSeconds = 3600;  // of a block for its elements: nothing takes so long

RoutineTime Line(double at, double x0, const RoutineTime& y0, double x1, const RoutineTime& y1) {
  const double share = (at - x0) / (x1 - x0);
  return {y0.seconds + share * (y1.seconds - y0.seconds), y0.extended || y1.extended};
}

std::optional<RoutineTime> AtResident(const std::map<double, double>& curve, double resident) {
  constexpr double kFarthest = 4;
  auto above = curve.lower_bound(resident);
  if (above != curve.end() && above->first == resident) return RoutineTime{above->second};
  if (above == curve.begin()) return std::nullopt;
  const bool extended = above == curve.end();
  if (extended) --above;
  if (extended && (above == curve.begin() || resident > kFarthest * above->first)) return std::nullopt;
  const auto below = std::prev(above);
  RoutineTime time = Line(resident, below->first, {below->second}, above->first, {above->second});
  if (!extended) return time;
  // Blocks more never make a block faster.
  time.seconds = std::max(time.seconds, above->second);
  time.extended = true;
  return time;
}

}  // namespace

absl::Status RoutineTables::Add(const v1::RoutineTable& table) {
  if (table.version() != kRoutineTableVersion)
    return absl::InvalidArgumentError(
        absl::StrCat("its version is ", table.version(), ", that of this program ", kRoutineTableVersion));
  if (table.routine().empty()) return absl::InvalidArgumentError("it names no routine");
  if (table.points_size() == 0) return absl::InvalidArgumentError("it has no points");
  std::map<int, ByElements> points;
  for (const v1::RoutineTable::Point& point : table.points()) {
    if (point.threads() < 1 || point.elements() < 1 || point.resident_blocks() < 1 ||
        point.extra_shared_bytes() < 0)
      return absl::InvalidArgumentError("a point has a count that is not possible");
    if (!(point.seconds() > 0 && point.seconds() <= kMostSeconds))  // not a number: no
      return absl::InvalidArgumentError(absl::StrCat("a time is ", point.seconds(), " s"));
    if (!points[point.threads()][point.elements()].emplace(point.resident_blocks(), point.seconds()).second)
      return absl::InvalidArgumentError("a point is there twice");
  }
  tables_[table.routine()] = std::move(points);
  return absl::OkStatus();
}

std::vector<v1::RoutineTable> RoutineTables::ToMessages() const {
  std::vector<v1::RoutineTable> tables;
  for (const auto& [routine, by_threads] : tables_) {
    v1::RoutineTable& table = tables.emplace_back();
    table.set_version(kRoutineTableVersion);
    table.set_routine(routine);
    for (const auto& [threads, by_elements] : by_threads)
      for (const auto& [elements, curve] : by_elements)
        for (const auto& [resident_blocks, seconds] : curve) {
          v1::RoutineTable::Point* point = table.add_points();
          point->set_threads(threads);
          point->set_elements(elements);
          point->set_resident_blocks(static_cast<int>(resident_blocks));
          point->set_seconds(seconds);
        }
  }
  return tables;
}

std::optional<RoutineTime> RoutineTables::Time(const std::string& routine, int threads, int elements,
                                               double resident_blocks) const {
  const auto table = tables_.find(routine);
  if (table == tables_.end()) return std::nullopt;
  const auto of_threads = table->second.find(threads);
  if (of_threads == table->second.end()) return std::nullopt;
  const ByElements& curves = of_threads->second;
  const auto above = curves.lower_bound(elements);
  if (above == curves.end()) return std::nullopt;
  const auto high = AtResident(above->second, resident_blocks);
  if (above->first == elements || !high) return high;
  if (above == curves.begin()) return std::nullopt;
  const auto below = std::prev(above);
  const auto low = AtResident(below->second, resident_blocks);
  if (!low) return std::nullopt;
  return Line(elements, below->first, *low, above->first, *high);
}

void AddPoint(const v1::RoutineTable::Point& point, v1::RoutineTable* table) {
  for (v1::RoutineTable::Point& known : *table->mutable_points()) {
    if (known.threads() != point.threads() || known.elements() != point.elements() ||
        known.resident_blocks() != point.resident_blocks())
      continue;
    if (point.seconds() < known.seconds()) known = point;
    return;
  }
  *table->add_points() = point;
}

}  // namespace fusion
