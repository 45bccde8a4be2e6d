#include "client/cli/npy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpyFileTest : public ::testing::Test {
 protected:
  NpyFileTest() {
    std::string path = (std::filesystem::temp_directory_path() / "fusion-npy-XXXXXX").string();
    folder_ = mkdtemp(path.data());
    path_ = folder_ + "/a.npy";
  }
  ~NpyFileTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
  // As numpy.save does; the header as it is given.
  void WriteArray(const std::string& header, const std::string& data, int version = 1) {
    std::string content("\x93NUMPY", 6);
    content += static_cast<char>(version);
    content += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) content += static_cast<char>(header.size() >> (8 * i));
    Write(content + header + data);
  }
  template <class T>
  void WriteEntries(const std::string& type, const std::string& shape, const std::vector<T>& entries,
                    bool fortran_order = false) {
    WriteArray(absl::StrCat("{'descr': '", type, "', 'fortran_order': ", fortran_order ? "True" : "False",
                            ", 'shape': ", shape, ", }  \n"),
               std::string(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(T)));
  }
  // What is wrong with the file when its entries are wanted in a type; without the path.
  std::string Error(v1::DataType type = v1::F32) {
    absl::StatusOr<NpyHeader> header = ReadNpyHeader(path_);
    const absl::Status status = header.ok() ? ReadNpyEntries(path_, *header, type).status() : header.status();
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    if (status.ok()) return "ok";
    EXPECT_EQ(status.message().substr(0, path_.size() + 2), path_ + ": ");
    return std::string(status.message().substr(path_.size() + 2));
  }
  template <class T>
  std::vector<T> Entries(v1::DataType type) {
    absl::StatusOr<NpyHeader> header = ReadNpyHeader(path_);
    EXPECT_TRUE(header.ok()) << header.status();
    if (!header.ok()) return {};
    absl::StatusOr<std::string> bytes = ReadNpyEntries(path_, *header, type);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    if (!bytes.ok()) return {};
    std::vector<T> entries(bytes->size() / sizeof(T));
    std::memcpy(entries.data(), bytes->data(), bytes->size());
    return entries;
  }

  std::string folder_, path_;
};

TEST_F(NpyFileTest, EveryVersionOfTheFormatIsRead) {
  const std::string data(16, '\0');
  for (int version : {1, 2, 3}) {
    WriteArray("{\"shape\": ( 2L ,2), 'fortran_order':False, 'descr':'<f4'}\n", data, version);
    const absl::StatusOr<NpyHeader> header = ReadNpyHeader(path_);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_THAT(header->shape, ElementsAre(2, 2));
    EXPECT_EQ(header->entries, 4);
  }
  WriteArray("", data, 4);
  EXPECT_EQ(Error(), "is of version 4 of the format; 1 to 3 are read");
}

TEST_F(NpyFileTest, EntriesOfOtherTypesAreConverted) {
  WriteEntries<float>("<f4", "(3,)", {1.5f, -0.0f, std::numeric_limits<float>::infinity()});
  EXPECT_THAT(Entries<float>(v1::F32), ElementsAre(1.5f, -0.0f, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(Entries<double>(v1::F64), ElementsAre(1.5, -0.0, std::numeric_limits<double>::infinity()));
  WriteEntries<double>("<f8", "(2,)", {0.1, std::nan("")});
  EXPECT_EQ(Entries<float>(v1::F32)[0], 0.1f);
  EXPECT_TRUE(std::isnan(Entries<float>(v1::F32)[1]));
  EXPECT_EQ(Entries<double>(v1::F64)[0], 0.1);
  WriteEntries<uint8_t>("|b1", "(2,)", {1, 0});
  EXPECT_THAT(Entries<float>(v1::F32), ElementsAre(1, 0));
  WriteEntries<int8_t>("|i1", "(2,)", {-128, 127});
  EXPECT_THAT(Entries<float>(v1::F32), ElementsAre(-128, 127));
  WriteEntries<uint16_t>("<u2", "(1,)", {65535});
  EXPECT_THAT(Entries<float>(v1::F32), ElementsAre(65535));
  WriteEntries<int64_t>("<i8", "(2,)", {-(int64_t{1} << 62), 1 << 24});
  EXPECT_THAT(Entries<float>(v1::F32), ElementsAre(-0x1p62f, 0x1p24f));
  WriteEntries<uint64_t>("<u8", "()", {uint64_t{1} << 63});
  EXPECT_THAT(Entries<double>(v1::F64), ElementsAre(0x1p63));
}

TEST_F(NpyFileTest, NumbersThatTheTypeDoesNotHaveAreRefused) {
  WriteEntries<int32_t>("<i4", "(2, 2)", {1, 2, 3, 16777217});
  EXPECT_EQ(Error(), "entry [1, 1] is 16777217, which is no f32 number");
  EXPECT_EQ(Error(v1::F64), "ok");
  WriteEntries<int64_t>("<i8", "(1,)", {(int64_t{1} << 53) + 1});
  EXPECT_EQ(Error(v1::F64), "entry [0] is 9007199254740993, which is no f64 number");
  WriteEntries<uint64_t>("<u8", "(1,)", {~uint64_t{0}});
  EXPECT_EQ(Error(v1::F64), "entry [0] is 18446744073709551615, which is no f64 number");
  WriteEntries<double>("<f8", "(2,)", {1, 1e39});
  EXPECT_EQ(Error(), "entry [1] is 1e+39, which is too large for f32");
}

TEST_F(NpyFileTest, EntriesInFortranOrderBecomeRows) {
  WriteEntries<float>("<f4", "(2, 3)", {1, 4, 2, 5, 3, 6}, /*fortran_order=*/true);
  EXPECT_THAT(Entries<float>(v1::F32), ElementsAre(1, 2, 3, 4, 5, 6));
  WriteEntries<int16_t>("<i2", "(2, 1, 2)", {1, 3, 2, 4}, /*fortran_order=*/true);
  EXPECT_THAT(Entries<double>(v1::F64), ElementsAre(1, 2, 3, 4));
  WriteEntries<double>("<f8", "(2, 2)", {1, 1e39, 2, 3}, /*fortran_order=*/true);
  EXPECT_EQ(Error(), "entry [1, 0] is 1e+39, which is too large for f32");
}

TEST_F(NpyFileTest, ArraysWithoutEntriesAreRead) {
  WriteEntries<float>("<f4", "(0, 3)", {});
  EXPECT_TRUE(Entries<float>(v1::F32).empty());
  EXPECT_TRUE(Entries<double>(v1::F64).empty());
}

TEST_F(NpyFileTest, WhatIsNotReadSaysWhatToDo) {
  EXPECT_EQ(Error(), "cannot be read: No such file or directory");
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Error(), "is a folder; name a .npy file");
  std::filesystem::remove(path_);
  Write("PK\x03\x04 and more");
  EXPECT_EQ(Error(), "is an archive of arrays (.npz); save the one array with numpy.save");
  Write("1.0, 2.0\n");
  EXPECT_EQ(Error(), "is no .npy file, as numpy.save writes it");
  Write("");
  EXPECT_EQ(Error(), "is no .npy file, as numpy.save writes it");
  WriteEntries<float>(">f4", "(1,)", {1});
  EXPECT_EQ(Error(), "the entries are big endian, >f4; save a.astype('<f4')");
  WriteEntries<double>("<c8", "(1,)", {1});
  EXPECT_EQ(Error(), "entries of the type <c8 are not read; save a.astype('f4') or a.astype('f8')");
  WriteArray("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}", std::string(4, '\0'));
  EXPECT_EQ(Error(), "has records of several fields; save one field: a['name']");
  for (const char* header :
       {"", "{}", "{'descr': '<f4', 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"}) {
    WriteArray(header, std::string(4, '\0'));
    EXPECT_EQ(Error(), "has a header that numpy.save does not write") << header;
  }
}

TEST_F(NpyFileTest, AFileThatIsCutOffOrTooLongIsRefused) {
  WriteEntries<float>("<f4", "(3,)", {1, 2});
  EXPECT_EQ(Error(), "has 8 bytes of entries, but (3,) entries of 4 bytes are announced");
  WriteEntries<float>("<f4", "(1,)", {1, 2});
  EXPECT_EQ(Error(), "has 8 bytes of entries, but (1,) entries of 4 bytes are announced");
  WriteEntries<float>("<f4", "(4611686018427387904, 4)", {});
  EXPECT_THAT(Error(), HasSubstr("are announced"));
  Write(std::string("\x93NUMPY\x01\x00\x76\x00{'descr'", 18));
  EXPECT_EQ(Error(), "is cut off, or no .npy file: it ends in the header");
  Write(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12));
  EXPECT_EQ(Error(), "is cut off, or no .npy file: it ends in the header");
}

// Whatever the bytes are, they are read or refused.
TEST_F(NpyFileTest, ChangedBytesOfAHeaderAreReadOrRefused) {
  WriteEntries<float>("<f4", "(2, 3)", {1, 4, 2, 5, 3, 6});
  std::ifstream file(path_, std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(file), {});
  for (size_t i = 0; i < good.size() - 24; ++i)
    for (const char byte : {'\0', '(', '\'', '9', '\x7f', '\xff'}) {
      std::string changed = good;
      changed[i] = byte;
      Write(changed);
      Error();
    }
}

TEST_F(NpyFileTest, WholeNumbersOf32BitsComeFromAnyType) {
  WriteEntries<int32_t>("<i4", "(2,)", {-7, 2147483647});
  EXPECT_THAT(Entries<int32_t>(v1::I32), ElementsAre(-7, 2147483647));
  WriteEntries<double>("<f8", "(2,)", {-3, 4e6});
  EXPECT_THAT(Entries<int32_t>(v1::I32), ElementsAre(-3, 4000000));
  WriteEntries<double>("<f8", "(2,)", {1, 2.5});
  EXPECT_EQ(Error(v1::I32), "entry [1] is 2.5, which is no whole number of 32 bits");
  WriteEntries<double>("<f8", "(1,)", {std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(Error(v1::I32), "entry [0] is nan, which is no whole number of 32 bits");
  WriteEntries<float>("<f4", "(1,)", {2147483648.0f});
  EXPECT_EQ(Error(v1::I32), "entry [0] is 2.14748e+09, which is no whole number of 32 bits");
  WriteEntries<int64_t>("<i8", "(1,)", {int64_t{1} << 40});
  EXPECT_EQ(Error(v1::I32), "entry [0] is 1099511627776, which is no whole number of 32 bits");
}

}  // namespace
}  // namespace fusion
