// What the tuning library costs a program: fusion_tuner_next, and fusion_tuner_start with fusion_tuner_stop.
// Prints one JSON object.
//
//   tuning_library_bench [--calls N] [--threads N]...
//
// "quiet": nothing comes from the server. "swapping": a simulated server sends new choices with proposals as
// fast as the library takes them. "wall" is what a caller waits, and on a machine whose cores are shared its
// maximum is what others take; "clock" is what reading the clock adds to each figure.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "client/tuner/clock.h"
#include "client/tuner/fusion_tuner.h"
#include "client/tuner/handles.h"
#include "tests/unit/tuner_library/simulated_server.h"

namespace {

using fusion::testing::AddProposal;
using fusion::testing::ChoiceOf;
using fusion::tuning::NowNanoseconds;
using Json = nlohmann::ordered_json;

struct Calls {
  std::vector<uint32_t> next, start_stop;  // nanoseconds
  uint64_t proposals = 0;
  // Of as many runs without reading the clock around each call: by the clock, and of the thread's time on a
  // processor.
  double loop_seconds = 0, loop_processor_seconds = 0;
};

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Calls RunThread(fusion_tuner_section* section, size_t count) {
  Calls calls;
  calls.next.reserve(count);
  calls.start_stop.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t t0 = NowNanoseconds();
    const fusion_tuner_value* values = fusion_tuner_next(section);
    const uint64_t t1 = NowNanoseconds();
    if (values[0].integer % 2 == 1) ++calls.proposals;
    const uint64_t t2 = NowNanoseconds();
    fusion_tuner_start(section);
    fusion_tuner_stop(section);
    const uint64_t t3 = NowNanoseconds();
    calls.next.push_back(static_cast<uint32_t>(t1 - t0));
    calls.start_stop.push_back(static_cast<uint32_t>(t3 - t2));
  }
  const double processor = ThreadSeconds();
  const uint64_t begin = NowNanoseconds();
  for (size_t i = 0; i < count; ++i) {
    fusion_tuner_start(section);
    fusion_tuner_stop(section);
  }
  calls.loop_seconds = static_cast<double>(NowNanoseconds() - begin) * 1e-9;
  calls.loop_processor_seconds = ThreadSeconds() - processor;
  return calls;
}

Json Summary(std::vector<uint32_t> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (uint32_t time : times) sum += time;
  auto quantile = [&](double q) {
    return times[std::min(times.size() - 1, static_cast<size_t>(q * times.size()))];
  };
  return {{"mean_ns", sum / static_cast<double>(times.size())},
          {"p50_ns", quantile(0.5)},
          {"p99_ns", quantile(0.99)},
          {"p999_ns", quantile(0.999)},
          {"max_ns", times.back()},
          {"over_1_us", std::count_if(times.begin(), times.end(), [](uint32_t time) { return time > 1000; })},
          {"over_1_ms",
           std::count_if(times.begin(), times.end(), [](uint32_t time) { return time > 1'000'000; })}};
}

Json Measure(bool swapping, size_t threads, size_t count) {
  fusion::testing::SimulatedServer server;
  server.SetChoice([](const fusion::v1::DeclareSection&) {
    return ChoiceOf({0, 4}, 1e-7, fusion::v1::EXPLORING);
  });
  fusion::tuning::TunerSettings settings;
  settings.program = "bench";
  settings.device_class = "here";
  settings.dial = server.Dialer();
  fusion_tuner* tuner = fusion::tuning::HandleOf(new fusion::tuning::Tuner(settings));
  fusion_tuner_section* section = nullptr;
  fusion_tuner_parameter *tile = nullptr, *stages = nullptr;
  fusion_tuner_integer_range(tuner, "tile", 0, 1000, 1, &tile);
  fusion_tuner_power_of_two(tuner, "stages", 1, 8, &stages);
  fusion_tuner_section_create(tuner, "section", &section);
  fusion_tuner_section_parameter(section, tile);
  fusion_tuner_section_parameter(section, stages);
  if (fusion_tuner_section_declare(section) != FUSION_TUNER_OK) {
    std::fprintf(stderr, "%s\n", fusion_tuner_message());
    std::exit(1);
  }

  std::atomic<bool> done{false};
  std::atomic<uint64_t> sent{0};
  std::thread sender;
  if (swapping)
    sender = std::thread([&] {
      uint64_t proposal = 0;
      fusion::v1::TuneResponse response;
      while (!done) {
        *response.mutable_choice() =
            ChoiceOf({static_cast<double>(sent % 500 * 2), 4}, 1e-7, fusion::v1::EXPLORING);
        response.mutable_choice()->set_section(1);
        for (int i = 0; i < 4; ++i)
          AddProposal(*response.mutable_choice(), ++proposal,
                      {static_cast<double>(proposal % 500 * 2 + 1), 2});
        server.Send(response);
        ++sent;
        // Faster than the library takes them they would only pile up.
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });

  std::vector<Calls> calls(threads);
  std::vector<std::thread> runners;
  const uint64_t begin = NowNanoseconds();
  for (size_t t = 0; t < threads; ++t) runners.emplace_back([&, t] { calls[t] = RunThread(section, count); });
  for (std::thread& runner : runners) runner.join();
  const double seconds = static_cast<double>(NowNanoseconds() - begin) * 1e-9;
  done = true;
  if (sender.joinable()) sender.join();

  Calls all;
  for (const Calls& of_thread : calls) {
    all.next.insert(all.next.end(), of_thread.next.begin(), of_thread.next.end());
    all.start_stop.insert(all.start_stop.end(), of_thread.start_stop.begin(), of_thread.start_stop.end());
    all.proposals += of_thread.proposals;
    all.loop_seconds += of_thread.loop_seconds;
    all.loop_processor_seconds += of_thread.loop_processor_seconds;
  }
  fusion_tuner_counters_t counters{};
  counters.size = sizeof(counters);
  fusion_tuner_counters(tuner, &counters);
  Json result = {{"server", swapping ? "swapping" : "quiet"},
                 {"threads", threads},
                 {"calls", all.next.size()},
                 {"next_wall", Summary(std::move(all.next))},
                 {"start_stop_wall", Summary(std::move(all.start_stop))},
                 {"start_stop_loop_ns", all.loop_seconds * 1e9 / static_cast<double>(threads * count)},
                 {"start_stop_loop_processor_ns",
                  all.loop_processor_seconds * 1e9 / static_cast<double>(threads * count)},
                 {"choices_per_second", static_cast<double>(sent) / seconds},
                 {"proposals_run", all.proposals},
                 {"samples_dropped", counters.dropped}};
  fusion_tuner_destroy(tuner);
  return result;
}

double ClockNanoseconds() {
  constexpr int kCalls = 1'000'000;
  const uint64_t begin = NowNanoseconds();
  for (int i = 0; i < kCalls; ++i) NowNanoseconds();
  return static_cast<double>(NowNanoseconds() - begin) / kCalls;
}

}  // namespace

int main(int argc, char** argv) {
  size_t count = 1'000'000;
  std::vector<size_t> threads;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--calls") == 0) count = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--threads") == 0) threads.push_back(std::strtoull(argv[i + 1], nullptr, 10));
  }
  if (threads.empty()) threads = {1, 2};
  Json runs = Json::array();
  for (bool swapping : {false, true})
    for (size_t number : threads)
      runs.push_back(Measure(swapping, std::max<size_t>(1, number), std::max<size_t>(1, count)));
  const Json report = {{"schema", "fusion.bench.tuning_library/1"},
                       {"processors", std::thread::hardware_concurrency()},
                       {"clock_ns", ClockNanoseconds()},
                       {"runs", runs}};
  std::printf("%s\n", report.dump(2).c_str());
}
