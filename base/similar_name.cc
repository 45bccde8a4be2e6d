#include "base/similar_name.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr size_t kLongest = 64;

// Optimal string alignment distance, ignoring case; gives up and returns limit + 1 once every entry of a row
// is over the limit.
int EditDistance(absl::string_view a, absl::string_view b, int limit) {
  using Row = std::array<int, kLongest + 1>;
  Row before{}, previous{}, current{};
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    int least = current[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = absl::ascii_tolower(a[i - 1]), y = absl::ascii_tolower(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)});
      if (i > 1 && j > 1 && x == absl::ascii_tolower(b[j - 2]) && absl::ascii_tolower(a[i - 2]) == y)
        current[j] = std::min(current[j], before[j - 2] + 1);
      least = std::min(least, current[j]);
    }
    if (least > limit) return limit + 1;
    before = previous;
    previous = current;
  }
  return previous[b.size()];
}

}  // namespace

std::string SimilarName(absl::string_view name, const std::vector<absl::string_view>& candidates) {
  if (name.size() > kLongest) return "";
  int limit = std::min(static_cast<int>(name.size()) / 3, 3);
  absl::string_view best;
  for (absl::string_view candidate : candidates) {
    if (candidate.size() > kLongest || candidate == name) continue;
    const int difference = static_cast<int>(candidate.size()) - static_cast<int>(name.size());
    if (std::abs(difference) > limit) continue;
    const int distance = EditDistance(name, candidate, limit);
    if (distance > limit) continue;
    if (best.empty() || distance < limit) {
      best = candidate;
      limit = distance;
    }
    if (distance == 0) break;
  }
  return std::string(best);
}

std::string DidYouMean(absl::string_view suggestion) {
  return suggestion.empty() ? "" : absl::StrCat(" (did you mean ", suggestion, "?)");
}

std::string Shown(absl::string_view name) {
  constexpr size_t kShown = 60;
  std::string shown(name.substr(0, kShown));
  if (name.size() > kShown) {
    size_t end = kShown - 3;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0) == 0x80)
      --end;  // not inside a character
    shown = absl::StrCat(shown.substr(0, end), "...");
  }
  std::replace_if(shown.begin(), shown.end(), absl::ascii_iscntrl, '?');
  return shown;
}

}  // namespace fusion
