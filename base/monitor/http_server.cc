#include "base/monitor/http_server.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr uint32_t kMostHeaderBytes = 8192;
constexpr uint64_t kMostBodyBytes = 1024;
// A connection that is closed while the client still sends would lose the answer on its way: so much is read
// and thrown away before.
constexpr size_t kMostLingeringBytes = 256 << 10;
constexpr std::chrono::milliseconds kLingeringTime{1000};
constexpr std::chrono::milliseconds kAcceptPause{100};

absl::StatusOr<tcp::endpoint> ParseAddress(const std::string& text) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is no address to listen on; write HOST:PORT with an IP address, such as 127.0.0.1:9464"));
  };
  const size_t colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "127.0.0.1";
  if (host == "localhost") host = "127.0.0.1";
  int port = 0;
  if (!absl::SimpleAtoi(colon == std::string::npos ? text : text.substr(colon + 1), &port) || port < 0 ||
      port > 65535)
    return invalid();
  Error error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) return invalid();
  return tcp::endpoint(address, static_cast<uint16_t>(port));
}

http::status StatusOfError(const Error& error) {
  if (error == http::error::header_limit) return http::status::request_header_fields_too_large;
  if (error == http::error::body_limit) return http::status::payload_too_large;
  return http::status::bad_request;
}

}  // namespace

// In the order of construction; destroyed the other way round.
struct HttpServer::Parts {
  Parts(const HttpOptions& http_options, std::map<std::string, Route> http_routes)
      : options(http_options), routes(std::move(http_routes)) {}

  void Accept();
  void Ended() {
    --connections;
    if (waiting_to_accept && !stopped) Accept();
  }

  const HttpOptions options;
  const std::map<std::string, Route> routes;
  int connections = 0;             // used by the io thread alone, as the next two
  bool waiting_to_accept = false;  // for a connection to end
  bool stopped = false;            // there is no io thread any more
  asio::io_context io{1};
  // While a route works on the only connection, the io thread has nothing to wait for.
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  asio::thread_pool handlers{1};
  std::thread thread;
};

namespace {

// One connection: read a request, answer it, and again. Its functions run on the io thread; kept alive by
// what it waits for.
template <typename Parts>
class Session : public std::enable_shared_from_this<Session<Parts>> {
 public:
  Session(Parts* parts, tcp::socket socket) : parts_(parts), stream_(std::move(socket)) {
    ++parts_->connections;
  }
  ~Session() { parts_->Ended(); }

  void Read() {
    parser_.emplace();
    parser_->header_limit(kMostHeaderBytes);
    parser_->body_limit(kMostBodyBytes);
    stream_.expires_after(parts_->options.request_time);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](const Error& error, size_t) { self->OnHeader(error); });
  }

 private:
  void OnHeader(const Error& error) {
    if (error == http::error::end_of_stream || error == beast::error::timeout) return Close();
    if (error && error.category() != http::make_error_code(http::error::bad_method).category())
      return Close();
    if (error) return Answer({static_cast<int>(StatusOfError(error)), "text/plain", "bad request\n"}, false);
    const auto& request = parser_->get();
    version_ = request.version();
    head_ = request.method() == http::verb::head;
    if (!head_ && request.method() != http::verb::get)
      return Answer({405, "text/plain", "only GET and HEAD are answered\n"}, false);
    // The bytes behind the header of a request with a body are not read as the next request.
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    if (parser_->chunked()) return Answer({413, "text/plain", "requests have no body\n"}, false);
    const bool keep =
        request.keep_alive() && !has_body && ++requests_ < parts_->options.requests_per_connection;
    const std::string target(request.target().data(), request.target().size());
    const auto route = parts_->routes.find(target.substr(0, target.find('?')));
    if (route == parts_->routes.end()) return Answer({404, "text/plain", "there is no such page\n"}, false);
    stream_.expires_never();  // while the route works
    asio::post(parts_->handlers, [self = this->shared_from_this(), route, may_keep = keep]() mutable {
      bool keep = may_keep;
      HttpAnswer answer;
      try {
        answer = route->second();
      } catch (const std::exception& failure) {
        answer = {500, "text/plain", absl::StrCat("failed: ", failure.what(), "\n")};
        keep = false;
      }
      // The last owner of the session must be on the io thread.
      asio::io_context& io = self->parts_->io;
      asio::post(io, [self = std::move(self), answer = std::move(answer), keep]() mutable {
        self->Answer(std::move(answer), keep);
      });
    });
  }

  void Answer(HttpAnswer answer, bool keep) {
    response_.emplace(http::int_to_status(answer.status), version_);
    response_->set(http::field::content_type, answer.content_type);
    response_->set(http::field::cache_control, "no-store");
    if (answer.status == 405) response_->set(http::field::allow, "GET, HEAD");
    response_->keep_alive(keep);
    response_->content_length(answer.body.size());
    if (!head_) response_->body() = std::move(answer.body);
    serializer_.emplace(*response_);
    // The answer to a HEAD tells the length, and no body follows.
    stream_.expires_after(parts_->options.answer_time);
    auto written = [self = this->shared_from_this(), keep](const Error& error, size_t) {
      if (error) return self->Close();
      if (keep) return self->Read();
      self->Linger(kMostLingeringBytes);
    };
    if (head_)
      http::async_write_header(stream_, *serializer_, std::move(written));
    else
      http::async_write(stream_, *serializer_, std::move(written));
  }

  void Linger(size_t left) {
    Error ignored;
    if (left == kMostLingeringBytes) {
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      stream_.expires_after(kLingeringTime);
      buffer_.clear();
    }
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = this->shared_from_this(), left](const Error& error, size_t size) {
                              if (error || size >= left) return self->Close();
                              self->Linger(left - size);
                            });
  }

  void Close() {
    Error ignored;
    stream_.socket().close(ignored);
  }

  Parts* const parts_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMostHeaderBytes + 8192};
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  unsigned version_ = 11;
  bool head_ = false;
  int requests_ = 0;
};

}  // namespace

void HttpServer::Parts::Accept() {
  waiting_to_accept = connections >= options.connections;
  if (waiting_to_accept) return;
  acceptor.async_accept([this](const Error& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      // Out of files, most likely: it passes.
      pause.expires_after(kAcceptPause);
      pause.async_wait([this](const Error& stopped) {
        if (!stopped) Accept();
      });
      return;
    }
    std::make_shared<Session<Parts>>(this, std::move(socket))->Read();
    Accept();
  });
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              std::map<std::string, Route> routes) {
  FUSION_ASSIGN_OR_RETURN(tcp::endpoint endpoint, ParseAddress(options.address));
  auto parts = std::make_unique<Parts>(options, std::move(routes));
  Error error;
  parts->acceptor.open(endpoint.protocol(), error);
  if (!error) parts->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) parts->acceptor.bind(endpoint, error);
  if (!error) parts->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.address, " for metrics: ", error.message()));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {
  const tcp::endpoint endpoint = parts_->acceptor.local_endpoint();
  address_ = absl::StrCat(endpoint.address().is_v6() ? absl::StrCat("[", endpoint.address().to_string(), "]")
                                                     : endpoint.address().to_string(),
                          ":", endpoint.port());
  parts_->Accept();
  parts_->thread = std::thread([io = &parts_->io] { io->run(); });
}

HttpServer::~HttpServer() {
  parts_->io.stop();
  parts_->thread.join();
  parts_->stopped = true;
  parts_->handlers.join();
}

}  // namespace fusion
