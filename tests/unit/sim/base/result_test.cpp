// Input faults as values.
#include "sim/base/result.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bubblesim {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail("job.json", "/n", "odd");
  return value / 2;
}

Result<int> quarter(int value) {
  BUBBLESIM_ASSIGN_OR_RETURN(const int once, half(value));
  BUBBLESIM_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

Result<int> checked_only(int value) {
  BUBBLESIM_RETURN_IF_ERROR(half(value));
  return value;
}

TEST(Result, TheTextLeavesOutWhatIsEmpty) {
  EXPECT_EQ((Error{"f.json", "/a", "bad"}.text()), "f.json: /a: bad");
  EXPECT_EQ((Error{"f.json", "", "bad"}.text()), "f.json: bad");
  EXPECT_EQ((Error{"", "", "bad"}.text()), "bad");
}

TEST(Result, AssignOrReturnPassesTheFirstFaultOn) {
  EXPECT_EQ(quarter(12), 3);
  EXPECT_EQ(quarter(6).error().text(), "job.json: /n: odd");  // 3 is odd
}

TEST(Result, ReturnIfErrorPassesTheFaultOn) {
  EXPECT_EQ(checked_only(4), 4);
  EXPECT_EQ(checked_only(5).error().message, "odd");
}

TEST(Result, AFaultWithoutAPlaceHasOnlyAMessage) {
  const Result<int> result = fail("nothing to read");
  EXPECT_EQ(result.error().text(), "nothing to read");
}

}  // namespace
}  // namespace bubblesim
