// bubblesim sweep and bubblesim results together: a small sweep, stopped and gone on with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

// The first runs of a sweep of 36: of the policy exclusive, one a seed.
constexpr const char* kOptions =
    "sweep configs/sweeps/policies.json --set /duration=300ms --set /warmup=100ms "
    "--set /fillers/encoder/arrivals/rate_per_s=200 --threads 2 --store runs.db ";

Json stored_rows(const Workplace& place) {
  const Outcome rows = place.bubblesim("results runs.db export --format json");
  EXPECT_EQ(rows.code, 0) << rows.err;
  return parse_json(rows.out);
}

TEST(Sweep, GoesOnWhereItStoppedAndNothingIsStoredTwice) {
  const Workplace place;
  const Outcome first = place.bubblesim(std::string(kOptions) + "--limit 2");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(stored_rows(place).size(), 2U);
  const Outcome second = place.bubblesim(std::string(kOptions) + "--limit 2");
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out + second.err, HasSubstr("2 stored before"));
  EXPECT_EQ(stored_rows(place).size(), 4U);
}

TEST(Sweep, AStoreThatIsNotThereIsAFaultOfResults) {
  const Workplace place;
  const Outcome outcome = place.bubblesim("results nothing.db list");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("found no such results store"));
}

}  // namespace
}  // namespace bubblesim::app_test
