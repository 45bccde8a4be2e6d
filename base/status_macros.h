// Macros that return an error early.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define FUSION_RETURN_IF_ERROR(expression) \
  if (absl::Status status_ = (expression); !status_.ok()) return status_

#define FUSION_CONCATENATE_(a, b) a##b
#define FUSION_CONCATENATE(a, b) FUSION_CONCATENATE_(a, b)
// declaration = *expression, or return its error.
#define FUSION_ASSIGN_OR_RETURN(declaration, expression) \
  FUSION_ASSIGN_OR_RETURN_(FUSION_CONCATENATE(status_or_, __LINE__), declaration, expression)
#define FUSION_ASSIGN_OR_RETURN_(temporary, declaration, expression) \
  auto temporary = (expression);                                     \
  if (!temporary.ok()) return temporary.status();                    \
  declaration = *std::move(temporary)
