// Which cause of bubbles the sensitivities of a job confirm, in words.
#include "traces/inspect/sensitivities.hpp"

#include <gtest/gtest.h>

namespace bubblesim::traces {
namespace {

Sensitivities with(double kernels, double link, double host) {
  Sensitivities job;
  job.kernels = kernels;
  job.link = link;
  job.host = host;
  return job;
}

// 0.918 of the iteration halves: 45.9 % of it are saved.
TEST(ConfirmedCause, collectives_that_a_faster_link_does_not_shorten_wait_for_late_hosts) {
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, with(0.02, 0, 0.918)),
            "late hosts: hosts twice as fast save 45.9 % of the bubbles, links 0.0 %");
}

TEST(ConfirmedCause, collectives_that_a_faster_link_shortens_are_slow_links) {
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, with(0.2, 0.6, 0.1)),
            "a slow link: links twice as fast save 30.0 % of the bubbles");
}

TEST(ConfirmedCause, collectives_of_one_rank_alone_may_wait_for_ranks_that_were_not_recorded) {
  Sensitivities job = with(0.2, 0.6, 0.1);
  job.alone = true;
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, job),
            "slow links or late ranks: the other ranks were not recorded: links twice as fast save "
            "30.0 % of the bubbles");
}

TEST(ConfirmedCause, a_bubble_that_nothing_shortens_is_not_blamed_on_anything) {
  EXPECT_EQ(bottleneck(with(0.05, 0.09, 0.0)), Bottleneck::kNothing);
  EXPECT_EQ(confirmed_cause(BubbleCause::kTurnaround, with(0.05, 0.09, 0.0)),
            "several things that take as long: none is faster by itself");
}

// Half of the iteration is bubbles, of which 0.4 of the iteration stays.
TEST(ConfirmedCause, bubbles_that_stay_whatever_is_faster_are_latencies) {
  Sensitivities job = with(0.5, 0, 0.1);
  job.fixed = 0.4;
  EXPECT_EQ(confirmed_cause(BubbleCause::kSynchronisation, of_bubbles(job, 0.5)),
            "fixed latencies: 80.0 % of the bubbles stay, whatever is faster");
}

// Two equal ranks: kernels of 1 ms, then an all-reduce of 1 ms. Kernels twice as fast halve half of
// the iteration (0.5), which is their own half: of the bubbles nothing. The link halves all of
// them.
TEST(ConfirmedCause, kernels_that_shorten_their_own_time_alone_are_no_cause) {
  const Sensitivities bubbles = of_bubbles(with(0.5, 0.5, 0), 0.5);
  EXPECT_EQ(bubbles.kernels, 0);
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, bubbles),
            "a slow link: links twice as fast save 50.0 % of the bubbles");
}

// Of four ranks one runs kernels for 4 ms, the others for 1, then an all-reduce of 1 ms: own work
// is 1.75 of 5, kernels halve 4 of 5. Bubbles are 3.25, and half of 2.25 of them go.
TEST(ConfirmedCause, a_straggler_is_named) {
  Sensitivities job = with(0.8, 0.2, 0);
  job.straggler = Straggler{2, std::chrono::milliseconds(3)};
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, of_bubbles(job, 1.75 / 5)),
            "late kernels: ranks wait for rank 2, which comes 3000.0 us late in the mean: kernels "
            "twice as fast save 34.6 % of the bubbles, links 15.4 %");
}

TEST(NearZero, says_what_the_thing_is_hidden_behind) {
  const DeviceShares shares{0.037, 0.686, 0.649};
  const Sensitivities job = with(0.02, 0.01, 0.96);
  EXPECT_EQ(near_zero_reason(Bottleneck::kKernels, job, shares), "own work runs 3.7 % of the time");
  EXPECT_EQ(near_zero_reason(Bottleneck::kLink, job, shares),
            "collectives alone run 64.9 % of the time, nearly all of it waiting behind hosts");
  EXPECT_EQ(near_zero_reason(Bottleneck::kHost, job, shares), "");
  EXPECT_EQ(near_zero_reason(Bottleneck::kLink, job, {0.9, 0, 0}), "no collectives");
}

}  // namespace
}  // namespace bubblesim::traces
