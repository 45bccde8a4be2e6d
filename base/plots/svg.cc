#include "base/plots/svg.h"

#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fusion {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// Returns whether XML 1.0 may hold the character (section 2.2).
bool IsXmlCharacter(uint32_t code) {
  return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code <= 0xD7FF) ||
         (code >= 0xE000 && code <= 0xFFFD) || (code >= 0x10000 && code <= 0x10FFFF);
}

// Bytes of the character that the text begins with; 0 when they are no UTF-8 or no character of XML. `text`
// is not empty.
int CharacterBytes(absl::string_view text) {
  const uint8_t first = static_cast<uint8_t>(text[0]);
  const int bytes = first < 0x80         ? 1
                    : first >> 5 == 0x6  ? 2
                    : first >> 4 == 0xE  ? 3
                    : first >> 3 == 0x1E ? 4
                                         : 0;
  if (bytes == 0 || text.size() < static_cast<size_t>(bytes)) return 0;
  uint32_t code = bytes == 1 ? first : first & (0x7F >> bytes);
  for (int i = 1; i < bytes; ++i) {
    if (!IsContinuation(text[i])) return 0;
    code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3F);
  }
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return code >= kSmallest[bytes] && IsXmlCharacter(code) ? bytes : 0;
}

}  // namespace

std::string EscapeXml(absl::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const int bytes = CharacterBytes(text);
    if (bytes == 0) {
      absl::StrAppend(&escaped, kReplacement);
      text.remove_prefix(1);
      continue;
    }
    switch (text[0]) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        absl::StrAppend(&escaped, text.substr(0, bytes));
    }
    text.remove_prefix(bytes);
  }
  return escaped;
}

std::string Shorten(absl::string_view text, int characters) {
  size_t cut = 0;
  int count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsContinuation(text[i])) continue;
    if (count == characters - 3) cut = i;
    ++count;
  }
  return count <= characters ? std::string(text) : absl::StrCat(text.substr(0, cut), "...");
}

std::string SvgText(double x, double y, absl::string_view content, SvgTextStyle style) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" font-weight=\"%s\">%s</text>\n", x, y,
      style.anchor, style.size, style.bold ? "bold" : "normal", EscapeXml(content));
}

std::string SvgLine(double x1, double y1, double x2, double y2, const char* stroke) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
                         x2, y2, stroke);
}

SeriesStyle StyleOfSeries(int series) {
  static constexpr const char* kColors[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                            "#E69F00", "#56B4E9", "#000000"};
  constexpr int kShapes = 5;  // no divisor in common with the number of colours: neighbours differ in both
  return {kColors[series % std::size(kColors)], series % kShapes};
}

std::string SvgMarker(int shape, double x, double y, absl::string_view title) {
  if (shape == 0)
    return absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\"><title>%s</title></circle>\n", x, y,
                           title);
  struct Outline {
    double x, y;  // where it starts, from the centre
    const char* steps;
  };
  static constexpr Outline kOutlines[] = {
      {0, -4.6, "l4.6 4.6 l-4.6 4.6 l-4.6 -4.6 z"},  // diamond
      {-3.2, -3.2, "h6.4 v6.4 h-6.4 z"},             // square
      {0, -4.4, "l4.4 7.6 h-8.8 z"},                 // triangle, point up
      {0, 4.4, "l4.4 -7.6 h-8.8 z"},                 // and down
  };
  const Outline& outline = kOutlines[shape - 1];
  return absl::StrFormat("<path d=\"M%.1f %.1f %s\"><title>%s</title></path>\n", x + outline.x, y + outline.y,
                         outline.steps, title);
}

std::string SvgDocument(int width, int height, absl::string_view body) {
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
      "font-family=\"sans-serif\" "
      "fill=\"#222\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n%s</svg>\n",
      width, height, width, height, width, height, body);
}

}  // namespace fusion
