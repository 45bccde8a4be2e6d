// A service tells its state to the service manager that started it (systemd's sd_notify protocol).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace fusion {

// Sends the state, such as "READY=1" or "STOPPING=1", to the socket that $NOTIFY_SOCKET names. Returns OK and
// does nothing where that is not set: nobody asked. InvalidArgument: it names no socket; others, by errno:
// nothing could be sent. Source: sd_notify(3).
absl::Status TellServiceManager(const std::string& state);

}  // namespace fusion
