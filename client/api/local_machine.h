// Clients ask here what this machine offers to an embedded worker.
#pragma once

#include "worker/agent/local_machine.h"
