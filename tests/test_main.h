#pragma once

namespace fusion::testing {
// Set by --update-goldens: golden tests write their files instead of comparing with them.
extern bool g_update_goldens;
}  // namespace fusion::testing
