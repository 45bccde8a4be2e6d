#include "worker/measure/device_code.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr uint16_t kMachineCuda = 190;

absl::Status Wrong(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("the binary is not a whole cubin: ", what));
}

// Returns whether the content has `bytes` from `offset` on.
bool Holds(std::string_view content, uint64_t offset, uint64_t bytes) {
  return offset <= content.size() && bytes <= content.size() - offset;
}

// The entry of a table that is there. It need not be aligned.
template <typename Entry>
Entry Read(std::string_view content, uint64_t offset, uint64_t index) {
  Entry entry;
  std::memcpy(&entry, content.data() + offset + index * sizeof(Entry), sizeof(Entry));
  return entry;
}

// Kinds that take no room in the file, whatever size they say: none, that of ELF, and of CUDA's own those of
// global, local, shared and reserved shared memory without values.
bool TakesNoRoom(uint32_t kind) {
  return kind == SHT_NULL || kind == SHT_NOBITS || kind == SHT_LOPROC + 0x7 || kind == SHT_LOPROC + 0x9 ||
         kind == SHT_LOPROC + 0xa || kind == SHT_LOPROC + 0x15;
}

// A table of names in the file, where each ends in a zero, and of which every section has one.
absl::Status CheckSectionNames(std::string_view content, const Elf64_Ehdr& header) {
  if (header.e_shstrndx >= header.e_shnum) return Wrong("the names of its sections are not in it");
  const auto table = Read<Elf64_Shdr>(content, header.e_shoff, header.e_shstrndx);
  if (table.sh_type != SHT_STRTAB || table.sh_size == 0 || !Holds(content, table.sh_offset, table.sh_size))
    return Wrong("the names of its sections are not in it");
  if (content[table.sh_offset + table.sh_size - 1] != '\0')
    return Wrong("the names of its sections end without a zero");
  for (uint64_t i = 0; i < header.e_shnum; ++i)
    if (Read<Elf64_Shdr>(content, header.e_shoff, i).sh_name >= table.sh_size)
      return Wrong("a section has its name beyond the table of names");
  return absl::OkStatus();
}

absl::Status CheckCubin(std::string_view content) {
  if (content.size() < sizeof(Elf64_Ehdr)) return Wrong("it ends in its header");
  const auto header = Read<Elf64_Ehdr>(content, 0, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachineCuda)
    return Wrong("it is for another machine");
  if (header.e_phnum > 0 && (header.e_phentsize != sizeof(Elf64_Phdr) ||
                             !Holds(content, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr))))
    return Wrong("its program headers are not in it");
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      !Holds(content, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)))
    return Wrong("its section headers are not in it");
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = Read<Elf64_Phdr>(content, header.e_phoff, i);
    if (!Holds(content, segment.p_offset, segment.p_filesz)) return Wrong("a segment reaches beyond its end");
  }
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = Read<Elf64_Shdr>(content, header.e_shoff, i);
    if (section.sh_type == SHT_NULL) continue;
    if (!Holds(content, section.sh_offset, 0)) return Wrong("a section begins beyond its end");
    if (!TakesNoRoom(section.sh_type) && !Holds(content, section.sh_offset, section.sh_size))
      return Wrong("a section reaches beyond its end");
  }
  return CheckSectionNames(content, header);
}

// Returns whether, after comments, the text begins as every PTX does.
bool BeginsLikePtx(std::string_view text) {
  while (!text.empty()) {
    if (text.starts_with(".version")) return true;
    if (!text.starts_with("//") && text.find_first_of("\n\r \t") != 0) return false;
    const size_t end = text.starts_with("//") ? text.find('\n') : 0;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

absl::Status CheckDeviceCode(std::string_view content) {
  if (content.starts_with(ELFMAG)) return CheckCubin(content);
  if (!BeginsLikePtx(content)) return absl::InvalidArgumentError("the binary is neither a cubin nor PTX");
  if (content.find('\0') != content.size() - 1)
    return absl::InvalidArgumentError("the PTX does not end with the one zero in it");
  return absl::OkStatus();
}

}  // namespace fusion
