// Programs that tune themselves through a server which asks who they are: the library shows what a person's
// configuration says.
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_directory.h"
#include "client/tuner/fusion_tuner.h"
#include "tests/fault/identity/farm_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// An environment variable for the time of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }

 private:
  const char* const name_;
  std::string before_;
};

class TunedProgramTest : public FarmTest {
 protected:
  void SetUp() override {
    FarmTest::SetUp();
    auto folder = TemporaryDirectory::Create();
    ASSERT_TRUE(folder.ok());
    folder_ = *std::move(folder);
    std::filesystem::create_directories(folder_->path() + "/fusion");
    Start();
  }
  void TearDown() override {
    fusion_tuner_destroy(tuner_);
    FarmTest::TearDown();
  }
  // The configuration of a person with the certificate `name`; "": with the authority's alone.
  void Configure(const std::string& name) {
    const ClientCredentials shown = SharedCertificates().Of(name);
    std::string text = "{\"tls_ca\": \"" + shown.authorities + "\"";
    if (!name.empty())
      text += ", \"tls_cert\": \"" + shown.certificate + "\", \"tls_key\": \"" + shown.key + "\"";
    WriteText(folder_->path() + "/fusion/config.json", text + "}");
  }
  // A program that runs a section so often.
  void Tune(int runs) {
    if (tuner_ == nullptr) {
      const std::string address = Address();
      fusion_tuner_options options;
      fusion_tuner_options_init(&options);
      options.server = address.c_str();
      options.program = "farm";
      options.device_class = "simulated";
      options.notice = [](const char* line, void* data) {
        auto* test = static_cast<TunedProgramTest*>(data);
        std::lock_guard lock(test->notices_mutex_);
        test->notices_.push_back(line);
      };
      options.notice_data = this;
      ASSERT_EQ(fusion_tuner_create(&options, &tuner_), FUSION_TUNER_OK) << fusion_tuner_message();
      fusion_tuner_parameter* tile = nullptr;
      ASSERT_EQ(fusion_tuner_section_create(tuner_, "loop", &section_), FUSION_TUNER_OK);
      ASSERT_EQ(fusion_tuner_integer_range(tuner_, "tile", 0, 40, 1, &tile), FUSION_TUNER_OK);
      ASSERT_EQ(fusion_tuner_section_parameter(section_, tile), FUSION_TUNER_OK);
      ASSERT_EQ(fusion_tuner_section_declare(section_), FUSION_TUNER_OK) << fusion_tuner_message();
    }
    for (int run = 0; run < runs; ++run) {
      const double distance = static_cast<double>(fusion_tuner_next(section_)->integer) - 13;
      ASSERT_EQ(fusion_tuner_report(section_, 1 + distance * distance / 100), FUSION_TUNER_OK);
    }
  }
  fusion_tuner_counters_t Counters() {
    fusion_tuner_counters_t counters;
    counters.size = sizeof(counters);
    EXPECT_EQ(fusion_tuner_counters(tuner_, &counters), FUSION_TUNER_OK);
    return counters;
  }
  // Until the program has been told something, at most 20 s.
  std::vector<std::string> Notices() {
    for (int i = 0; i < 2000; ++i) {
      {
        std::lock_guard lock(notices_mutex_);
        if (!notices_.empty()) return notices_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return {};
  }

  std::unique_ptr<TemporaryDirectory> folder_;
  fusion_tuner* tuner_ = nullptr;
  fusion_tuner_section* section_ = nullptr;
  std::mutex notices_mutex_;
  std::vector<std::string> notices_;  // guarded by notices_mutex_
};

TEST_F(TunedProgramTest, ACertificateOfTheConfigurationIsShown) {
  Configure("user-eva");
  const Variable folder("XDG_CONFIG_HOME", folder_->path());
  Tune(50);
  EXPECT_EQ(fusion_tuner_flush(tuner_, 20), FUSION_TUNER_OK) << fusion_tuner_message();
  EXPECT_EQ(Counters().acknowledged, 50u);
}

TEST_F(TunedProgramTest, ATokenOfTheEnvironmentIsShown) {
  Configure("");
  const Variable folder("XDG_CONFIG_HOME", folder_->path());
  const Variable token("FUSION_TOKEN", Token("max", v1::USER).secret());
  Tune(50);
  EXPECT_EQ(fusion_tuner_flush(tuner_, 20), FUSION_TUNER_OK) << fusion_tuner_message();
  EXPECT_EQ(Counters().acknowledged, 50u);
}

TEST_F(TunedProgramTest, WhoShowsNothingIsNotLetInAndRunsWithItsDefaults) {
  Configure("");
  const Variable folder("XDG_CONFIG_HOME", folder_->path());
  Tune(50);
  EXPECT_THAT(Notices(), Contains(AllOf(HasSubstr(Address()), HasSubstr("cannot be reached"))));
  EXPECT_EQ(fusion_tuner_flush(tuner_, 0.2), FUSION_TUNER_DEADLINE_EXCEEDED);
  const fusion_tuner_counters_t counters = Counters();
  EXPECT_EQ(counters.reported, 50u);
  EXPECT_EQ(counters.acknowledged, 0u);
  EXPECT_FALSE(counters.connected);
}

TEST_F(TunedProgramTest, ARevokedTokenEndsTheStreamAndNotTheProgram) {
  Configure("");
  const Variable folder("XDG_CONFIG_HOME", folder_->path());
  const v1::CreateTokenResponse token = Token("max", v1::USER);
  const Variable shown("FUSION_TOKEN", token.secret());
  Tune(10);
  ASSERT_EQ(fusion_tuner_flush(tuner_, 20), FUSION_TUNER_OK) << fusion_tuner_message();
  ASSERT_TRUE(ClientOf("admin-root")->RevokeToken(token.token().name()).ok());
  // What a stream shows is looked at again every second, when something comes.
  for (int i = 0; i < 200 && Counters().connected; ++i) {
    Tune(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_FALSE(Counters().connected);
  EXPECT_THAT(Notices(), Contains(AllOf(HasSubstr("is gone"), Not(HasSubstr(token.secret())))));
  const uint64_t acknowledged = Counters().acknowledged;
  Tune(10);
  EXPECT_EQ(fusion_tuner_flush(tuner_, 0.5), FUSION_TUNER_DEADLINE_EXCEEDED);
  EXPECT_EQ(Counters().acknowledged, acknowledged);
}

}  // namespace
}  // namespace fusion::testing
