// Parameter spaces from the text of their declarations.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/tuner/parameter_space.h"

namespace fusion {

inline v1::SectionDeclaration Declaration(const std::string& rest) {
  v1::SectionDeclaration declaration;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "program: 'p' section: 's' device_class: 'd' " + rest, &declaration))
      << rest;
  return declaration;
}

inline std::shared_ptr<const ParameterSpace> Space(const std::string& rest) {
  absl::StatusOr<std::shared_ptr<const ParameterSpace>> space = ParameterSpace::Create(Declaration(rest));
  EXPECT_TRUE(space.ok()) << space.status();
  return space.ok() ? *space : nullptr;
}

}  // namespace fusion
