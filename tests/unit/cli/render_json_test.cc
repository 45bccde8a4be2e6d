#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/rpc/status_conversion.h"
#include "client/cli/render.h"
#include "tests/unit/cli/sample_messages.h"

namespace fusion {
namespace {

std::vector<std::string> Keys(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  return keys;
}

// The keys that scripts rely on, in the documented order; others may follow.
void ExpectBegins(const Json& json, const std::vector<std::string>& expected) {
  std::vector<std::string> keys = Keys(json);
  ASSERT_GE(keys.size(), expected.size());
  keys.resize(expected.size());
  EXPECT_EQ(keys, expected);
}

TEST(RenderJsonTest, SubmitHasTheDocumentedKeys) {
  const Json json = SubmitJson(testing::SampleJob(), "/tmp/f1");
  ExpectBegins(json, {"schema", "job", "state", "device", "graph", "search", "floor", "unfused", "candidates",
                      "artifact"});
  ExpectBegins(json["device"], {"name", "target", "arch", "copy_bytes_per_second"});
  ExpectBegins(json["graph"], {"name", "nodes", "hash"});
  ExpectBegins(json["search"],
               {"fusions", "fusion_implementations", "covers", "proved_optimal", "gap", "seconds"});
  ExpectBegins(json["floor"], {"bytes", "seconds"});
  ExpectBegins(json["unfused"], {"measured_seconds"});
  ExpectBegins(json["unfused"]["measured_seconds"], {"median", "low", "high", "samples"});
  ExpectBegins(json["candidates"][0],
               {"rank", "outcome", "fusions", "predicted_rank", "predicted_seconds", "measured_seconds",
                "speedup", "tie", "max_relative_error", "kernels"});
  ExpectBegins(json["candidates"][0]["kernels"][0],
               {"name", "skeleton", "threads", "blocks", "shared_bytes", "registers", "spill_bytes"});
}

TEST(RenderJsonTest, SubmitValues) {
  const Json json = SubmitJson(testing::SampleJob(), "/tmp/f1");
  EXPECT_EQ(json["schema"], "fusion.submit/1");
  EXPECT_EQ(json["job"], "jobs/1a2b");
  EXPECT_EQ(json["state"], "SUCCEEDED");
  EXPECT_EQ(json["device"]["target"], "host");
  EXPECT_EQ(json["artifact"], "/tmp/f1");
  EXPECT_EQ(json["builds"], 9);
  EXPECT_EQ(json["builds_reused"], 4);
  ASSERT_EQ(json["candidates"].size(), 5u);
  EXPECT_EQ(json["candidates"][0]["fusions"], Json::parse(R"([["M1", "v1"], ["F"]])"));
  EXPECT_DOUBLE_EQ(json["candidates"][0]["measured_seconds"]["median"], 2.5e-4);
  EXPECT_EQ(json["candidates"][3]["outcome"], "COMPILE_ERROR");
  EXPECT_TRUE(json["candidates"][3]["measured_seconds"].is_null());
  EXPECT_TRUE(json["candidates"][3]["speedup"].is_null());
  EXPECT_EQ(json["candidates"][3]["message"], "error: no such thing\nsecond line");
}

TEST(RenderJsonTest, SaysWhichTimesRankAndHasBoth) {
  v1::Job job = testing::SampleJob();
  EXPECT_EQ(SubmitJson(job, "")["cache"], "cold");
  EXPECT_TRUE(SubmitJson(job, "")["candidates"][0]["cold_seconds"].is_null());
  job.mutable_result()->set_cache(v1::WARM);
  v1::Candidate* best = job.mutable_result()->mutable_candidates(0);
  *best->mutable_warm() = best->measured();
  testing::SetStatistics(best->mutable_cold(), 9e-4, 8e-4, 10e-4);
  const Json json = SubmitJson(job, "");
  EXPECT_EQ(json["cache"], "warm");
  EXPECT_EQ(json["candidates"][0]["warm_seconds"], json["candidates"][0]["measured_seconds"]);
  EXPECT_DOUBLE_EQ(json["candidates"][0]["cold_seconds"]["median"], 9e-4);
  // Nothing of what was measured is told of a candidate that failed.
  testing::SetStatistics(job.mutable_result()->mutable_candidates(3)->mutable_cold(), 1, 1, 1);
  EXPECT_TRUE(SubmitJson(job, "")["candidates"][3]["cold_seconds"].is_null());
}

TEST(RenderJsonTest, FailedSubmitHasAnErrorAndNoResult) {
  v1::Job job;
  job.set_name("jobs/9");
  job.set_state(v1::FAILED);
  *job.mutable_error() = ToRpcStatus(InvalidField("f.fuse:1:2", "unknown function"));
  const Json json = SubmitJson(job, "");
  EXPECT_EQ(json["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(json["error"]["violations"][0]["field"], "f.fuse:1:2");
  EXPECT_FALSE(json.contains("candidates"));
}

TEST(RenderJsonTest, ExplainHasGraphSearchAndFloor) {
  v1::ExplainResponse response;
  *response.mutable_graph() = testing::SampleJob().graph();
  response.mutable_search()->set_best_predicted_seconds(3e-4);
  response.mutable_search()->set_bound_seconds(2.9e-4);
  response.set_floor_seconds(1e-4);
  response.mutable_search()->set_listed_gap(0.25);
  response.mutable_search()->add_fusions_by_size(5);
  response.mutable_search()->add_fusions_by_size(3);
  response.add_candidates()->set_predicted_rank(1);
  response.mutable_candidates(0)->set_start_seconds(3e-6);
  v1::KernelEstimate* kernel = response.mutable_candidates(0)->add_estimates();
  kernel->set_description("{z} vector T128");
  kernel->set_memory_seconds(2e-5);
  kernel->set_correction(1.5);
  const Json json = ExplainJson(response);
  EXPECT_EQ(json["search"]["complete"], false);
  EXPECT_DOUBLE_EQ(json["search"]["listed_gap"], 0.25);
  EXPECT_EQ(json["search"]["fusions_by_size"], Json::parse("[5, 3]"));
  const Json& candidate = json["candidates"][0];
  EXPECT_DOUBLE_EQ(candidate["start_seconds"], 3e-6);
  EXPECT_EQ(candidate["estimates"][0]["description"], "{z} vector T128");
  EXPECT_DOUBLE_EQ(candidate["estimates"][0]["memory_seconds"], 2e-5);
  EXPECT_DOUBLE_EQ(candidate["estimates"][0]["correction"], 1.5);
  EXPECT_EQ(json["schema"], "fusion.explain/1");
  EXPECT_EQ(json["graph"]["nodes"], 5);
  EXPECT_DOUBLE_EQ(json["search"]["best_predicted_seconds"], 3e-4);
  EXPECT_DOUBLE_EQ(json["search"]["bound_seconds"], 2.9e-4);
  EXPECT_DOUBLE_EQ(json["floor"]["seconds"], 1e-4);
  EXPECT_FALSE(json.contains("source"));
}

TEST(RenderJsonTest, WorkersHaveWhatTheySayOfThemselves) {
  const Json json = WorkerListJson(testing::SampleWorkers());
  EXPECT_EQ(json["schema"], "fusion.workers/1");
  ASSERT_EQ(json["workers"].size(), 5u);
  const Json& mixed = json["workers"][0];
  ExpectBegins(mixed, {"worker", "connected", "draining", "running_tasks", "last_contact", "devices",
                       "version", "builds", "confinement", "problems"});
  ExpectBegins(mixed["devices"][1], {"name", "target", "arch", "copy_bytes_per_second", "uuid"});
  EXPECT_EQ(mixed["version"], "0.9.0");
  EXPECT_EQ(mixed["builds"], Json::parse(R"([{"target": "cuda", "arch": ""}])"));
  EXPECT_EQ(mixed["confinement"],
            Json::parse(R"({"runner": "bubblewrap, seccomp, limits", "host_code": "refused",
                            "compiler": "seccomp, Landlock, limits"})"));
  ASSERT_EQ(mixed["problems"].size(), 1u);
  EXPECT_EQ(mixed["problems"][0]["device_uuid"], mixed["devices"][1]["uuid"]);
  EXPECT_EQ(mixed["problems"][0]["reason"], "the probe was wrong\nat element 7");
  EXPECT_EQ(mixed["problems"][0]["seconds"], 95);
  EXPECT_EQ(json["workers"][1]["devices"], Json::array());
  EXPECT_EQ(json["workers"][1]["builds"][1]["arch"], "x86-64-avx512");
  const Json& old = json["workers"][4];
  EXPECT_EQ(old["version"], "");
  EXPECT_EQ(old["builds"], Json::array());
  EXPECT_EQ(old["problems"], Json::array());
  EXPECT_EQ(old["confinement"]["runner"], "");
}

TEST(RenderJsonTest, PrintedTextIsAlwaysJson) {
  Json json;
  json["bytes"] = "\xff\xfe";
  json["number"] = std::numeric_limits<double>::quiet_NaN();
  const Json read = Json::parse(JsonText(json), nullptr, false);
  ASSERT_FALSE(read.is_discarded());
  EXPECT_TRUE(read["number"].is_null());
}

}  // namespace
}  // namespace fusion
