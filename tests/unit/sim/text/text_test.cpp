// Tables of aligned columns.
#include <gtest/gtest.h>

#include "sim/text/escaped_text.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table({"job", "kernels", "note"}, {Align::kLeft, Align::kRight, Align::kLeft});
  table.row({"training", "7"});
  table.row({"a", "12345678", "late"});
  EXPECT_EQ(table.text(),
            "  job        kernels  note\n"
            "  training         7\n"
            "  a         12345678  late\n");
}

TEST(TextTable, NumbersStandRightAmongWords) {
  TextTable table({"p95"}, {Align::kNumbersRight}, "");
  table.row({">3.5"});
  table.row({"overloaded"});
  EXPECT_EQ(table.text(), "p95\n      >3.5\noverloaded\n");
}

TEST(TextTable, WidthsCountCharacters) {
  TextTable table({"\xC3\xA9t\xC3\xA9"}, {}, "");
  table.row({"1"});
  EXPECT_EQ(table.text(), "\xC3\xA9t\xC3\xA9\n  1\n");
}

// A name from a trace may hold anything: it must not end the line, or the text.
TEST(TextTable, ControlCharactersAreShown) {
  TextTable table({"name"}, {Align::kLeft}, "");
  table.row({std::string("a\n\0b\x1b", 5)});
  EXPECT_EQ(table.text(), "name\na\\x0a\\x00b\\x1b\n");
}

// Text that goes into SVG, HTML and XML.

TEST(MarkupText, EscapesMarkupAndReplacesWhatXmlForbids) {
  EXPECT_EQ(markup_text("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(markup_text("\x01\xC3\xA9\xFF"), "\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD");
  EXPECT_EQ(markup_text("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(markup_text("\xEF\xBF\xBF"), "\xEF\xBF\xBD") << "U+FFFF";
}

}  // namespace
}  // namespace bubblesim
