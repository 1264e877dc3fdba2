// Laws of any program: all times k times as long give k times the results; streams that do not
// depend on each other may be numbered in any order; the same run is the same. On 60 random
// programs of two ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sim/base/random.hpp"
#include "tests/unit/sim/workload/program_maker.hpp"

namespace bubblesim::workload {
namespace {

constexpr std::uint16_t kStreams = 3;

/// Whole numbers below `limit`.
std::int64_t below(RandomStream& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.uniform() * static_cast<double>(limit));
}

// Ranks meet in the same collectives in the same order; everything else is random.
program::Program random_rank(std::uint32_t rank, RandomStream& random, std::uint32_t meetings) {
  ProgramMaker maker(kStreams);
  maker.rank(rank).iteration(0);
  std::uint32_t ops = 0;
  const auto dress = [&] {
    maker.cost(below(random, 4)).launch_lag(below(random, 9)).gap(below(random, 4));
    if (ops > 0 && random.uniform() < 0.3) {
      maker.after(static_cast<std::uint32_t>(below(random, ops)), below(random, 5));
    }
    ++ops;
  };
  for (std::uint32_t meeting = 0; meeting < meetings; ++meeting) {
    for (std::int64_t i = below(random, 8); i >= 0; --i) {
      maker.kernel(below(random, 20), 1 + below(random, 60),
                   static_cast<std::uint16_t>(below(random, kStreams)));
      dress();
      if (random.uniform() < 0.2) maker.wait_stream(below(random, 5), below(random, 6), 1);
      if (random.uniform() < 0.1) maker.wait_device(below(random, 5), below(random, 6));
    }
    maker.collective(below(random, 20), 1 + below(random, 40), meeting, 0);
    dress();
  }
  return maker.wait_device(0, below(random, 6)).end(below(random, 9)).program();
}

JobProgram random_job(std::uint64_t seed) {
  RandomStream random(seed, "programs of scaling_test");
  const auto meetings = static_cast<std::uint32_t>(1 + below(random, 4));
  JobProgram job;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    job.ranks.push_back(random_rank(rank, random, meetings));
  }
  job.collectives.assign(meetings, {2, false, 0});
  return job;
}

std::vector<Spans> results_of(const JobProgram& job) {
  std::vector<Spans> result;
  for (const RunRecorder& run : run_once(job)) {
    result.push_back(run.spans());
    result.back().push_back({run.pass_ends.front(), run.iterations.back().second});
  }
  return result;
}

void scale_times(JobProgram& job, std::uint32_t k) {
  const auto longer = [k](program::ShortSpan& span) { span.nanoseconds *= k; };
  for (program::Program& program : job.ranks) {
    for (program::Op& op : program.ops) {
      op.duration *= k;
      longer(op.launch_lag);
      longer(op.gap);
    }
    for (program::OpEdge& edge : program.edges) longer(edge.lag);
    for (program::StepDetail& detail : program.details) longer(detail.return_lag);
    for (program::ThreadProgram& thread : program.threads) {
      for (program::Step& step : thread.steps) {
        longer(step.think);
        longer(step.cost);
      }
    }
  }
}

TEST(ProgramLaws, AllTimesKTimesAsLongGiveKTimesTheResults) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    JobProgram job = random_job(seed);
    std::vector<Spans> expected = results_of(job);
    scale_times(job, 7);
    for (Spans& rank : expected) {
      for (Span& span : rank) span = {span.start * 7, span.end * 7};
    }
    EXPECT_EQ(results_of(job), expected) << "seed " << seed;
  }
}

TEST(ProgramLaws, TheNumbersOfStreamsDoNotMatter) {
  constexpr std::array<std::uint16_t, kStreams> kOther{2, 0, 1};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    JobProgram job = random_job(seed);
    const std::vector<Spans> expected = results_of(job);
    for (program::Program& program : job.ranks) {
      for (program::Op& op : program.ops) op.stream = kOther[op.stream];
      for (program::ThreadProgram& thread : program.threads) {
        for (program::Step& step : thread.steps) {
          if (step.kind == program::StepKind::kWaitStream) step.target = kOther[step.target];
        }
      }
    }
    EXPECT_EQ(results_of(job), expected) << "seed " << seed;
  }
}

TEST(ProgramLaws, TheOrderOfRanksDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    JobProgram job = random_job(seed);
    std::vector<Spans> expected = results_of(job);
    std::reverse(job.ranks.begin(), job.ranks.end());
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(results_of(job), expected) << "seed " << seed;
  }
}

// A longer kernel makes nothing earlier: kernels of one client do not compete for room, so there
// is no anomaly of scheduling.
TEST(ProgramLaws, ALongerKernelMakesNothingEarlier) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    JobProgram job = random_job(seed);
    const std::vector<Spans> before = results_of(job);
    job.ranks[0].ops[job.ranks[0].ops.size() / 2].duration += us(33);
    const std::vector<Spans> later = results_of(job);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (std::size_t op = 0; op < before[rank].size(); ++op) {
        EXPECT_GE(later[rank][op].start, before[rank][op].start) << "seed " << seed;
        EXPECT_GE(later[rank][op].end, before[rank][op].end) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace bubblesim::workload
