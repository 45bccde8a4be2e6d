#include "worker/build/cubin.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <optional>

namespace fusion {
namespace {

constexpr uint8_t kFrameSize = 0x11, kRegisterCount = 0x2f;
constexpr uint8_t kFormatSized = 0x04;  // other formats have two bytes of value

template <class T>
std::optional<T> Read(absl::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
absl::string_view Part(absl::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size()) return {};
  return bytes.substr(offset, size);
}
std::string NameAt(absl::string_view names, uint64_t offset) {
  const absl::string_view rest = Part(names, offset, names.size());
  return std::string(rest.substr(0, rest.find('\0')));
}

}  // namespace

absl::StatusOr<std::vector<CubinKernel>> ReadCubin(absl::string_view bytes) {
  const absl::Status no_cubin = absl::InvalidArgumentError("this is no cubin");
  const auto header = Read<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return no_cubin;
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = Read<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return no_cubin;
    sections.push_back(*section);
  }
  if (header->e_shstrndx >= sections.size()) return no_cubin;
  const auto content = [&](const Elf64_Shdr& section) {
    return Part(bytes, section.sh_offset, section.sh_size);
  };
  const absl::string_view section_names = content(sections[header->e_shstrndx]);
  absl::string_view symbols, symbol_names, info;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_SYMTAB && section.sh_link < sections.size()) {
      symbols = content(section);
      symbol_names = content(sections[section.sh_link]);
    }
    if (NameAt(section_names, section.sh_name) == ".nv.info") info = content(section);
  }
  std::map<uint32_t, CubinKernel> kernels;  // by symbol
  for (uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = *Read<uint8_t>(info, at), attribute = *Read<uint8_t>(info, at + 1);
    const auto size = *Read<uint16_t>(info, at + 2);
    at += 4;
    if (format != kFormatSized) continue;
    const auto symbol = Read<uint32_t>(info, at), value = Read<uint32_t>(info, at + 4);
    if (size == 8 && symbol && value) {
      if (attribute == kRegisterCount) kernels[*symbol].registers = static_cast<int>(*value);
      if (attribute == kFrameSize) kernels[*symbol].stack_bytes = static_cast<int>(*value);
    }
    at += size;
  }
  std::vector<CubinKernel> found;
  for (auto& [number, kernel] : kernels) {
    const auto symbol = Read<Elf64_Sym>(symbols, uint64_t{number} * sizeof(Elf64_Sym));
    if (!symbol || kernel.registers == 0) continue;
    kernel.name = NameAt(symbol_names, symbol->st_name);
    found.push_back(std::move(kernel));
  }
  if (found.empty()) return no_cubin;
  return found;
}

}  // namespace fusion
