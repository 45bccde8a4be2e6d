#include "server/loop_kernels/modelled_program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/loop_kernels/launches.h"
#include "server/loop_kernels/lowering.h"
#include "server/loop_kernels/nest_values.h"
#include "server/parse/error_list.h"

namespace fusion {
namespace {

constexpr double kWordBytes = 4;
constexpr int64_t kLargestGranularity = 1024;  // as case_finder.cc has it

IntegerValues Joined(IntegerValues values, const IntegerValues& more) {
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

std::vector<const Polynomial*> PolynomialsOf(const ModelledKernel& kernel) {
  std::vector<const Polynomial*> all = {&kernel.launches};
  for (const KernelCounts* counts : {&kernel.counts, &kernel.most})
    for (const Polynomial* one :
         {&counts->blocks, &counts->threads, &counts->block_words, &counts->thread.operations,
          &counts->thread.coalesced_reads, &counts->thread.scattered_reads, &counts->thread.coalesced_writes,
          &counts->thread.scattered_writes})
      all.push_back(one);
  for (const auto& [name, entries] : kernel.arrays) all.push_back(&entries);
  return all;
}

std::string InBrackets(const Polynomial& polynomial, const std::string& text, bool divisor) {
  const bool product = divisor && text.find('*') != std::string::npos;
  return polynomial.terms().size() > 1 || product ? absl::StrCat("(", text, ")") : text;
}

}  // namespace

ModelledProgram::ModelledProgram(const MappedLoops& mapped)
    : mapped_(mapped), kernels_(ModelledKernels(mapped)) {
  for (const CParameter& parameter : mapped_.program.parameters) order_.push_back(parameter.name);
  std::set<std::string> taken(order_.begin(), order_.end());
  for (const CRegion& region : mapped_.program.regions) {
    AddNames(*region.statement, &taken);
    for (const CVariable& variable : region.scope) taken.insert(variable.name);
  }
  const std::set<std::string> letters = {"L", "P", "C", "Z", "Q", "X", "U"};  // of machines
  const auto apart = [&](const std::string& name) { return letters.count(name) > 0 ? name + "'" : name; };
  for (const std::string& letter : letters)
    if (taken.count(letter) > 0) names_.emplace_back(letter, apart(letter));
  std::set<std::string> known, shown;
  for (const ModelledKernel& kernel : kernels_) {
    for (const NestLoop& loop : kernel.nest->loops)
      if (known.insert(loop.symbol).second) names_.emplace_back(loop.symbol, apart(loop.counter));
    // A quotient may have others in its numerator, which stand before it.
    std::vector<const Polynomial*> all = PolynomialsOf(kernel);
    for (const NestQuotient& quotient : kernel.nest->quotients) all.push_back(&quotient.numerator);
    for (const NestQuotient& quotient : kernel.nest->quotients) {
      if (std::none_of(all.begin(), all.end(),
                       [&](const Polynomial* one) { return one->Has(quotient.symbol); }) ||
          !known.insert(quotient.symbol).second)
        continue;
      const auto variable = kernel.variables.find(quotient.symbol);
      std::string name = variable != kernel.variables.end() ? apart(variable->second) : "";
      if (!shown.insert(name).second) name.clear();
      for (int i = 1; name.empty(); ++i)
        if (taken.insert(absl::StrCat("q", i)).second) name = absl::StrCat("q", i);
      const Polynomial up = quotient.numerator - (quotient.denominator - 1);
      const bool rounds_up = up.terms().size() < quotient.numerator.terms().size();
      const Polynomial& numerator = rounds_up ? up : quotient.numerator;
      meanings_.push_back(absl::StrCat(
          name, rounds_up ? " = ceil(" : " = floor(", InBrackets(numerator, Text(numerator), false), "/",
          InBrackets(quotient.denominator, Text(quotient.denominator), true), ")"));
      names_.emplace_back(quotient.symbol, std::move(name));
    }
  }
}

Polynomial ModelledProgram::Readable(Polynomial polynomial) const {
  for (const auto& [symbol, name] : names_)
    if (polynomial.Has(symbol)) polynomial = polynomial.Substitute(symbol, Polynomial::Symbol(name));
  return polynomial;
}

std::string ModelledProgram::Text(const Polynomial& polynomial) const {
  return Formula(Readable(polynomial)).ToString(order_);
}

std::vector<LaunchCounts<Formula>> ModelledProgram::Launches() const {
  std::vector<LaunchCounts<Formula>> launches;
  for (const ModelledKernel& kernel : kernels_) {
    const ThreadWork& thread = kernel.most.thread;
    launches.push_back({.launches = Readable(kernel.launches),
                        .blocks = Readable(kernel.most.blocks),
                        .threads = Readable(kernel.most.threads),
                        .operations = Readable(thread.operations),
                        .coalesced = Readable(thread.coalesced_reads + thread.coalesced_writes),
                        .scattered = Readable(thread.scattered_reads + thread.scattered_writes),
                        .block_words = Readable(kernel.most.block_words)});
  }
  return launches;
}

Polynomial ModelledProgram::Cells() const {
  std::map<std::string, Polynomial> arrays;
  for (const ModelledKernel& kernel : kernels_) arrays.insert(kernel.arrays.begin(), kernel.arrays.end());
  Polynomial cells;
  for (const auto& [name, entries] : arrays) cells = cells + entries;
  return Readable(cells);
}

absl::StatusOr<std::vector<LaunchCounts<double>>> ModelledProgram::LaunchesAt(const IntegerValues& sizes,
                                                                              const IntegerValues& parameters,
                                                                              bool cached) const {
  ErrorList errors("");
  const LoopCode code = LowerLoops(mapped_, {.constants = parameters, .cached = cached}, &errors);
  if (!errors.empty()) return errors.ToStatus();
  std::vector<LaunchCounts<double>> launches;
  FUSION_RETURN_IF_ERROR(ForEachLaunch(
      code, Joined(sizes, parameters),
      [&](int number, int64_t blocks, const IntegerValues& now) -> absl::Status {
        const ModelledKernel& kernel = kernels_[number];
        const NestValues values(*kernel.nest, now);
        const ThreadWork& thread = kernel.counts.thread;
        const auto operations = values.Of(thread.operations);
        const auto coalesced = values.Of(thread.coalesced_reads + thread.coalesced_writes);
        const auto scattered = values.Of(thread.scattered_reads + thread.scattered_writes);
        if (!operations || !coalesced || !scattered)
          return absl::InvalidArgumentError(
              absl::StrCat("what a thread of ", kernel.name, " does is no polynomial in known numbers"));
        const auto count = [](int64_t value) { return static_cast<double>(std::max<int64_t>(value, 0)); };
        launches.push_back(
            {.launches = 1,
             .blocks = count(blocks),
             .threads = count(code.kernels[number].kernel.threads),
             .operations = count(*operations),
             .coalesced = count(*coalesced),
             .scattered = count(*scattered),
             .block_words = static_cast<double>(code.kernels[number].shared_bytes) / kWordBytes});
        return absl::OkStatus();
      }));
  return launches;
}

std::optional<double> ModelledProgram::CellsAt(const IntegerValues& sizes,
                                               const IntegerValues& parameters) const {
  std::map<std::string, double> arrays;
  for (size_t i = 0; i < kernels_.size(); ++i)
    for (const auto& [name, entries] : kernels_[i].arrays) {
      const auto value = NestValues(*kernels_[i].nest, Joined(sizes, parameters)).Of(entries);
      if (!value) return std::nullopt;
      arrays[name] = static_cast<double>(*value);
    }
  double cells = 0;
  for (const auto& [name, entries] : arrays) cells += entries;
  return cells;
}

bool ModelledProgram::LeavesNothingOut(const std::string& parameter, const IntegerValues& values) const {
  for (const ModelledKernel& kernel : kernels_) {
    const NestValues known(*kernel.nest, values);
    for (const NestQuotient& quotient : QuotientsThatDrop(*kernel.nest, {parameter})) {
      const auto numerator = known.Of(quotient.numerator), denominator = known.Of(quotient.denominator);
      if (numerator && denominator && *denominator > 0 && *numerator % *denominator != 0) return false;
    }
  }
  return true;
}

std::optional<int64_t> ModelledProgram::PreferredGranularity(const std::string& granularity,
                                                             const IntegerValues& sizes,
                                                             IntegerValues parameters, bool cached,
                                                             const MachineParameters<double>& machine) const {
  const auto& all = mapped_.program.parameters;
  const auto range =
      std::find_if(all.begin(), all.end(), [&](const CParameter& one) { return one.name == granularity; });
  if (range == all.end() || parameters.count(granularity) == 0) return std::nullopt;
  const int64_t high = std::min(range->high.value_or(kLargestGranularity), kLargestGranularity);
  std::optional<int64_t> preferred;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t value = 1; value <= high; value *= 2) {
    if (value < range->low) continue;
    parameters[granularity] = value;
    if (!LeavesNothingOut(granularity, Joined(sizes, parameters))) continue;
    const auto launches = LaunchesAt(sizes, parameters, cached);
    if (!launches.ok() || launches->empty()) continue;
    if (std::any_of(launches->begin(), launches->end(), [&](const LaunchCounts<double>& launch) {
          return launch.block_words > machine.private_words;
        }))
      continue;
    const double bound =
        GrahamBrentBound(Mcm(*launches, machine.transfer), machine.cores / machine.cores_of_group);
    if (bound < least) least = bound, preferred = value;
  }
  return preferred;
}

}  // namespace fusion
