// A whole server listens at the addresses that it is given.
#include "server/rpc/listening_port.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/temporary_directory.h"
#include "server/rpc/server.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class ListeningPortTest : public ::testing::Test {
 protected:
  static absl::StatusOr<std::unique_ptr<Server>> Start(const std::string& data, const std::string& address) {
    ServerOptions options;
    options.data_directory = data;
    options.address = address;
    options.insecure_any_address = true;
    return Server::Start(options);
  }
  void StartServer(const std::string& address) {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    auto server = Start(directory_->path(), address);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static bool Answers(const std::string& address) {
    return grpc::CreateChannel(address, grpc::InsecureChannelCredentials())
        ->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }
  std::string Port() const { return server_->address().substr(server_->address().rfind(':') + 1); }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
};

TEST_F(ListeningPortTest, AllAddressesOfTheMachineMeansIpv4Too) {
  StartServer("[::]:0");
  EXPECT_TRUE(Answers("127.0.0.1:" + Port()));
}

TEST_F(ListeningPortTest, NamesAreResolved) {
  StartServer("localhost:0");
  EXPECT_THAT(server_->address(), HasSubstr("localhost:"));
  EXPECT_TRUE(Answers(server_->address()));
  EXPECT_TRUE(Answers("127.0.0.1:" + Port()));
}

TEST_F(ListeningPortTest, ASecondServerIsToldThatThePortIsTaken) {
  StartServer("127.0.0.1:0");
  auto directory = TemporaryDirectory::Create();
  ASSERT_TRUE(directory.ok());
  const absl::Status second = Start((*directory)->path(), server_->address()).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_THAT(std::string(second.message()),
              HasSubstr(absl::StrCat("cannot listen on ", server_->address(), ": another program uses it")));
  const std::string address = server_->address();
  server_.reset();
  EXPECT_TRUE(Start((*directory)->path(), address).ok()) << "it is free again";
}

TEST_F(ListeningPortTest, AWrongAddressIsSaid) {
  const auto message = [](const std::string& address) {
    return std::string(CheckPortIsFree(address).message());
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
