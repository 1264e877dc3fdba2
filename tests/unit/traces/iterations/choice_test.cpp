// What a user may write for iterations.
#include "traces/iterations/job_pass.hpp"

#include <gtest/gtest.h>

namespace bubblesim::traces {
namespace {

using Kind = IterationChoice::Kind;

TEST(IterationChoice, IsSettledAllANumberOrARange) {
  EXPECT_EQ(*parse_iteration_choice("settled"), IterationChoice{});
  EXPECT_EQ(*parse_iteration_choice("all"), IterationChoice{Kind::kAll});
  EXPECT_EQ(*parse_iteration_choice("7"), (IterationChoice{Kind::kRange, 7, 7}));
  EXPECT_EQ(*parse_iteration_choice("5-9"), (IterationChoice{Kind::kRange, 5, 9}));
}

TEST(IterationChoice, TextIsWhatIsRead) {
  for (const char* text : {"settled", "all", "7", "5-9"}) {
    EXPECT_EQ(iteration_choice_text(*parse_iteration_choice(text)), text);
  }
}

TEST(IterationChoice, AnythingElseIsAFaultThatSaysWhatIsAllowed) {
  for (const char* text : {"", "steady", "-3", "3-", "9-5", "1-2-3", "7 "}) {
    const auto choice = parse_iteration_choice(text);
    ASSERT_FALSE(choice) << text;
    EXPECT_EQ(choice.error().message,
              "found iterations \"" + std::string(text) +
                  "\"; expected \"settled\", \"all\", a number as \"7\" or a range as \"5-9\"");
  }
}

}  // namespace
}  // namespace bubblesim::traces
