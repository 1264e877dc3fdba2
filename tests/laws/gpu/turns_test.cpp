// Laws of time slices: nobody waits for an idle GPU longer than a switch takes, no turn outlasts
// its slice while another context waits, and two contexts share as sums done by hand say.
#include <algorithm>
#include <array>
#include <optional>

#include "sim/base/random.hpp"
#include "sim/gpu/time_slicer.hpp"
#include "tests/unit/sim/gpu/gpu_fixture.hpp"

namespace bubblesim::gpu {
namespace {

constexpr std::size_t kContexts = 3;

/// Steps a TimeSlicer nanosecond by nanosecond, with contexts that get and lose work at random:
/// work is a number of nanoseconds on the GPU, after which the stream has a gap, or the host is
/// silent for a while.
class Turns : public testing::TestWithParam<int> {
 protected:
  struct State {
    std::int64_t work = 0;      ///< left; 0: none
    std::int64_t silent = 0;    ///< nanoseconds until it gets work
    std::int64_t waited = 0;    ///< since it got work or had the GPU
  };

  std::int64_t pick(std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random_.uniform() * static_cast<double>(to - from + 1));
  }

  void arrive(SimTime now) {
    for (std::size_t i = 0; i < kContexts; ++i) {
      if (states_[i].work > 0 || states_[i].silent-- > 0) continue;
      states_[i] = {pick(1, most_work_[i]), 0, 0};
      slicer_.gets_work(i, now);
      slicer_.set_announced(i, false, now);
    }
    slicer_.advance(now);
  }

  /// One nanosecond passes; says who ran in it.
  std::optional<std::size_t> pass(SimTime now) {
    const std::optional<std::size_t> live = slicer_.live();
    for (State& state : states_) state.waited += state.work > 0 ? 1 : 0;
    if (!live || states_[*live].work == 0) return std::nullopt;
    states_[*live].waited = 0;
    if (--states_[*live].work == 0) run_dry(*live, now + Duration{1});
    return live;
  }

  /// The next operation may be announced when the turn has already been passed on.
  void run_dry(std::size_t context, SimTime now) {
    slicer_.runs_dry(context, now);
    slicer_.advance(now);
    const bool in_channel = pick(0, 2) > 0;
    states_[context].silent = pick(0, in_channel ? gap_ : most_silence_[context]);
    slicer_.set_announced(context, in_channel, now);
  }

  RandomStream random_{static_cast<std::uint64_t>(GetParam()), "turns"};
  std::int64_t slice_ = pick(5, 60);
  std::int64_t switch_ = pick(0, 8);
  std::int64_t gap_ = pick(0, 3);
  TimeSlicer slicer_{Duration{slice_}, {Duration{switch_}, Duration{switch_}},
                     GetParam() % 2 == 0 ? hardware::LoneSlice::kExpired
                                         : hardware::LoneSlice::kRenewed,
                     {.cover = {}, .has_more = [](std::size_t) { return true; }}};
  std::array<State, kContexts> states_{};
  std::array<std::int64_t, kContexts> most_work_{pick(1, 200), pick(1, 20), pick(1, 200)};
  std::array<std::int64_t, kContexts> most_silence_{pick(0, 50), pick(0, 200), pick(0, 50)};
};

TEST_P(Turns, TheGpuIsIdleBesideWorkOnlyForASwitchOrTheGapOfAStream) {
  for (std::size_t i = 0; i < kContexts; ++i) slicer_.add_context();
  std::int64_t idle = 0;
  for (std::int64_t t = 0; t < 20'000; ++t) {
    arrive(SimTime{Duration{t}});
    const bool waiting = std::ranges::any_of(states_, [](const State& s) { return s.work > 0; });
    idle = pass(SimTime{Duration{t}}) || !waiting ? 0 : idle + 1;
    ASSERT_LE(idle, switch_ + gap_) << "at " << t;
  }
}

TEST_P(Turns, NobodyWaitsLongerThanATurnOfEachOther) {
  // Each other context: its slice, and the switch to the next.
  for (std::size_t i = 0; i < kContexts; ++i) slicer_.add_context();
  const std::int64_t most = kContexts * (slice_ + switch_);
  for (std::int64_t t = 0; t < 20'000; ++t) {
    arrive(SimTime{Duration{t}});
    pass(SimTime{Duration{t}});
    for (const State& state : states_) ASSERT_LE(state.waited, most) << "at " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Turns, testing::Range(0, 60));

/// Two processes that run a kernel, and launch the next one `host` after it has ended.
class TwoProcesses : public GpuTest {
 protected:
  void start(std::int64_t slice, std::int64_t switch_ns, std::int64_t solo, std::int64_t host) {
    make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{slice},
                       .switch_cost = Duration{switch_ns}});
    const program::KernelProfile* profile = keep(blocks_of_warps(8, 4));
    for (std::uint64_t i = 0; i < 2; ++i) kernel_at(0, 1000 * i, client(), solo, *profile);
    on_finish_ = [this, solo, host, profile](std::uint64_t name) {
      if (name % 1000 == kLast) return;
      script_.at(to_ns(engine_.now()) + host, [this, solo, profile, name] {
        gpu_->submit({.client = ClientId{static_cast<std::uint32_t>(name / 1000)},
                      .kind = program::WorkKind::kKernel,
                      .solo = Duration{solo},
                      .profile = profile,
                      .cookie = name + 1});
      });
    };
    run();
  }
  static constexpr std::uint64_t kLast = 99;  ///< of 100 kernels
};

TEST_F(TwoProcesses, HostsThatLeaveHalfOfTheGpuCostEachOtherASwitch) {
  // 40 of kernel, 60 of host: alone, kernel n ends at 100 n + 40. The second process begins one
  // kernel and one switch later. From then on each finds the GPU idle, with the state of the other.
  start(1000, 10, 40, 60);
  EXPECT_EQ(end(kLast), 99 * (100 + 10) + 40);
  EXPECT_EQ(end(1000 + kLast), 99 * (100 + 10) + 40 + 10 + 40);
}

TEST_F(TwoProcesses, HostsThatWantMoreThanTheGpuTakeTurnsKernelByKernel) {
  // 40 of kernel, 20 of host: duty 2/3 each. Each has a turn of 40, and there is a switch of 5
  // after each: a round lasts 90, so each has 60 / 90 = 2/3 of its own.
  start(1000, 5, 40, 20);
  EXPECT_EQ(end(kLast), 99 * 90 + 40);
  EXPECT_EQ(end(1000 + kLast), 99 * 90 + 45 + 40);
}

TEST_F(TwoProcesses, OneThatFillsTheGpuHasWhatTheOtherLeavesAndASliceAtATime) {
  // The second has one kernel of 10,000 in slices of 100; the first has kernels of 40 and 60 of
  // host. The first's kernel waits for the slice that began when it ran dry: a round of 40 + 5 +
  // 100 + 5, of which the second has 100.
  make(small_gpu(), {.mode = program::SharingMode::kTimeSliced, .slice = Duration{100},
                     .switch_cost = Duration{5}});
  const program::KernelProfile* profile = keep(blocks_of_warps(8, 4));
  const ClientId first = client();
  const ClientId second = client();
  on_finish_ = [&](std::uint64_t name) {
    if (name == 1000) return;
    script_.at(to_ns(engine_.now()) + 60, [this, profile, first, name] {
      if (ended_.contains(1000)) return;
      gpu_->submit({.client = first, .kind = program::WorkKind::kKernel, .solo = Duration{40},
                    .profile = profile, .cookie = name + 1});
    });
  };
  kernel_at(0, 1, first, 40, *profile);
  kernel_at(0, 1000, second, 10'000, *profile);
  run();
  EXPECT_EQ(end(2), 150 + 40);
  EXPECT_EQ(end(100), 99 * 150 + 40);
  EXPECT_EQ(end(1000), 99 * 150 + 45 + 100);
}

}  // namespace
}  // namespace bubblesim::gpu
