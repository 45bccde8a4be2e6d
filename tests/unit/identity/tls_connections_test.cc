#include "server/identity/tls_connections.h"

#include <gtest/gtest.h>

#include "server/identity/peer_name.h"

namespace fusion {
namespace {

TEST(PeerName, IsReadFromTheNameOfTheSocket) {
  const std::string socket = SocketNameOf("ipv6:[2001:db8::7]:51234", 12);
  EXPECT_EQ(socket[0], '\0');
  EXPECT_NE(socket, SocketNameOf("ipv6:[2001:db8::7]:51234", 13));
  EXPECT_EQ(PeerOfName("unix-abstract:" + socket.substr(1)), "ipv6:[2001:db8::7]:51234");
  std::string escaped = socket.substr(1);
  escaped.replace(escaped.find('['), 1, "%5B").replace(escaped.find(']'), 1, "%5d");
  EXPECT_EQ(PeerOfName("unix-abstract:" + escaped), "ipv6:[2001:db8::7]:51234");
  EXPECT_EQ(SocketOfName("unix-abstract:" + escaped), socket);
}

TEST(PeerName, OthersStayAsTheyAre) {
  for (const char* name : {"", "ipv4:10.0.0.7:51234", "inproc", "unix-abstract:other",
                           "unix-abstract:fusion/1.2", "unix:/tmp/a"}) {
    EXPECT_EQ(PeerOfName(name), name);
  }
  EXPECT_EQ(SocketOfName("unix-abstract:other"), "");
  EXPECT_EQ(SocketOfName("ipv4:10.0.0.7:51234"), "");
}

TEST(TlsConnectionsTest, KnowsThoseWhoseTicketsLive) {
  const std::string socket = SocketNameOf("ipv4:10.0.0.7:51234", 1);
  const std::string name = "unix-abstract:" + socket.substr(1);
  std::shared_ptr<void> ticket;
  {
    TlsConnections connections;
    EXPECT_FALSE(connections.CertificateOf(name).has_value());
    ticket = connections.Add(socket, "PEM");
    EXPECT_EQ(connections.CertificateOf(name), "PEM");
    EXPECT_FALSE(
        connections.CertificateOf("unix-abstract:" + SocketNameOf("ipv4:10.0.0.7:51234", 2).substr(1))
            .has_value());
    EXPECT_FALSE(connections.CertificateOf("ipv4:10.0.0.7:51234").has_value());
    ticket.reset();
    EXPECT_FALSE(connections.CertificateOf(name).has_value());
    ticket = connections.Add(socket, "");
    EXPECT_EQ(connections.CertificateOf(name), "") << "it showed none";
  }
  ticket.reset();
}

}  // namespace
}  // namespace fusion
