#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"
#include "server/parse/proto_reader.h"

namespace fusion {
namespace {

// Accepts every document that is not nested too deeply, and remembers where the text stops being JSON.
class SyntaxCheck : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kDeepest; }
  bool start_array(std::size_t) override { return ++depth_ <= kDeepest; }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override {
    offset = position > 0 ? position - 1 : 0;
    message = error.what();
    return false;
  }

  size_t offset = 0;
  std::string message = "the JSON is nested too deeply";

 private:
  static constexpr int kDeepest = 50;
  int depth_ = 0;
};

Location LocationOfByte(absl::string_view text, size_t offset) {
  SourcePosition position{1, 1};
  for (size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      position = {position.line + 1, 1};
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++position.column;
    }
  }
  return {position};
}

// "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while parsing value -
// unexpected ..."
std::string AfterPosition(const std::string& message) {
  const size_t colon = message.find(": ");
  return colon == std::string::npos ? message : message.substr(colon + 2);
}

}  // namespace

bool ReadJson(absl::string_view json, v1::Graph* graph, ErrorList* errors) {
  SyntaxCheck check;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &check)) {
    errors->Add(LocationOfByte(json, check.offset), absl::StrCat("JSON: ", AfterPosition(check.message)));
    return false;
  }
  const auto status = google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, graph);
  if (status.ok()) return true;
  // "(calls[0]) colour: Cannot find field."
  std::string message = std::string(status.message());
  errors->Add(Location{}, absl::StrCat("JSON: ", absl::StrReplaceAll(message, {{"\n", " "}})));
  return false;
}

}  // namespace fusion
