// The scripts of two fuzz targets (tests/fuzz), replayed: what libFuzzer kept, and bytes at random. A check
// that fails ends the program with a line that says which.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fault/long_form.h"
#include "tests/fault/malformed/attacked_server.h"
#include "tests/folders.h"
#include "tests/fuzz/service_calls.h"
#include "tests/fuzz/worker_sequences.h"

namespace fusion {
namespace {

// What is kept of a target, in the order of names.
std::vector<std::string> Corpus(const std::string& target) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::SourceFolder() + "/tests/fuzz/corpus/" + target))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

std::string RandomBytes(std::mt19937_64& random, size_t most) {
  std::string bytes(random() % (most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(WorkerSequences, NobodyButItsHolderEndsATask) {
  WorkerSequences farm;
  const std::vector<std::string> corpus = Corpus("worker_sequences");
  ASSERT_FALSE(corpus.empty());
  for (const std::string& script : corpus) farm.Run(script);
  std::mt19937_64 random(1);
  for (int i = 0; i < Count(300, 5000); ++i) farm.Run(RandomBytes(random, 600));
  TellFigure("steps of workers' sequences", static_cast<double>(farm.steps()));
  TellFigure("results that they stored", static_cast<double>(farm.results()));
  EXPECT_GT(farm.results(), Count(300, 5000) / 4) << "the scripts are not worth much";
}

TEST(ServiceCalls, EveryCallEndsWithAStatusOfItsOwn) {
  ServiceCalls server;
  const std::vector<std::string> corpus = Corpus("service_calls");
  ASSERT_FALSE(corpus.empty());
  for (const std::string& script : corpus) server.Run(script);
  std::mt19937_64 random(2);
  for (int i = 0; i < Count(150, 5000); ++i) server.Run(RandomBytes(random, 200));
  TellFigure("calls of services at random", static_cast<double>(server.calls()));
  EXPECT_GT(server.served(), server.calls() / 10) << "the scripts are not worth much";
}

}  // namespace
}  // namespace fusion
