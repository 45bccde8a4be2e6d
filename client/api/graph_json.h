// Graphs in files of JSON (server/service/graph_json.h).
#pragma once

#include "server/service/graph_json.h"
