#include "client/cli/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

DoctorReport Report() {
  DoctorReport report;
  report.findings.push_back({"host compiler", true, "g++ 12", "nothing is built"});
  report.findings.push_back({"NVRTC", false, "looked in a\nand in b", "no CUDA code"});
  v1::DeviceDescription device;
  device.set_name("Example CPU");
  device.set_target(v1::HOST);
  device.set_arch("x86-64");
  device.set_copy_bytes_per_second(2e10);
  device.set_memory_bytes(int64_t{32} << 30);
  report.devices.push_back({"this machine", device});
  return report;
}

TEST(DoctorReportTest, TextSaysWhatIsMissingAndWhatItCosts) {
  EXPECT_EQ(DoctorText(Report(), TextStyle()),
            "part           found  detail\n"
            "host compiler  yes    g++ 12\n"
            "NVRTC          no     looked in a\n"
            "\n"
            "device: Example CPU (host, x86-64), copies at 20.00 GB/s, 34.36 GB memory, on this machine\n"
            "without NVRTC: no CUDA code\n");
}

TEST(DoctorReportTest, WithoutADeviceItIsNotUsable) {
  DoctorReport report = Report();
  EXPECT_TRUE(report.usable());
  report.devices.clear();
  EXPECT_FALSE(report.usable());
  EXPECT_THAT(DoctorText(report, TextStyle()),
              HasSubstr("no device: check and explain work, submit does not\n"));
  report.server_is_away = true;
  EXPECT_THAT(DoctorText(report, TextStyle()), Not(HasSubstr("check and explain work")));
}

TEST(DoctorReportTest, Json) {
  const Json json = DoctorJson(Report());
  EXPECT_EQ(json["schema"], "fusion.doctor/1");
  EXPECT_TRUE(json["usable"]);
  EXPECT_FALSE(json["findings"][0].contains("cost"));
  EXPECT_EQ(json["findings"][1]["cost"], "no CUDA code");
  EXPECT_EQ(json["devices"][0]["target"], "host");
}

}  // namespace
}  // namespace fusion
