#include "base/plots/svg.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/unit/accuracy/xml.h"

namespace fusion {
namespace {

TEST(EscapeXml, EscapesWhatIsMarkup) {
  EXPECT_EQ(EscapeXml("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(EscapeXml("&amp;"), "&amp;amp;");
  EXPECT_EQ(EscapeXml(""), "");
}

TEST(EscapeXml, KeepsUtf8AndReplacesWhatXmlCannotHold) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeXml("\xC3\xA9 \xE2\x89\xA4 \xF0\x9F\x98\x80"), "\xC3\xA9 \xE2\x89\xA4 \xF0\x9F\x98\x80");
  EXPECT_EQ(EscapeXml("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(EscapeXml(std::string("a\0b\x1F", 4)), "a" + replaced + "b" + replaced);
  EXPECT_EQ(EscapeXml("\xC3"), replaced);                                // cut off
  EXPECT_EQ(EscapeXml("\xC3<"), replaced + "&lt;");                      // hides no markup
  EXPECT_EQ(EscapeXml("\x80"), replaced);                                // continuation of nothing
  EXPECT_EQ(EscapeXml("\xC0\xBC"), replaced + replaced);                 // '<', too long
  EXPECT_EQ(EscapeXml("\xED\xA0\x80"), replaced + replaced + replaced);  // a surrogate
  EXPECT_EQ(EscapeXml("\xEF\xBF\xBF"), replaced + replaced + replaced);  // U+FFFF
  EXPECT_EQ(EscapeXml("\xF4\x90\x80\x80"), replaced + replaced + replaced + replaced);  // above U+10FFFF
}

TEST(Shorten, CountsCharacters) {
  EXPECT_EQ(Shorten("0123456789", 10), "0123456789");
  EXPECT_EQ(Shorten("0123456789a", 10), "0123456...");
  EXPECT_EQ(Shorten("", 10), "");
  // Ten characters of two bytes each; one more.
  std::string text;
  for (int i = 0; i < 10; ++i) text += "\xC3\xA9";
  EXPECT_EQ(Shorten(text, 10), text);
  EXPECT_EQ(Shorten(text + "!", 10), text.substr(0, 14) + "...");
}

TEST(StyleOfSeries, DiffersForThirtyFiveSeries) {
  std::set<std::pair<std::string, int>> styles;
  for (int i = 0; i < 35; ++i) styles.insert({StyleOfSeries(i).color, StyleOfSeries(i).shape});
  EXPECT_EQ(styles.size(), 35u);
  EXPECT_STREQ(StyleOfSeries(35).color, StyleOfSeries(0).color);
}

TEST(SvgDocument, IsXmlWithAWhiteBackground) {
  std::string body =
      SvgText(1, 2, "a < b", {.anchor = "end", .size = 9, .bold = true}) + SvgLine(0, 1, 2, 3, "#ddd");
  for (int i = 0; i < 5; ++i) body += SvgMarker(StyleOfSeries(i).shape, 10, 20, "tip");
  const XmlDocument document = ParseXml(SvgDocument(100, 50, body));
  ASSERT_EQ(document.error, "");
  ASSERT_EQ(document.elements.size(), 1u + 1 + 2 + 5 * 2);
  EXPECT_EQ(document.elements[0].name, "svg");
  EXPECT_EQ(document.elements[0].attributes.at("viewBox"), "0 0 100 50");
  EXPECT_EQ(document.elements[1].name, "rect");
  EXPECT_EQ(document.elements[1].attributes.at("fill"), "#fff");
  EXPECT_EQ(document.elements[1].attributes.at("width"), "100");
  EXPECT_EQ(document.elements[2].text, "a < b");
  EXPECT_EQ(document.elements[2].attributes.at("text-anchor"), "end");
  EXPECT_EQ(document.elements[4].attributes.at("cx"), "10.0");
  EXPECT_EQ(document.elements[5].name, "title");
  EXPECT_EQ(document.elements[5].text, "tip");
}

// Tests that rest on ParseXml need it to find what is wrong.
TEST(ParseXml, FindsWhatIsNotWellFormed) {
  EXPECT_EQ(ParseXml("<a x=\"1\"><b/>t &amp; &#39;</a>\n").error, "");
  EXPECT_EQ(ParseXml("<a x=\"1\"><b/>t &amp; &#39;</a>\n").elements[0].text, "t & '");
  for (const char* bad : {"", "a", "<a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a x=1/>",
                          "<a x=\"1\" x=\"2\"/>", "<a>&</a>", "<a>&what;</a>", "<a x=\"<\"/>", "<a",
                          "<a x=\"1\"y=\"2\"/>", "<a>\x01</a>", "</a>", "<a/>t"})
    EXPECT_NE(ParseXml(bad).error, "") << bad;
}

}  // namespace
}  // namespace fusion
