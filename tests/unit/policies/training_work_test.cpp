#include "policies/training_work.hpp"

#include <gtest/gtest.h>

namespace bubblesim::policies {
namespace {

using program::WorkKind;

policy::LaunchInfo training_launch(std::uint64_t number, WorkKind kind,
                                   std::uint32_t operations = 1) {
  policy::LaunchInfo info;
  info.kind = kind;
  info.launch = number;
  info.operations = operations;
  return info;
}

policy::CompletionInfo end_of(std::uint64_t launch, WorkKind kind = WorkKind::kKernel) {
  return {ClientId{0}, kind, launch};
}

TEST(training_work, counts_collectives_as_work_by_default) {
  TrainingWork work{Collectives::kWork};
  EXPECT_TRUE(work.launched(training_launch(1, WorkKind::kCollective)));
  EXPECT_FALSE(work.idle());
  EXPECT_FALSE(work.waits_for_peers());
  EXPECT_TRUE(work.ended(end_of(1, WorkKind::kCollective)));
  EXPECT_TRUE(work.idle());
}

TEST(training_work, leaves_collectives_out_if_told) {
  TrainingWork work{Collectives::kIdle};
  EXPECT_FALSE(work.launched(training_launch(1, WorkKind::kCollective)));
  EXPECT_TRUE(work.waits_for_peers());
  EXPECT_TRUE(work.launched(training_launch(2, WorkKind::kKernel)));
  EXPECT_FALSE(work.waits_for_peers());
  EXPECT_FALSE(work.launched(training_launch(3, WorkKind::kCopy)));  // had work before
  EXPECT_FALSE(work.ended(end_of(1, WorkKind::kCollective)));
  EXPECT_TRUE(work.ended(end_of(3, WorkKind::kCopy)));
  EXPECT_TRUE(work.ended(end_of(2)));
  EXPECT_TRUE(work.idle());
  EXPECT_FALSE(work.waits_for_peers());
}

/// A graph of two kernels and a collective is three operations of work.
TEST(training_work, takes_a_graph_for_work_whatever_it_holds) {
  TrainingWork work{Collectives::kIdle};
  EXPECT_TRUE(work.launched(training_launch(1, WorkKind::kKernel, 3)));
  EXPECT_TRUE(work.ended(end_of(1)));
  EXPECT_TRUE(work.ended(end_of(1, WorkKind::kCollective)));
  EXPECT_FALSE(work.idle());
  EXPECT_TRUE(work.ended(end_of(1)));
  EXPECT_TRUE(work.idle());
}

TEST(training_work, ignores_ends_that_it_does_not_know) {
  TrainingWork work{Collectives::kIdle};
  EXPECT_FALSE(work.ended(end_of(7)));
  EXPECT_TRUE(work.idle());
}

}  // namespace
}  // namespace bubblesim::policies
