#include "tests/bench/dispatch/statement_counter.h"

#include <sqlite3.h>

#include <mutex>

namespace fusion {
namespace {

std::mutex g_mutex;
std::map<std::string, int64_t>& Counts() {
  static auto* const counts = new std::map<std::string, int64_t>;
  return *counts;
}

int Watch(sqlite3* connection, char**, const void*) {
  return sqlite3_trace_v2(
      connection, SQLITE_TRACE_STMT,
      [](unsigned, void*, void*, void* text) {
        std::lock_guard lock(g_mutex);
        ++Counts()[static_cast<const char*>(text)];
        return 0;
      },
      nullptr);
}

}  // namespace

void CountStatements() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(&Watch)); }

std::map<std::string, int64_t> CountedStatements() {
  std::lock_guard lock(g_mutex);
  return Counts();
}

}  // namespace fusion
