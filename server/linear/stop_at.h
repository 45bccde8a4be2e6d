// lp_solve gives up when a deadline has passed.
#pragma once

#include <lpsolve/lp_lib.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "server/linear/deadline.h"

namespace fusion {

// Holds for all further solves of the model, until the deadline is another one; it must live as long.
inline void StopAt(const Deadline* deadline, lprec* lp) {
  const double left = std::chrono::duration<double>(*deadline - std::chrono::steady_clock::now()).count();
  set_timeout(lp, static_cast<long>(std::clamp(std::ceil(left), 1.0, 1e9)));  // whole seconds
  put_abortfunc(
      lp,
      [](lprec*, void* until) -> int {
        return std::chrono::steady_clock::now() >= *static_cast<const Deadline*>(until);
      },
      const_cast<Deadline*>(deadline));
}

}  // namespace fusion
