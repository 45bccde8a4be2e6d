#include "client/cli/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/sample_messages.h"

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
  EXPECT_TRUE(json["devices"][0]["usable"]);
  EXPECT_TRUE(json["devices"][0]["problem"].is_null());
  EXPECT_EQ(json["workers"], Json::array());
}

TEST(DoctorReportTest, CountsTheWorkersThatAreConnected) {
  DoctorReport report;
  EXPECT_EQ(AddWorkers(testing::SampleWorkers(), &report), "4 connected workers, 1 lost");
  v1::ListWorkersResponse workers;
  EXPECT_EQ(AddWorkers(workers, &report), "0 connected workers");
  for (const char* name : {"a", "b", "c", "d"}) testing::AddWorker(&workers, name, false);
  testing::AddWorker(&workers, "e", true);
  EXPECT_EQ(AddWorkers(workers, &report), "1 connected worker, 4 lost");
}

TEST(DoctorReportTest, NamesDevicesThatGetNoWorkAndHowWorkersAreConfined) {
  DoctorReport report;
  AddWorkers(testing::SampleWorkers(), &report);
  EXPECT_TRUE(report.usable());
  EXPECT_EQ(
      DoctorText(report, TextStyle()),
      "part  found  detail\n"
      "\n"
      "device: GPU A (cuda, sm_90), copies at 2.000 TB/s, 80.00 GB memory, on workers/mixed\n"
      "not usable: GPU B (cuda, sm_90), copies at 2.000 TB/s, 80.00 GB memory, on workers/mixed, taken out "
      "for 95.00 s: the probe was wrong\n"
      "not usable: GPU C (cuda, sm_90), copies at 2.000 TB/s, 80.00 GB memory, on workers/leaving, the "
      "worker is draining\n"
      "device: GPU E (cuda, sm_90), copies at 2.000 TB/s, 80.00 GB memory, on workers/old\n"
      "worker: workers/mixed, connected, version 0.9.0, builds cuda; confinement: runners: bubblewrap, "
      "seccomp, limits; host code: refused; compilers: seccomp, Landlock, limits\n"
      "worker: workers/builder, connected, version 0.9.0, builds only: cuda, host x86-64-avx512; "
      "confinement: runners: limits; host code: not offered; compilers: limits\n"
      "worker: workers/leaving, draining, version 0.9.0, builds nothing; confinement: unknown\n"
      "worker: workers/old, connected, version unknown, builds for its devices; confinement: unknown\n");
}

TEST(DoctorReportTest, DevicesThatAreOutAreNotUsable) {
  v1::ListWorkersResponse workers;
  v1::Worker* worker = testing::AddWorker(&workers, "a", true);
  testing::AddDevice(worker, "GPU A", "GPU-0");
  worker->add_problems()->set_device_uuid("GPU-0");
  DoctorReport report;
  AddWorkers(workers, &report);
  EXPECT_FALSE(report.usable());
  const std::string text = DoctorText(report, TextStyle());
  EXPECT_THAT(text, HasSubstr("on workers/a, taken out: the worker does not say why\n"));
  EXPECT_THAT(text, HasSubstr("no usable device: check and explain work, submit does not\n"));
  const Json json = DoctorJson(report);
  EXPECT_FALSE(json["usable"]);
  EXPECT_FALSE(json["devices"][0]["usable"]);
  EXPECT_EQ(json["devices"][0]["problem"], "taken out: the worker does not say why");
  EXPECT_EQ(json["workers"][0]["worker"], "workers/a");
  EXPECT_EQ(json["workers"][0]["problems"][0]["device_uuid"], "GPU-0");
}

}  // namespace
}  // namespace fusion
