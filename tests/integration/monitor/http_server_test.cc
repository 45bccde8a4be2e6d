// The HTTP server over real sockets: what it answers, and that no client can hurt the others.
#include "base/monitor/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "base/monitor/monitor.h"
#include "tests/integration/http_connection.h"

namespace fusion {
namespace {

using ::testing::AnyOf;
using testing::Connection;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpOptions options = {}) {
    options.address = "127.0.0.1:0";
    auto server = HttpServer::Start(
        options, {{"/metrics",
                   [] {
                     return HttpAnswer{200, "text/plain", "fusion_up 1\n"};
                   }},
                  {"/large",
                   [] {
                     return HttpAnswer{200, "text/plain", std::string(64 << 20, 'x')};
                   }},
                  {"/broken", []() -> HttpAnswer { throw std::runtime_error("no disk"); }}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Ask(const std::string& request) {
    Connection connection(server_->address());
    connection.Send(request);
    return connection.ReadAll();
  }
  std::string Get(const std::string& path) {
    return Ask("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersItsPaths) {
  Start();
  const std::string answer = Get("/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 12\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nfusion_up 1\n"));
  EXPECT_THAT(Get("/metrics?name[]=fusion_up"), HasSubstr("fusion_up 1"));
  EXPECT_THAT(Get("/broken"), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  Start();
  const std::string answer = Ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 12\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("fusion_up")));
}

TEST_F(HttpServerTest, RefusesWhatItDoesNotDo) {
  Start();
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/metrics/../../etc/passwd"), StartsWith("HTTP/1.1 404 "));
  const std::string post = Ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(post, HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(Ask("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(
      Ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n" + std::string(100000, 'a')),
      StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(
      Ask("GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
      StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nX: " + std::string(20000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, GarbageIsRefusedAndHurtsNobody) {
  Start();
  EXPECT_THAT(Ask("\x16\x03\x01\x02\x00 not http\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(1 + random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (round % 2) bytes = "GET /metrics HTTP/1.1\r\n" + bytes;
    Connection connection(server_->address());
    connection.Send(bytes);
    connection.EndSending();
    EXPECT_THAT(connection.ReadAll(), AnyOf(StartsWith("HTTP/1.1 4"), "")) << "round " << round;
  }
  EXPECT_THAT(Get("/metrics"), HasSubstr("fusion_up 1"));
}

TEST_F(HttpServerTest, AConnectionIsUsedAgain) {
  HttpOptions options;
  options.requests_per_connection = 3;
  Start(options);
  Connection connection(server_->address());
  for (int i = 0; i < 2; ++i) {
    connection.Send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(connection.ReadTo("fusion_up 1\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
  connection.Send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.ReadAll(), HasSubstr("Connection: close\r\n")) << "the last that is allowed";
}

TEST_F(HttpServerTest, RequestsInOnePacketAreAnsweredInOrder) {
  Start();
  const std::string answers =
      Ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nHEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\nGET /none "
          "HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_LT(answers.find("fusion_up 1"), answers.find("404"));
  EXPECT_NE(answers.find("404"), std::string::npos) << answers;
}

TEST_F(HttpServerTest, SlowRequestsEndWithoutAnAnswer) {
  HttpOptions options;
  options.request_time = std::chrono::milliseconds(100);
  Start(options);
  Connection silent(server_->address()), slow(server_->address());
  slow.Send("GET /metrics HTTP/1.1\r\nHost:");
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(slow.ReadAll(), "");
}

TEST_F(HttpServerTest, ClientsThatDoNotReadAreLeft) {
  HttpOptions options;
  options.answer_time = std::chrono::milliseconds(100);
  options.connections = 1;
  Start(options);
  Connection slow(server_->address(), /*receive_buffer=*/4096);
  slow.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  // The only connection is free again when the slow one has been left.
  EXPECT_THAT(Get("/metrics"), HasSubstr("fusion_up 1"));
}

TEST_F(HttpServerTest, MoreConnectionsThanAllowedWaitTheirTurn) {
  HttpOptions options;
  options.connections = 4;
  options.request_time = std::chrono::milliseconds(200);
  Start(options);
  std::vector<std::unique_ptr<Connection>> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<Connection>(server_->address()));
    ASSERT_TRUE(idle.back()->connected());
  }
  EXPECT_THAT(Get("/metrics"), HasSubstr("fusion_up 1"));
}

TEST_F(HttpServerTest, EndsWithConnectionsOpen) {
  Start();
  Connection idle(server_->address()), half(server_->address()), slow(server_->address(), 4096);
  half.Send("GET /metr");
  slow.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  slow.ReadTo("HTTP/1.1 200");
  server_.reset();
  EXPECT_EQ(idle.ReadAll(), "");
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  Start();
  HttpOptions options;
  options.address = server_->address();
  auto taken = HttpServer::Start(options, {});
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(server_->address()));
  for (const char* bad :
       {"", "nonsense", "127.0.0.1:", "127.0.0.1:70000", "host.example:80", "127.0.0.1:-1"}) {
    options.address = bad;
    auto refused = HttpServer::Start(options, {});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("127.0.0.1:9464")) << bad;
  }
}

TEST_F(HttpServerTest, APortAloneIsOfLoopback) {
  HttpOptions options;
  for (const char* address : {"0", ":0", "localhost:0"}) {
    options.address = address;
    auto server = HttpServer::Start(options, {});
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_THAT((*server)->address(), StartsWith("127.0.0.1:"));
  }
}

TEST(MonitorTest, HealthAndMetrics) {
  Metrics metrics;
  metrics.AddCounter("fusion_jobs_submitted_total", "Jobs.")->Add(4);
  bool healthy = true;
  MonitorOptions options;
  options.http.address = "127.0.0.1:0";
  options.healthy = [&] { return healthy ? absl::OkStatus() : absl::DataLossError("the store is damaged"); };
  options.ready = [] { return absl::UnavailableError("no worker is connected"); };
  auto monitor = StartMonitor(options, &metrics);
  ASSERT_TRUE(monitor.ok()) << monitor.status();
  const auto get = [&](const std::string& path) {
    Connection connection((*monitor)->address());
    connection.Send("GET " + path + " HTTP/1.0\r\n\r\n");
    return connection.ReadAll();
  };
  EXPECT_THAT(get("/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(get("/healthz"), HasSubstr("\r\n\r\nok\n"));
  EXPECT_THAT(get("/readyz"), HasSubstr(" 503 "));
  EXPECT_THAT(get("/readyz"), HasSubstr("no worker is connected\n"));
  const std::string text = get("/metrics");
  EXPECT_THAT(text, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_jobs_submitted_total 4\n"));
  healthy = false;
  EXPECT_THAT(get("/healthz"), HasSubstr("the store is damaged\n"));
}

}  // namespace
}  // namespace fusion
