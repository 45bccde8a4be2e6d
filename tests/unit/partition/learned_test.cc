#include "client/partition/learned.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace fusion {
namespace {

const LearnedKey kKey{{"dir/a b%.c:12:3", "f\xc3\xa9"}, 0xfedcba9876543210};
const LearnedLoop kLoop{1.25e-9, 3e-10, 0, {0.5, 1e-5, 1.5}, -0.25, LoopPlan{0.7, 4, 16, 256, 2}};

class LearnedTest : public ::testing::Test {
 protected:
  LearnedTest() {
    char folder[] = "/tmp/fusion-learned-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/partition/program-1";
  }
  ~LearnedTest() override { std::filesystem::remove_all(folder_); }

  std::string Text() {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetText(const std::string& text) {
    std::filesystem::create_directories(folder_ + "/partition");
    std::ofstream(path_) << text;
  }
  // One loop, noted and saved by an object of its own.
  void Save(int number, int size_class = 40) {
    Learned learned(path_);
    learned.Note(Numbered(number), size_class, kLoop);
    learned.Save();
  }
  static LearnedKey Numbered(int number) { return {{"a.c:" + std::to_string(number) + ":1", "main"}, 1}; }

  std::string folder_, path_;
};

TEST_F(LearnedTest, IsThereInTheNextRun) {
  LearnedLoop no_plan = kLoop;
  no_plan.plan.reset();
  {
    Learned learned(path_);
    EXPECT_EQ(learned.Find(kKey, 40), nullptr);
    learned.Note(kKey, 40, kLoop);
    learned.Note(kKey, 41, no_plan);
    ASSERT_NE(learned.Find(kKey, 40), nullptr);
    EXPECT_EQ(*learned.Find(kKey, 40), kLoop);
    learned.Save();
  }
  Learned learned(path_);
  ASSERT_NE(learned.Find(kKey, 40), nullptr);
  EXPECT_EQ(*learned.Find(kKey, 40), kLoop);
  ASSERT_NE(learned.Find(kKey, 41), nullptr);
  EXPECT_EQ(*learned.Find(kKey, 41), no_plan);
  EXPECT_EQ(learned.Find(kKey, 42), nullptr);
  LearnedKey edited = kKey;
  ++edited.shape;
  EXPECT_EQ(learned.Find(edited, 40), nullptr);
  struct stat status;
  ASSERT_EQ(stat((folder_ + "/partition").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(LearnedTest, TheTextIsAsTheHeaderSays) {
  Learned learned(path_);
  learned.Note(kKey, 40, kLoop);
  learned.Save();
  EXPECT_EQ(Text(),
            "fusion-partition 1\n"
            "dir/a%20b%25.c:12:3 f%C3%A9 fedcba9876543210 40 1.25e-09 3e-10 0 0.5 1e-05 1.5 -0.25 0.7 4 16 "
            "256 2\n");
}

TEST_F(LearnedTest, NothingIsWrittenWhereNothingWasLearned) {
  Learned learned(path_);
  learned.Find(kKey, 40);
  learned.Save();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/partition"));
}

TEST_F(LearnedTest, DamagedLinesAreLeftOut) {
  Save(1);
  const std::string good = Text();
  const std::string line = good.substr(good.find('\n') + 1);
  // Each byte is another one, and the file ends at each byte.
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char byte : {' ', '\0', '%', '9', '-', '\n', '\xff'}) {
      std::string damaged = good;
      damaged[at] = byte;
      SetText(damaged);
      Learned(path_).Find(Numbered(1), 40);
    }
    SetText(good.substr(0, at));
    EXPECT_EQ(Learned(path_).Find(Numbered(1), 40), nullptr);
  }
  for (const char* bad :
       {"", "a.c:1:1", "a.c:2:1 main 1 40 x 0 0 0 0 0 0 - - - - -",
        "a.c:2:1 main 1 40 nan 0 0 0 0 0 0 - - - - -", "a.c:2:1 main 1 40 -1 0 0 0 0 0 0 - - - - -",
        "a.c:2:1 main 1 252 0 0 0 0 0 0 0 - - - - -", "a.c:2:1 main 1 40 0 0 0 0 0 0 0 - - - -",
        "a.c:2:1 main 1 40 0 0 0 0 0 0 0 - - - - - -", "a.c:2:1 main 1 40 0 0 0 0 0 0 0 1.5 1 1 0 0",
        "a.c:2:1 main 1 40 0 0 0 0 0 0 0 1 17 1 0 0", "a.c:2:1 main 1 40 0 0 0 0 0 0 0 1 1 1 1024 2",
        "a.c:2:1 main 1 40 0 0 0 0 0 0 0 1 1 0 0 0", "a.c:2:1 main% 1 40 0 0 0 0 0 0 0 - - - - -",
        "a.c:2:1 main%2 1 40 0 0 0 0 0 0 0 - - - - -"}) {
    SetText("fusion-partition 1\n" + std::string(bad) + "\n" + line);
    Learned learned(path_);
    EXPECT_EQ(learned.Find(Numbered(2), 40), nullptr) << bad;
    EXPECT_NE(learned.Find(Numbered(1), 40), nullptr) << bad;
  }
}

TEST_F(LearnedTest, OtherFilesAreIgnoredAndReplaced) {
  Save(1);
  const std::string line = Text().substr(Text().find('\n') + 1);
  for (const std::string& other : {"fusion-partition 2\n" + line, line, std::string(),
                                   "fusion-partition 1\n" + line + std::string(Learned::kMostBytes, '\n')}) {
    SetText(other);
    EXPECT_EQ(Learned(path_).Find(Numbered(1), 40), nullptr);
    Save(2);
    EXPECT_NE(Learned(path_).Find(Numbered(2), 40), nullptr);
  }
}

TEST_F(LearnedTest, WhatOthersWroteMeanwhileStays) {
  Learned first(path_), second(path_);
  first.Find(kKey, 40);
  second.Find(kKey, 40);
  first.Note(Numbered(1), 40, kLoop);
  second.Note(Numbered(2), 40, kLoop);
  first.Save();
  second.Save();
  first.Note(Numbered(3), 40, kLoop);
  first.Save();
  Learned learned(path_);
  for (int number = 1; number <= 3; ++number)
    EXPECT_NE(learned.Find(Numbered(number), 40), nullptr) << number;
}

TEST_F(LearnedTest, ManyWritersLoseNothing) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([this, writer] {
      for (int i = 0; i < 20; ++i) Save(20 * writer + i);
    });
  for (std::thread& writer : writers) writer.join();
  Learned learned(path_);
  for (int number = 0; number < 80; ++number)
    EXPECT_NE(learned.Find(Numbered(number), 40), nullptr) << number;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/partition"), {}), 1);
}

TEST_F(LearnedTest, TheOldestLinesAreDropped) {
  Learned learned(path_);
  for (int number = 0; number < 1999; ++number) learned.Note(Numbered(number), 40, kLoop);
  learned.Save();
  Save(5000);
  Save(5001);
  Save(5002);
  Learned read(path_);
  int found = 0;
  for (int number = 0; number < 1999; ++number) found += read.Find(Numbered(number), 40) != nullptr;
  EXPECT_EQ(found, 1997);
  for (int number = 5000; number <= 5002; ++number) EXPECT_NE(read.Find(Numbered(number), 40), nullptr);
}

TEST_F(LearnedTest, TheFileIsNeverTooLongToBeRead) {
  Learned learned(path_);
  LearnedKey key = kKey;
  for (int number = 0; number < 5; ++number) {
    key.loop.function = std::string(300'000, static_cast<char>('a' + number));
    learned.Note(key, 40, kLoop);
  }
  learned.Save();
  EXPECT_LE(std::filesystem::file_size(path_), Learned::kMostBytes);
  EXPECT_NE(Learned(path_).Find(key, 40), nullptr);
}

TEST_F(LearnedTest, ChildrenWriteNothing) {
  Learned learned(path_);
  learned.Note(kKey, 40, kLoop);
  const pid_t child = fork();
  if (child == 0) {
    learned.Save();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  learned.Save();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(LearnedTest, WhatCannotBeWrittenIsForgotten) {
  SetText("");
  const int held = open(path_.c_str(), O_RDWR);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  Save(1);  // gives up
  EXPECT_EQ(Text(), "");
  close(held);
  std::filesystem::remove(path_);
  std::filesystem::create_directories(path_);
  Save(1);
  EXPECT_EQ(Learned(path_).Find(Numbered(1), 40), nullptr);
  Learned nowhere("");
  nowhere.Note(kKey, 40, kLoop);
  nowhere.Save();
  EXPECT_NE(nowhere.Find(kKey, 40), nullptr);
}

std::map<std::string, std::string> g_environment;

std::string PathWith(const std::map<std::string, std::string>& environment) {
  g_environment = environment;
  return LearnedPath(
      [](const char* name) -> const char* {
        const auto found = g_environment.find(name);
        return found == g_environment.end() ? nullptr : found->second.c_str();
      },
      "/usr/bin/program");
}

TEST(LearnedPathTest, IsBesideTheDatabaseOfTheTuner) {
  const std::string name = "/partition/program-" + PathWith({{"FUSION_DATA_DIR", "/a"}}).substr(21);
  EXPECT_EQ(name.size(), std::string("/partition/program-0123456789abcdef").size());
  EXPECT_EQ(PathWith({{"FUSION_DATA_DIR", "/a"}, {"XDG_DATA_HOME", "/b"}, {"HOME", "/c"}}), "/a" + name);
  EXPECT_EQ(PathWith({{"FUSION_DATA_DIR", ""}, {"XDG_DATA_HOME", "/b"}, {"HOME", "/c"}}), "/b/fusion" + name);
  EXPECT_EQ(PathWith({{"HOME", "/c"}}), "/c/.local/share/fusion" + name);
  EXPECT_NE(PathWith({}).find("/fusion-" + std::to_string(getuid()) + name), std::string::npos);
}

TEST(LearnedPathTest, TellsProgramsOfOneNameApart) {
  const auto none = [](const char*) -> const char* { return "/a"; };
  EXPECT_NE(LearnedPath(none, "/usr/bin/program"), LearnedPath(none, "/home/program"));
  EXPECT_EQ(LearnedPath(none, ""), "");
  EXPECT_NE(ExecutablePath(), "");
}

}  // namespace
}  // namespace fusion
