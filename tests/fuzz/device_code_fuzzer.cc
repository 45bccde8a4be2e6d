// Any bytes as device code, up to where the driver would be given them. What is let through is read as a
// loader would that believes every header.
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/fuzz/message_input.h"
#include "worker/measure/device_code.h"

namespace fusion {
namespace {

// Memory without values: none, NOBITS, and CUDA's global, local, shared and reserved shared memory.
bool TakesNoRoom(uint32_t kind) {
  for (const uint32_t empty : {0U, 8U, 0x70000007U, 0x70000009U, 0x7000000aU, 0x70000015U})
    if (kind == empty) return true;
  return false;
}

// Adds up all that the headers name, as a loader would read it: ASan says when something is outside.
uint64_t ReadAsALoader(const char* image) {
  uint64_t sum = 0;
  const auto read = [&](uint64_t offset, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) sum += static_cast<unsigned char>(image[offset + i]);
  };
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, image + header.e_phoff + i * sizeof segment, sizeof segment);
    read(segment.p_offset, segment.p_filesz);
  }
  const auto section_at = [&](int i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
    return section;
  };
  const Elf64_Shdr names = section_at(header.e_shstrndx);
  for (int i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = section_at(i);
    sum += std::strlen(image + names.sh_offset + section.sh_name);
    if (!TakesNoRoom(section.sh_type)) read(section.sh_offset, section.sh_size);
  }
  return sum;
}

}  // namespace
}  // namespace fusion

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const absl::Status status = CheckDeviceCode(bytes);
  Require(status.ok() || absl::IsInvalidArgument(status), "an error of another kind");
  if (!status.ok()) {
    Require(!status.message().empty(), "an error without message");
    return 0;
  }
  if (bytes.compare(0, SELFMAG, ELFMAG) != 0) {
    Require(std::strlen(reinterpret_cast<const char*>(data)) == size - 1, "PTX does not end where it ends");
    return 0;
  }
  volatile uint64_t sum = ReadAsALoader(reinterpret_cast<const char*>(data));
  (void)sum;
  return 0;
}
