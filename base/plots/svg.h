// Elements of an SVG document as text. Places are in pixels, y downwards, written with one decimal.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace fusion {

// Text as the content of an element or the value of an attribute. What XML cannot hold (control characters,
// broken UTF-8) becomes U+FFFD.
std::string EscapeXml(absl::string_view text);

// The first characters, with "..." at the end when some were cut off, so that there are at most `characters`.
// Not escaped.
std::string Shorten(absl::string_view text, int characters);

struct SvgTextStyle {
  const char* anchor = "start";
  int size = 12;
  bool bold = false;
};
// Escapes `content`.
std::string SvgText(double x, double y, absl::string_view content, SvgTextStyle style = {});

std::string SvgLine(double x1, double y1, double x2, double y2, const char* stroke);

// A series is told from others by colour and by shape, so that either is enough for a few. The first 35
// differ. The colours can be told apart by the colour-blind (M. Okabe, K. Ito, "Color Universal Design",
// 2008; without its yellow, which is hard to see on white).
struct SeriesStyle {
  const char* color;
  int shape;
};
SeriesStyle StyleOfSeries(int series);

// A marker of that shape around a place, in the fill of the group that it is in. `title` is shown on
// hovering; escaped already.
std::string SvgMarker(int shape, double x, double y, absl::string_view title);

// A document of that size with a white background, so that it reads the same in dark viewers.
std::string SvgDocument(int width, int height, absl::string_view body);

}  // namespace fusion
