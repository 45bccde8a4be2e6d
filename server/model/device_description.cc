#include "server/model/device_description.h"

namespace fusion {

DeviceDescription DescribedDevice(v1::Target target) {
  DeviceDescription device;
  device.set_target(target == v1::TARGET_AUTO ? v1::HOST : target);
  if (device.target() == v1::CUDA) {
    // NVIDIA H100 SXM data sheet and CUDA programming guide, compute capability 9.0; copy rate: 90 % of 3.35
    // TB/s.
    device.set_name("H100 (described, not measured)");
    device.set_arch("sm_90");
    device.set_multiprocessors(132);
    device.set_l2_bytes(50 << 20);
    device.set_memory_bytes(int64_t{80} << 30);
    device.set_copy_bytes_per_second(3.0e12);
    device.set_peak_flops(66.9e12);
    device.set_launch_seconds(2.5e-6);
  } else {
    device.set_name("2-core host (described, not measured)");
    device.set_arch("x86-64");
    device.set_multiprocessors(2);
    device.set_l2_bytes(32 << 20);
    device.set_memory_bytes(int64_t{8} << 30);
    device.set_copy_bytes_per_second(2.0e10);
    device.set_peak_flops(1.0e11);
    device.set_launch_seconds(5e-6);
  }
  return WithDefaults(device);
}

DeviceDescription WithDefaults(DeviceDescription device) {
  auto integer = [](auto value, auto otherwise) { return value > 0 ? value : otherwise; };
  const bool cuda = device.target() == v1::CUDA;
  device.set_multiprocessors(integer(device.multiprocessors(), 1));
  device.set_max_threads_per_block(integer(device.max_threads_per_block(), 1024));
  device.set_max_threads_per_multiprocessor(
      integer(device.max_threads_per_multiprocessor(), cuda ? 2048 : 1024));
  device.set_max_blocks_per_multiprocessor(integer(device.max_blocks_per_multiprocessor(), cuda ? 32 : 1));
  device.set_registers_per_multiprocessor(integer(device.registers_per_multiprocessor(), 65536));
  device.set_shared_bytes_per_block(
      integer(device.shared_bytes_per_block(), cuda ? int64_t{227} << 10 : int64_t{64} << 20));
  device.set_shared_bytes_per_multiprocessor(
      integer(device.shared_bytes_per_multiprocessor(), cuda ? int64_t{228} << 10 : int64_t{64} << 20));
  device.set_l2_bytes(integer(device.l2_bytes(), int64_t{8} << 20));
  device.set_copy_bytes_per_second(integer(device.copy_bytes_per_second(), cuda ? 5e11 : 1e10));
  device.set_peak_flops(integer(device.peak_flops(), cuda ? 1e13 : 5e10));
  device.set_launch_seconds(integer(device.launch_seconds(), cuda ? 3e-6 : 5e-6));
  return device;
}

}  // namespace fusion
