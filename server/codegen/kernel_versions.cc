#include "server/codegen/kernel_versions.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

void Choose(ir::Statement::Version version, std::vector<ir::Statement>* body) {
  using Version = ir::Statement::Version;
  std::vector<ir::Statement> chosen;
  for (ir::Statement& statement : *body) {
    if (statement.known_at_launch) statement.version = version;
    Choose(version, &statement.body);
    if (statement.kind != ir::Statement::Kind::kIf || statement.version == Version::kBoth ||
        version == Version::kBoth)
      chosen.push_back(std::move(statement));
    else if (statement.version == version)
      std::move(statement.body.begin(), statement.body.end(), std::back_inserter(chosen));
  }
  *body = std::move(chosen);
}

bool Holds(const WholeCondition::OfSize& rule, int64_t size) {
  switch (rule.kind) {
    case WholeCondition::OfSize::Kind::kEquals:
      return size == rule.number;
    case WholeCondition::OfSize::Kind::kAtLeast:
      return size >= rule.number;
    case WholeCondition::OfSize::Kind::kMultiple:
      return size > 0 && size % rule.number == 0;
  }
  return false;
}

}  // namespace

bool LaunchesWhole(const KernelLaunch& launch, const SizeValues& sizes) {
  if (!launch.whole) return false;
  return std::all_of(
      launch.whole->sizes.begin(), launch.whole->sizes.end(),
      [&](const WholeCondition::OfSize& rule) { return Holds(rule, ExtentValue(rule.extent, sizes)); });
}

bool NeedsAlignment(const KernelLaunch& launch, const SizeValues& sizes) {
  return LaunchesWhole(launch, sizes) && !launch.whole->aligned.empty();
}

std::string LaunchedName(const KernelLaunch& launch, bool whole) {
  return whole ? absl::StrCat(launch.kernel.name, "_whole") : launch.kernel.name;
}

ir::Kernel LaunchedKernel(const KernelLaunch& launch, bool whole) {
  ir::Kernel kernel = launch.kernel;
  if (!launch.whole) return kernel;
  kernel.name = LaunchedName(launch, whole);
  const ir::Statement::Version version = whole                 ? ir::Statement::Version::kHolds
                                         : launch.whole->exact ? ir::Statement::Version::kFails
                                                               : ir::Statement::Version::kBoth;
  for (ir::Section& section : kernel.sections) Choose(version, &section.body);
  return kernel;
}

std::vector<ir::Kernel> LaunchableKernels(const KernelLaunch& launch) {
  std::vector<ir::Kernel> kernels = {LaunchedKernel(launch, false)};
  if (launch.whole) kernels.push_back(LaunchedKernel(launch, true));
  return kernels;
}

void NumberEqualNames(std::vector<FusionCode>* fusions) {
  std::set<std::string> taken;
  for (FusionCode& code : *fusions) {
    for (KernelLaunch& launch : code.launches) {
      const auto names = [&] {
        std::vector<std::string> all;
        for (const ir::Kernel& kernel : LaunchableKernels(launch)) all.push_back(kernel.name);
        return all;
      };
      const std::string given = launch.kernel.name;
      std::vector<std::string> wanted = names();
      for (int number = 2; std::any_of(wanted.begin(), wanted.end(),
                                       [&](const std::string& name) { return taken.count(name) > 0; });
           ++number) {
        launch.kernel.name = absl::StrCat(given, "_", number);
        wanted = names();
      }
      taken.insert(wanted.begin(), wanted.end());
    }
  }
}

}  // namespace fusion
