// The programs, as a farm with certificates runs them.
#include "tests/fault/identity/farm_fixture.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgramsTest : public FarmTest {
 protected:
  void SetUp() override {
    FarmTest::SetUp();
    Start();
  }
  // fusion-client with these arguments, then those of who calls.
  ProcessResult Client(std::vector<std::string> arguments, const std::vector<std::string>& shown,
                       const std::map<std::string, std::string>& environment = {}) {
    arguments.insert(arguments.end(),
                     {"--server", Address(), "--tls-ca", SharedCertificates().File("ca.pem")});
    arguments.insert(arguments.end(), shown.begin(), shown.end());
    std::map<std::string, std::string> all = {{"XDG_CONFIG_HOME", data_->path()}, {"FUSION_TOKEN", ""}};
    for (const auto& [name, value] : environment) all[name] = value;
    return Process("fusion-client", arguments, all).Wait();
  }
  static std::vector<std::string> Shows(const std::string& name) {
    return {"--tls-cert", SharedCertificates().File(name + ".pem"), "--tls-key",
            SharedCertificates().File(name + ".key")};
  }
};

TEST_F(ProgramsTest, ATokenIsMadeShownListedAndRevoked) {
  ProcessResult made = Client({"tokens", "create", "--principal", "max", "--days", "2"}, Shows("admin-root"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  ASSERT_EQ(made.out.size(), 86u) << made.out;
  const std::string text = made.out.substr(0, 85), file = data_->path() + "/token";
  WriteText(file, made.out);
  EXPECT_EQ(Client({"jobs", "list"}, {"--token-file", file}).exit_code, 0);
  EXPECT_EQ(Client({"jobs", "list"}, {}, {{"FUSION_TOKEN", text}}).exit_code, 0);
  // A certificate on the command line is not outdone by a token from elsewhere.
  ProcessResult list = Client({"tokens", "list"}, Shows("admin-root"), {{"FUSION_TOKEN", text}});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("max"), HasSubstr("good"), Not(HasSubstr(text))));
  const std::string name = "tokens/" + text.substr(4, 16);
  ProcessResult revoked = Client({"tokens", "revoke", name, "--json"}, Shows("admin-root"));
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  EXPECT_THAT(revoked.out, AllOf(HasSubstr("\"fusion.token/1\""), HasSubstr(name)));
  ProcessResult refused = Client({"jobs", "list"}, {"--token-file", file});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err, HasSubstr("was revoked at"));
}

TEST_F(ProgramsTest, WhoMayNotHasExitCode4) {
  EXPECT_EQ(Client({"jobs", "list"}, {}).exit_code, 4) << "nobody";
  EXPECT_EQ(Client({"audit", "list"}, Shows("user-eva")).exit_code, 4) << "a user";
  ProcessResult json = Client({"audit", "list", "--json"}, Shows("worker-gpu1"));
  EXPECT_EQ(json.exit_code, 4) << "a worker";
  EXPECT_THAT(json.out, HasSubstr("PERMISSION_DENIED"));
  const Certificates others("--user eva");
  ProcessResult stranger = Client({"jobs", "list"}, {"--tls-cert", others.File("user-eva.pem"), "--tls-key",
                                                     others.File("user-eva.key")});
  EXPECT_EQ(stranger.exit_code, 4) << stranger.err;
  EXPECT_EQ(Client({"jobs", "list"}, {"--token-file", "/nowhere"}).exit_code, 2);
  EXPECT_EQ(Client({"jobs", "list"}, {"--tls-cert", SharedCertificates().File("user-eva.pem")}).exit_code, 2);
}

TEST_F(ProgramsTest, TheConfigurationFileSaysWhoCalls) {
  std::filesystem::create_directory(data_->path() + "/fusion");
  auto quoted = [](const std::string& name) { return "\"" + SharedCertificates().File(name) + "\""; };
  WriteText(data_->path() + "/fusion/config.json",
            "{\"server\": \"" + Address() + "\", \"tls_ca\": " + quoted("ca.pem") + ", \"tls_cert\": " +
                quoted("user-eva.pem") + ", \"tls_key\": " + quoted("user-eva.key") + "}");
  const std::map<std::string, std::string> environment = {
      {"XDG_CONFIG_HOME", data_->path()}, {"FUSION_TOKEN", ""}, {"FUSION_SERVER", ""}};
  ProcessResult listed = Process("fusion-client", {"workers", "list"}, environment).Wait();
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(Process("fusion-client", {"audit", "list"}, environment).Wait().exit_code, 4);
  EXPECT_EQ(Client({"audit", "list"}, Shows("admin-root")).exit_code, 0);
}

TEST_F(ProgramsTest, AWorkerThatIsNotWhoItSaysEndsWithExitCode4) {
  std::vector<std::string> arguments = {
      "--server", Address(), "--name",   "gpu2",
      "--target", "host",    "--tls-ca", SharedCertificates().File("ca.pem")};
  for (const std::string& argument : Shows("worker-gpu1")) arguments.push_back(argument);
  ProcessResult worker = Process("fusion-worker", arguments, {{"FUSION_TOKEN", ""}}).Wait();
  EXPECT_EQ(worker.exit_code, 4) << worker.err;
  EXPECT_THAT(worker.err, HasSubstr("may not speak as the worker gpu2"));
}

TEST_F(ProgramsTest, AServerWithoutTlsDoesNotListenForOthers) {
  ProcessResult server =
      Process("fusion-server", {"--listen", "0.0.0.0:0", "--data", data_->path() + "/other"}, {}).Wait();
  EXPECT_EQ(server.exit_code, 2);
  EXPECT_THAT(server.err, AllOf(HasSubstr("--tls-cert"), HasSubstr("--insecure-any-address")));
}

TEST_F(ProgramsTest, ATokenIsMadeForSomeThingsAlone) {
  ProcessResult made =
      Client({"tokens", "create", "--principal", "max", "--scope", "submit,read"}, Shows("admin-root"));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::map<std::string, std::string> shown = {{"FUSION_TOKEN", made.out.substr(0, 85)}};
  EXPECT_EQ(Client({"jobs", "list"}, {}, shown).exit_code, 0);
  ProcessResult refused = Client({"tune", "reset", "tunings/1"}, {}, shown);
  EXPECT_EQ(refused.exit_code, 4) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("limited to read, submit"));
  EXPECT_THAT(Client({"tokens", "list"}, Shows("admin-root")).out, HasSubstr("read,submit"));
  EXPECT_EQ(
      Client({"tokens", "create", "--principal", "max", "--scope", "fly"}, Shows("admin-root")).exit_code, 2);
  ProcessResult none =
      Client({"tokens", "create", "--principal", "max", "--scope", "manage"}, Shows("admin-root"));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("nothing to manage for the role user"));
}

class ProgramsWithoutTlsTest : public FarmTest {};

TEST_F(ProgramsWithoutTlsTest, ATokenThatIsNotShownIsSaid) {
  options_.tls = {};
  Start();
  const std::string token = "fus_0123456789abcdef_" + std::string(64, '0'), file = data_->path() + "/token";
  WriteText(file, token);
  const auto list = [&](std::vector<std::string> arguments, const std::string& variable) {
    arguments.insert(arguments.begin(), {"jobs", "list", "--server", Address()});
    return Process("fusion-client", arguments,
                   {{"XDG_CONFIG_HOME", data_->path()}, {"FUSION_TOKEN", variable}})
        .Wait();
  };
  ProcessResult option = list({"--token-file", file}, "");
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_THAT(option.err, AllOf(HasSubstr("--token-file: the token is not shown"), HasSubstr("--tls-ca")));
  ProcessResult variable = list({}, token);
  EXPECT_EQ(variable.exit_code, 0) << variable.err;
  EXPECT_THAT(variable.err, HasSubstr("note: the token is not shown"));
  EXPECT_EQ(list({}, "").err, "");
}

}  // namespace
}  // namespace fusion::testing
