// What a job's iteration time depends on. Times in us.
#include <gtest/gtest.h>

#include "sim/workload/sensitivity.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

traces::Sensitivities of(const TraceBuilder& job) {
  const JobProgram program = must_build_job({job}, Window::kIterations);
  const auto found = find_sensitivities(program, plain_gpu());
  EXPECT_TRUE(found);
  return found ? *found : traces::Sensitivities{};
}

// Each of ten kernels of 100 starts 2 after its call, its wait returns 1 after its end, and the
// host thinks for 17: 1,200 in all. Twice as fast, kernels save 10 x 50, hosts 10 x 8.5; lags stay.
TraceBuilder launch_and_wait() {
  TraceBuilder job;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t at = 120 * i;
    job.kernel({at, at + 1, at + 2, at + 102})
        .call(traces::HostCallKind::kDeviceSync, {at + 1, at + 103});
  }
  return job.iteration(0, 1200);
}

TEST(Sensitivity, is_twice_the_share_that_a_thing_twice_as_fast_saves) {
  const traces::Sensitivities found = of(launch_and_wait());
  EXPECT_EQ(microseconds(found.iteration), 1200);
  EXPECT_NEAR(found.kernels, 2 * 500.0 / 1200, 1e-9);
  EXPECT_NEAR(found.host, 2 * 85.0 / 1200, 1e-9);
  EXPECT_EQ(found.link, 0);
  EXPECT_EQ(found.copies, 0);
  EXPECT_NEAR(found.fixed, 30.0 / 1200, 1e-9);
}

// Twice as fast, what takes 40 and returns 60 later takes 20, and returns 60 later.
TEST(Sensitivity, what_a_wait_takes_to_return_is_fixed) {
  TraceBuilder job;
  for (std::int64_t at = 0; at < 1000; at += 100) {
    job.kernel({at, at + 1, at + 1, at + 40})
        .call(traces::HostCallKind::kDeviceSync, {at + 1, at + 100});
  }
  const traces::Sensitivities found = of(job.iteration(0, 1000));
  EXPECT_NEAR(found.fixed, 0.6, 0.02);
  EXPECT_EQ(bottleneck(found), traces::Bottleneck::kNothing);
}

TEST(Sensitivity, adds_up_to_at_most_one) {
  const traces::Sensitivities found = of(launch_and_wait());
  EXPECT_GE(found.rest(), 0);
  EXPECT_LE(found.kernels + found.copies + found.link + found.host, 1);
}

// Three ranks compute for 100, the third of four for 400; then all meet until 510. It comes 300
// after the median rank, of iterations of 600.
TEST(Sensitivity, the_rank_that_comes_last_to_collectives_is_the_straggler) {
  std::vector<TraceBuilder> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const std::int64_t own = rank == 2 ? 400 : 100;
    TraceBuilder job(rank);
    for (std::int64_t at = 0; at < 2400; at += 600) {
      job.iteration(at, at + 600).kernel({at, at + 1, at + 5, at + 5 + own})
          .collective({at + 2, at + 3, at + 6 + own, at + 510}, {})
          .call(traces::HostCallKind::kDeviceSync, {at + 4, at + 512});
    }
    ranks.push_back(job);
  }
  const auto found = find_sensitivities(must_build_job(ranks, Window::kIterations), plain_gpu());
  ASSERT_TRUE(found && found->straggler);
  EXPECT_EQ(found->straggler->rank, 2U);
  EXPECT_EQ(microseconds(found->straggler->late), 300);
}

}  // namespace
}  // namespace bubblesim::workload
