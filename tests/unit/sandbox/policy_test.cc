#include "base/sandbox/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "base/sandbox/bubblewrap.h"
#include "base/sandbox/machine_offer.h"

namespace fusion {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

constexpr SandboxKind kKinds[] = {SandboxKind::kHostCode, SandboxKind::kDeviceCode,
                                  SandboxKind::kDeviceCompiler, SandboxKind::kHostCompiler};

SandboxPolicy PolicyOf(SandboxKind kind) {
  SandboxPolicy policy;
  policy.kind = kind;
  return policy;
}

TEST(PolicyTest, TravelsAsArguments) {
  for (SandboxKind kind : kKinds) {
    SandboxPolicy policy = PolicyOf(kind);
    policy.read = {"/opt/a b", "/opt/c"};
    policy.device_uuid = "GPU-1";
    policy.use_bubblewrap = kind == SandboxKind::kHostCode;
    policy.use_landlock = kind != SandboxKind::kDeviceCode;
    const absl::StatusOr<SandboxPolicy> back = PolicyFromArguments(PolicyArguments(policy));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->kind, kind);
    EXPECT_EQ(back->read, policy.read);
    EXPECT_EQ(back->device_uuid, "GPU-1");
    EXPECT_EQ(back->use_bubblewrap, policy.use_bubblewrap);
    EXPECT_EQ(back->use_landlock, policy.use_landlock);
  }
}

TEST(PolicyTest, AnUnknownArgumentOrNoKindIsAnError) {
  EXPECT_FALSE(PolicyFromArguments({}).ok());
  EXPECT_FALSE(PolicyFromArguments({"--kind=everything"}).ok());
  EXPECT_FALSE(PolicyFromArguments({"--kind=host-code", "--all"}).ok());
}

TEST(PolicyTest, NoPlaceOfTheUserIsReadable) {
  for (SandboxKind kind : kKinds) {
    const std::vector<std::string> places = ReadablePlaces(PolicyOf(kind));
    ASSERT_FALSE(places.empty());
    for (const char* place : {"/", "/home", "/root", "/etc", "/var", "/tmp", "/proc", "/dev"})
      EXPECT_THAT(places, Not(Contains(place))) << SandboxKindName(kind);
    EXPECT_THAT(places, Each(StartsWith("/")));
  }
}

TEST(PolicyTest, NoReadablePlaceIsInsideAnother) {
  SandboxPolicy policy = PolicyOf(SandboxKind::kHostCode);
  policy.read = {"/usr/lib", "/usr/share"};
  const std::vector<std::string> places = ReadablePlaces(policy);
  for (const std::string& outer : places)
    for (const std::string& inner : places) EXPECT_FALSE(absl::StartsWith(inner, outer + "/")) << inner;
}

TEST(PolicyTest, NvrtcSeesNoHeadersOfTheSystem) {
  const std::vector<std::string> places = ReadablePlaces(PolicyOf(SandboxKind::kDeviceCompiler));
  EXPECT_THAT(places, Not(Contains("/usr")));
  EXPECT_THAT(places, Not(Contains("/usr/include")));
}

TEST(PolicyTest, OnlyCodeForGpusSeesGpus) {
  for (SandboxKind kind : {SandboxKind::kHostCode, SandboxKind::kDeviceCompiler, SandboxKind::kHostCompiler})
    for (const std::string& node : DeviceNodes(PolicyOf(kind)))
      EXPECT_FALSE(absl::StrContains(node, "nvidia"));
  EXPECT_THAT(DeviceNodes(PolicyOf(SandboxKind::kHostCode)), Not(Contains("/dev/zero")));
}

TEST(PolicyTest, TheOneGpuOfALaneHasItsOwnNode) {
  if (access("/dev/nvidia1", F_OK) != 0) GTEST_SKIP() << "SKIP: not two GPUs on this machine";
  SandboxPolicy policy = PolicyOf(SandboxKind::kDeviceCode);
  const std::vector<std::string> all = DeviceNodes(policy);
  EXPECT_THAT(all, IsSupersetOf({"/dev/nvidia0", "/dev/nvidia1"}));
}

TEST(BubblewrapTest, UnsharesEverythingAndEndsWithTheCommand) {
  SandboxPolicy policy = PolicyOf(SandboxKind::kHostCompiler);
  policy.write = {"/var/tmp/build"};
  const std::vector<std::string> command =
      BubblewrapCommand("/usr/bin/bwrap", policy, {"/usr/bin/g++", "-c"}, "/var/tmp/build", 4);
  EXPECT_EQ(command.front(), "/usr/bin/bwrap");
  EXPECT_EQ((std::vector<std::string>(command.end() - 3, command.end())),
            (std::vector<std::string>{"--", "/usr/bin/g++", "-c"}));
  EXPECT_THAT(command, IsSupersetOf({"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
                                     "--unshare-net", "--die-with-parent", "--cap-drop"}));
  EXPECT_THAT(command, Contains("/var/tmp/build"));
  // A compiler sees no processes at all.
  EXPECT_THAT(command, Not(Contains("--proc")));
  EXPECT_THAT(BubblewrapCommand("bwrap", PolicyOf(SandboxKind::kHostCode), {"/usr/bin/true"}, "", -1),
              Contains("--proc"));
}

TEST(MachineOfferTest, SaysWhatIsInForce) {
  MachineOffer offer;
  offer.bubblewrap_missing = "bwrap is not installed";
  const SandboxPolicy policy = PolicyOf(SandboxKind::kHostCode);
  std::string why_not;
  EXPECT_EQ(ConfinementText(policy, offer), "limits");
  EXPECT_FALSE(ConfinesHostCode(policy, offer, &why_not));
  EXPECT_THAT(why_not, ::testing::HasSubstr("seccomp"));
  offer.filter = true;
  EXPECT_FALSE(ConfinesHostCode(policy, offer, &why_not));
  EXPECT_THAT(why_not, ::testing::HasSubstr("bwrap is not installed"));
  offer.landlock = 2;
  EXPECT_FALSE(ConfinesHostCode(policy, offer));
  offer.landlock = 3;
  EXPECT_TRUE(ConfinesHostCode(policy, offer));
  EXPECT_EQ(ConfinementText(policy, offer), "seccomp, Landlock, limits");
  offer.landlock = 0;
  offer.bubblewrap = "/usr/bin/bwrap";
  EXPECT_TRUE(ConfinesHostCode(policy, offer));
  EXPECT_EQ(ConfinementText(policy, offer), "bubblewrap, seccomp, limits");
  SandboxPolicy without = policy;
  without.use_bubblewrap = false;
  EXPECT_FALSE(ConfinesHostCode(without, offer));
}

}  // namespace
}  // namespace fusion
