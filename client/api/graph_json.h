// Clients read graphs from files of JSON as the server does.
#pragma once

#include "server/parse/graph_json.h"
