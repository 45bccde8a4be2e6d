// What this machine offers to an embedded worker (worker/agent/local_machine.h).
#pragma once

#include "worker/agent/local_machine.h"
