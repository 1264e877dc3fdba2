// The nearest valid name, and the words around it.
#include "sim/base/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/utf8.hpp"

namespace bubblesim {
namespace {

constexpr std::array<std::string_view, 3> kPolicies{"exclusive", "mps", "timeslice"};

TEST(Nearest, OneEditAwayIsFound) {
  EXPECT_EQ(nearest_name("mpss", kPolicies), "mps");
  EXPECT_EQ(nearest_name("msp", kPolicies), "mps");  // swapped neighbours: one edit
  EXPECT_EQ(nearest_name("time_slice", kPolicies), "timeslice");
  EXPECT_EQ(nearest_name("MPS", kPolicies), "mps");  // case costs nothing
}

TEST(Nearest, MoreThanAThirdEditedIsNotNear) {
  EXPECT_EQ(nearest_name("mig", kPolicies), std::nullopt);  // 2 of 3
  EXPECT_EQ(nearest_name("", kPolicies), std::nullopt);
  EXPECT_EQ(nearest_name("mps", std::vector<std::string>{}), std::nullopt);
}

TEST(Nearest, TiesGoToTheFirst) {
  EXPECT_EQ(nearest_name("bat", std::vector<std::string>{"cat", "hat"}), "cat");
}

TEST(Nearest, TheMessageNamesTheNearestAndAllKnown) {
  EXPECT_EQ(unknown_name_message("policy", "mpss", kPolicies),
            "unknown policy \"mpss\"; did you mean \"mps\"? Known: exclusive, mps, timeslice");
  EXPECT_EQ(unknown_name_message("policy", "zzz", kPolicies),
            "unknown policy \"zzz\"; known: exclusive, mps, timeslice");
  EXPECT_EQ(unknown_name_message("policy", "a", std::vector<std::string>{}),
            "unknown policy \"a\"; known: none");
}

TEST(Nearest, HugeNamesAreCutAndCostNothing) {
  const std::string huge(1000000, 'm');
  EXPECT_EQ(nearest_name(huge, std::vector<std::string>{huge}), std::nullopt);
  EXPECT_LT(unknown_name_message("policy", huge, kPolicies).size(), 200U);
  std::vector<std::string> many;
  for (int i = 0; i < 30; ++i) many.push_back("n" + std::to_string(i));
  EXPECT_TRUE(unknown_name_message("name", "zz", many).ends_with("n22, n23 and 6 more"));
}

TEST(Nearest, QuotingShowsControlCharactersAndNeverCutsALetter) {
  EXPECT_EQ(quote_found("a\nb"), "\"a\\x0ab\"");
  const std::string letters = std::string(59, 'a') + "\xC3\xA9tude";  // e acute at bytes 59, 60
  EXPECT_EQ(quote_found(letters), "\"" + std::string(59, 'a') + "...\"");
}

// A device's name that sets a colour: the terminal gets the letters, the lines stay.
TEST(EscapeControls, LeavesLinesWhereTheTextHasLines) {
  EXPECT_EQ(escape_controls("A\x1b[31m\n"), "A\\x1b[31m\\x0a");
  EXPECT_EQ(escape_but_lines("A\x1b[31m\nB\r\n"), "A\\x1b[31m\nB\\x0d\n");
  EXPECT_EQ(escape_but_lines(""), "");
}

}  // namespace
}  // namespace bubblesim
