// Collectives whose time is the network's: the fabric carries them from the last rank's start on.
// Times in us. The link moves 1000 bytes a us.
#include <gtest/gtest.h>

#include "sim/workload/what_if.hpp"
#include "tests/unit/sim/workload/program_recorder.hpp"

namespace bubblesim::workload {
namespace {

/// Ranks 0 and 1 meet at 60 as recorded; the network takes `latency` and then `bytes`.
JobProgram modelled(std::int64_t latency, double bytes) {
  JobProgram job = must_build_job({rank_with(0, from_to(10, 100)), rank_with(1, from_to(60, 100))});
  job.links = {{1e9}};
  job.transfers.resize(1);
  job.transfers[0].latency = us(latency);
  job.transfers[0].loads = {{network::LinkId{0}, bytes}};
  job.collectives.at(0).transfer = 0;
  for (program::Program& program : job.ranks) program.ops.at(0).duration = Duration{0};
  return job;
}

// 60 + 5 + 20.
TEST(ModelledCollectives, EndWhenTheFabricHasCarriedThem) {
  const auto runs = run_once(modelled(5, 20000));
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 85}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 85}}));
}

TEST(ModelledCollectives, ARanksOwnSpanComesAfter) {
  JobProgram job = modelled(5, 20000);
  job.ranks[1].ops[0].duration = us(3);
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{10, 85}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 88}}));
}

// Rank 0 stands for all of its replicas: it waits for nobody, and holds its SMs for 25.
TEST(ModelledCollectives, AFoldedGroupHasOneParticipant) {
  JobProgram job = modelled(5, 20000);
  job.ranks.pop_back();
  job.collectives[0].participants = 1;
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{10, 35}}));
}

// Two jobs' worth of ranks on one link: alone 20 each, together 40.
TEST(ModelledCollectives, ShareTheirLinks) {
  JobProgram job = modelled(0, 20000);
  job.collectives.push_back(job.collectives[0]);
  for (JoinedCollective& joined : job.collectives) joined.participants = 1;
  job.ranks[0].ops[0].launch_lag = job.ranks[1].ops[0].launch_lag;
  job.ranks[0].threads = job.ranks[1].threads;
  job.ranks[1].ops[0].collective = 1;
  const auto runs = run_once(job);
  EXPECT_EQ(runs[0].spans(), (Spans{{60, 100}}));
  EXPECT_EQ(runs[1].spans(), (Spans{{60, 100}}));
}

// Twice the link: (5 + 20) / 2 = 12.5, so with 6 and 20: 13.
TEST(ModelledCollectives, ACounterfactualsLinkSpeedIsTheNetworks) {
  JobProgram job = modelled(6, 20000);
  apply({.target = WhatIfTarget::kLink, .name = {}, .rank = {}, .speed = 2.0}, job);
  EXPECT_EQ(run_once(job)[0].spans(), (Spans{{10, 73}}));
}

}  // namespace
}  // namespace bubblesim::workload
