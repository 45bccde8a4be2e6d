// Certificates that are wrong, and certificates that change while the server runs.
#include <atomic>
#include <thread>

#include "tests/fault/identity/farm_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kUser[] = "extendedKeyUsage=clientAuth\nsubjectAltName=URI:fusion://user/odd\n";
constexpr char kServer[] = "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n";
constexpr char kPast[] = "20200101000000Z", kPastEnd[] = "20200201000000Z";
constexpr char kFuture[] = "20900101000000Z", kFutureEnd[] = "20910101000000Z";

class CertificatesTest : public FarmTest {
 protected:
  // What a client that looks at nothing itself meets: the handshake fails, or the call is refused.
  void ExpectNotServed(const ClientCredentials& credentials) {
    auto channel = grpc::CreateChannel(
        Address(), grpc::SslCredentials({ReadText(credentials.authorities), ReadText(credentials.key),
                                         ReadText(credentials.certificate)}));
    const grpc::Status status = Call(channel, ListJobsMethod());
    EXPECT_TRUE(status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                status.error_code() == grpc::StatusCode::UNAUTHENTICATED)
        << status.error_code() << " " << status.error_message();
  }
  absl::Status StartStatus() { return Server::Start(options_).status(); }
  // Other certificates than the shared ones, to be changed.
  Certificates& Own() {
    if (!own_) own_ = std::make_unique<Certificates>("--server localhost,127.0.0.1 --user eva --admin root");
    return *own_;
  }

 private:
  std::unique_ptr<Certificates> own_;
};

TEST_F(CertificatesTest, AGoodOneConnectsByNameAndByAddress) {
  Start();
  EXPECT_TRUE(Connect(SharedCertificates().Of("user-eva")).ok());
  EXPECT_TRUE(Connect(SharedCertificates().Of("user-eva"), "localhost").ok());
  ClientCredentials reloading = SharedCertificates().Of("user-eva");
  reloading.reload = true;
  EXPECT_TRUE(Call(Channel(reloading, "localhost"), ListJobsMethod()).ok());
  EXPECT_TRUE(Call(Channel(reloading), ListJobsMethod()).ok());
}

TEST_F(CertificatesTest, NoneIsToldWhatToShow) {
  Start();
  const absl::Status status = Connect(SharedCertificates().Of(""));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("--tls-cert"), HasSubstr("FUSION_TOKEN")));
  EXPECT_THAT(Audit(), Contains("UNAUTHENTICATED ListJobs  "));
}

TEST_F(CertificatesTest, AnExpiredOne) {
  options_.tls = Own().Server();
  Own().Sign("old", kUser, kPast, kPastEnd);
  Start();
  ExpectNotServed(Own().Of("old"));
  const absl::Status status = Connect(Own().Of("old"));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("old.pem"), HasSubstr("expired at 2020-02-01")));
}

TEST_F(CertificatesTest, OneOfTheFuture) {
  options_.tls = Own().Server();
  Own().Sign("new", kUser, kFuture, kFutureEnd);
  Start();
  ExpectNotServed(Own().Of("new"));
  const absl::Status status = Connect(Own().Of("new"));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("2090-01-01"));
}

TEST_F(CertificatesTest, OneOfAnotherAuthority) {
  Start();
  ClientCredentials stranger = Own().Of("user-eva");
  stranger.authorities = SharedCertificates().File("ca.pem");
  ExpectNotServed(stranger);
  const absl::Status status = Connect(stranger);
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("certificate"));
}

TEST_F(CertificatesTest, OneSignedByItself) {
  Start();
  Shell("cd " + Own().path() +
        "; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout self.key "
        "-out self.pem -subj /CN=self -addext subjectAltName=URI:fusion://admin/self");
  ClientCredentials self = Own().Of("self");
  self.authorities = SharedCertificates().File("ca.pem");
  ExpectNotServed(self);
}

TEST_F(CertificatesTest, OneSignedByAUser) {
  Start();
  Shell("cd " + Own().path() + "; cp " + SharedCertificates().File("user-eva.*") +
        " .; openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -subj "
        "/CN=leaf -out "
        "leaf.csr; printf 'subjectAltName=URI:fusion://admin/eva' >leaf.ext; openssl x509 -req -in leaf.csr "
        "-CA "
        "user-eva.pem -CAkey user-eva.key -set_serial 5 -extfile leaf.ext -out leaf.pem; cat user-eva.pem "
        ">>leaf.pem");
  ClientCredentials leaf = Own().Of("leaf");
  leaf.authorities = SharedCertificates().File("ca.pem");
  ExpectNotServed(leaf);
}

TEST_F(CertificatesTest, OneWithoutARoleOrWithTwo) {
  options_.tls = Own().Server();
  Start();
  int number = 0;
  for (const char* names :
       {"DNS:localhost", "URI:fusion://king/eva", "URI:fusion://user/a b", "URI:fusion://user/",
        "URI:fusion://user/eva/admin", "URI:fusion://user/eva,URI:fusion://admin/eva",
        "URI:https://fusion/user/eva", "DNS:fusion.admin.root"}) {
    const std::string name = "odd" + std::to_string(++number);
    Own().Sign(name, std::string("extendedKeyUsage=clientAuth\nsubjectAltName=") + names + "\n",
               "20200101000000Z", "20900101000000Z");
    const grpc::Status status = Call(Channel(Own().Of(name)), ListJobsMethod());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << names;
    EXPECT_THAT(status.error_message(), HasSubstr("names nobody")) << names;
  }
}

TEST_F(CertificatesTest, ThatOfTheServerIsNoCaller) {
  Start();
  ExpectNotServed(SharedCertificates().Of("server-localhost"));
}

TEST_F(CertificatesTest, AServerOfAnotherNameIsRefusedByTheClient) {
  options_.tls = Own().Server();
  Own().Sign("elsewhere", "extendedKeyUsage=serverAuth\nsubjectAltName=DNS:example.org\n", "20200101000000Z",
             "20900101000000Z");
  options_.tls.certificate = Own().File("elsewhere.pem");
  options_.tls.key = Own().File("elsewhere.key");
  Start();
  const absl::Status status = Connect(Own().Of("user-eva"));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("must name its host"));
  ClientCredentials reloading = Own().Of("user-eva");
  reloading.reload = true;
  EXPECT_EQ(Call(Channel(reloading), ListJobsMethod()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(CertificatesTest, AServerOfAnotherAuthorityIsRefusedByTheClient) {
  Start();
  ClientCredentials eva = SharedCertificates().Of("user-eva");
  eva.authorities = Own().File("ca.pem");
  const absl::Status status = Connect(eva);
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
}

TEST_F(CertificatesTest, AUsersCertificateIsNoServer) {
  options_.tls.certificate = SharedCertificates().File("user-eva.pem");
  options_.tls.key = SharedCertificates().File("user-eva.key");
  Start();
  EXPECT_TRUE(absl::IsUnauthenticated(Connect(SharedCertificates().Of("user-max"))));
}

TEST_F(CertificatesTest, AClientWithoutTlsIsNotServed) {
  Start();
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(Address());
  EXPECT_TRUE(absl::IsUnavailable(client.status())) << client.status();
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("--tls-ca"));
}

TEST_F(CertificatesTest, ARevokedOneOpensNothingFromThatMomentAlsoOnOpenConnections) {
  options_.tls = Own().Server();
  Start();
  const auto channel = Channel(Own().Of("user-eva"));
  ASSERT_TRUE(Call(channel, ListJobsMethod()).ok());
  Own().Make("--revoke user-eva");
  for (const auto& each : {channel, Channel(Own().Of("user-eva"))}) {
    const grpc::Status status = Call(each, ListJobsMethod());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(status.error_message(), HasSubstr("revoked"));
  }
  EXPECT_TRUE(Call(Channel(Own().Of("admin-root")), ListJobsMethod()).ok());
}

TEST_F(CertificatesTest, AFileOfRevokedOnesThatIsDamagedTakesNothingBack) {
  options_.tls = Own().Server();
  Own().Make("--revoke user-eva");
  Start();
  const auto eva = Channel(Own().Of("user-eva"));
  EXPECT_EQ(Call(eva, ListJobsMethod()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  WriteText(Own().File("revoked.txt"), "not a fingerprint\n");
  EXPECT_EQ(Call(eva, ListJobsMethod()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  std::filesystem::remove(Own().File("revoked.txt"));
  EXPECT_EQ(Call(eva, ListJobsMethod()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  WriteText(Own().File("revoked.txt"), "# empty\n");
  EXPECT_TRUE(Call(eva, ListJobsMethod()).ok()) << "taken out on purpose";
}

TEST_F(CertificatesTest, OneThatExpiresEndsItsOpenConnections) {
  std::atomic<int64_t> days{0};
  options_.gate.now = [&days] {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now()) +
           std::chrono::hours(24) * days.load();
  };
  Start();
  const auto channel = ChannelOf("user-eva");
  ASSERT_TRUE(Call(channel, ListJobsMethod()).ok());
  days = 366;
  const grpc::Status status = Call(channel, ListJobsMethod());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("expired"));
}

TEST_F(CertificatesTest, TheServersIsRenewedWhileCallsRunAndNoneIsDropped) {
  options_.tls = Own().Server();
  options_.gate.user_requests = {1e6, 1e6};
  Start();
  Client client(Channel(Own().Of("user-eva")), nullptr);
  absl::StatusOr<v1::Job> job = client.Submit(Request());
  ASSERT_TRUE(job.ok()) << job.status();
  std::atomic<bool> stop{false};
  std::atomic<int> served{0};
  std::vector<std::string> failures;
  std::thread caller([&] {
    while (!stop) {
      absl::StatusOr<v1::Job> seen = client.GetJob(job->name());
      if (seen.ok())
        ++served;
      else
        failures.push_back(seen.status().ToString());
    }
  });
  absl::StatusOr<v1::Job> ended = absl::UnknownError("");
  std::thread watcher([&] {
    ended = client.WatchJob(
        job->name(), 0, [](const v1::JobEvent&) {}, std::chrono::seconds(0));
  });
  const std::string before = ReadText(Own().File("server-localhost.pem"));
  for (int i = 0; i < 3; ++i) {
    Own().Make("--renew server-localhost");
    EXPECT_TRUE(Call(Channel(Own().Of("user-eva")), ListJobsMethod()).ok()) << "with the new one";
  }
  EXPECT_NE(ReadText(Own().File("server-localhost.pem")), before);
  stop = true;
  caller.join();
  ReleaseJobs();
  watcher.join();
  EXPECT_THAT(failures, ::testing::IsEmpty());
  EXPECT_GT(served, 0);
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->state(), v1::SUCCEEDED);
}

TEST_F(CertificatesTest, ANewCertificateWithAnotherKeyIsTakenWhenBothAreThere) {
  options_.tls = Own().Server();
  Start();
  Own().Sign("next", kServer, "20200101000000Z", "20900101000000Z");
  Shell("cp " + Own().File("next.pem") + " " + Own().File("server-localhost.pem"));
  EXPECT_TRUE(Call(Channel(Own().Of("user-eva")), ListJobsMethod()).ok())
      << "half of it: the old one is in use";
  Shell("cp " + Own().File("next.key") + " " + Own().File("server-localhost.key"));
  EXPECT_TRUE(Call(Channel(Own().Of("user-eva")), ListJobsMethod()).ok());
  WriteText(Own().File("server-localhost.pem"), "garbage\n");
  EXPECT_TRUE(Call(Channel(Own().Of("user-eva")), ListJobsMethod()).ok())
      << "garbage: the last good one is in use";
}

TEST_F(CertificatesTest, TheAuthorityIsReplacedWithAnOverlap) {
  options_.tls = Own().Server();
  Start();
  const Certificates next("--server localhost,127.0.0.1 --user eva");
  const auto old_connection = Channel(Own().Of("user-eva"));
  ASSERT_TRUE(Call(old_connection, ListJobsMethod()).ok());
  // Both are trusted, by the server and by its clients; then the server's certificate changes, then the
  // clients'.
  const std::string both = ReadText(Own().File("ca.pem")) + ReadText(next.File("ca.pem"));
  const std::string both_file = Own().File("both.pem");
  WriteText(both_file, both);
  const std::string old_authority = ReadText(Own().File("ca.pem"));
  WriteText(Own().File("ca.pem"), both);
  ClientCredentials old_eva = Own().Of("user-eva"), new_eva = next.Of("user-eva");
  old_eva.authorities = new_eva.authorities = both_file;
  EXPECT_TRUE(Call(Channel(old_eva), ListJobsMethod()).ok());
  EXPECT_TRUE(Call(Channel(new_eva), ListJobsMethod()).ok());
  Shell("cp " + next.File("server-localhost.key") + " " + Own().File("server-localhost.key") + "; cp " +
        next.File("server-localhost.pem") + " " + Own().File("server-localhost.pem"));
  EXPECT_TRUE(Call(Channel(old_eva), ListJobsMethod()).ok());
  EXPECT_TRUE(Call(Channel(new_eva), ListJobsMethod()).ok());
  EXPECT_TRUE(Call(old_connection, ListJobsMethod()).ok()) << "a connection that was open goes on";
  // The overlap ends.
  WriteText(Own().File("ca.pem"), ReadText(next.File("ca.pem")));
  EXPECT_TRUE(Call(Channel(new_eva), ListJobsMethod()).ok());
  ExpectNotServed(old_eva);
}

TEST_F(CertificatesTest, AWorkersNewCertificateIsUsedAtItsNextConnection) {
  options_.tls = Own().Server();
  Start();
  ClientCredentials credentials = Own().Of("user-eva");
  credentials.reload = true;
  const auto channel = Channel(credentials);
  ASSERT_TRUE(Call(channel, ListJobsMethod()).ok());
  // The old one is revoked, so that only the new one can be what is used.
  Shell("cp " + Own().File("user-eva.pem") + " " + Own().File("old-eva.pem"));
  Own().Make("--renew user-eva");
  Shell("openssl x509 -in " + Own().File("old-eva.pem") + " -noout -fingerprint -sha256 | sed 's/.*=//' >>" +
        Own().File("revoked.txt"));
  EXPECT_EQ(Call(channel, ListJobsMethod()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  // The server restarts, so that a handshake follows.
  const std::string address = server_->address();
  server_.reset();
  options_.address = address;
  // Longer than between two looks at the files.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  Start();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  grpc::Status status = Call(channel, ListJobsMethod());
  while (!status.ok() && std::chrono::steady_clock::now() < patience)
    status = Call(channel, ListJobsMethod());
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// --- What a server says when it starts ---

TEST_F(CertificatesTest, AKeyOfAnotherCertificate) {
  options_.tls.key = SharedCertificates().File("user-eva.key");
  const absl::Status status = StartStatus();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("--tls-key"), HasSubstr("is not the key of")));
}

TEST_F(CertificatesTest, AFileThatIsMissing) {
  for (std::string TlsFiles::*file :
       {&TlsFiles::certificate, &TlsFiles::key, &TlsFiles::authorities, &TlsFiles::revoked}) {
    options_.tls = SharedCertificates().Server();
    options_.tls.*file = "/nowhere/at.all";
    const absl::Status status = StartStatus();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/nowhere/at.all"));
  }
}

TEST_F(CertificatesTest, GarbageInsteadOfPem) {
  const std::string garbage = data_->path() + "/garbage.pem";
  WriteText(garbage, "-----BEGIN CERTIFICATE-----\nnot base64 at all\n-----END CERTIFICATE-----\n");
  for (std::string TlsFiles::*file :
       {&TlsFiles::certificate, &TlsFiles::key, &TlsFiles::authorities, &TlsFiles::revoked}) {
    options_.tls = SharedCertificates().Server();
    options_.tls.*file = garbage;
    const absl::Status status = StartStatus();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(garbage));
  }
}

TEST_F(CertificatesTest, AServerCertificateThatHasExpired) {
  Own().Sign("old", kServer, kPast, kPastEnd);
  options_.tls = Own().Server();
  options_.tls.certificate = Own().File("old.pem");
  options_.tls.key = Own().File("old.key");
  const absl::Status status = StartStatus();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("expired at 2020-02-01"));
}

TEST_F(CertificatesTest, PartOfWhatTlsTakes) {
  options_.tls.authorities = "";
  const absl::Status status = StartStatus();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tls-ca is missing"));
}

TEST_F(CertificatesTest, AnAddressThatOthersReachTakesTls) {
  options_.tls = {};
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0", "127.1:0"}) {
    options_.address = address;
    const absl::Status status = StartStatus();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << address << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("--tls-cert"), HasSubstr("--insecure-any-address")));
  }
}

}  // namespace
}  // namespace fusion::testing
