// The name of this machine's kind of processor, by which native code for it is kept and given to workers.
#pragma once

#include <string>
#include <string_view>

namespace fusion {

// The -march option for an architecture as DeviceDescription.arch names it. On x86 a level instead of
// `native`, so that equal keys give code that runs on every machine that calls itself by that level. Names of
// one kind of processor (NativeArch) stand for what `native` means there.
std::string HostArchOption(const std::string& arch);

// Returns whether code for that architecture is built with `native`, and so on such machines alone.
bool IsNativeArch(const std::string& arch);

// The level of this machine, "x86-64-avx512", "x86-64-avx2" or "x86-64"; NativeArch on other machines.
std::string HostArch();

// "aarch64-41-d4f-5c1d2a90": the machine as uname(2) has it; the implementer and the part of its processors,
// joined by + where there are several kinds; a digest of these with their variants and features. That is all
// that GCC and Clang make `native` of. It is made from the text of /proc/cpuinfo; where that does not name
// processors so, the digest is that of their features, flags and names of models.
std::string NativeArch(std::string_view machine, std::string_view cpuinfo);

}  // namespace fusion
