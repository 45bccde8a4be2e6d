// GPUs that do not work when the worker starts. The runner is a script that answers as one does: which
// devices work is written into it.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fusion/v1/runner.pb.h"
#include "worker/agent/local_workplace.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr char kHurt[] = "the ECC memory is broken";

v1::DeviceDescription Gpu(const std::string& uuid, bool figures) {
  v1::DeviceDescription device;
  device.set_name("Some GPU");
  device.set_target(v1::CUDA);
  device.set_arch("sm_90");
  device.set_uuid(uuid);
  if (figures) device.set_copy_bytes_per_second(3e12);
  return device;
}

class BadDevicesTest : public ::testing::Test {
 protected:
  BadDevicesTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~BadDevicesTest() override {
    workplace_.reset();
    std::filesystem::remove_all(folder_);
  }

  // What the runner does from now on. `deadly`: using a hurt device ends it. `first`: what its shell does
  // before.
  void WriteRunner(const std::set<std::string>& hurt, bool deadly, const std::string& first = "",
                   const std::string& suffix = "") {
    std::map<std::string, std::string> answers;  // by request, both in hex; "": it dies
    v1::RunnerRequest all, outline;
    all.mutable_describe()->set_target(v1::CUDA);
    outline.mutable_describe()->set_target(v1::CUDA);
    outline.mutable_describe()->set_without_use(true);
    v1::RunnerReply described, outlined;
    for (const std::string& uuid : kUuids) {
      v1::RunnerRequest alone, probe;
      alone.mutable_describe()->set_device_uuid(uuid);
      probe.mutable_probe()->set_device_uuid(uuid);
      v1::RunnerReply one, probed;
      *outlined.mutable_described()->add_devices() = Gpu(uuid, false);
      if (hurt.contains(uuid)) {
        *described.mutable_described()->add_devices() = Gpu(uuid, false);
        v1::DeviceProblem* problem = described.mutable_described()->add_problems();
        problem->set_device_uuid(uuid);
        problem->set_reason(kHurt);
        *one.mutable_described() = described.described();
        probed.set_failure(kHurt);
      } else {
        *described.mutable_described()->add_devices() = Gpu(uuid, true);
        *one.mutable_described()->add_devices() = Gpu(uuid, true);
        probed.mutable_probed();
      }
      answers[Hex(alone)] = deadly && hurt.contains(uuid) ? "" : Hex(one);
      answers[Hex(probe)] = deadly && hurt.contains(uuid) ? "" : Hex(probed);
    }
    answers[Hex(all)] = deadly && !hurt.empty() ? "" : Hex(described);
    answers[Hex(outline)] = Hex(outlined);

    const std::string written = Runner() + suffix + ".new";
    std::ofstream script(written);
    script << "#!/bin/sh\n"
           << first
           << "\nwhile :; do\n"
              "n=$(head -c 4 | od -An -tu4 | tr -d ' ')\n[ -n \"$n\" ] || exit 0\n"
              "case $(head -c \"$n\" | od -An -v -tx1 | tr -d ' \\n') in\n";
    for (const auto& [request, answer] : answers) {
      script << request << ") ";
      script << (answer.empty() ? "kill -9 $$" : absl::StrCat("printf '", Printed(answer), "'")) << ";;\n";
    }
    script << "*) exit 9;;\nesac\ndone\n";
    script.close();
    chmod(written.c_str(), 0755);
    std::filesystem::rename(written, Runner() + suffix);  // one that runs goes on as it was
  }
  absl::StatusOr<std::unique_ptr<LocalWorkplace>> Open() {
    WorkplaceOptions options;
    options.host = false;
    options.runner_program = Runner();
    options.first_probe_delay = std::chrono::milliseconds(20);
    options.gpu_nodes = true;
    return LocalWorkplace::Open(options, &blobs_);
  }
  void ExpectOneOut(const char* why) {
    absl::StatusOr<std::unique_ptr<LocalWorkplace>> opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    workplace_ = *std::move(opened);
    ASSERT_EQ(workplace_->devices().size(), 3u);
    for (const v1::DeviceDescription& device : workplace_->devices()) {
      EXPECT_EQ(device.name(), "Some GPU");
      EXPECT_EQ(device.copy_bytes_per_second() > 0, device.uuid() != "GPU-2") << device.uuid();
    }
    const std::vector<v1::DeviceProblem> problems = workplace_->problems();
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].device_uuid(), "GPU-2");
    EXPECT_THAT(problems[0].reason(), HasSubstr(why));
  }
  void ExpectItComesBack() {
    auto back = std::make_shared<std::promise<void>>();
    workplace_->OnChange([this, back, told = false]() mutable {
      if (!workplace_->problems().empty() || std::exchange(told, true)) return;
      back->set_value();
    });
    WriteRunner({}, false);
    ASSERT_EQ(back->get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
    for (const v1::DeviceDescription& device : workplace_->devices())
      EXPECT_EQ(device.copy_bytes_per_second(), 3e12) << device.uuid();
  }

  std::string folder_ = "/var/tmp/fusion-test-XXXXXX";
  BlobTransfer blobs_{grpc::CreateChannel("localhost:1", grpc::InsecureChannelCredentials()), 1 << 20};
  std::unique_ptr<LocalWorkplace> workplace_;

 private:
  static const std::vector<std::string> kUuids;
  std::string Runner() const { return folder_ + "/fusion-runner"; }
  // As printf of a shell takes it: the length in front, then the message.
  static std::string Printed(const std::string& hex) {
    const std::string message = absl::HexStringToBytes(hex);
    const auto length = static_cast<uint32_t>(message.size());
    std::string printed;
    for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&printed, "\\%03o", (length >> (8 * i)) & 0xff);
    for (const unsigned char byte : message) absl::StrAppendFormat(&printed, "\\%03o", byte);
    return printed;
  }
  static std::string Hex(const google::protobuf::MessageLite& message) {
    return absl::BytesToHexString(message.SerializeAsString());
  }
};
const std::vector<std::string> BadDevicesTest::kUuids = {"GPU-1", "GPU-2", "GPU-3"};

TEST_F(BadDevicesTest, OneThatDoesNotWorkIsOutAndTakesNoOtherAway) {
  WriteRunner({"GPU-2"}, false);
  ExpectOneOut(kHurt);
  ExpectItComesBack();
}

// In bubblewrap a runner sees no file beside itself.
TEST_F(BadDevicesTest, ADriverThatDoesNotWorkConfinedIsConfinedLess) {
  if (MachineOffer::Get().bubblewrap.empty())
    GTEST_SKIP() << "SKIP: " << MachineOffer::Get().bubblewrap_missing;
  WriteRunner({}, false, "", ".sound");
  WriteRunner({"GPU-1", "GPU-2", "GPU-3"}, false, "[ -e \"$0.sound\" ] && exec \"$0.sound\"");
  absl::StatusOr<std::unique_ptr<LocalWorkplace>> opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  workplace_ = *std::move(opened);
  EXPECT_TRUE(workplace_->problems().empty());
  EXPECT_THAT(workplace_->confinement().runner(), ::testing::Not(HasSubstr("bubblewrap")));
  EXPECT_THAT(workplace_->notes(), ::testing::Contains(HasSubstr("the CUDA driver does not work with")));
}

TEST_F(BadDevicesTest, OneThatIsSickForAMomentWeakensNothing) {
  if (MachineOffer::Get().bubblewrap.empty())
    GTEST_SKIP() << "SKIP: " << MachineOffer::Get().bubblewrap_missing;
  // The next runner that is not in bubblewrap is the first that finds it sound; all after it do.
  WriteRunner({}, false, "", ".sound");
  WriteRunner({"GPU-1", "GPU-2", "GPU-3"}, false,
              "[ -e \"$0.sound\" ] && mv \"$0.sound\" \"$0\" && exec \"$0\"");
  absl::StatusOr<std::unique_ptr<LocalWorkplace>> opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  workplace_ = *std::move(opened);
  EXPECT_TRUE(workplace_->problems().empty());
  EXPECT_THAT(workplace_->confinement().runner(), HasSubstr("bubblewrap"));
  EXPECT_TRUE(workplace_->notes().empty()) << workplace_->notes().front();
}

TEST_F(BadDevicesTest, NorDoesOneThatEndsWhoeverUsesIt) {
  WriteRunner({"GPU-2"}, true);
  ExpectOneOut("killed by signal 9");
  ExpectItComesBack();
}

}  // namespace
}  // namespace fusion
