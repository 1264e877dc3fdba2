// Text that goes into SVG, HTML and XML.
#include "sim/text/markup_text.hpp"

#include <gtest/gtest.h>

namespace bubblesim {
namespace {

TEST(MarkupText, EscapesMarkupAndReplacesWhatXmlForbids) {
  EXPECT_EQ(markup_text("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(markup_text("\x01\xC3\xA9\xFF"), "\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD");
  EXPECT_EQ(markup_text("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(markup_text("\xEF\xBF\xBF"), "\xEF\xBF\xBD") << "U+FFFF";
}

}  // namespace
}  // namespace bubblesim
