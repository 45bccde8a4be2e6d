// Clients read graphs from files of JSON as the server does.
#pragma once

#include "server/service/graph_json.h"
