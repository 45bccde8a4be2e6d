#include "server/tuner/warm_start.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "server/tuner/declared_section.h"

namespace fusion {
namespace {

constexpr int kMostRememberedRows = 10'000;  // configurations of the tuning itself
constexpr int kMostMapped = 8;               // configurations of another one, which cost a run each
constexpr int kMostOthers = 2000;            // tunings looked at

// The declaration and the space of what is stored; none when it is no good any more.
struct StoredSpace {
  v1::SectionDeclaration declaration;
  std::shared_ptr<const ParameterSpace> space;
};
std::optional<StoredSpace> ReadSpace(const TuningRecord& tuning) {
  StoredSpace stored;
  if (!stored.declaration.ParseFromString(tuning.declaration)) return std::nullopt;
  absl::StatusOr<std::shared_ptr<const ParameterSpace>> space = ParameterSpace::Create(stored.declaration);
  if (!space.ok()) return std::nullopt;
  stored.space = *std::move(space);
  return stored;
}

// Returns the index of the value of that name in an enumeration; -1: it has none.
double IndexOf(const v1::Enumeration& enumeration, const std::string& value) {
  auto found = std::find(enumeration.values().begin(), enumeration.values().end(), value);
  return found == enumeration.values().end() ? -1 : static_cast<double>(found - enumeration.values().begin());
}

}  // namespace

double ContextDistance(const v1::SectionDeclaration& a, const v1::SectionDeclaration& b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.context_size() != b.context_size()) return kInfinite;
  std::map<std::string, int64_t> sizes;
  for (const v1::ContextSize& size : a.context()) sizes[size.name()] = size.value();
  double distance = 0;
  for (const v1::ContextSize& size : b.context()) {
    auto found = sizes.find(size.name());
    if (found == sizes.end()) return kInfinite;
    if (found->second == size.value()) continue;
    distance +=
        found->second > 0 && size.value() > 0
            ? std::fabs(std::log(static_cast<double>(found->second) / static_cast<double>(size.value())))
            : 1;
  }
  return distance;
}

TuningPoint MapPoint(const ParameterSpace& from, const TuningPoint& point, const ParameterSpace& to) {
  std::map<std::string, size_t> axes;
  for (size_t i = 0; i < from.dimensions(); ++i) axes[from.axis(i).name] = i;
  TuningPoint mapped = to.defaults();
  for (size_t i = 0; i < to.dimensions(); ++i) {
    auto found = axes.find(to.axis(i).name);
    if (found == axes.end()) continue;
    const size_t axis = found->second;
    const bool enumerated = to.axis(i).kind == ParameterSpace::Kind::kEnumeration;
    if (enumerated != (from.axis(axis).kind == ParameterSpace::Kind::kEnumeration)) continue;
    if (enumerated) {
      const auto& values = from.declaration().parameters(static_cast<int>(axis)).enumeration().values();
      const int index = static_cast<int>(point[axis]);
      const double there =
          index < values.size()
              ? IndexOf(to.declaration().parameters(static_cast<int>(i)).enumeration(), values[index])
              : -1;
      if (there >= 0) mapped[i] = there;
    } else {
      mapped[i] = to.FromUnit(i, from.ToUnit(axis, point[axis]));
    }
  }
  mapped = to.Canonical(mapped);
  return to.Satisfies(mapped) ? mapped : TuningPoint();
}

absl::StatusOr<WarmStart> FromSameTuning(TuningStore& store, const TuningRecord& tuning,
                                         const ParameterSpace& space) {
  FUSION_ASSIGN_OR_RETURN(
      std::vector<TuningConfigurationRecord> rows,
      store.TuningConfigurations(tuning.number, tuning.progress.generation,
                                 space.declaration().objective().maximize(), kMostRememberedRows));
  WarmStart start;
  for (const TuningConfigurationRecord& row : rows) {
    TuningMeasurement measurement{.point = DecodePoint(row.configuration, space.dimensions()),
                                  .count = static_cast<uint64_t>(row.count),
                                  .mean = row.mean,
                                  .squared_deviations = row.squared_deviations,
                                  .minimum = row.minimum,
                                  .failures = static_cast<uint64_t>(row.failures)};
    if (space.Check(measurement.point).ok()) start.earlier.push_back(std::move(measurement));
  }
  if (!start.earlier.empty()) start.provenance = v1::EXACT;
  return start;
}

absl::StatusOr<WarmStart> FromOtherTuning(TuningStore& store, const TuningRecord& tuning,
                                          const ParameterSpace& space) {
  WarmStart start;
  const std::optional<StoredSpace> stored = ReadSpace(tuning);
  if (!stored) return start;
  FUSION_ASSIGN_OR_RETURN(
      std::vector<TuningConfigurationRecord> rows,
      store.TuningConfigurations(tuning.number, tuning.progress.generation,
                                 stored->declaration.objective().maximize(), kMostMapped));
  // The configuration that the search took for the best comes first: a single lucky run is not it.
  std::vector<std::string> configurations = {tuning.progress.best};
  for (const TuningConfigurationRecord& row : rows)
    if (row.count > 0) configurations.push_back(row.configuration);
  std::set<TuningPoint> seen;
  for (const std::string& configuration : configurations) {
    const TuningPoint point = DecodePoint(configuration, stored->space->dimensions());
    if (!stored->space->Check(point).ok()) continue;
    TuningPoint mapped = MapPoint(*stored->space, point, space);
    if (mapped.size() != space.dimensions() || !seen.insert(mapped).second) continue;
    start.earlier.push_back({.point = std::move(mapped), .count = 1});  // somewhere it ran
  }
  if (start.earlier.empty()) return start;
  start.provenance = v1::NEAR;
  start.tuning = tuning.id;
  return start;
}

absl::StatusOr<WarmStart> FromNearTuning(TuningStore& store, const TuningKey& key,
                                         const ParameterSpace& space) {
  FUSION_ASSIGN_OR_RETURN(std::vector<TuningRecord> others,
                          store.TuningsOfSection(key.program, key.section, kMostOthers));
  // The device class comes first, the same before any other, then the distance, then the order of names.
  std::vector<std::tuple<bool, double, const TuningRecord*>> order;
  for (const TuningRecord& other : others) {
    if (other.key == key) continue;
    v1::SectionDeclaration declaration;
    if (!declaration.ParseFromString(other.declaration)) continue;
    if (declaration.objective().maximize() != space.declaration().objective().maximize()) continue;
    const double distance = ContextDistance(declaration, space.declaration());
    if (std::isfinite(distance))
      order.emplace_back(other.key.device_class != key.device_class, distance, &other);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
  });
  for (const auto& [other_device, distance, tuning] : order) {
    absl::StatusOr<WarmStart> start = FromOtherTuning(store, *tuning, space);
    if (!start.ok()) return start;
    if (start->earlier.empty()) continue;
    if (other_device) start->provenance = v1::OTHER_DEVICE;
    return start;
  }
  return WarmStart{};
}

}  // namespace fusion
