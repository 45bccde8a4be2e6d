// How a whole server takes connections.
#include "server/connection/connection_acceptor.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "fusion/v1/worker.grpc.pb.h"
#include "server/service/data_directory.h"
#include "server/service/server.h"
#include "server/service/server_metrics.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Sets the limit of open files of this process for as long as it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now = {files, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// A client that can be made before it connects.
class Client {
 public:
  Client() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { close(socket_); }
  bool Connect(const std::string& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  // Whether the server speaks once it was greeted; it does at once, unless it closes.
  bool IsServed() {
    constexpr char kGreeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    send(socket_, kGreeting, sizeof kGreeting, MSG_NOSIGNAL);  // with SETTINGS, whose last byte ends the text
    char settings = 0;
    return recv(socket_, &settings, 1, 0) == 1;
  }

 private:
  int socket_;
};

class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  void StartServer(const ConnectionLimits& limits, const std::string& address = "127.0.0.1:0") {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    ServerOptions options;
    options.dispatcher = dispatcher_;
    options.data_directory = directory_->path();
    options.address = address;
    options.insecure_any_address = true;
    options.connections = limits;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Metrics() { return server_->metrics().registry.Text(); }
  bool Says(const std::string& line) { return Metrics().find(line + "\n") != std::string::npos; }

  DispatcherOptions dispatcher_;
  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
};

TEST_F(ConnectionAcceptorTest, TakesConnectionsAgainAfterThereWereNoDescriptors) {
  StartServer({.most = 1000});
  Client early, late;
  {
    const FileLimit none(3);
    EXPECT_TRUE(early.Connect(server_->address()));
    EXPECT_TRUE(Eventually([&] { return !Says("fusion_accept_errors_total 0"); }));
  }
  EXPECT_TRUE(early.IsServed()) << "it waited meanwhile";
  EXPECT_TRUE(late.Connect(server_->address()));
  EXPECT_TRUE(late.IsServed());
}

TEST_F(ConnectionAcceptorTest, ClosesWhatIsTooMuchAtOnce) {
  StartServer({.most = 2, .most_of_address = 2});
  Client third, fourth;
  {
    Client first, second;
    ASSERT_TRUE(first.Connect(server_->address()) && first.IsServed());
    ASSERT_TRUE(second.Connect(server_->address()) && second.IsServed());
    ASSERT_TRUE(third.Connect(server_->address()));
    EXPECT_FALSE(third.IsServed());
    EXPECT_TRUE(Says("fusion_connections_refused_total{reason=\"limit\"} 1")) << Metrics();
    EXPECT_TRUE(Eventually([&] { return Says("fusion_connections 2"); })) << Metrics();
  }
  ASSERT_TRUE(Eventually([&] { return Says("fusion_connections 0"); })) << Metrics();
  ASSERT_TRUE(fourth.Connect(server_->address()));
  EXPECT_TRUE(fourth.IsServed());
}

TEST_F(ConnectionAcceptorTest, BoundsTheConnectionsOfAnAddress) {
  StartServer({.most = 10, .most_of_address = 1});
  Client first, second;
  ASSERT_TRUE(first.Connect(server_->address()) && first.IsServed());
  ASSERT_TRUE(second.Connect(server_->address()));
  EXPECT_FALSE(second.IsServed());
  EXPECT_TRUE(Says("fusion_connections_refused_total{reason=\"address\"} 1")) << Metrics();
}

TEST_F(ConnectionAcceptorTest, WorkersWhoseConnectionEndsBetweenTwoCallsAreLostSoon) {
  dispatcher_.broken_grace = std::chrono::milliseconds(100);
  dispatcher_.connected_for = std::chrono::minutes(10);
  StartServer({});
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), own);
  for (const char* worker : {"alpha", "beta"}) {
    grpc::ClientContext context;
    v1::SynchronizeRequest request;
    request.set_worker(worker);
    request.set_instance("1");
    v1::SynchronizeResponse response;
    const grpc::Status called =
        v1::WorkerService::NewStub(channel)->Synchronize(&context, request, &response);
    ASSERT_TRUE(called.ok()) << called.error_message();
  }
  const auto connected = [&] {
    grpc::ClientContext context;
    v1::ListWorkersResponse workers;
    const grpc::Status listed =
        v1::FleetService::NewStub(server_->InProcessChannel())->ListWorkers(&context, {}, &workers);
    EXPECT_TRUE(listed.ok()) << listed.error_message();
    int count = 0;
    for (const v1::Worker& worker : workers.workers()) count += worker.connected();
    return count;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(connected(), 2) << "their calls are over, their connection is not";
  channel.reset();
  EXPECT_TRUE(Eventually([&] { return connected() == 0; }));
}

TEST_F(ConnectionAcceptorTest, AllAddressesOfTheMachineMeansIpv4Too) {
  StartServer({}, "[::]:0");
  Client four;
  EXPECT_TRUE(four.Connect(server_->address()));
  EXPECT_TRUE(four.IsServed());
}

TEST_F(ConnectionAcceptorTest, NamesAreResolved) {
  StartServer({}, "localhost:0");
  EXPECT_THAT(server_->address(), HasSubstr("localhost:"));
  Client four;
  EXPECT_TRUE(four.Connect(server_->address()));
  EXPECT_TRUE(four.IsServed());
  const auto channel = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
}

TEST_F(ConnectionAcceptorTest, StopsWithoutHavingStarted) {
  ConnectionMetrics* const none = nullptr;
  absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> first =
      ConnectionAcceptor::Listen("127.0.0.1:0", {}, none);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(std::string(ConnectionAcceptor::Listen(address, {}, none).status().message()),
              HasSubstr(absl::StrCat("cannot listen on ", address, ": another program uses it")));
  (*first)->StopListening();
  (*first)->StopListening();
  (*first)->Stop();
  (*first)->Stop();
  EXPECT_EQ(address, absl::StrCat("127.0.0.1:", (*first)->port()));
  EXPECT_TRUE(ConnectionAcceptor::Listen(address, {}, none).ok());
}

TEST_F(ConnectionAcceptorTest, AWrongAddressIsSaid) {
  ConnectionMetrics* const none = nullptr;
  const auto message = [&](const std::string& address) {
    absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> acceptor =
        ConnectionAcceptor::Listen(address, {}, none);
    return acceptor.ok() ? "" : std::string(acceptor.status().message());
  };
  EXPECT_THAT(message("192.0.2.1:0"),
              HasSubstr("cannot listen on 192.0.2.1:0: it is no address of this machine"));
  EXPECT_THAT(message("localhost"), HasSubstr("the port is missing"));
  EXPECT_THAT(message(":50051"), HasSubstr("the host is missing"));
  EXPECT_THAT(message("127.0.0.1:http"), HasSubstr("the port is a number from 0 to 65535"));
  EXPECT_THAT(message("127.0.0.1:70000"), HasSubstr("the port is a number from 0 to 65535"));
  EXPECT_THAT(message("no-such-host.invalid:50051"), HasSubstr("the host is not known"));
  EXPECT_THAT(message("unix:/tmp/fusion"), HasSubstr("cannot listen on unix:/tmp/fusion"));
}

}  // namespace
}  // namespace fusion
