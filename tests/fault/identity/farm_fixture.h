// Servers with real TLS on loopback, and certificates as deploy/make-certificates.sh makes them.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <sstream>
#include <string>

#include "base/rpc/channel_credentials.h"
#include "base/rpc/status_conversion.h"
#include "base/temporary_directory.h"
#include "client/api/client.h"
#include "fusion/v1/admin.grpc.pb.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "fusion/v1/worker.grpc.pb.h"
#include "server/rpc/server.h"
#include "tests/folders.h"

namespace fusion::testing {

constexpr char kSource[] = "size n = 1000;\nvector[n] x, y, z;\ninput x, y;\nz = vadd(x, y);\nreturn z;\n";

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Runs a command of the shell, quietly; the test fails with it.
inline void Shell(const std::string& command) {
  const std::string log = ::testing::TempDir() + "fusion_identity_shell_" + std::to_string(getpid()) + ".log";
  const int status = std::system(("set -e; { " + command + "; } >" + log + " 2>&1").c_str());
  EXPECT_EQ(status, 0) << command << "\n" << ReadText(log);
  std::filesystem::remove(log);
}

// A folder of certificates.
class Certificates {
 public:
  explicit Certificates(const std::string& arguments) {
    auto created = TemporaryDirectory::Create();
    EXPECT_TRUE(created.ok()) << created.status();
    directory_ = *std::move(created);
    Make(arguments);
  }
  void Make(const std::string& arguments) {
    Shell(testing::SourceFolder() + "/deploy/make-certificates.sh " + path() + " " + arguments);
  }
  // A certificate for the key `name`.key (made when absent), signed by this authority, with these extensions
  // and these times, "20200101000000Z".
  void Sign(const std::string& name, const std::string& extensions, const std::string& from,
            const std::string& until) {
    WriteText(path() + "/odd.cnf",
              "[ca]\ndefault_ca = farm\n[farm]\ndatabase = index.txt\nnew_certs_dir = .\npolicy = any\n"
              "default_md = sha256\nunique_subject = no\nrand_serial = yes\n[any]\ncommonName = supplied\n");
    WriteText(path() + "/odd.ext", extensions);
    Shell("cd " + path() + "; touch index.txt; [ -e " + name +
          ".key ] || openssl genpkey -algorithm EC -pkeyopt " + "ec_paramgen_curve:P-256 -out " + name +
          ".key; openssl req -new -key " + name + ".key -subj /CN=" + name +
          " -out odd.csr; openssl ca -batch -notext -config odd.cnf -in odd.csr -out " + name +
          ".pem -cert ca.pem -keyfile ca.key -rand_serial -startdate " + from + " -enddate " + until +
          " -extfile odd.ext");
  }
  const std::string& path() const { return directory_->path(); }
  std::string File(const std::string& name) const { return path() + "/" + name; }
  TlsFiles Server() const {
    return {File("server-localhost.pem"), File("server-localhost.key"), File("ca.pem"), File("revoked.txt")};
  }
  // Returns the credentials with the certificate `name` ("user-eva"); "": the authority alone, without a
  // certificate.
  ClientCredentials Of(const std::string& name) const {
    ClientCredentials credentials;
    credentials.authorities = File("ca.pem");
    if (name.empty()) return credentials;
    credentials.certificate = File(name + ".pem");
    credentials.key = File(name + ".key");
    return credentials;
  }

 private:
  std::unique_ptr<TemporaryDirectory> directory_;
};

// Tests must not change these.
inline const Certificates& SharedCertificates() {
  static const Certificates certificates(
      "--server localhost,127.0.0.1 --worker gpu1 --worker gpu2 --admin root --user eva --user max");
  return certificates;
}

// A server on loopback whose jobs run until they are released.
class FarmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    data_ = *std::move(directory);
    options_.address = "127.0.0.1:0";
    options_.data_directory = data_->path();
    options_.tls = SharedCertificates().Server();
    options_.runner.pipeline = [this](const v1::SubmitRequest&, const PipelineContext& context) {
      std::unique_lock lock(mutex_);
      while (!released_ && !context.cancellation.cancelled())
        changed_.wait_for(lock, std::chrono::milliseconds(10));
      return context.cancellation.cancelled()
                 ? absl::StatusOr<v1::JobResult>(absl::CancelledError("cancelled"))
                 : v1::JobResult();
    };
  }
  void TearDown() override {
    ReleaseJobs();
    server_.reset();
  }
  void Start() {
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void ReleaseJobs() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  std::string Address(const std::string& host = "127.0.0.1") {
    const std::string& address = server_->address();
    return host + address.substr(address.rfind(':'));
  }
  // Makes a connection of its own, so that no other test's handshake counts.
  std::shared_ptr<grpc::Channel> Channel(const ClientCredentials& credentials,
                                         const std::string& host = "127.0.0.1") {
    auto made = MakeChannelCredentials(Address(host), credentials);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return nullptr;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // This is also the time that gRPC 1.51 gives an attempt, handshake included.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 1 << 20);
    return grpc::CreateCustomChannel(Address(host), *made, arguments);
  }
  std::shared_ptr<grpc::Channel> ChannelOf(const std::string& name) {
    return Channel(SharedCertificates().Of(name));
  }
  // Returns a client with this certificate.
  std::unique_ptr<Client> ClientOf(const std::string& name) {
    return std::make_unique<Client>(ChannelOf(name), nullptr);
  }
  // Returns a client with this token.
  std::unique_ptr<Client> ClientWith(const std::string& token) {
    ClientCredentials credentials = SharedCertificates().Of("");
    credentials.token = token;
    return std::make_unique<Client>(Channel(credentials), nullptr);
  }

  // The status of a client of ours, which says what is wrong.
  absl::Status Connect(const ClientCredentials& credentials, const std::string& host = "127.0.0.1") {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(Address(host), credentials);
    return client.ok() ? (*client)->ListJobs(0, "").status() : client.status();
  }

  // Makes a call with one message of these bytes.
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                           const std::string& bytes = "", const std::string& authorization = "",
                           std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1), response;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                   [&](grpc::Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get();
  }
  static std::string ListJobsMethod() { return "/fusion.v1.OptimizerService/ListJobs"; }

  // A token made by the admin root.
  v1::CreateTokenResponse Token(const std::string& principal, v1::Role role, double seconds = 3600) {
    v1::CreateTokenRequest request;
    request.set_principal(principal);
    request.set_role(role);
    request.set_seconds(seconds);
    absl::StatusOr<v1::CreateTokenResponse> token = ClientOf("admin-root")->CreateToken(request);
    EXPECT_TRUE(token.ok()) << token.status();
    return token.ok() ? *token : v1::CreateTokenResponse();
  }
  static v1::SubmitRequest Request(const std::string& id = "") {
    v1::SubmitRequest request;
    request.set_request_id(id);
    request.mutable_source()->set_fuse(kSource);
    request.set_target(v1::HOST);
    return request;
  }
  // "PERMISSION_DENIED CancelJob eva jobs/..." of the newest entries, newest first.
  std::vector<std::string> Audit() {
    std::vector<std::string> lines;
    absl::StatusOr<v1::ListAuditEntriesResponse> entries = ClientOf("admin-root")->ListAuditEntries(1000, "");
    EXPECT_TRUE(entries.ok()) << entries.status();
    if (!entries.ok()) return lines;
    for (const v1::AuditEntry& entry : entries->entries())
      lines.push_back(entry.outcome() + " " + entry.method().substr(entry.method().rfind('/') + 1) + " " +
                      entry.principal() + " " + entry.subject());
    return lines;
  }

  std::unique_ptr<TemporaryDirectory> data_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;  // guarded by mutex_
};

}  // namespace fusion::testing
