// A client of HTTP pages that can also behave badly.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace fusion::testing {

// A connection to 127.0.0.1. Waits for nothing longer than a minute.
class Connection {
 public:
  explicit Connection(const std::string& address, int receive_buffer = 0) {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Connection() { close(socket_); }
  bool connected() const { return connected_; }
  void Send(const std::string& text) { (void)!send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  void EndSending() { shutdown(socket_, SHUT_WR); }
  // Until the server closes.
  std::string ReadAll() {
    std::string all;
    char buffer[4096];
    for (ssize_t size; (size = recv(socket_, buffer, sizeof buffer, 0)) > 0;) all.append(buffer, size);
    return all;
  }
  // Until the text holds `marker`.
  std::string ReadTo(const std::string& marker) {
    std::string all;
    char byte;
    while (all.find(marker) == std::string::npos && recv(socket_, &byte, 1, 0) == 1) all += byte;
    return all;
  }

 private:
  int socket_ = -1;
  bool connected_ = false;
};

// The whole answer of the server at "127.0.0.1:PORT".
inline std::string HttpGet(const std::string& address, const std::string& path) {
  Connection connection(address);
  connection.Send("GET " + path + " HTTP/1.0\r\n\r\n");
  return connection.ReadAll();
}

}  // namespace fusion::testing
