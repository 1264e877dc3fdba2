// FreeRide's manager: which queue a side task joins, and when it begins.
#include "policies/freeride_placer.hpp"

#include <gmock/gmock.h>

#include "tests/bytes.hpp"

namespace bubblesim::policies {
namespace {

using namespace std::chrono_literals;
using policy::GpuState, policy::JobInfo;
using ::testing::ElementsAre, ::testing::IsEmpty;

JobInfo job(std::uint32_t id, Bytes memory) {
  JobInfo info;
  info.id = id;
  info.work = 1s;
  info.memory = memory;
  info.memory_known = memory != Bytes{};
  return info;
}

GpuState gpu(std::uint32_t id, Bytes used, std::uint32_t jobs = 0) {
  GpuState state;
  state.id = GpuId{id};
  state.memory = gb(16);
  state.used = used;
  state.jobs = jobs;
  return state;
}

std::vector<std::string> placed(FreeRidePlacer& placer, const std::vector<JobInfo>& waiting,
                                const std::vector<GpuState>& gpus) {
  std::vector<std::string> out;
  for (const policy::Placement& placement : placer.place(waiting, gpus, 0s)) {
    out.push_back(std::to_string(placement.job) + "@" + std::to_string(placement.gpu.value));
  }
  return out;
}

// Headrooms of 4 and 8 GB. Job 0 goes where there is more, 1 to the shorter queue, 2 (5 GB) only
// fits GPU 1 and waits behind 0.
TEST(FreeRidePlacer, QueuesWhereHeadroomSufficesAndTheQueueIsShortest) {
  FreeRidePlacer placer;
  const std::vector<JobInfo> jobs{job(0, gb(3)), job(1, gb(3)), job(2, gb(5))};
  EXPECT_THAT(placed(placer, jobs, {gpu(0, gb(12)), gpu(1, gb(8))}), ElementsAre("1@0", "0@1"));
  EXPECT_THAT(placed(placer, {jobs[2]}, {gpu(0, gb(12)), gpu(1, gb(11), 1)}), IsEmpty());
  EXPECT_THAT(placed(placer, {jobs[2]}, {gpu(0, gb(12)), gpu(1, gb(8))}), ElementsAre("2@1"));
}

TEST(FreeRidePlacer, PutsUnknownMemoryWhereHeadroomIsLargest) {
  FreeRidePlacer placer;
  const std::vector<JobInfo> jobs{job(0, {}), job(1, {})};
  EXPECT_THAT(placed(placer, jobs, {gpu(0, gb(12)), gpu(1, gb(8))}), ElementsAre("0@1"));
}

TEST(FreeRidePlacer, CountsTasksWithoutHeadroom) {
  FreeRidePlacer placer;
  EXPECT_THAT(placed(placer, {job(0, gb(4))}, {gpu(0, gb(12))}), IsEmpty());  // not below 4
  CounterSet counters;
  placer.add_counts(counters);
  EXPECT_EQ(counters.count("freeride_tasks_without_headroom"), 1u);
}

}  // namespace
}  // namespace bubblesim::policies
