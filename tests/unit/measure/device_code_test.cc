#include "worker/measure/device_code.h"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "worker/build/nvrtc_builder.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// A header, a text, the names of the sections, the table of sections (none, text, names), one segment.
struct Cubin {
  Elf64_Ehdr header{};
  char text[16]{}, names[16]{};
  Elf64_Shdr sections[3]{};
  Elf64_Phdr segment{};

  Cubin() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = 190;
    header.e_shoff = offsetof(Cubin, sections);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    header.e_shstrndx = 2;
    header.e_phoff = offsetof(Cubin, segment);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    sections[1].sh_type = SHT_PROGBITS;
    sections[1].sh_offset = segment.p_offset = offsetof(Cubin, text);
    sections[1].sh_size = segment.p_filesz = sizeof text;
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = offsetof(Cubin, names);
    sections[2].sh_size = sizeof names;
  }
  std::string Bytes() const { return std::string(reinterpret_cast<const char*>(this), sizeof *this); }
};

std::string ErrorOf(const Cubin& cubin) {
  const absl::Status status = CheckDeviceCode(cubin.Bytes());
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(DeviceCodeTest, AWholeCubinIsTaken) {
  Cubin cubin;
  EXPECT_EQ(CheckDeviceCode(cubin.Bytes()), absl::OkStatus());
  cubin.header.e_phnum = 0;
  EXPECT_EQ(CheckDeviceCode(cubin.Bytes()), absl::OkStatus()) << "as NVRTC's for relocation";
}

TEST(DeviceCodeTest, NoPartOfOneIs) {
  const std::string whole = Cubin().Bytes();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_TRUE(absl::IsInvalidArgument(CheckDeviceCode(whole.substr(0, bytes)))) << bytes;
}

TEST(DeviceCodeTest, WhatAHeaderSaysMustBeThere) {
  for (const uint64_t far : {uint64_t{4096}, ~uint64_t{0}, ~uint64_t{0} - 63}) {
    Cubin cubin;
    cubin.header.e_shoff = far;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("section headers"));
    cubin = {};
    cubin.header.e_phoff = far;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("program headers"));
    cubin = {};
    cubin.sections[1].sh_offset = far;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("a section begins"));
    cubin = {};
    cubin.sections[1].sh_size = far;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("a section reaches"));
    cubin.sections[1].sh_type = SHT_NOBITS;
    EXPECT_EQ(CheckDeviceCode(cubin.Bytes()), absl::OkStatus()) << "it takes no room";
    cubin = {};
    cubin.segment.p_filesz = far;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("a segment reaches"));
  }
  Cubin cubin;
  cubin.header.e_shnum = 0xffff;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("section headers"));
  cubin.header.e_shnum = 0;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("section headers"));
  cubin = {};
  cubin.header.e_shstrndx = 3;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("names"));
}

TEST(DeviceCodeTest, SectionsOfCudasOwnKindsMustBeThereToo) {
  for (const uint32_t kind : {0x70000000U, 0x70000001U, 0x7000000bU, 0x70000064U, 0x70000086U, 0x7fffffffU,
                              0x80000000U, 0xffffffffU}) {
    Cubin cubin;
    cubin.sections[1].sh_type = kind;
    EXPECT_EQ(CheckDeviceCode(cubin.Bytes()), absl::OkStatus()) << kind;
    cubin.sections[1].sh_size = sizeof(Cubin) - cubin.sections[1].sh_offset + 1;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("a section reaches")) << kind;
    cubin.sections[1].sh_size = ~uint64_t{0};
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("a section reaches")) << kind;
  }
}

TEST(DeviceCodeTest, SectionsThatTakeNoRoomBeginInTheFileAllTheSame) {
  // The second: shared memory that is reserved, as NVRTC writes it for sm_100 and later.
  for (const uint32_t kind : {uint32_t{SHT_NOBITS}, 0x70000015U}) {
    Cubin cubin;
    cubin.sections[1].sh_type = kind;
    cubin.sections[1].sh_size = 1 << 16;
    EXPECT_EQ(CheckDeviceCode(cubin.Bytes()), absl::OkStatus()) << kind;
    cubin.sections[1].sh_offset = sizeof(Cubin) + 1;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("a section begins")) << kind;
  }
}

TEST(DeviceCodeTest, TheNamesOfSectionsAreATableInTheFileThatEnds) {
  for (const uint32_t kind : {SHT_NOBITS, SHT_NULL, SHT_PROGBITS, 0x70000015}) {
    Cubin cubin;
    cubin.sections[2].sh_type = kind;
    EXPECT_THAT(ErrorOf(cubin), HasSubstr("names")) << kind;
  }
  Cubin cubin;
  cubin.header.e_shstrndx = 0;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("names"));
  cubin = {};
  cubin.names[sizeof cubin.names - 1] = 'x';
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("without a zero"));
  cubin = {};
  cubin.sections[2].sh_size = 0;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("names"));
  cubin = {};
  cubin.sections[1].sh_name = sizeof cubin.names - 1;
  EXPECT_EQ(CheckDeviceCode(cubin.Bytes()), absl::OkStatus());
  cubin.sections[1].sh_name = sizeof cubin.names;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("names"));
}

TEST(DeviceCodeTest, CodeForOtherMachinesIsRefused) {
  Cubin cubin;
  cubin.header.e_machine = EM_X86_64;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("another machine"));
  cubin = {};
  cubin.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(ErrorOf(cubin), HasSubstr("another machine"));
}

TEST(DeviceCodeTest, PtxEndsWithItsOnlyZero) {
  const std::string text = "//\n// Generated\n//\n\n.version 8.0\n.target sm_80\n";
  const std::string zero(1, '\0');
  EXPECT_EQ(CheckDeviceCode(text + zero), absl::OkStatus());
  for (const std::string& wrong :
       {text, text + zero + "x" + zero, text + zero + zero, zero, std::string("//"),
        std::string("// .version 8.0") + zero, " \n" + zero, "x" + text + zero})
    EXPECT_TRUE(absl::IsInvalidArgument(CheckDeviceCode(wrong))) << wrong;
}

// What the driver is given: of devices that NVRTC knows, a cubin; for later ones PTX.
TEST(DeviceCodeTest, WhatNvrtcMakesIsTaken) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = NvrtcBuilder::Create();
  if (!builder.ok()) GTEST_SKIP() << "SKIP: " << builder.status().message();
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_source(
      "__constant__ float c[4]; __device__ float g[64];\n"
      "extern \"C\" __global__ void k(float* x) { __shared__ float s[64]; extern __shared__ float d[];\n"
      "s[threadIdx.x] = x[threadIdx.x]; d[threadIdx.x] = g[threadIdx.x]; __syncthreads();\n"
      "x[threadIdx.x] = s[63 - threadIdx.x] * c[threadIdx.x & 3] + d[1]; }\n");
  int known = 0;
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "sm_999"}) {
    task.set_arch(arch);
    const BuildOutput output = (*builder)->Build(task, {});
    if (output.result.outcome() != v1::OK) continue;  // this NVRTC is too new, or too old, for it
    ++known;
    EXPECT_EQ(CheckDeviceCode(output.binary), absl::OkStatus()) << arch << " " << output.result.log();
    EXPECT_FALSE(CheckDeviceCode(output.binary.substr(0, output.binary.size() - 1)).ok()) << arch;
  }
  EXPECT_GE(known, 2);
}

}  // namespace
}  // namespace fusion
