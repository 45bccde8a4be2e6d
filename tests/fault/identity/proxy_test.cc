// A proxy passes calls on; other callers only say so.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tests/fault/identity/farm_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class ProxyTest : public FarmTest {
 protected:
  static Certificates& Own() {
    static Certificates certificates(
        "--server localhost,127.0.0.1 --admin root --user eva --user max --proxy edge --proxy other");
    return certificates;
  }
  void SetUp() override {
    FarmTest::SetUp();
    options_.tls = Own().Server();
    options_.gate.proxy = "edge";
    Start();
  }
  // Gives the value of HAProxy's ssl_c_der,base64.
  static std::string Forwarded(const std::string& name, const Certificates& from = Own()) {
    std::string pem = ReadText(from.File(name + ".pem"));
    for (const char* line : {"-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----", "\n"})
      pem = absl::StrReplaceAll(pem, {{line, ""}});
    return pem;
  }
  // Makes a call over a connection with the certificate `through`, with these headers.
  absl::Status ListJobs(const std::string& through,
                        const std::vector<std::pair<std::string, std::string>>& headers) {
    grpc::ClientContext context;
    for (const auto& [name, value] : headers) context.AddMetadata(name, value);
    v1::ListJobsResponse response;
    return FromGrpcStatus(v1::OptimizerService::NewStub(Channel(Own().Of(through)))
                              ->ListJobs(&context, v1::ListJobsRequest(), &response));
  }
  std::vector<std::string> Peers(const std::string& outcome) {
    Client root(Channel(Own().Of("admin-root")), nullptr);
    absl::StatusOr<v1::ListAuditEntriesResponse> entries = root.ListAuditEntries(1000, "");
    EXPECT_TRUE(entries.ok()) << entries.status();
    std::vector<std::string> peers;
    if (!entries.ok()) return peers;
    for (const v1::AuditEntry& entry : entries->entries())
      if (entry.outcome() == outcome) peers.push_back(entry.principal() + " " + entry.peer());
    return peers;
  }
  static constexpr char kCertificate[] = "x-fusion-client-certificate",
                        kAddress[] = "x-fusion-client-address";
};

TEST_F(ProxyTest, ACallIsOfWhomTheProxyNames) {
  EXPECT_TRUE(
      ListJobs("proxy-edge", {{kCertificate, Forwarded("user-eva")}, {kAddress, "192.0.2.7:4711"}}).ok());
  // Eva is refused what she may not do, and the audit log knows from where.
  grpc::ClientContext context;
  context.AddMetadata(kCertificate, Forwarded("user-eva"));
  context.AddMetadata(kAddress, "2001:db8::7:4711");
  v1::ListTokensResponse tokens;
  const grpc::Status refused = v1::AdminService::NewStub(Channel(Own().Of("proxy-edge")))
                                   ->ListTokens(&context, v1::ListTokensRequest(), &tokens);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED) << refused.error_message();
  EXPECT_THAT(Peers("PERMISSION_DENIED"), Contains("eva ipv6:[2001:db8::7]:4711"));
}

TEST_F(ProxyTest, ACallerWithoutACertificateNeedsAToken) {
  const absl::Status nobody = ListJobs("proxy-edge", {{kCertificate, ""}, {kAddress, "192.0.2.7:4711"}});
  EXPECT_TRUE(absl::IsUnauthenticated(nobody)) << nobody;
  EXPECT_THAT(std::string(nobody.message()), HasSubstr("asks who calls"));
  v1::CreateTokenRequest request;
  request.set_principal("max");
  request.set_role(v1::USER);
  request.set_seconds(3600);
  absl::StatusOr<v1::CreateTokenResponse> token =
      Client(Channel(Own().Of("admin-root")), nullptr).CreateToken(request);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_TRUE(ListJobs("proxy-edge", {{kCertificate, ""},
                                      {kAddress, "192.0.2.7:4711"},
                                      {"authorization", "Bearer " + token->secret()}})
                  .ok());
}

TEST_F(ProxyTest, NobodyElseIsBelieved) {
  for (const char* through : {"user-eva", "admin-root", "proxy-other", ""}) {
    for (const auto& headers : std::vector<std::vector<std::pair<std::string, std::string>>>{
             {{kCertificate, Forwarded("admin-root")}, {kAddress, "192.0.2.7:4711"}},
             {{kCertificate, ""}, {kAddress, "192.0.2.7:4711"}},
             {{kCertificate, Forwarded("admin-root")}},
             {{kAddress, "192.0.2.7:4711"}}}) {
      const absl::Status status = ListJobs(through, headers);
      EXPECT_TRUE(absl::IsUnauthenticated(status)) << through << " " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("--proxy-identity")) << through;
    }
  }
}

TEST_F(ProxyTest, WhatTheProxySaysMustBeWhole) {
  const auto refusal = [&](const std::vector<std::pair<std::string, std::string>>& headers) {
    const absl::Status status = ListJobs("proxy-edge", headers);
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    return std::string(status.message());
  };
  const std::string eva = Forwarded("user-eva"), address = "192.0.2.7:4711";
  EXPECT_THAT(refusal({}), HasSubstr("makes no calls of its own"));
  EXPECT_THAT(refusal({{kCertificate, eva}}), HasSubstr("only one of"));
  EXPECT_THAT(refusal({{kAddress, address}}), HasSubstr("only one of"));
  EXPECT_THAT(refusal({{kCertificate, eva}, {kAddress, "somewhere"}}), HasSubstr("an address"));
  EXPECT_THAT(refusal({{kCertificate, eva}, {kAddress, "192.0.2.7:port"}}), HasSubstr("an address"));
  EXPECT_THAT(refusal({{kCertificate, "bm9uZQ=="}, {kAddress, address}}), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal({{kCertificate, "?"}, {kAddress, address}}), HasSubstr("cannot be read"));
  // A caller who sent one too, and a proxy that adds its own instead of putting it in its place.
  EXPECT_THAT(refusal({{kCertificate, Forwarded("admin-root")}, {kCertificate, eva}, {kAddress, address}}),
              HasSubstr("cannot be read"));
  EXPECT_THAT(refusal({{kCertificate, eva}, {kAddress, address}, {kAddress, address}}),
              HasSubstr("an address"));
  // A proxy passes on no other proxy's calls.
  EXPECT_THAT(refusal({{kCertificate, Forwarded("proxy-other")}, {kAddress, address}}),
              HasSubstr("makes no calls of its own"));
}

TEST_F(ProxyTest, ARevokedProxyOrCallerOpensNothing) {
  Certificates own("--server localhost,127.0.0.1 --user eva --user max --proxy edge");
  server_.reset();
  options_.tls = own.Server();
  Start();
  const auto channel = Channel(own.Of("proxy-edge"));
  const auto call = [&](const std::string& caller) {
    grpc::ClientContext context;
    context.AddMetadata(kCertificate, Forwarded(caller, own));
    context.AddMetadata(kAddress, "192.0.2.7:4711");
    v1::ListJobsResponse response;
    return v1::OptimizerService::NewStub(channel)->ListJobs(&context, v1::ListJobsRequest(), &response);
  };
  EXPECT_TRUE(call("user-eva").ok());
  own.Make("--revoke user-eva");
  EXPECT_THAT(call("user-eva").error_message(), HasSubstr("the client certificate is revoked"));
  EXPECT_TRUE(call("user-max").ok());
  own.Make("--revoke proxy-edge");
  EXPECT_EQ(call("user-max").error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace fusion::testing
