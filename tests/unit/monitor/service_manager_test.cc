#include "base/monitor/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace fusion {
namespace {

// The socket of a service manager, and what comes there.
class ServiceManager {
 public:
  // name: as in $NOTIFY_SOCKET; '@': not a file.
  explicit ServiceManager(const std::string& name) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~ServiceManager() {
    unsetenv("NOTIFY_SOCKET");
    close(socket_);
  }
  // "" when nothing has come.
  std::string Told() const {
    char text[64];
    const ssize_t size = recv(socket_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  const int socket_;
};

TEST(ServiceManagerTest, ToldAtAFileAndAtAName) {
  const std::string unique = "fusion-notify-" + std::to_string(getpid());
  for (const std::string& name : {"/tmp/" + unique, "@" + unique}) {
    {
      const ServiceManager manager(name);
      EXPECT_TRUE(TellServiceManager("READY=1").ok()) << name;
      EXPECT_EQ(manager.Told(), "READY=1") << name;
      EXPECT_TRUE(TellServiceManager("STOPPING=1").ok()) << name;
      EXPECT_EQ(manager.Told(), "STOPPING=1") << name;
      EXPECT_EQ(manager.Told(), "");
    }
    if (name[0] == '/') unlink(name.c_str());
  }
}

TEST(ServiceManagerTest, NobodyAskedOrNobodyListens) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(TellServiceManager("READY=1").ok());
  setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
  EXPECT_FALSE(TellServiceManager("READY=1").ok());
  for (const std::string& name : {std::string("relative"), "/" + std::string(200, 'x')}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    EXPECT_TRUE(absl::IsInvalidArgument(TellServiceManager("READY=1"))) << name;
  }
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace fusion
