#include "client/cli/npy_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr int64_t kLongestHeader = 1 << 20;
constexpr size_t kMostDimensions = 64;  // of NumPy

struct CloseNpyFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseNpyFile>;

absl::Status Wrong(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// Reads the text of a header: a Python dictionary of three entries, as in
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderText {
 public:
  explicit HeaderText(absl::string_view text) : text_(text) {}

  // False: it is no such dictionary. *records: its type is one of records.
  bool Read(NpyHeader* header, bool* records) {
    bool type = false, order = false, shape = false;
    if (!Take('{')) return false;
    while (!Take('}')) {
      std::string key;
      if (!ReadString(&key) || !Take(':')) return false;
      if (key == "descr" && !type) {
        *records = At('[');
        type = !*records && ReadString(&header->data_type);
        if (!type) return false;
      } else if (key == "fortran_order" && !order) {
        order = ReadTruth(&header->fortran_order);
        if (!order) return false;
      } else if (key == "shape" && !shape) {
        shape = ReadShape(&header->shape);
        if (!shape) return false;
      } else {
        return false;
      }
      if (!Take(',') && !At('}')) return false;
    }
    SkipSpace();
    return type && order && shape && text_.empty();
  }

 private:
  void SkipSpace() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool At(char c) {
    SkipSpace();
    return !text_.empty() && text_[0] == c;
  }
  bool Take(char c) {
    if (!At(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (!absl::StartsWith(text_, word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool ReadString(std::string* string) {
    const char quote = At('"') ? '"' : '\'';
    if (!Take(quote)) return false;
    const size_t end = text_.find(quote);
    if (end == absl::string_view::npos) return false;
    *string = std::string(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return true;
  }
  bool ReadTruth(bool* truth) {
    *truth = TakeWord("True");
    return *truth || TakeWord("False");
  }
  bool ReadShape(std::vector<int64_t>* shape) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      SkipSpace();
      int64_t size = 0;
      size_t digits = 0;
      for (; digits < text_.size() && absl::ascii_isdigit(text_[digits]); ++digits)
        if (__builtin_mul_overflow(size, 10, &size) ||
            __builtin_add_overflow(size, text_[digits] - '0', &size))
          return false;
      if (digits == 0 || shape->size() == kMostDimensions) return false;
      text_.remove_prefix(digits);
      TakeWord("L");  // of Python 2
      shape->push_back(size);
      if (!Take(',') && !At(')')) return false;
    }
    return true;
  }

  absl::string_view text_;
};

// Bytes of an entry of a type that is read; 0: it is none. The byte order does not matter for single bytes.
int EntryBytes(absl::string_view type) {
  if (type.size() != 3) return 0;
  const absl::string_view name = type.substr(1);
  const int bytes = name == "b1" || name == "i1" || name == "u1"   ? 1
                    : name == "i2" || name == "u2"                 ? 2
                    : name == "f4" || name == "i4" || name == "u4" ? 4
                    : name == "f8" || name == "i8" || name == "u8" ? 8
                                                                   : 0;
  return bytes == 1 || type[0] == '<' ? bytes : 0;
}

std::string TypeMessage(const std::string& type) {
  const bool other_order = type.size() == 3 && type[0] == '>' && EntryBytes("<" + type.substr(1)) > 0;
  if (other_order)
    return absl::StrCat("the entries are big endian, ", type, "; save a.astype('<", type.substr(1), "')");
  return absl::StrCat("entries of the type ", absl::CHexEscape(type.substr(0, 40)),
                      " are not read; save a.astype('f4') or a.astype('f8')");
}

// Where entry after entry, row by row, lies in the file.
class Positions {
 public:
  explicit Positions(const NpyHeader& header)
      : shape_(header.shape), at_(shape_.size()), strides_(shape_.size()) {
    int64_t stride = 1;
    for (size_t i = 0; i < shape_.size(); ++i) {
      const size_t dimension = header.fortran_order ? i : shape_.size() - 1 - i;
      strides_[dimension] = stride;
      stride *= shape_[dimension];
    }
  }
  int64_t position() const { return position_; }
  void Next() {
    for (size_t i = shape_.size(); i-- > 0;) {
      position_ += strides_[i];
      if (++at_[i] < shape_[i]) return;
      position_ -= strides_[i] * shape_[i];
      at_[i] = 0;
    }
  }
  std::string ToString() const { return absl::StrCat("[", absl::StrJoin(at_, ", "), "]"); }

 private:
  const std::vector<int64_t>& shape_;
  std::vector<int64_t> at_, strides_;
  int64_t position_ = 0;
};

// Converts an entry. Returns what is wrong with one that `To` cannot have; "": nothing is.
template <class To, class From>
std::string Convert(From from, To* to) {
  if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    if (!(std::abs(static_cast<double>(from)) <= std::numeric_limits<To>::max()) || std::trunc(from) != from)
      return absl::StrCat(from, ", which is no whole number of 32 bits");
  }
  *to = static_cast<To>(from);
  if constexpr (std::is_integral_v<From>) {
    if (static_cast<__int128>(*to) != static_cast<__int128>(from))
      return absl::StrCat(+from, ", which is no ",
                          std::is_integral_v<To> ? "whole number of 32 bits"
                          : sizeof(To) == 4      ? "f32 number"
                                                 : "f64 number");
  } else if (std::isinf(*to) && !std::isinf(from)) {
    return absl::StrCat(from, ", which is too large for f32");
  }
  return "";
}

template <class From, class To>
absl::Status ConvertAll(const std::string& path, const NpyHeader& header, const std::string& data,
                        std::string* out) {
  Positions positions(header);
  for (int64_t i = 0; i < header.entries; ++i, positions.Next()) {
    From from;
    std::memcpy(&from, data.data() + positions.position() * sizeof(From), sizeof(From));
    To to = 0;
    if (const std::string wrong = Convert(from, &to); !wrong.empty())
      return Wrong(path, absl::StrCat("entry ", positions.ToString(), " is ", wrong));
    std::memcpy(out->data() + i * sizeof(To), &to, sizeof(To));
  }
  return absl::OkStatus();
}

template <class To>
absl::Status ConvertTo(const std::string& path, const NpyHeader& header, const std::string& data,
                       std::string* out) {
  const std::string name = header.data_type.substr(1);
  if (name == "b1") return ConvertAll<uint8_t, To>(path, header, data, out);
  if (name == "i1") return ConvertAll<int8_t, To>(path, header, data, out);
  if (name == "u1") return ConvertAll<uint8_t, To>(path, header, data, out);
  if (name == "i2") return ConvertAll<int16_t, To>(path, header, data, out);
  if (name == "u2") return ConvertAll<uint16_t, To>(path, header, data, out);
  if (name == "i4") return ConvertAll<int32_t, To>(path, header, data, out);
  if (name == "u4") return ConvertAll<uint32_t, To>(path, header, data, out);
  if (name == "i8") return ConvertAll<int64_t, To>(path, header, data, out);
  if (name == "u8") return ConvertAll<uint64_t, To>(path, header, data, out);
  if (name == "f4") return ConvertAll<float, To>(path, header, data, out);
  return ConvertAll<double, To>(path, header, data, out);
}

// The file, which must be a regular one, and its size.
absl::StatusOr<File> Open(const std::string& path, int64_t* bytes) {
  struct stat information {};
  // Looked at first: opening a pipe would wait for whoever writes to it.
  if (stat(path.c_str(), &information) == 0 && !S_ISREG(information.st_mode))
    return Wrong(path, S_ISDIR(information.st_mode) ? "is a folder; name a .npy file" : "is no regular file");
  File file(std::fopen(path.c_str(), "rb"));
  if (!file || fstat(fileno(file.get()), &information) != 0)
    return Wrong(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
  *bytes = information.st_size;
  return file;
}

// At most so many bytes from here on.
absl::StatusOr<std::string> Read(const std::string& path, std::FILE* file, int64_t bytes) {
  std::string read(bytes, '\0');
  read.resize(std::fread(read.data(), 1, bytes, file));
  if (std::ferror(file)) return Wrong(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
  return read;
}

}  // namespace

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

absl::StatusOr<NpyHeader> ReadNpyHeader(const std::string& path) {
  int64_t file_bytes = 0;
  FUSION_ASSIGN_OR_RETURN(File file, Open(path, &file_bytes));
  // The magic, two bytes of version, and the length of the header: two bytes, or four from version 2 on.
  FUSION_ASSIGN_OR_RETURN(std::string begin, Read(path, file.get(), 8));
  if (absl::StartsWith(begin, "PK"))
    return Wrong(path, "is an archive of arrays (.npz); save the one array with numpy.save");
  if (!absl::StartsWith(begin, kMagic) || begin.size() < 8)
    return Wrong(path, "is no .npy file, as numpy.save writes it");
  const int version = static_cast<unsigned char>(begin[6]);
  if (version < 1 || version > 3)
    return Wrong(path, absl::StrCat("is of version ", version, " of the format; 1 to 3 are read"));
  FUSION_ASSIGN_OR_RETURN(std::string length, Read(path, file.get(), version == 1 ? 2 : 4));
  int64_t header_bytes = 0;
  for (size_t i = length.size(); i-- > 0;)
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(length[i]);
  NpyHeader header;
  header.data_offset = static_cast<int64_t>(begin.size() + length.size()) + header_bytes;
  if (header_bytes > kLongestHeader || header.data_offset > file_bytes)
    return Wrong(path, "is cut off, or no .npy file: it ends in the header");
  FUSION_ASSIGN_OR_RETURN(std::string text, Read(path, file.get(), header_bytes));
  bool records = false;
  if (!HeaderText(text).Read(&header, &records))
    return Wrong(path, records ? "has records of several fields; save one field: a['name']"
                               : "has a header that numpy.save does not write");
  const int entry_bytes = EntryBytes(header.data_type);
  if (entry_bytes == 0) return Wrong(path, TypeMessage(header.data_type));
  header.entries = 1;
  bool fits = true;
  for (int64_t size : header.shape)
    fits = !__builtin_mul_overflow(header.entries, size, &header.entries) && fits;
  int64_t data_bytes = 0;
  fits = fits && !__builtin_mul_overflow(header.entries, entry_bytes, &data_bytes);
  if (!fits || data_bytes != file_bytes - header.data_offset)
    return Wrong(path,
                 absl::StrCat("has ", file_bytes - header.data_offset, " bytes of entries, but ",
                              ShapeText(header.shape), " entries of ", entry_bytes, " bytes are announced"));
  return header;
}

absl::StatusOr<std::string> ReadNpyEntries(const std::string& path, const NpyHeader& header,
                                           v1::DataType type) {
  int64_t file_bytes = 0;
  FUSION_ASSIGN_OR_RETURN(File file, Open(path, &file_bytes));
  if (fseeko(file.get(), header.data_offset, SEEK_SET) != 0)
    return Wrong(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
  const int64_t bytes = header.entries * EntryBytes(header.data_type);
  absl::StatusOr<std::string> data = Read(path, file.get(), bytes);
  if (!data.ok()) return data.status();
  if (static_cast<int64_t>(data->size()) != bytes) return Wrong(path, "became shorter while it was read");
  const bool f64 = type == v1::F64, whole = type == v1::I32;
  if (header.data_type.substr(1) == (whole ? "i4" : f64 ? "f8" : "f4") && !header.fortran_order) return data;
  std::string out(header.entries * (f64 ? 8 : 4), '\0');
  absl::Status converted = whole ? ConvertTo<int32_t>(path, header, *data, &out)
                           : f64 ? ConvertTo<double>(path, header, *data, &out)
                                 : ConvertTo<float>(path, header, *data, &out);
  if (!converted.ok()) return converted;
  return out;
}

}  // namespace fusion
