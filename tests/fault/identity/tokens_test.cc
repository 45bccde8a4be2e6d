// Tokens that are wrong, expired, revoked, or shown where they should not be.
#include <atomic>
#include <cmath>
#include <filesystem>

#include "tests/fault/identity/farm_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class TokensTest : public FarmTest {};

TEST_F(TokensTest, AGoodOneOpensWhatItsRoleDoes) {
  Start();
  EXPECT_TRUE(ClientWith(Token("eva", v1::USER).secret())->ListJobs(0, "").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ClientWith(Token("eva", v1::USER).secret())->ListTokens().status()));
  EXPECT_TRUE(ClientWith(Token("root", v1::ADMIN).secret())->ListTokens().ok());
}

TEST_F(TokensTest, AnExpiredOne) {
  std::atomic<int64_t> seconds{0};
  options_.gate.now = [&seconds] {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now()) +
           std::chrono::seconds(seconds.load());
  };
  Start();
  std::unique_ptr<Client> eva = ClientWith(Token("eva", v1::USER, 600).secret());
  EXPECT_TRUE(eva->ListJobs(0, "").ok());
  seconds = 601;
  const absl::Status status = eva->ListJobs(0, "").status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("expired at"));
}

TEST_F(TokensTest, ARevokedOneAtOnceAlsoForWhatItWatches) {
  Start();
  const v1::CreateTokenResponse token = Token("eva", v1::USER);
  std::unique_ptr<Client> eva = ClientWith(token.secret());
  absl::StatusOr<v1::Job> job = eva->Submit(Request());
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(ClientOf("admin-root")->RevokeToken(token.token().name()).ok());
  const absl::Status status = eva->ListJobs(0, "").status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("was revoked at"));
  EXPECT_TRUE(absl::IsUnauthenticated(eva->WatchJob(job->name(), 0, [](const v1::JobEvent&) {}).status()));
  EXPECT_THAT(Audit(), Contains("OK RevokeToken root " + token.token().name()));
}

TEST_F(TokensTest, ItsSecretIsInNoFileOfTheServer) {
  Start();
  const std::string text = Token("eva", v1::USER).secret();
  const std::string secret = text.substr(text.rfind('_') + 1);
  ASSERT_EQ(secret.size(), 64u);
  ClientWith(text)->ListJobs(0, "").IgnoreError();
  server_.reset();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_->path()))
    if (entry.is_regular_file()) {
      EXPECT_EQ(ReadText(entry.path()).find(secret), std::string::npos) << entry.path();
    }
}

TEST_F(TokensTest, ItOutlivesTheServer) {
  Start();
  const std::string text = Token("eva", v1::USER).secret();
  server_.reset();
  Start();
  EXPECT_TRUE(ClientWith(text)->ListJobs(0, "").ok());
}

TEST_F(TokensTest, OnesThatAreMalformedOrInvented) {
  Start();
  const std::string good = Token("eva", v1::USER).secret();
  std::string other_secret = good, other_id = good;
  other_secret.back() = good.back() == '0' ? '1' : '0';
  other_id[4] = good[4] == '0' ? '1' : '0';
  const auto channel = ChannelOf("");
  for (const std::string& shown :
       {std::string("Bearer "), "Bearer " + good.substr(0, 80), "Bearer " + good + "0", "bearer " + good,
        good, "Basic " + good, "Bearer " + other_secret, "Bearer " + other_id, std::string("Bearer fus__"),
        "Bearer  " + good, "Bearer " + std::string(8000, 'f')}) {
    const grpc::Status status = Call(channel, ListJobsMethod(), "", shown);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << shown;
  }
  EXPECT_TRUE(Call(channel, ListJobsMethod(), "", "Bearer " + good).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Connect({SharedCertificates().File("ca.pem"), "", "", "fus_x"})));
}

TEST_F(TokensTest, ABadOneIsNotMendedByAGoodCertificate) {
  Start();
  EXPECT_EQ(Call(ChannelOf("admin-root"), ListJobsMethod(), "", "Bearer nonsense").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TokensTest, TwoHeadersAreNone) {
  Start();
  ClientCredentials credentials = SharedCertificates().Of("");
  credentials.token = Token("eva", v1::USER).secret();
  EXPECT_EQ(Call(Channel(credentials), ListJobsMethod(), "", "Bearer " + credentials.token).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TokensTest, ItIsNotSentInClearTextToAnotherMachine) {
  ClientCredentials credentials;
  credentials.token = "fus_0123456789abcdef_" + std::string(64, '0');
  const absl::Status status = Client::Connect("192.0.2.1:50051", credentials).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("clear text"), HasSubstr("--tls-ca")));
}

TEST_F(TokensTest, ALimitedOneOpensWhatItsScopesDo) {
  Start();
  std::unique_ptr<Client> root = ClientOf("admin-root");
  v1::CreateTokenRequest request;
  request.set_principal("eva");
  request.set_role(v1::USER);
  request.add_scopes("read");
  absl::StatusOr<v1::CreateTokenResponse> made = root->CreateToken(request);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->token().scopes(), ::testing::ElementsAre("read"));
  std::unique_ptr<Client> eva = ClientWith(made->secret());
  EXPECT_TRUE(eva->ListJobs(0, "").ok());
  const absl::Status refused = eva->Submit(Request()).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("takes the scope submit"));
  EXPECT_THAT(root->ListTokens()->tokens(0).scopes(), ::testing::ElementsAre("read"));
  // What it may not it may not over the wire either, and as before the server restarts.
  server_.reset();
  Start();
  EXPECT_TRUE(absl::IsPermissionDenied(ClientWith(made->secret())->CancelJob("jobs/none").status()));
  EXPECT_TRUE(ClientWith(made->secret())->ListWorkers().ok());
}

TEST_F(TokensTest, ALimitedOneMakesNoneThatMayMore) {
  Start();
  v1::CreateTokenRequest request;
  request.set_principal("root");
  request.set_role(v1::ADMIN);
  request.add_scopes("manage");
  absl::StatusOr<v1::CreateTokenResponse> made = ClientOf("admin-root")->CreateToken(request);
  ASSERT_TRUE(made.ok()) << made.status();
  std::unique_ptr<Client> manager = ClientWith(made->secret());
  EXPECT_TRUE(manager->CreateToken(request).ok());
  request.add_scopes("read");
  EXPECT_TRUE(absl::IsPermissionDenied(manager->CreateToken(request).status()));
  request.clear_scopes();
  EXPECT_TRUE(absl::IsPermissionDenied(manager->CreateToken(request).status()));
  request.add_scopes("everything");
  EXPECT_TRUE(absl::IsInvalidArgument(manager->CreateToken(request).status()));
}

TEST_F(TokensTest, OnesThatCannotBeMade) {
  Start();
  std::unique_ptr<Client> root = ClientOf("admin-root");
  v1::CreateTokenRequest request;
  request.set_role(v1::USER);
  for (const char* name : {"", "a/b", "a b", "\xc3\xa4", "worker gpu"}) {
    request.set_principal(name);
    EXPECT_TRUE(absl::IsInvalidArgument(root->CreateToken(request).status())) << name;
  }
  request.set_principal(std::string(65, 'a'));
  EXPECT_TRUE(absl::IsInvalidArgument(root->CreateToken(request).status()));
  request.set_principal("eva");
  request.set_role(v1::ROLE_UNSPECIFIED);
  EXPECT_TRUE(absl::IsInvalidArgument(root->CreateToken(request).status()));
  request.set_role(v1::USER);
  for (double seconds : {-1.0, 1e300, static_cast<double>(NAN)}) {
    request.set_seconds(seconds);
    EXPECT_TRUE(absl::IsInvalidArgument(root->CreateToken(request).status())) << seconds;
  }
  EXPECT_TRUE(absl::IsNotFound(root->RevokeToken("tokens/none").status()));
}

}  // namespace
}  // namespace fusion::testing
