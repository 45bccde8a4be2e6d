#include "server/identity/listening.h"

#include <gmock/gmock.h>

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
