// The token scheduler of the SpecInF reconstruction. A whole GPU is 1000 blocks a window, the
// quota starts at 100, a filler's request is 0.3 and its limit 0.6.
#include "policies/specinf_rckm_tokens.hpp"

#include <gtest/gtest.h>

#include "policies/builtin.hpp"

namespace bubblesim::policies {
namespace {

using policy::Role;
using Phase = SpecInfRckmTokens::Phase;
using Window = SpecInfRckmTokens::Window;

SpecInfRckmConstants small_specinf() {
  SpecInfRckmConstants result = specinf_rckm_constants(policy::defaults(specinf_rckm_spec()));
  result.upper_blocks = 1000;
  return result;
}

void windows(SpecInfRckmTokens& tokens, int count, Window window) {
  for (int i = 0; i < count; ++i) tokens.end_window(window);
}

/// Bursts of this length, each ended by one empty window.
void bursts(SpecInfRckmTokens& tokens, int count, int length) {
  for (int i = 0; i < count; ++i) {
    windows(tokens, length, Window::kBusy);
    windows(tokens, 1, Window::kEmpty);
  }
}

TEST(specinf_rckm_tokens, moves_from_busy_to_conservative_to_aggressive) {
  SpecInfRckmTokens tokens(small_specinf());
  windows(tokens, 1, Window::kBusy);
  EXPECT_EQ(tokens.phase(), Phase::kBusy);
  windows(tokens, 1, Window::kEmpty);
  EXPECT_EQ(tokens.phase(), Phase::kConservative);
  windows(tokens, 2, Window::kEmpty);
  EXPECT_EQ(tokens.phase(), Phase::kConservative);
  windows(tokens, 1, Window::kEmpty);  // the fourth
  EXPECT_EQ(tokens.phase(), Phase::kAggressive);
  windows(tokens, 1, Window::kBusy);
  EXPECT_EQ(tokens.phase(), Phase::kBusy);
}

TEST(specinf_rckm_tokens, grants_by_phase_and_role) {
  SpecInfRckmTokens tokens(small_specinf());
  windows(tokens, 1, Window::kBusy);
  EXPECT_EQ(tokens.tokens(Role::kOffline), 0);
  EXPECT_DOUBLE_EQ(tokens.tokens(Role::kOnline), 30);  // 100 * 0.3
  windows(tokens, 1, Window::kEmpty);
  EXPECT_DOUBLE_EQ(tokens.tokens(Role::kOffline), 30);
  windows(tokens, 3, Window::kEmpty);
  EXPECT_DOUBLE_EQ(tokens.tokens(Role::kOffline), 600);  // 1000 * 0.6
}

/// The first burst of 10 windows is the reference. One of 20 is inflated by 2: the quota halves.
TEST(specinf_rckm_tokens, cuts_the_quota_by_the_inflation_of_a_burst) {
  SpecInfRckmTokens tokens(small_specinf());
  bursts(tokens, 1, 10);
  bursts(tokens, 1, 15);  // 1.5: neither cut nor recovery
  EXPECT_DOUBLE_EQ(tokens.quota(), 100);
  bursts(tokens, 1, 16);
  EXPECT_DOUBLE_EQ(tokens.quota(), 62.5);  // 1.6: from here on
  bursts(tokens, 1, 40);
  EXPECT_DOUBLE_EQ(tokens.quota(), 62.5);  // 4.0: another kind of burst
  bursts(tokens, 20, 20);
  EXPECT_DOUBLE_EQ(tokens.quota(), 10);  // the floor of 1 %
}

TEST(specinf_rckm_tokens, recovers_once_in_five_bursts_up_to_the_whole) {
  SpecInfRckmTokens tokens(small_specinf());
  bursts(tokens, 4, 10);
  EXPECT_DOUBLE_EQ(tokens.quota(), 100);
  bursts(tokens, 1, 11);
  EXPECT_DOUBLE_EQ(tokens.quota(), 130);
  bursts(tokens, 4, 10);
  EXPECT_DOUBLE_EQ(tokens.quota(), 130);
  bursts(tokens, 50, 10);
  EXPECT_DOUBLE_EQ(tokens.quota(), 1000);
}

/// Bursts of 6 windows and less are no reference of all time.
TEST(specinf_rckm_tokens, ignores_short_bursts_as_a_reference) {
  SpecInfRckmTokens tokens(small_specinf());
  bursts(tokens, 3, 6);
  bursts(tokens, 1, 12);  // the first reference: no inflation
  EXPECT_DOUBLE_EQ(tokens.quota(), 100);
  bursts(tokens, 1, 24);
  EXPECT_DOUBLE_EQ(tokens.quota(), 50);
}

TEST(specinf_rckm_tokens, may_take_the_shortest_of_the_last_bursts_as_reference) {
  SpecInfRckmConstants recent = small_specinf();
  recent.recent_reference = true;
  recent.burst.history = 2;
  SpecInfRckmTokens tokens(recent);
  bursts(tokens, 1, 4);
  bursts(tokens, 1, 8);  // 8 / 4
  EXPECT_DOUBLE_EQ(tokens.quota(), 50);
  bursts(tokens, 1, 8);  // the 4 is forgotten
  EXPECT_DOUBLE_EQ(tokens.quota(), 50);
}

/// The reference is 100 ms. Above 105 ms the quota halves, up to 102 ms it grows by 1.3.
TEST(specinf_rckm_tokens, reacts_to_iterations_instead_of_bursts_if_told) {
  using namespace std::chrono_literals;
  SpecInfRckmConstants by_iterations = small_specinf();
  by_iterations.reacts_to_bursts = false;
  SpecInfRckmTokens tokens(by_iterations);
  bursts(tokens, 1, 10);
  bursts(tokens, 1, 20);
  EXPECT_DOUBLE_EQ(tokens.quota(), 100);
  tokens.end_iteration(106ms, 100ms);
  EXPECT_DOUBLE_EQ(tokens.quota(), 50);
  tokens.end_iteration(104ms, 100ms);
  EXPECT_DOUBLE_EQ(tokens.quota(), 50);
  tokens.end_iteration(102ms, 100ms);
  EXPECT_DOUBLE_EQ(tokens.quota(), 65);
  for (int i = 0; i < 9; ++i) tokens.end_iteration(200ms, 100ms);
  EXPECT_DOUBLE_EQ(tokens.quota(), 10);  // the floor
  SpecInfRckmTokens by_bursts(small_specinf());
  by_bursts.end_iteration(200ms, 100ms);
  EXPECT_DOUBLE_EQ(by_bursts.quota(), 100);
}

TEST(specinf_rckm_tokens, restores_the_quota_in_the_aggressive_phase_only_if_told) {
  SpecInfRckmTokens plain(small_specinf());
  windows(plain, 10, Window::kEmpty);
  EXPECT_DOUBLE_EQ(plain.quota(), 100);
  SpecInfRckmConstants reset = small_specinf();
  reset.aggressive_resets = true;
  SpecInfRckmTokens tokens(reset);
  windows(tokens, 4, Window::kEmpty);
  EXPECT_DOUBLE_EQ(tokens.quota(), 1000);
}

}  // namespace
}  // namespace bubblesim::policies
