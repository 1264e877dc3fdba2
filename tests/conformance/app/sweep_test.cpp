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

TEST(Sweep, TheBestRunAndTheIntervalsAreThoseAskedFor) {
  const Workplace place;
  const Outcome swept = place.bubblesim(std::string(kOptions) +
                                        "--limit 12 --best min:latency_p95_ms");
  EXPECT_THAT(swept.out + swept.err, HasSubstr("least latency_p95_ms, training kept >= 0.95: "));
  const std::string compare =
      "results runs.db compare --baseline exclusive --metric training_normalised_fraction ";
  EXPECT_THAT(succeed(place, compare).out, HasSubstr("95 % interval"));
  EXPECT_THAT(succeed(place, compare + "--by-point --confidence 0.5").out,
              HasSubstr("50 % interval"));
  succeed(place, "report runs.db -o page.html --best min:latency_p95_ms --timeline best:1 "
                 "--confidence 0.9");
  EXPECT_THAT(place.read("page.html"), HasSubstr("\"confidence\":0.9"));
}

TEST(Sweep, AStoreThatIsNotThereIsAFaultOfResults) {
  const Workplace place;
  const Outcome outcome = place.bubblesim("results nothing.db list");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("found no such results store"));
}

}  // namespace
}  // namespace bubblesim::app_test
