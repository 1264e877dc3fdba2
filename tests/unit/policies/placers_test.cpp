// SpecInF's placement by spare memory, and Dilu's by shares and memory.
#include <gmock/gmock.h>

#include "policies/builtin.hpp"
#include "policies/dilu_placer.hpp"
#include "policies/spare_memory_placer.hpp"
#include "sim/policy/parameter_check.hpp"

namespace bubblesim::policies {
namespace {

using policy::GpuState, policy::JobInfo, policy::Placement;
using ::testing::ElementsAre, ::testing::IsEmpty;

/// GPUs of 40 bytes with so much in use.
std::vector<GpuState> gpus(std::vector<std::uint64_t> used) {
  std::vector<GpuState> result;
  for (const std::uint64_t bytes : used) {
    GpuState gpu;
    gpu.id = GpuId{static_cast<std::uint32_t>(result.size())};
    gpu.memory = Bytes{40};
    gpu.used = Bytes{bytes};
    result.push_back(gpu);
  }
  return result;
}

JobInfo job(std::uint32_t id, std::uint64_t memory, std::uint32_t kind = 0) {
  JobInfo result;
  result.id = id;
  result.kind = kind;
  result.memory = Bytes{memory};
  result.memory_known = true;
  return result;
}

/// "job on gpu", in order.
std::vector<std::pair<std::uint32_t, std::uint32_t>> place(policy::Placer& placer,
                                                           const std::vector<JobInfo>& jobs,
                                                           const std::vector<GpuState>& state) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
  for (const Placement& placement : placer.place(jobs, state, {})) {
    result.emplace_back(placement.job, placement.gpu.value);
  }
  return result;
}

using Pair = std::pair<std::uint32_t, std::uint32_t>;

/// LLaMA2-7B in a pipeline leaves 5, 1, 1 and 5 of 40. BERT needs 5, and 1 must stay free.
TEST(spare_memory_placer, finds_no_room_in_the_middle_of_a_pipeline) {
  SpareMemoryPlacer placer({.reserve = Bytes{0}});
  EXPECT_THAT(place(placer, {job(0, 5), job(1, 5), job(2, 5)}, gpus({35, 39, 39, 35})),
              ElementsAre(Pair{0, 0}, Pair{1, 3}));
  SpareMemoryPlacer careful({.reserve = Bytes{1}});
  EXPECT_THAT(place(careful, {job(0, 5)}, gpus({35, 39, 39, 35})), IsEmpty());
}

/// 10, 20 and 15 are spare: 20 first, then 15 (20 - 6 = 14), then 14, then 10 and 9.
TEST(spare_memory_placer, takes_the_most_spare_memory_or_the_least) {
  SpareMemoryPlacer most({});
  const std::vector<JobInfo> jobs{job(7, 6), job(8, 6), job(9, 6)};
  EXPECT_THAT(place(most, jobs, gpus({30, 20, 25})),
              ElementsAre(Pair{7, 1}, Pair{8, 2}, Pair{9, 1}));
  SpareMemoryPlacer least({.order = SpareMemoryConstants::Order::kLeastSpare});
  EXPECT_THAT(place(least, jobs, gpus({30, 20, 25})),
              ElementsAre(Pair{7, 0}, Pair{8, 2}, Pair{9, 2}));
}

TEST(spare_memory_placer, places_what_is_not_known_to_be_too_large) {
  SpareMemoryPlacer placer({});
  JobInfo unknown = job(0, 0);
  unknown.memory_known = false;
  EXPECT_THAT(place(placer, {unknown}, gpus({40})), ElementsAre(Pair{0, 0}));
}

/// A worker of training has request 0.5 and limit 0.9; a job 0.3 and 0.6. One fits (0.8, 1.5),
/// a second one's limit does not (2.1).
TEST(dilu_placer, keeps_requests_and_limits_within_bounds) {
  DiluPlacerConstants constants;
  constants.training_request = 0.5;
  DiluPlacer placer(constants);
  EXPECT_THAT(place(placer, {job(0, 1), job(1, 1)}, gpus({10})), ElementsAre(Pair{0, 0}));
  constants.limits = 3;
  DiluPlacer lavish(constants);  // now the requests: 0.5 + 0.3 + 0.3
  EXPECT_THAT(place(lavish, {job(0, 1), job(1, 1)}, gpus({10})), ElementsAre(Pair{0, 0}));
}

/// Best fit by memory: 30 of 40 in use is fuller than 10. Memory that does not fit goes elsewhere.
TEST(dilu_placer, packs_the_fullest_gpu_that_has_room) {
  DiluPlacer placer({});
  EXPECT_THAT(place(placer, {job(0, 5, 0), job(1, 8, 1)}, gpus({10, 30, 20})),
              ElementsAre(Pair{0, 1}, Pair{1, 2}));
}

/// A second instance of a service goes to a GPU of the job without one, though the first is
/// fuller; when each has one, to the fullest again.
TEST(dilu_placer, slows_all_workers_of_a_job_alike) {
  DiluPlacerConstants constants;
  constants.limits = 10;
  constants.training_request = 0.1;
  DiluPlacer placer(constants);
  EXPECT_THAT(place(placer, {job(0, 5), job(1, 5), job(2, 5)}, gpus({10, 20})),
              ElementsAre(Pair{0, 1}, Pair{1, 0}, Pair{2, 1}));
  // Another service has no instance yet: the fullest.
  EXPECT_THAT(place(placer, {job(3, 5, 9)}, gpus({10, 20})), ElementsAre(Pair{3, 1}));
}

TEST(dilu_placer, forgets_instances_of_a_gpu_whose_jobs_have_ended) {
  DiluPlacer placer({});
  EXPECT_THAT(place(placer, {job(0, 5)}, gpus({10, 20})), ElementsAre(Pair{0, 1}));
  EXPECT_THAT(place(placer, {job(1, 5)}, gpus({10, 20})), ElementsAre(Pair{1, 1}));
  std::vector<GpuState> state = gpus({10, 25});
  state[1].jobs = 1;
  EXPECT_THAT(place(placer, {job(2, 5)}, state), ElementsAre(Pair{2, 0}));
}

/// A job says its own shares: 0.7 and 0.7 beside 0.3 and 0.9 is over the limits of 1.5.
TEST(dilu_placer, takes_a_job_at_its_word) {
  DiluPlacer placer({});
  JobInfo large = job(0, 1);
  large.request = 0.7;
  large.limit = 0.7;
  EXPECT_THAT(place(placer, {large}, gpus({10})), IsEmpty());
  large.limit = 0.6;
  EXPECT_THAT(place(placer, {large}, gpus({10})), ElementsAre(Pair{0, 0}));
}

/// A GPU works off one fill job at a time; the instance beside it serves for ever.
TEST(placers, give_a_gpu_one_fill_job_at_a_time) {
  SpareMemoryPlacer spare({});
  DiluPlacerConstants constants;
  constants.limits = constants.requests = 10;
  DiluPlacer dilu(constants);
  for (policy::Placer* placer :
       {static_cast<policy::Placer*>(&spare), static_cast<policy::Placer*>(&dilu)}) {
    EXPECT_THAT(place(*placer, {job(0, 1)}, gpus({10})), ElementsAre(Pair{0, 0}));
    std::vector<JobInfo> finite{job(1, 1, 1), job(2, 1, 1)};
    finite[0].work = finite[1].work = std::chrono::seconds(1);
    std::vector<GpuState> state = gpus({11});
    state[0].jobs = 1;
    EXPECT_THAT(place(*placer, finite, state), ElementsAre(Pair{1, 0}));
    state[0].jobs = 2;
    EXPECT_THAT(place(*placer, {finite[1]}, state), IsEmpty());
    state[0].jobs = 1;
    EXPECT_THAT(place(*placer, {finite[1]}, state), ElementsAre(Pair{2, 0}));
  }
}

TEST(placers, are_the_systems_own_unless_told) {
  for (const policy::PolicySpec& spec : {specinf_spec(), dilu_spec()}) {
    EXPECT_NE(spec.make_placer(policy::defaults(spec)), nullptr);
    const policy::GivenParameter given{"placement", "as_configured"};
    const auto values = policy::check_parameters(spec, {&given, 1}, "", "");
    EXPECT_EQ(spec.make_placer(*values), nullptr);
  }
}

}  // namespace
}  // namespace bubblesim::policies
