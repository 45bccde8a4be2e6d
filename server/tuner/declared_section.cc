#include "server/tuner/declared_section.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr size_t kMostNameBytes = 256;
static_assert(std::endian::native == std::endian::little,
              "configurations are stored with the lowest byte first");

absl::Status CheckName(const char* what, const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("the declaration has no ", what));
  if (name.size() > kMostNameBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " has ", name.size(), " bytes; at most ", kMostNameBytes));
  for (const char character : name)
    if (static_cast<unsigned char>(character) < 0x20)
      return absl::InvalidArgumentError(absl::StrCat("the ", what, " has control characters"));
  return absl::OkStatus();
}

std::string DomainText(const v1::TuningParameter& parameter) {
  switch (parameter.domain_case()) {
    case v1::TuningParameter::kInteger:
      return absl::StrCat(parameter.integer().lower(), "..", parameter.integer().upper(), " step ",
                          parameter.integer().step());
    case v1::TuningParameter::kPowerOfTwo:
      return absl::StrCat("powers of two ", parameter.power_of_two().lower(), "..",
                          parameter.power_of_two().upper());
    case v1::TuningParameter::kEnumeration:
      return absl::StrCat("one of ", absl::StrJoin(parameter.enumeration().values(), ", "));
    case v1::TuningParameter::kReal:
      return absl::StrCat("real ", parameter.real().lower(), "..", parameter.real().upper(),
                          parameter.real().logarithmic() ? " logarithmic" : "");
    case v1::TuningParameter::DOMAIN_NOT_SET:
      break;
  }
  return "nothing";
}

std::string ParameterText(const v1::TuningParameter& parameter) {
  std::string text = DomainText(parameter);
  if (!parameter.condition().empty()) absl::StrAppend(&text, " where ", parameter.condition());
  if (parameter.has_default_value()) absl::StrAppend(&text, ", default ", parameter.default_value());
  return text;
}

std::string ObjectiveText(const v1::TuningObjective& objective) {
  return absl::StrCat(objective.maximize() ? "the largest " : "the smallest ",
                      objective.name().empty() ? "time" : objective.name(), " in ",
                      objective.unit().empty() ? "s" : objective.unit());
}

}  // namespace

absl::StatusOr<TuningKey> KeyOf(const v1::SectionDeclaration& declaration) {
  FUSION_RETURN_IF_ERROR(CheckName("program", declaration.program()));
  FUSION_RETURN_IF_ERROR(CheckName("section", declaration.section()));
  FUSION_RETURN_IF_ERROR(CheckName("device_class", declaration.device_class()));
  std::map<std::string, int64_t> sizes;
  for (const v1::ContextSize& size : declaration.context()) {
    FUSION_RETURN_IF_ERROR(CheckName("name of a size", size.name()));
    if (size.name().find_first_of("=,") != std::string::npos)
      return absl::InvalidArgumentError(
          absl::StrCat("the size '", size.name(), "' has '=' or ',' in its name"));
    if (!sizes.emplace(size.name(), size.value()).second)
      return absl::InvalidArgumentError(absl::StrCat("the size ", size.name(), " is there twice"));
  }
  return TuningKey{declaration.program(), declaration.section(), declaration.device_class(),
                   absl::StrJoin(sizes, ",", absl::PairFormatter("="))};
}

std::string EncodePoint(absl::Span<const double> point) {
  std::string bytes(point.size() * sizeof(double), '\0');
  for (size_t i = 0; i < point.size(); ++i) {
    const double value = point[i] + 0.0;  // -0 is 0
    std::memcpy(bytes.data() + i * sizeof(double), &value, sizeof(value));
  }
  return bytes;
}

TuningPoint DecodePoint(std::string_view bytes, size_t dimensions) {
  if (bytes.size() != dimensions * sizeof(double)) return {};
  TuningPoint point(dimensions);
  if (dimensions > 0) std::memcpy(point.data(), bytes.data(), bytes.size());
  return point;
}

std::string SpaceDifference(const v1::SectionDeclaration& known, const v1::SectionDeclaration& declared) {
  if (SameSpace(known, declared)) return "";
  std::vector<std::string> differences;
  auto compare = [&](const std::string& what, const std::string& there, const std::string& here) {
    if (there != here) differences.push_back(absl::StrCat(what, ": ", there, " there, ", here, " here"));
  };
  std::map<std::string, const v1::TuningParameter*> there;
  for (const v1::TuningParameter& parameter : known.parameters()) there[parameter.name()] = &parameter;
  std::vector<std::string> order_there, order_here;
  for (const v1::TuningParameter& parameter : known.parameters()) order_there.push_back(parameter.name());
  for (const v1::TuningParameter& parameter : declared.parameters()) {
    order_here.push_back(parameter.name());
    auto found = there.find(parameter.name());
    if (found == there.end()) {
      differences.push_back(absl::StrCat("parameter ", parameter.name(), ": not there"));
      continue;
    }
    compare(absl::StrCat("parameter ", parameter.name()), ParameterText(*found->second),
            ParameterText(parameter));
    there.erase(found);
  }
  for (const auto& [name, parameter] : there)
    differences.push_back(absl::StrCat("parameter ", name, ": not here"));
  if (differences.empty())
    compare("order of parameters", absl::StrJoin(order_there, ", "), absl::StrJoin(order_here, ", "));
  compare("constraints", absl::StrCat("[", absl::StrJoin(known.constraints(), "; "), "]"),
          absl::StrCat("[", absl::StrJoin(declared.constraints(), "; "), "]"));
  compare("objective", ObjectiveText(known.objective()), ObjectiveText(declared.objective()));
  return absl::StrJoin(differences, "; ");
}

}  // namespace fusion
