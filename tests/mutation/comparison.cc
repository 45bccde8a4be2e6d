#include "tests/mutation/comparison.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/measure/runner.h"
#include "worker/measure/session_data.h"

namespace fusion::testing {
namespace {

// Beyond what the order of a sum of so many entries in f32 explains, relative to the root mean square.
constexpr double kRoundingF32 = 1e-5, kRoundingF64 = 1e-13;
// Sums of larger whole numbers may be rounded.
constexpr double kMostWholeF32 = 0x1p22, kMostWholeF64 = 0x1p51;

struct InputRange {
  const char* name;
  v1::InputValues::Kind kind;
  double lower, upper;
};
// What inputs without a range of their own are given: as they are, and these. Inputs that must be positive
// have the ones above 0 alone.
constexpr InputRange kRanges[] = {{"as asked", v1::InputValues::DEFAULT, 0, 0},
                                  {"in (-1, 1)", v1::InputValues::UNIFORM, -1, 1},
                                  {"in (-3, -1)", v1::InputValues::UNIFORM, -3, -1},
                                  {"whole from -3 to 3", v1::InputValues::INTEGERS, -3, 3},
                                  {"in (0.5, 2)", v1::InputValues::UNIFORM, 0.5, 2},
                                  {"whole from 1 to 4", v1::InputValues::INTEGERS, 1, 4}};

v1::Session WithRange(v1::Session session, const InputRange& range) {
  if (range.kind == v1::InputValues::DEFAULT) return session;
  for (v1::Buffer& input : *session.mutable_inputs()) {
    v1::InputValues* values = input.mutable_values();
    if (values->kind() != v1::InputValues::DEFAULT || values->upper() > values->lower()) continue;
    if (input.domain() != v1::REAL && range.lower <= 0) continue;
    values->set_kind(range.kind);
    values->set_lower(range.lower);
    values->set_upper(range.upper);
  }
  return session;
}

std::vector<DataPattern> Patterns(int count, std::mt19937* random) {
  using Kind = DataPattern::Kind;
  std::vector<DataPattern> patterns;
  constexpr int64_t kSteps[] = {2, 3, 7, 16, 31, 32, 33, 64, 127, 256, 1000, 1024, 4096};
  for (int i = 0; i < count; ++i) {
    DataPattern pattern{.small = i % 2 == 1};
    switch (i % 9) {
      case 0:
      case 1:
        pattern.kind = Kind::kAsked;
        break;
      case 2:
        pattern.kind = Kind::kWhole;
        break;
      case 3:
        pattern.kind = Kind::kNegative;
        break;
      case 4:
        pattern.kind = i % 2 == 0 ? Kind::kLast : Kind::kFirst;
        break;
      default:
        pattern.kind = Kind::kClass;
        pattern.step = kSteps[(*random)() % std::size(kSteps)];
        pattern.phase = static_cast<int64_t>((*random)() % pattern.step);
    }
    patterns.push_back(pattern);
  }
  return patterns;
}

using Outputs = std::vector<std::vector<double>>;

// Whole data and results that are exact on them: any difference is real.
bool IsExact(const v1::Session& session, int output, const DataPattern& pattern, const InputRange& range,
             const std::vector<double>& entries) {
  if (output < session.tolerances_size() && session.tolerances(output) == 0) return true;
  // Where inputs are asked to be in a range, no pattern makes whole numbers of them.
  const bool is_whole =
      range.kind == v1::InputValues::INTEGERS ||
      (range.kind == v1::InputValues::DEFAULT &&
       (pattern.kind == DataPattern::Kind::kWhole || pattern.kind == DataPattern::Kind::kNegative));
  const double most = session.outputs(output).data_type() == v1::F64 ? kMostWholeF64 : kMostWholeF32;
  return is_whole && output < session.whole_outputs_size() && session.whole_outputs(output) &&
         std::all_of(entries.begin(), entries.end(), [&](double entry) { return !(std::abs(entry) > most); });
}

class Comparer {
 public:
  Comparer(const v1::Session& session, const v1::Program& original, const v1::Program& mutant,
           const std::map<std::string, std::string>& binaries)
      : session_(session), original_(original), mutant_(mutant), binaries_(binaries) {}

  Difference Compare(const v1::DeviceDescription& device, int data_sets) {
    auto backend = RunnerDevices::OfThisMachine().open(device.uuid());
    if (!backend.ok()) return Unknown(backend.status());
    auto activity = ActivityPage::Create();
    if (!activity.ok()) return Unknown(activity.status());
    std::mt19937 random(1);
    Difference found{Difference::Kind::kNone, ""};
    int tried = 0;
    for (const InputRange& range : kRanges) {
      v1::Session session = WithRange(session_, range);
      auto data = SessionData::Create(backend->get(), session, binaries_, activity->get());
      if (!data.ok()) return Unknown(data.status());
      if (auto reserved = (*data)->Reserve({&original_, &mutant_}); !reserved.ok()) return Unknown(reserved);
      auto original = (*data)->Prepare(original_, binaries_);
      auto mutant = (*data)->Prepare(mutant_, binaries_);
      if (!original.ok()) return Unknown(original.status());
      if (!mutant.ok()) return {Difference::Kind::kReal, mutant.status().ToString()};
      for (const DataPattern& pattern : Patterns(data_sets / int(std::size(kRanges)), &random)) {
        auto renewed = (*data)->Renew(pattern, binaries_, activity->get());
        if (!renewed.ok()) return Unknown(renewed.status());
        Outputs right, other;
        if (auto ran = Run(data->get(), backend->get(), original->get(), &right); !ran.ok())
          return Unknown(ran);
        if (auto ran = Run(data->get(), backend->get(), mutant->get(), &other); !ran.ok())
          return {Difference::Kind::kReal, absl::StrCat("on ", Text(range, pattern), ": ", ran.ToString())};
        ++tried;
        for (int output = 0; output < session.outputs_size(); ++output) {
          const Difference here = CompareOutput(output, pattern, range, right[output], other[output]);
          if (here.kind == Difference::Kind::kReal) return here;
          if (here.kind == Difference::Kind::kRounding) found = here;
        }
      }
    }
    if (found.message.empty()) found.message = absl::StrCat("the same bits on ", tried, " data sets");
    return found;
  }

 private:
  static Difference Unknown(const absl::Status& status) {
    return {Difference::Kind::kUnknown, status.ToString()};
  }
  static std::string Text(const InputRange& range, const DataPattern& pattern) {
    std::string text = absl::StrCat(NameOf(pattern.kind), " ", range.name);
    if (pattern.kind == DataPattern::Kind::kClass)
      absl::StrAppend(&text, " (every ", pattern.step, "th from ", pattern.phase, ")");
    return absl::StrCat(text, pattern.small ? ", small peaks" : "");
  }

  absl::Status Run(SessionData* data, ExecutionBackend* backend, PreparedProgram* program, Outputs* outputs) {
    auto ran = data->Run(*program, /*flush_cache=*/false, /*repeat=*/1, /*lead=*/0, {});
    if (!ran.ok()) return ran.status();
    for (int i = 0; i < session_.outputs_size(); ++i) {
      // The outputs are the first of what is poisoned before a run.
      const MemoryRange& range = program->poison[i];
      std::vector<double> entries(session_.outputs(i).count());
      if (session_.outputs(i).data_type() == v1::F64) {
        if (auto copied = backend->CopyOut(entries.data(), range.address, range.bytes); !copied.ok())
          return copied;
      } else {
        std::vector<float> narrow(entries.size());
        if (auto copied = backend->CopyOut(narrow.data(), range.address, range.bytes); !copied.ok())
          return copied;
        std::copy(narrow.begin(), narrow.end(), entries.begin());
      }
      outputs->push_back(std::move(entries));
    }
    return absl::OkStatus();
  }

  Difference CompareOutput(int output, const DataPattern& pattern, const InputRange& range,
                           const std::vector<double>& right, const std::vector<double>& other) const {
    double square = 0;
    for (double entry : right)
      if (std::isfinite(entry)) square += entry * entry;
    const double scale = right.empty() ? 0 : std::sqrt(square / static_cast<double>(right.size()));
    const bool is_exact = IsExact(session_, output, pattern, range, right);
    const double allowed = session_.outputs(output).data_type() == v1::F64 ? kRoundingF64 : kRoundingF32;
    Difference worst{Difference::Kind::kNone, ""};
    for (size_t i = 0; i < right.size(); ++i) {
      if (right[i] == other[i] || (std::isnan(right[i]) && std::isnan(other[i]))) continue;
      const double size = std::max(std::abs(right[i]), scale);
      const bool is_rounding = !is_exact && std::abs(other[i] - right[i]) <= allowed * size;
      if (is_rounding && worst.kind == Difference::Kind::kRounding) continue;
      worst = {is_rounding ? Difference::Kind::kRounding : Difference::Kind::kReal,
               absl::StrFormat("on %s: %s[%d] is %.9g and not %.9g", Text(range, pattern),
                               session_.outputs(output).name(), i, other[i], right[i])};
      if (!is_rounding) return worst;
    }
    return worst;
  }

  const v1::Session& session_;
  const v1::Program &original_, &mutant_;
  const std::map<std::string, std::string>& binaries_;
};

}  // namespace

Difference CompareOnManyData(const v1::Session& session, const v1::Program& original,
                             const v1::Program& mutant, const std::map<std::string, std::string>& binaries,
                             const v1::DeviceDescription& device, int data_sets, double seconds) {
  int ends[2];
  if (pipe(ends) != 0) return {Difference::Kind::kUnknown, "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {Difference::Kind::kUnknown, "no process"};
  if (child == 0) {
    close(ends[0]);
    // A mutant that hangs ends with its process.
    alarm(static_cast<unsigned>(std::ceil(seconds)));
    const Difference difference = Comparer(session, original, mutant, binaries).Compare(device, data_sets);
    const std::string text = absl::StrCat(
        std::string(1, static_cast<char>('0' + static_cast<int>(difference.kind))), difference.message);
    (void)!write(ends[1], text.data(), std::min<size_t>(text.size(), 4000));
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char chunk[4096];
  for (ssize_t count; (count = read(ends[0], chunk, sizeof chunk)) > 0;) text.append(chunk, count);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!text.empty()) return {static_cast<Difference::Kind>(text[0] - '0'), text.substr(1)};
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGALRM)
    return {Difference::Kind::kUnknown, absl::StrFormat("not compared in %g s", seconds)};
  return {Difference::Kind::kReal,
          absl::StrCat("it ended the process that compared it, with signal ", signal)};
}

}  // namespace fusion::testing
