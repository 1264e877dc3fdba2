// Laws that hold for every workload: conservation, scaling, symmetry, closed forms.
#include <algorithm>
#include <numeric>

#include "sim/base/random.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

struct Job {
  std::int64_t arrival;
  std::uint32_t client;
  std::int64_t solo;
  program::KernelProfile profile;
};

struct Outcome {
  std::vector<std::int64_t> ends;
  double sm_ns = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// A workload of two clients on the four-SM GPU, with or without contention.
class GpuLaws : public testing::TestWithParam<int> {
 protected:
  std::vector<Job> jobs(bool contending) {
    RandomStream random(static_cast<std::uint64_t>(GetParam()), "gpu laws");
    const auto pick = [&random](std::int64_t from, std::int64_t to) {
      return from +
             static_cast<std::int64_t>(random.uniform() * static_cast<double>(to - from + 1));
    };
    std::vector<Job> made(static_cast<std::size_t>(pick(2, 30)));
    for (Job& job : made) {
      job.profile = blocks_of_warps(static_cast<std::uint64_t>(pick(1, 40)), 1U << pick(0, 3));
      // A multiple of every possible number of waves up to 10: blocks take whole nanoseconds.
      job.solo = 2520 * pick(1, 5);
      job.arrival = pick(0, 30'000);
      job.client = static_cast<std::uint32_t>(pick(0, 1));
      if (!contending) continue;
      job.profile.kernel_class = static_cast<program::KernelClass>(pick(0, 2));
      job.profile.dram_share = random.uniform();
      job.profile.issue_share = random.uniform();
    }
    return made;
  }

  Outcome outcome(const std::vector<Job>& jobs, const SharingSetup& sharing = {},
                  std::int64_t scale = 1) {
    struct Listener final : WorkListener {
      void on_work_started(std::uint64_t, WorkId, SimTime) override {}
      void on_work_finished(std::uint64_t cookie, SimTime now) override {
        ends[cookie] = to_ns(now);
      }
      std::vector<std::int64_t> ends;
    } listener;
    listener.ends.assign(jobs.size(), -1);
    engine::Engine engine;
    Script script(engine);
    SharingSetup setup = sharing;
    setup.slice *= scale;
    setup.switch_cost *= scale;
    Gpu gpu(engine, small_gpu(), setup);
    for (int i = 0; i < 2; ++i) gpu.add_client({.name = "c", .priority = i}, listener);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      script.at(jobs[i].arrival * scale, [&, i] {
        gpu.submit({.client = ClientId{jobs[i].client}, .kind = program::WorkKind::kKernel,
                    .solo = Duration{jobs[i].solo * scale}, .profile = &jobs[i].profile,
                    .cookie = i});
      });
    }
    engine.run_until();
    return {listener.ends,
            (gpu.usage(ClientId{0}).sm_seconds + gpu.usage(ClientId{1}).sm_seconds) * 1e9};
  }
};

double waves(const program::KernelProfile& profile) {
  const std::uint64_t at_once = profile.residency.blocks_per_sm * 4;
  return static_cast<double>((profile.blocks + at_once - 1) / at_once);
}

TEST_P(GpuLaws, TheSameInputsGiveTheSameResults) {
  const std::vector<Job> given = jobs(true);
  EXPECT_EQ(outcome(given), outcome(given));
}

TEST_P(GpuLaws, WorkIsConserved) {
  // Without contention every block takes solo / waves, whoever is beside it.
  const std::vector<Job> given = jobs(false);
  double expected = 0;
  for (const Job& job : given) {
    expected += static_cast<double>(job.solo) / waves(job.profile) *
                static_cast<double>(job.profile.blocks) / job.profile.residency.blocks_per_sm;
  }
  EXPECT_NEAR(outcome(given).sm_ns, expected, 1e-6 * expected);
}

TEST_P(GpuLaws, ScalingAllTimesScalesTheResults) {
  const std::vector<Job> given = jobs(false);
  const Outcome once = outcome(given);
  const Outcome sevenfold = outcome(given, {}, 7);
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(sevenfold.ends[i], 7 * once.ends[i]) << "kernel " << i;
  }
}

TEST_P(GpuLaws, ScalingHoldsUnderContentionUpToRounding) {
  const std::vector<Job> given = jobs(true);
  const Outcome once = outcome(given);
  const Outcome many = outcome(given, {}, 1000);
  // A completion is seen at the next whole nanosecond: one a start or end, at most.
  const double bound = 1000.0 * 4 * static_cast<double>(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(many.ends[i]), 1000.0 * static_cast<double>(once.ends[i]),
                bound);
  }
}

TEST_P(GpuLaws, NoKernelIsFasterThanAlone) {
  const std::vector<Job> given = jobs(true);
  const Outcome got = outcome(given);
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_GE(got.ends[i], given[i].arrival + given[i].solo) << "kernel " << i;
  }
}

TEST_P(GpuLaws, JobsThatNeverOverlapCostEachOtherASwitchAtMost) {
  constexpr std::int64_t kSwitch = 10;
  std::vector<Job> given = jobs(true);
  std::int64_t now = 0;
  for (Job& job : given) {
    job.arrival = now;
    now += job.solo + kSwitch + 1;
  }
  const Outcome together = outcome(given);
  const Outcome sliced = outcome(given, {.mode = program::SharingMode::kTimeSliced,
                                         .slice = Duration{100},
                                         .switch_cost = Duration{kSwitch}});
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::int64_t alone = given[i].arrival + given[i].solo;
    const bool other = i > 0 && given[i - 1].client != given[i].client;
    EXPECT_EQ(together.ends[i], alone) << "kernel " << i;
    EXPECT_EQ(sliced.ends[i], alone + (other ? kSwitch : 0)) << "kernel " << i;
  }
}

TEST_P(GpuLaws, TheOrderOfSubmissionsOfAnInstantKeepsTheTotals) {
  std::vector<Job> given = jobs(false);
  for (Job& job : given) job.arrival = 0;
  std::vector<Job> reversed(given.rbegin(), given.rend());
  EXPECT_NEAR(outcome(given).sm_ns, outcome(reversed).sm_ns, 1e-3);
}

TEST_P(GpuLaws, TimeSlicesWithoutCostLoseNoTime) {
  // Kernels of one block: within a context all run together, between contexts they take turns.
  // From time 0 on the GPU is never idle until both contexts are through: the last end is the sum
  // of what each context needs alone.
  std::vector<Job> given = jobs(false);
  std::int64_t longest[2] = {0, 0};
  std::size_t count[2] = {0, 0};
  for (Job& job : given) {
    job.arrival = 0;
    job.profile = blocks_of_warps(1, 1);
    longest[job.client] = std::max(longest[job.client], job.solo);
    ++count[job.client];
  }
  if (count[0] > 32 || count[1] > 32) GTEST_SKIP() << "more kernels than slots";
  const Outcome got =
      outcome(given, {.mode = program::SharingMode::kTimeSliced, .slice = Duration{97}});
  EXPECT_EQ(*std::max_element(got.ends.begin(), got.ends.end()), longest[0] + longest[1]);
}

TEST_P(GpuLaws, MemoryBoundJobsShareTheGpuEvenly) {
  // Processor sharing of two jobs a <= b from time 0: ends at 2a and a + b.
  const std::int64_t a = 100 + GetParam();
  const std::int64_t b = 100 + 3 * GetParam();
  program::KernelProfile memory = blocks_of_warps(4, 4);
  memory.kernel_class = program::KernelClass::kMemory;
  memory.dram_share = 1;
  const Outcome got = outcome({{0, 0, a, memory}, {0, 1, b, memory}});
  EXPECT_EQ(got.ends[0], 2 * a);
  EXPECT_EQ(got.ends[1], a + b);
}

INSTANTIATE_TEST_SUITE_P(Random, GpuLaws, testing::Range(0, 60));

}  // namespace
}  // namespace bubblesim::gpu
