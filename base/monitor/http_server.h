// A small HTTP/1.1 server for a few fixed paths: GET and HEAD, no bodies, everything limited. Whoever can
// connect may send anything.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

struct HttpAnswer {
  int status = 200;
  std::string content_type;
  std::string body;
};

struct HttpOptions {
  // "HOST:PORT", "[::1]:9464", or a port alone, which listens on 127.0.0.1. Port 0 takes a free one.
  std::string address;
  int connections = 32;  // at a time; others wait in the system's queue until one ends
  std::chrono::milliseconds request_time{5000};  // for a whole request to arrive, also of an idle connection
  std::chrono::milliseconds answer_time{10000};  // for a client to take an answer
  int requests_per_connection = 100;
};

// Answers: 200 or what the route says; 400 no HTTP; 404 another path; 405 another method than GET and HEAD;
// 413 a body of more than 1 KiB; 431 more than 8 KiB of header; 500 the route threw. All but the routes' own
// close the connection, as does running out of time, then without an answer.
class HttpServer {
 public:
  // Called for a request, one at a time, on a thread that does nothing else. A query after '?' is ignored.
  using Route = std::function<HttpAnswer()>;

  // InvalidArgument: no such address; Unavailable: it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpOptions& options,
                                                           std::map<std::string, Route> routes);
  // Ends all connections; waits for a route that is running.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "host:port" with the real port.
  const std::string& address() const { return address_; }

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
  std::string address_;
};

}  // namespace fusion
