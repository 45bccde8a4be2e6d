#include "server/dispatch/worker_registry.h"

#include <gmock/gmock.h>

#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using Contact = WorkerRegistry::Contact;

v1::SynchronizeRequest From(const std::string& worker, const std::string& instance,
                            const std::vector<v1::DeviceDescription>& devices = {}) {
  v1::SynchronizeRequest request;
  request.set_worker(worker);
  request.set_instance(instance);
  for (const v1::DeviceDescription& device : devices) *request.add_devices() = device;
  return request;
}

Timestamp At(int seconds) { return Timestamp(std::chrono::seconds(seconds)); }

class WorkerRegistryTest : public ::testing::Test {
 protected:
  bool IsLost(Timestamp now) const { return registry_.DeviceIsLost("GPU-1", now, std::chrono::seconds(30)); }
  WorkerRegistry registry_{std::chrono::seconds(20)};
};

TEST_F(WorkerRegistryTest, TellsNewProcessesFromKnownAndReplacedOnes) {
  EXPECT_EQ(registry_.Touch(From("w", "1"), At(0)), Contact::kNewInstance);
  EXPECT_EQ(registry_.Touch(From("w", "1"), At(1)), Contact::kKnown);
  EXPECT_EQ(registry_.Touch(From("v", "1"), At(1)), Contact::kNewInstance);
  EXPECT_EQ(registry_.Touch(From("w", "2"), At(2)), Contact::kNewInstance);
  EXPECT_EQ(registry_.Touch(From("w", "1"), At(3)), Contact::kReplaced);
  EXPECT_EQ(registry_.Touch(From("w", "3"), At(4)), Contact::kNewInstance);
  EXPECT_EQ(registry_.Touch(From("w", "2"), At(5)), Contact::kReplaced);
  EXPECT_EQ(registry_.Touch(From("w", "1"), At(6)), Contact::kReplaced);
}

TEST_F(WorkerRegistryTest, ProcessesOfBeforeARestartAreKnown) {
  registry_.RestoreProcesses({{"w", {"1", "2"}}});
  EXPECT_TRUE(registry_.Workers(At(0)).empty()) << "it has not called yet";
  EXPECT_EQ(registry_.Touch(From("w", "1"), At(1)), Contact::kReplaced);
  EXPECT_EQ(registry_.Touch(From("w", "2"), At(2)), Contact::kKnown);
  EXPECT_EQ(registry_.Touch(From("w", "3"), At(3)), Contact::kNewInstance);
  EXPECT_EQ(registry_.Touch(From("w", "2"), At(4)), Contact::kReplaced);
}

TEST_F(WorkerRegistryTest, AWorkerWhoseLastCallBrokeIsSilent) {
  registry_.Touch(From("w", "1"), At(0), 1);
  registry_.Touch(From("v", "1"), At(0), 2);
  registry_.CallBroke("w", 1, At(10));
  registry_.CallBroke("v", 1, At(10));  // not its last call
  registry_.CallBroke("nobody", 3, At(10));
  EXPECT_TRUE(registry_.TakeSilentSince(At(9)).empty());
  EXPECT_EQ(registry_.TakeSilentSince(At(10)), std::vector<std::string>{"w"});
  EXPECT_TRUE(registry_.TakeSilentSince(At(99)).empty()) << "named once";
  registry_.CallBroke("w", 1, At(20));
  registry_.Touch(From("w", "1"), At(21), 4);
  EXPECT_TRUE(registry_.TakeSilentSince(At(99)).empty()) << "it called again";
}

TEST_F(WorkerRegistryTest, ACallMayBreakBeforeItIsTakenUp) {
  registry_.Touch(From("w", "1"), At(0), 1);
  registry_.CallBroke("w", 2, At(1));
  registry_.Touch(From("w", "1"), At(2), 2);
  EXPECT_EQ(registry_.TakeSilentSince(At(9)), std::vector<std::string>{"w"});
  registry_.Touch(From("w", "1"), At(10), 4);
  registry_.CallBroke("w", 4, At(11));
  registry_.Touch(From("w", "1"), At(12), 3);
  EXPECT_EQ(registry_.TakeSilentSince(At(19)), std::vector<std::string>{"w"}) << "3 is older than what broke";
  registry_.Touch(From("w", "1"), At(20), 5);
  EXPECT_TRUE(registry_.TakeSilentSince(At(99)).empty());
}

TEST_F(WorkerRegistryTest, WhatANewerCallSaidStands) {
  v1::SynchronizeRequest drains = From("w", "1");
  drains.set_draining(true);
  registry_.Touch(From("w", "1"), At(0), 1);
  registry_.Touch(drains, At(1), 3);
  registry_.Touch(From("w", "1"), At(2), 2);
  ASSERT_EQ(registry_.Workers(At(2)).size(), 1u);
  EXPECT_TRUE(registry_.Workers(At(2))[0].draining());
}

TEST_F(WorkerRegistryTest, ADeviceIsLostWithAllWorkersThatHaveIt) {
  EXPECT_FALSE(IsLost(At(0))) << "nobody has said so";
  registry_.Touch(From("w", "1", {CudaDevice("GPU-1")}), At(0));
  EXPECT_FALSE(IsLost(At(1)));
  registry_.Lose("w");
  EXPECT_TRUE(IsLost(At(1)));
  EXPECT_TRUE(registry_.Devices(v1::CUDA, "", At(1)).empty());
  registry_.Touch(From("w", "1", {CudaDevice("GPU-1")}), At(2));
  EXPECT_FALSE(IsLost(At(3)));
  EXPECT_EQ(registry_.Devices(v1::CUDA, "", At(3)).size(), 1u);
}

TEST_F(WorkerRegistryTest, ADeviceOfADrainingWorkerIsLostUnlessAnotherOffersIt) {
  registry_.Touch(From("w", "1", {CudaDevice("GPU-1")}), At(0));
  registry_.Touch(From("v", "1", {CudaDevice("GPU-1")}), At(0));
  ASSERT_TRUE(registry_.Drain("w").ok());
  EXPECT_FALSE(IsLost(At(1))) << "v has it too";
  v1::SynchronizeRequest draining = From("v", "1", {CudaDevice("GPU-1")});
  draining.set_draining(true);
  registry_.Touch(draining, At(1));
  EXPECT_TRUE(IsLost(At(2)));
  registry_.Touch(From("w", "2", {CudaDevice("GPU-1")}), At(3));
  EXPECT_FALSE(IsLost(At(4))) << "it has come back";
}

TEST_F(WorkerRegistryTest, ADeviceThatIsTakenOutIsLostAfterAWhile) {
  v1::SynchronizeRequest request = From("w", "1", {CudaDevice("GPU-1"), CudaDevice("GPU-2")});
  v1::DeviceProblem* problem = request.add_problems();
  problem->set_device_uuid("GPU-2");
  registry_.Touch(request, At(0));
  EXPECT_FALSE(IsLost(At(10))) << "it is the other one";
  problem->set_device_uuid("GPU-1");
  problem->set_seconds(20);
  registry_.Touch(request, At(20));
  EXPECT_FALSE(IsLost(At(30)));
  EXPECT_TRUE(IsLost(At(31)));
  registry_.Touch(From("v", "1", {CudaDevice("GPU-1")}), At(31));
  EXPECT_FALSE(IsLost(At(32))) << "another worker offers it";
}

TEST_F(WorkerRegistryTest, DevicesThatAreTakenOutAreNotOffered) {
  v1::SynchronizeRequest request = From("w", "1", {CudaDevice("GPU-1"), CudaDevice("GPU-2")});
  v1::DeviceProblem* problem = request.add_problems();
  problem->set_device_uuid("GPU-1");
  problem->set_reason("fell off the bus");
  registry_.Touch(request, At(0));
  const std::vector<v1::DeviceDescription> devices = registry_.Devices(v1::CUDA, "", At(1));
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].uuid(), "GPU-2");
  EXPECT_THAT(registry_.Describe(At(1)), ::testing::HasSubstr("taken out: fell off the bus"));
  EXPECT_EQ(registry_.Workers(At(1))[0].problems_size(), 1);
}

TEST_F(WorkerRegistryTest, AnotherDeviceIsOneOfAnotherWorkerIfThereIsOne) {
  const auto another = [&](const std::string& uuid) {
    const std::optional<v1::DeviceDescription> device = registry_.AnotherDevice(CudaDevice(uuid), At(1));
    return device.has_value() ? device->uuid() : "none";
  };
  registry_.Touch(From("a", "1", {CudaDevice("GPU-1")}), At(0));
  registry_.Touch(From("c", "1", {CudaDevice("GPU-5", "sm_80"), HostDevice()}), At(0));
  EXPECT_EQ(another("GPU-1"), "none");
  registry_.Touch(From("a", "1", {CudaDevice("GPU-1"), CudaDevice("GPU-2")}), At(0));
  EXPECT_EQ(another("GPU-1"), "GPU-2") << "better than none";
  registry_.Touch(From("b", "1", {CudaDevice("GPU-3"), CudaDevice("GPU-4")}), At(0));
  EXPECT_EQ(another("GPU-1"), "GPU-3");
  EXPECT_EQ(another("GPU-2"), "GPU-3");
  EXPECT_EQ(another("GPU-4"), "GPU-1");
  v1::SynchronizeRequest out = From("b", "1", {CudaDevice("GPU-3"), CudaDevice("GPU-4")});
  out.add_problems()->set_device_uuid("GPU-3");
  registry_.Touch(out, At(0));
  EXPECT_EQ(another("GPU-1"), "GPU-4");
  ASSERT_TRUE(registry_.Drain("b").ok());
  EXPECT_EQ(another("GPU-1"), "GPU-2");
}

TEST_F(WorkerRegistryTest, DescribesWorkers) {
  v1::SynchronizeRequest request = From("w", "1", {CudaDevice()});
  request.add_tasks()->set_running(true);
  request.add_tasks()->mutable_build();
  registry_.Touch(request, Timestamp(std::chrono::microseconds(5'250'000)));
  const std::vector<v1::Worker> workers = registry_.Workers(At(6));
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].name(), "workers/w");
  EXPECT_EQ(workers[0].devices(0).uuid(), "GPU-1");
  EXPECT_EQ(workers[0].last_contact().seconds(), 5);
  EXPECT_EQ(workers[0].last_contact().nanos(), 250'000'000);
  EXPECT_EQ(workers[0].running_tasks(), 1);
  EXPECT_TRUE(workers[0].connected());
  EXPECT_FALSE(workers[0].draining());
  EXPECT_FALSE(registry_.Workers(At(26))[0].connected());
  EXPECT_EQ(registry_.Describe(At(6)), "w (cuda sm_90 H200)");
  EXPECT_EQ(registry_.Describe(At(26)), "none");
}

TEST_F(WorkerRegistryTest, WorkersThatHaveTheSameAreDescribedTogether) {
  for (const char* name : {"a", "b", "c", "d", "e"})
    registry_.Touch(From(name, "1", {CudaDevice(absl::StrCat("GPU-", name))}), At(0));
  for (const char* name : {"c2", "d2"}) registry_.Touch(From(name, "1", {}), At(0));
  v1::SynchronizeRequest builder = From("z", "1", {});
  builder.add_builds()->set_target(v1::CUDA);
  registry_.Touch(builder, At(0));
  ASSERT_TRUE(registry_.Drain("e").ok());
  EXPECT_EQ(registry_.Describe(At(1)),
            "a, b, c and 1 more (cuda sm_90 H200); c2, d2 (no device); e (cuda sm_90 H200, draining); "
            "z (builds only)");
}

TEST_F(WorkerRegistryTest, HasADeviceIfOneOfThemIsWanted) {
  v1::SynchronizeRequest request = From("w", "1", {CudaDevice("GPU-1"), CudaDevice("GPU-2"), HostDevice()});
  request.add_problems()->set_device_uuid("GPU-1");
  registry_.Touch(request, At(0));
  const auto has = [&](v1::Target target, const std::string& arch, const std::string& uuid, int second = 1) {
    return registry_.HasDevice(
        target, arch, [&](const v1::DeviceDescription& device) { return device.uuid() == uuid; }, At(second));
  };
  EXPECT_TRUE(has(v1::CUDA, "", "GPU-2"));
  EXPECT_TRUE(has(v1::TARGET_AUTO, "sm_90", "GPU-2"));
  EXPECT_FALSE(has(v1::CUDA, "sm_80", "GPU-2"));
  EXPECT_FALSE(has(v1::HOST, "", "GPU-2"));
  EXPECT_FALSE(has(v1::CUDA, "", "GPU-1")) << "it is out";
  EXPECT_FALSE(has(v1::CUDA, "", "GPU-2", 60)) << "its worker is gone";
  ASSERT_TRUE(registry_.Drain("w").ok());
  EXPECT_FALSE(has(v1::CUDA, "", "GPU-2")) << "its worker is draining";
}

TEST_F(WorkerRegistryTest, BeingAnsweredCountsAsContact) {
  registry_.Touch(From("w", "1"), At(0));
  registry_.Answered("w", "1", At(10));
  registry_.Answered("w", "another process", At(100));
  EXPECT_TRUE(registry_.Workers(At(30))[0].connected());
  EXPECT_FALSE(registry_.Workers(At(31))[0].connected());
}

TEST_F(WorkerRegistryTest, DevicesAreThoseThatCanBeUsed) {
  registry_.Touch(From("a", "1", {CudaDevice("G1"), HostDevice("C1")}), At(0));
  registry_.Touch(From("b", "1", {CudaDevice("G2", "sm_80")}), At(10));
  v1::SynchronizeRequest draining = From("c", "1", {CudaDevice("G3")});
  draining.set_draining(true);
  registry_.Touch(draining, At(10));
  EXPECT_EQ(registry_.Devices(v1::TARGET_AUTO, "", At(10)).size(), 3u);
  EXPECT_EQ(registry_.Devices(v1::CUDA, "", At(10)).size(), 2u);
  EXPECT_EQ(registry_.Devices(v1::CUDA, "sm_80", At(10)).at(0).uuid(), "G2");
  EXPECT_TRUE(registry_.Devices(v1::HOST, "", At(25)).empty());
  ASSERT_TRUE(registry_.Drain("b").ok());
  EXPECT_TRUE(registry_.Devices(v1::CUDA, "sm_80", At(10)).empty());
}

TEST_F(WorkerRegistryTest, ADrainHoldsForOneProcess) {
  registry_.RestoreDrained({{"w", "1"}});
  registry_.Touch(From("w", "1"), At(0));
  EXPECT_TRUE(registry_.Draining("w"));
  registry_.Touch(From("w", "2"), At(1));
  EXPECT_FALSE(registry_.Draining("w"));
  EXPECT_EQ(*registry_.Drain("workers/w"), "2");
  EXPECT_TRUE(registry_.Draining("w"));
  EXPECT_FALSE(registry_.Draining("unknown"));
}

TEST_F(WorkerRegistryTest, AWorkerThatComesBackIsAChange) {
  const int64_t before = registry_.version();
  registry_.Touch(From("w", "1"), At(0));
  const int64_t connected = registry_.WaitForChange(before, std::chrono::seconds(60));
  EXPECT_GT(connected, before);
  registry_.Touch(From("w", "1"), At(1));
  EXPECT_EQ(registry_.version(), connected);
  registry_.Touch(From("w", "1"), At(100));
  EXPECT_GT(registry_.version(), connected);
}

}  // namespace
}  // namespace fusion
