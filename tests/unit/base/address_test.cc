#include "base/rpc/address.h"

#include <gmock/gmock.h>

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(AddressTest, LoopbackAddresses) {
  for (const char* address :
       {"127.0.0.1:0", "127.1.2.3:50051", "localhost:50051", "[::1]:50051", "[::ffff:127.0.0.1]:1"})
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:1", "127.1:1", "127.0.0.1.example.org:1", "localhost.example.org:1",
        "", ":0", "127.0.0.1", "[::1:50051", "128.0.0.1:1", "[::ffff:10.0.0.1]:1", "*:1"})
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
}

TEST(AddressTest, LoopbackPeers) {
  for (const char* peer :
       {"ipv4:127.0.0.1:51234", "ipv6:[::1]:51234", "ipv6:%5B::1%5D:51234", "unix:/run/fusion"})
    EXPECT_TRUE(IsLoopbackPeer(peer)) << peer;
  for (const char* peer : {"ipv4:10.0.0.7:51234", "ipv6:[fe80::1]:1", "", "127.0.0.1:1", "ipv4:"})
    EXPECT_FALSE(IsLoopbackPeer(peer)) << peer;
}

TEST(AddressTest, AddressesOfServers) {
  for (const char* address : {"127.0.0.1:1", "localhost:65535", "gpu-farm.example.org:50051", "[::1]:50051",
                              "[fe80::1%eth0]:1", "unix:/run/fusion.sock", "dns:///farm:50051"})
    EXPECT_TRUE(CheckServerAddress(address).ok()) << address;
  for (const auto& [address, what] : {std::pair{"localhost", "the port is missing"},
                                      {"", "the port is missing"},
                                      {":50051", "the host is missing"},
                                      {"http://farm:50051", "an address has no scheme"},
                                      {"farm:http", "the port is a number"},
                                      {"farm:", "the port is a number"},
                                      {"farm:0", "from 1 to 65535"},
                                      {"farm:65536", "from 1 to 65535"},
                                      {"farm:99999999999999999999", "from 1 to 65535"},
                                      {"farm:-1", "from 1 to 65535"},
                                      {"::1:50051", "in brackets"},
                                      {"farm:1:50051", "in brackets"},
                                      {"[::1]", "in brackets"}}) {
    const absl::Status status = CheckServerAddress(address);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(what), HasSubstr(address), HasSubstr("write HOST:PORT")));
  }
}

TEST(AddressTest, PeersAreNamedAsByGrpc) {
  EXPECT_EQ(PeerOfAddress("10.0.0.7:51234"), "ipv4:10.0.0.7:51234");
  EXPECT_EQ(PeerOfAddress("::1:51234"), "ipv6:[::1]:51234");
  for (const char* none :
       {"", "10.0.0.7", "10.0.0.7:", "10.0.0.7:port", "10.0.0.7:65536", "10.0.0.7:-1", "farm:1", "[::1]:1"})
    EXPECT_EQ(PeerOfAddress(none), "") << none;
}

}  // namespace
}  // namespace fusion
