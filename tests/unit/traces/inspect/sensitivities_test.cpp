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
            "late hosts: hosts twice as fast save 45.9 % of the iteration, links 0.0 %");
}

TEST(ConfirmedCause, collectives_that_a_faster_link_shortens_are_slow_links) {
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, with(0.2, 0.6, 0.1)),
            "a slow link: links twice as fast save 30.0 % of the iteration");
}

TEST(ConfirmedCause, collectives_of_one_rank_alone_may_wait_for_ranks_that_were_not_recorded) {
  Sensitivities job = with(0.2, 0.6, 0.1);
  job.alone = true;
  EXPECT_EQ(confirmed_cause(BubbleCause::kCollectiveWait, job),
            "slow links or late ranks: the other ranks were not recorded: links twice as fast save "
            "30.0 % of the iteration");
}

TEST(ConfirmedCause, a_bubble_that_nothing_shortens_is_not_blamed_on_anything) {
  EXPECT_EQ(bottleneck(with(0.05, 0.09, 0.0)), Bottleneck::kNothing);
  EXPECT_EQ(confirmed_cause(BubbleCause::kTurnaround, with(0.05, 0.09, 0.0)),
            "nothing that is faster by itself: fixed latencies, or several things that take as "
            "long");
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
