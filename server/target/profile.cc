#include "server/target/profile.h"

#include <google/protobuf/text_format.h>

#include <cstdlib>
#include <map>
#include <string>

#include "server/target/embedded_profiles.h"

namespace fusion {

const v1::TargetProfile& ProfileNamed(const std::string& name) {
  static const auto* const profiles = [] {
    auto* read = new std::map<std::string, v1::TargetProfile>();
    for (const auto& [file, text] : EmbeddedProfiles())
      if (!google::protobuf::TextFormat::ParseFromString(text, &(*read)[file])) std::abort();
    return read;
  }();
  const auto profile = profiles->find(name + ".textproto");
  if (profile == profiles->end()) std::abort();
  return profile->second;
}

}  // namespace fusion
