#include "server/connection/connection_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/connection/http2_frames.h"

namespace fusion {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using Error = boost::system::error_code;

const std::string kSettingsFrame = Frame(kSettings, 0, 0), kPingFrame = Frame(kPing, 0, 0, "12345678");

// A relay between a client and a server that are both this test.
class ConnectionRelayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    client_.connect(acceptor.local_endpoint());
    tcp::socket taken = acceptor.accept();
    taken.non_blocking(true);
    client_.non_blocking(true);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    server_.assign({}, ends[1]);
    server_.non_blocking(true);
    auto stream = std::make_unique<PlainStream>(taken.native_handle());
    relay_ = std::make_shared<ConnectionRelay>(
        std::move(taken), std::move(stream), asio::local::stream_protocol::socket(io_, {}, ends[0]),
        std::make_unique<Http2Guard>(limits_, of_addresses_, "10.0.0.7", nullptr),
        ConnectionRelay::Hooks{.cut = [this](std::string_view why) { cut_ += why; },
                               .paused = [this](std::string_view why) { paused_.emplace_back(why); }});
  }

  // What comes at `socket`, until there is as much as wanted or its end; the relay runs meanwhile.
  template <typename Socket>
  std::string Read(Socket& socket, size_t wanted) {
    std::string bytes;
    const auto patience = Clock::now() + seconds(20);
    while (bytes.size() < wanted && Clock::now() < patience) {
      Run();
      char some[4096];
      Error error;
      const size_t count =
          socket.read_some(asio::buffer(some, std::min(sizeof some, wanted - bytes.size())), error);
      bytes.append(some, count);
      if (error && error != asio::error::would_block) return bytes + "<" + error.message() + ">";
    }
    return bytes;
  }
  // As much as the other side takes.
  template <typename Socket>
  size_t Flood(Socket& socket, const std::string& bytes, size_t most) {
    size_t sent = 0;
    for (int refused = 0; sent < most && refused < 50;) {
      Error error;
      const size_t at = sent % bytes.size();
      sent += socket.write_some(asio::buffer(bytes.data() + at, bytes.size() - at), error);
      refused = error ? refused + 1 : 0;
      Run();
    }
    return sent;
  }
  void Run() {
    io_.restart();
    io_.run_for(std::chrono::milliseconds(1));
  }
  void Start(const std::string& bytes) {
    relay_->Start(bytes);
    ASSERT_EQ(Read(server_, kHttp2Preface.size()), kHttp2Preface);
  }
  static size_t Write(tcp::socket& socket, const std::string& bytes) {
    return socket.write_some(asio::buffer(bytes));
  }

  asio::io_context io_;
  Http2Limits limits_;
  RateLimiter of_addresses_;
  tcp::socket client_{io_};
  asio::local::stream_protocol::socket server_{io_};
  std::string cut_;
  std::vector<std::string> paused_;
  std::shared_ptr<ConnectionRelay> relay_;
};

TEST_F(ConnectionRelayTest, CarriesBothWays) {
  Start(kSettingsFrame + kPingFrame.substr(0, 5));
  Write(client_, kPingFrame.substr(5));
  EXPECT_EQ(Read(server_, kSettingsFrame.size() + kPingFrame.size()), kSettingsFrame + kPingFrame);
  server_.write_some(asio::buffer(kPingFrame));
  EXPECT_EQ(Read(client_, kPingFrame.size()), kPingFrame);
  client_.close();
  EXPECT_EQ(Read(server_, 1), "<End of file>");
  EXPECT_EQ(cut_, "");
}

TEST_F(ConnectionRelayTest, WhatTheServerSaidLastReachesTheClient) {
  Start(kSettingsFrame);
  const std::string answer = Frame(kData, 0, 1, std::string(9000, 'x'));
  std::string said;
  for (int i = 0; i < 10; ++i) said += answer;
  ASSERT_EQ(server_.write_some(asio::buffer(said)), said.size());
  server_.close();
  EXPECT_EQ(Read(client_, said.size() + 1), said + "<End of file>");
}

TEST_F(ConnectionRelayTest, AServerThatTakesNoMoreMaySayMore) {
  Start(kSettingsFrame);
  EXPECT_EQ(Read(server_, kSettingsFrame.size()), kSettingsFrame);
  server_.shutdown(asio::local::stream_protocol::socket::shutdown_receive);
  Write(client_, kPingFrame);
  Write(client_, kPingFrame);
  Run();
  server_.write_some(asio::buffer(kPingFrame));
  EXPECT_EQ(Read(client_, kPingFrame.size()), kPingFrame);
  EXPECT_EQ(Flood(client_, std::string(10000, 'x'), 1000000), 1000000u);  // thrown away
  server_.close();
  EXPECT_EQ(Read(client_, 1), "<End of file>");
}

TEST_F(ConnectionRelayTest, NoMoreIsReadThanTheOtherSideTakes) {
  Start(kSettingsFrame);
  const size_t most = 64 << 20;
  EXPECT_LT(Flood(client_, Frame(kData, 0, 1, std::string(16000, 'x')), most), most / 2);
  EXPECT_LT(Flood(server_, Frame(kData, 0, 1, std::string(16000, 'y')), most), most / 2);
  EXPECT_EQ(cut_, "");
}

TEST_F(ConnectionRelayTest, AClientThatBreaksTheProtocolIsToldAndCutOff) {
  Start(kSettingsFrame);
  server_.write_some(asio::buffer(kSettingsFrame));
  EXPECT_EQ(Read(client_, kSettingsFrame.size()), kSettingsFrame);
  Write(client_, Frame(kPush, kEndHeaders, 1));  // PUSH_PROMISE
  const std::string last = Read(client_, 100);
  EXPECT_EQ(last.substr(0, 9), std::string("\0\0\x08\x07\0\0\0\0\0", 9));  // GOAWAY
  EXPECT_EQ(cut_, "a client that promises");
  EXPECT_EQ(Read(server_, kSettingsFrame.size() + 1), kSettingsFrame + "<End of file>");
}

TEST_F(ConnectionRelayTest, WhatIsTooMuchComesLater) {
  Start(kSettingsFrame);
  std::string pings;
  for (double i = 0; i < limits_.trifles.burst + 100; ++i) pings += kPingFrame;
  Write(client_, pings);
  const auto begin = Clock::now();
  EXPECT_EQ(Read(server_, kSettingsFrame.size() + pings.size()), kSettingsFrame + pings);
  EXPECT_GE(Clock::now() - begin, std::chrono::duration<double>(90 / limits_.trifles.per_second));
  ASSERT_FALSE(paused_.empty());
  EXPECT_EQ(paused_.front(), "it sends too many frames that ask for nothing");
}

TEST_F(ConnectionRelayTest, AServerThatEndsItAtOnceWasSpokenToBadly) {
  Start(kSettingsFrame);
  server_.close();
  EXPECT_EQ(Read(client_, 1).substr(0, 1), "<");
  EXPECT_EQ(cut_, "gRPC closed it at once");
}

TEST_F(ConnectionRelayTest, AClientThatTakesNothingIsGivenUpAfterAMinute) {
  Start(kSettingsFrame);
  Flood(server_, Frame(kPing, 0, 0, std::string(16000, 'y')), 64 << 20);
  const auto begin = Clock::now();
  for (const int second : {0, 20, 40, 59}) relay_->EndIfStuck(begin + seconds(second));
  EXPECT_EQ(cut_, "");
  relay_->EndIfStuck(begin + seconds(60));
  EXPECT_EQ(cut_, "it does not take what it asked for");
  // The end, whatever it is called while there is what nobody took.
  EXPECT_THAT(Read(server_, 1000), ::testing::StartsWith(kSettingsFrame + "<"));
}

TEST_F(ConnectionRelayTest, AClientThatTakesSlowlyIsNot) {
  Start(kSettingsFrame);
  const size_t sent = Flood(server_, Frame(kPing, 0, 0, std::string(16000, 'y')), 64 << 20);
  const auto begin = Clock::now();
  relay_->EndIfStuck(begin);
  Read(client_, sent / 2);
  Flood(server_, Frame(kPing, 0, 0, std::string(16000, 'y')), 64 << 20);
  relay_->EndIfStuck(begin + seconds(60));
  relay_->EndIfStuck(begin + seconds(119));
  EXPECT_EQ(cut_, "");
  relay_->EndIfStuck(begin + seconds(120));
  EXPECT_NE(cut_, "");
}

TEST_F(ConnectionRelayTest, AnIdleClientIsNeverGivenUp) {
  Start(kSettingsFrame);
  for (int minute = 1; minute < 100; ++minute)
    relay_->EndIfStuck(Clock::now() + std::chrono::minutes(minute));
  EXPECT_EQ(cut_, "");
  Write(client_, kPingFrame);
  EXPECT_EQ(Read(server_, kSettingsFrame.size() + kPingFrame.size()), kSettingsFrame + kPingFrame);
}

}  // namespace
}  // namespace fusion
