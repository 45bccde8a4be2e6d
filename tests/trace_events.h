// Checks what every reader of the Trace Event Format relies on.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

namespace fusion::testing {

// Every event has a name, a phase that we use, a time, a process and a thread, and what its phase demands;
// times ascend; complete events of one thread are inside each other or apart; each process and thread that is
// used has one name.
inline void CheckTraceEvents(const nlohmann::json& events) {
  ASSERT_TRUE(events.is_array());
  int64_t last = 0;
  std::map<std::pair<int, int>, std::vector<int64_t>> open;  // ends of the events around, by thread
  std::set<int> named_processes, processes;
  std::set<std::pair<int, int>> named_threads, threads;
  for (const nlohmann::json& event : events) {
    SCOPED_TRACE(event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    ASSERT_TRUE(event.contains("name") && event["name"].is_string() && !event["name"].empty());
    ASSERT_TRUE(event.contains("ph") && event["ph"].is_string());
    for (const char* key : {"ts", "pid", "tid"})
      ASSERT_TRUE(event.contains(key) && event[key].is_number_integer()) << key;
    const int64_t begin = event["ts"];
    const int process = event["pid"];
    const std::pair<int, int> thread(process, event["tid"]);
    ASSERT_GE(begin, last) << "times ascend";
    last = begin;
    const std::string phase = event["ph"];
    if (phase == "M") {
      ASSERT_TRUE(event["args"].contains("name") || event["args"].contains("sort_index"));
      if (event["name"] == "process_name") {
        ASSERT_TRUE(named_processes.insert(process).second) << "named twice";
      }
      if (event["name"] == "thread_name") {
        ASSERT_TRUE(named_threads.insert(thread).second) << "named twice";
      }
      continue;
    }
    processes.insert(process);
    threads.insert(thread);
    if (phase == "i") {
      ASSERT_EQ(event["s"], "t");
      continue;
    }
    ASSERT_EQ(phase, "X");
    ASSERT_TRUE(event.contains("dur") && event["dur"].is_number_integer());
    const int64_t end = begin + event["dur"].get<int64_t>();
    ASSERT_GE(end, begin);
    std::vector<int64_t>& around = open[thread];
    while (!around.empty() && around.back() <= begin) around.pop_back();
    if (!around.empty()) {
      ASSERT_LE(end, around.back()) << "reaches out of the event around it";
    }
    around.push_back(end);
  }
  for (int process : processes) EXPECT_TRUE(named_processes.contains(process)) << process;
  for (const auto& thread : threads)
    EXPECT_TRUE(named_threads.contains(thread)) << thread.first << " " << thread.second;
}

}  // namespace fusion::testing
