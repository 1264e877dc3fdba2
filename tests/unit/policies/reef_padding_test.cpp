#include "policies/reef_padding.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;
using program::WorkKind;

/// Launches of training, numbered from 1 on, on a GPU of 100 SMs and 200 blocks at once.
LaunchQueue queue(std::initializer_list<std::pair<WorkKind, std::uint64_t>> launches) {
  LaunchQueue result;
  std::uint64_t number = 0;
  for (const auto& [kind, blocks] : launches) {
    policy::LaunchInfo info;
    info.kind = kind;
    info.blocks = blocks;
    info.sm_blocks = kind == WorkKind::kKernel ? 200 : 0;
    info.profiled = 10us;
    info.launch = ++number;
    result.push(info);
  }
  return result;
}

TEST(padding_room, is_what_one_partial_wave_leaves_until_it_ends) {
  const PaddingRoom room = padding_room(queue({{WorkKind::kKernel, 61}}), 5us, 100);
  EXPECT_EQ(room.sms, 69u);  // 61 of 200 blocks cover 30.5 SMs
  EXPECT_EQ(room.end, Duration{15us});
}

TEST(padding_room, is_none_beside_a_whole_wave_or_a_copy) {
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 200}}), 0us, 100).sms, 0u);
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 250}}), 0us, 100).sms, 0u);
  EXPECT_EQ(padding_room(queue({{WorkKind::kCopy, 0}}), 0us, 100).sms, 0u);
}

/// A collective's 24 blocks have 24 SMs; the kernel behind it may run beside it.
TEST(padding_room, counts_collectives_and_the_kernel_that_may_run_beside_them) {
  EXPECT_EQ(padding_room(queue({{WorkKind::kCollective, 24}}), 0us, 100).sms, 76u);
  EXPECT_EQ(padding_room(queue({{WorkKind::kCollective, 24}, {WorkKind::kKernel, 100},
                                {WorkKind::kKernel, 200}}),
                         0us, 100)
                .sms,
            26u);  // 100 - 24 - 50
  EXPECT_EQ(padding_room(queue({{WorkKind::kKernel, 100}, {WorkKind::kCollective, 24}}), 0us,
                         100)
                .sms,
            26u);
}

TEST(wave_length, is_the_duration_over_the_waves) {
  EXPECT_EQ(wave_length(500, 200, 30us), Duration{10us});  // three waves
  EXPECT_EQ(wave_length(1, 200, 30us), Duration{30us});
  EXPECT_EQ(wave_length(0, 200, 30us), std::nullopt);
  EXPECT_EQ(wave_length(500, 0, 30us), std::nullopt);
  EXPECT_EQ(wave_length(500, 200, 0us), std::nullopt);
}

}  // namespace
}  // namespace bubblesim::policies
