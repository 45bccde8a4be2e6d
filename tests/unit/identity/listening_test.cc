#include "server/identity/listening.h"

#include <gmock/gmock.h>

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ListeningTest, LoopbackAddresses) {
  for (const char* address :
       {"127.0.0.1:0", "127.1.2.3:50051", "localhost:50051", "[::1]:50051", "[::ffff:127.0.0.1]:1"})
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
  for (const char* address :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:1", "127.1:1", "127.0.0.1.example.org:1", "localhost.example.org:1",
        "", ":0", "127.0.0.1", "[::1:50051", "128.0.0.1:1", "[::ffff:10.0.0.1]:1", "*:1"})
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
}

TEST(ListeningTest, LoopbackPeers) {
  for (const char* peer :
       {"ipv4:127.0.0.1:51234", "ipv6:[::1]:51234", "ipv6:%5B::1%5D:51234", "unix:/run/fusion"})
    EXPECT_TRUE(IsLoopbackPeer(peer)) << peer;
  for (const char* peer : {"ipv4:10.0.0.7:51234", "ipv6:[fe80::1]:1", "", "127.0.0.1:1", "ipv4:"})
    EXPECT_FALSE(IsLoopbackPeer(peer)) << peer;
}

TEST(ListeningTest, AddressesOfServers) {
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

TEST(ListeningTest, OthersNeedTls) {
  EXPECT_TRUE(CheckListening("127.0.0.1:50051", false, false).ok());
  EXPECT_TRUE(CheckListening("", false, false).ok()) << "in this process alone";
  EXPECT_TRUE(CheckListening("0.0.0.0:50051", true, false).ok());
  EXPECT_TRUE(CheckListening("0.0.0.0:50051", false, true).ok());
  const absl::Status status = CheckListening("0.0.0.0:50051", false, false);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("0.0.0.0:50051"), HasSubstr("--tls-cert"), HasSubstr("make-certificates.sh"),
                    HasSubstr("--insecure-any-address")));
}

TEST(ListeningTest, APortAloneIsNoAddressThatOthersReach) {
  for (const char* address : {"50051", "localhost"})
    for (bool tls : {false, true}) {
      const absl::Status status = CheckListening(address, tls, false);
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << address << ": " << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(std::string("--listen ") + address), HasSubstr("must be HOST:PORT")));
    }
}

}  // namespace
}  // namespace fusion
