// Declarations of programs, in the form in which the store keeps them.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"
#include "fusion/v1/tuner.pb.h"
#include "server/tuner/parameter_space.h"

namespace fusion {

// Returns the key of the declaration, its context in the order of names. InvalidArgument: a name is missing,
// too long or not UTF-8, or a size is there twice.
absl::StatusOr<TuningKey> KeyOf(const v1::SectionDeclaration& declaration);

// Encodes a configuration as bytes: equal points have equal bytes.
std::string EncodePoint(absl::Span<const double> point);
// Returns an empty point if these are no bytes of a point of so many dimensions (or there are none).
TuningPoint DecodePoint(std::string_view bytes, size_t dimensions);

// Says to people in what the spaces differ: "parameter tile: 1..64 step 1 there, 1..32 step 1 here". "there"
// is `known`. Empty when SameSpace.
std::string SpaceDifference(const v1::SectionDeclaration& known, const v1::SectionDeclaration& declared);

}  // namespace fusion
