#include "server/identity/access_gate.h"

#include <gmock/gmock.h>

#include "google/rpc/error_details.pb.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr char kListJobs[] = "/fusion.v1.OptimizerService/ListJobs";

class AccessGateTest : public StoreTest {
 protected:
  AccessGate& Gate(AccessOptions options) {
    options.now = [this] { return now_; };
    gate_ = std::make_unique<AccessGate>(tokens_.emplace(*store_), revoked_,
                                         audit_.emplace(*store_, AuditOptions()), options);
    return *gate_;
  }
  std::string Token(const std::string& name, Role role) {
    absl::StatusOr<CreatedToken> token = tokens_->Create(name, role, std::chrono::seconds(100), now_);
    EXPECT_TRUE(token.ok()) << token.status();
    return token.ok() ? token->text : "";
  }
  void TearDown() override {
    gate_.reset();
    audit_.reset();
    StoreTest::TearDown();
  }

  Timestamp now_ = At(1'000'000);
  RevokedCertificates revoked_{""};
  std::optional<TokenRegistry> tokens_;
  std::optional<AuditLog> audit_;
  std::unique_ptr<AccessGate> gate_;
};

TEST_F(AccessGateTest, WithoutTlsEverybodyIsTheOperator) {
  AccessGate& gate = Gate({});
  EXPECT_EQ(*gate.Authenticate({.peer = "ipv4:127.0.0.1:1"}), Principal{});
  EXPECT_EQ(*gate.Authenticate({.peer = "ipv4:10.0.0.7:1"}), Principal{}) << "--insecure-any-address";
}

TEST_F(AccessGateTest, ATokenThatCameInClearTextOverTheNetworkIsRefused) {
  AccessGate& gate = Gate({});
  const std::string shown = "Bearer " + Token("eva", Role::kUser);
  EXPECT_EQ(gate.Authenticate({.authorization = shown, .peer = "ipv4:127.0.0.1:1"})->name, "eva");
  const absl::Status status = gate.Authenticate({.authorization = shown, .peer = "ipv4:10.0.0.7:1"}).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("clear text"));
}

TEST_F(AccessGateTest, BesideTlsOnlyItsOwnProcessIsTheOperator) {
  AccessGate& gate = Gate({.tls = true});
  EXPECT_EQ(*gate.Authenticate({.peer = "inproc"}), Principal{});
  EXPECT_TRUE(absl::IsUnauthenticated(gate.Authenticate({.tls = true, .peer = "ipv4:127.0.0.1:1"}).status()));
  for (const char* peer : {"ipv4:127.0.0.1:1", "ipv6:[::1]:1", "unix:/run/x"})
    EXPECT_TRUE(absl::IsUnauthenticated(gate.Authenticate({.peer = peer}).status())) << peer;
}

TEST_F(AccessGateTest, TokensEnd) {
  AccessGate& gate = Gate({.tls = true});
  const ShownCredentials shown{.tls = true, .authorization = "Bearer " + Token("eva", Role::kUser)};
  EXPECT_EQ(*gate.Authenticate(shown), (Principal{"eva", Role::kUser, Principal::How::kToken}));
  now_ += std::chrono::seconds(100);
  EXPECT_TRUE(absl::IsUnauthenticated(gate.Authenticate(shown).status()));
}

TEST_F(AccessGateTest, ATokenIsLimitedToItsScopes) {
  AccessGate& gate = Gate({.tls = true});
  const auto shown = [&](Role role, const std::vector<std::string>& scopes) {
    absl::StatusOr<CreatedToken> token =
        tokens_->Create("eva", role, std::chrono::seconds(100), now_, *Scopes::Parse(scopes));
    EXPECT_TRUE(token.ok()) << token.status();
    return ShownCredentials{.tls = true, .authorization = "Bearer " + (token.ok() ? token->text : "")};
  };
  constexpr char kSubmit[] = "/fusion.v1.OptimizerService/Submit";
  const ShownCredentials reads = shown(Role::kUser, {"read"}),
                         submits = shown(Role::kUser, {"submit", "read"}), all = shown(Role::kUser, {}),
                         root_reads = shown(Role::kAdmin, {"read"});
  EXPECT_TRUE(gate.CheckAtDoor(reads, kListJobs).ok());
  for (const absl::Status& status :
       {gate.CheckAtDoor(reads, kSubmit).status(), gate.Admit(reads, kSubmit, 1).status()}) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_EQ(std::string(status.message()),
              "the token of eva is limited to read; Submit takes the scope submit");
  }
  for (const ShownCredentials& both : {submits, all}) {
    EXPECT_TRUE(gate.Admit(both, kListJobs, 1).ok());
    EXPECT_TRUE(gate.Admit(both, kSubmit, 1).ok());
  }
  EXPECT_TRUE(gate.CheckAtDoor(root_reads, "/fusion.v1.AdminService/ListTokens").ok());
  EXPECT_TRUE(
      absl::IsPermissionDenied(gate.CheckAtDoor(root_reads, "/fusion.v1.AdminService/CreateToken").status()));
  // After a restart too.
  TokenRegistry again(*store_);
  ASSERT_TRUE(again.Load().ok());
  EXPECT_EQ(again.Verify(std::string_view(reads.authorization).substr(7), now_)->scopes,
            *Scopes::Parse({"read"}));
}

TEST_F(AccessGateTest, AScopeThatItsRoleHasNothingOfIsRefused) {
  Gate({.tls = true});
  const auto create = [&](Role role, const std::string& scope) {
    return tokens_->Create("eva", role, std::chrono::seconds(100), now_, *Scopes::Parse({scope})).status();
  };
  EXPECT_TRUE(create(Role::kWorker, "work").ok());
  EXPECT_TRUE(create(Role::kAdmin, "manage").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(create(Role::kUser, "work")));
  EXPECT_TRUE(absl::IsInvalidArgument(create(Role::kAdmin, "work")));
  EXPECT_TRUE(absl::IsInvalidArgument(create(Role::kWorker, "submit")));
  EXPECT_EQ(std::string(create(Role::kUser, "manage").message()),
            "scopes: there is nothing to manage for the role user");
}

TEST_F(AccessGateTest, ACertificateThatCannotBeReadIsNobodys) {
  AccessGate& gate = Gate({.tls = true});
  EXPECT_TRUE(absl::IsUnauthenticated(gate.Authenticate({.tls = true, .certificate = "garbage"}).status()));
}

TEST_F(AccessGateTest, RateAndSizeAreLimitedButNotTheOperators) {
  AccessGate& gate = Gate({.tls = true, .user_requests = {0.1, 1}});
  const ShownCredentials eva{.tls = true, .authorization = "Bearer " + Token("eva", Role::kUser)};
  EXPECT_TRUE(gate.Admit(eva, kListJobs, 10).ok());
  const absl::Status status = gate.Admit(eva, kListJobs, 10).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  google::rpc::RetryInfo retry;
  auto payload = status.GetPayload("type.googleapis.com/google.rpc.RetryInfo");
  ASSERT_TRUE(payload.has_value());
  ASSERT_TRUE(retry.ParseFromString(std::string(*payload)));
  EXPECT_GE(retry.retry_delay().seconds(), 9);
  const ShownCredentials max{.tls = true, .authorization = "Bearer " + Token("max", Role::kUser)};
  EXPECT_TRUE(absl::IsResourceExhausted(gate.Admit(max, kListJobs, 1 << 20).status()));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(gate.Admit({}, kListJobs, 1 << 30).ok());
}

TEST_F(AccessGateTest, RefusalsAreRecorded) {
  AccessGate& gate = Gate({.tls = true});
  EXPECT_FALSE(gate.Admit({.tls = true, .peer = "ipv4:10.0.0.7:1"}, kListJobs, 0).ok());
  const ShownCredentials eva{.tls = true, .authorization = "Bearer " + Token("eva", Role::kUser)};
  EXPECT_FALSE(gate.Admit(eva, "/fusion.v1.AdminService/ListTokens\n\x1b[31m", 0).ok());
  gate.audit().Flush();
  absl::StatusOr<AuditPage> page = store_->ListAuditEntries(0, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->entries.size(), 2u);
  EXPECT_EQ(page->entries[0].principal, "eva");
  EXPECT_EQ(page->entries[0].role, "USER");
  EXPECT_EQ(page->entries[0].outcome, "PERMISSION_DENIED");
  EXPECT_EQ(page->entries[0].method, "/fusion.v1.AdminService/ListTokens??[31m")
      << "nothing that a terminal obeys";
  EXPECT_EQ(page->entries[1].principal, "");
  EXPECT_EQ(page->entries[1].role, "");
  EXPECT_EQ(page->entries[1].peer, "ipv4:10.0.0.7:1");
  EXPECT_EQ(page->entries[1].outcome, "UNAUTHENTICATED");
  EXPECT_EQ(page->entries[1].time, now_);
}

TEST_F(AccessGateTest, HealthIsOpen) {
  AccessGate& gate = Gate({.tls = true});
  EXPECT_TRUE(gate.CheckAtDoor({.tls = true}, "/grpc.health.v1.Health/Check").ok());
  EXPECT_TRUE(absl::IsUnauthenticated(
      gate.CheckAtDoor({.tls = true}, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
          .status()));
  EXPECT_TRUE(
      absl::IsUnauthenticated(gate.CheckAtDoor({.tls = true}, "/grpc.health.v1.Health/Checks").status()));
}

}  // namespace
}  // namespace fusion
