#include "client/partition/episode.h"

#include <algorithm>

#include "client/partition/resident.h"

namespace fusion {
namespace {

constexpr size_t kMostRanges = 256;  // more are of no matter for an estimate
constexpr double kSecondsOfCopies = 50e-6;

void AddUpTo(std::vector<ByteRange>& ranges, ByteRange range) {
  if (!range.empty() && ranges.size() < kMostRanges) Add(ranges, range);
}

double BytesOf(const std::vector<ByteRange>& ranges) {
  double bytes = 0;
  for (const ByteRange& range : ranges) bytes += static_cast<double>(range.bytes());
  return bytes;
}

}  // namespace

void Episode::Meet(const LoopRanges& ranges) {
  ++calls_;
  for (uint32_t i = 0; i < ranges.arrays().size(); ++i) {
    const ArrayRange& array = ranges.arrays()[i];
    if (ResidentArrays::MustBeThere(ranges, i)) AddUpTo(read_, array.Addresses(array.all));
    AddUpTo(written_, array.Addresses(array.written));
  }
}

bool Episode::Meets(ByteRange range, bool is_written) const {
  const auto meet = [range](const std::vector<ByteRange>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [range](const ByteRange& of) { return Overlap(of, range); });
  };
  return meet(written_) || (is_written && meet(read_));
}

double Episode::SecondsOfCopies(double bytes_per_second) const {
  return kSecondsOfCopies + (BytesOf(read_) + BytesOf(written_)) / bytes_per_second;
}

bool Episode::IsWorthCopies(double saving, const EpisodeHistory& history, double bytes_per_second) const {
  const double so_far = saving_ + saving;
  const double expected = history.saving > history.copies ? std::max(so_far, history.saving) : so_far;
  return expected - copied_seconds_ > SecondsOfCopies(bytes_per_second);
}

void Episode::End(EpisodeHistory& history, double bytes_per_second) {
  const double copies = copied_seconds_ > 0 ? copied_seconds_ : SecondsOfCopies(bytes_per_second);
  const double weight = history.calls == 0 ? 1 : 0.5;
  const auto follow = [weight](double& average, double now) { average += (now - average) * weight; };
  follow(history.saving, saving_);
  follow(history.copies, copies);
  follow(history.calls, calls_);
  *this = Episode();
}

}  // namespace fusion
