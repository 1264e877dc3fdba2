// A process that was started as one of several, where they cannot share the sweep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;

class Launchers : public testing::Test {
 protected:
  const Workplace place;
};

TEST_F(Launchers, SrunWithoutMpiIsRefusedWithWhatToDo) {
  const Outcome outcome = place.shell(
      "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 bubblesim sweep configs/sweeps/policies.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("srun --mpi=pmix"));
}

TEST_F(Launchers, AProgramWithoutMpiSaysSoUnderMpirun) {
  const Outcome outcome = place.shell(
      "mkdir alone && cp .bin/bubblesim alone/ && OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 "
      "alone/bubblesim sweep configs/sweeps/policies.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("built without MPI"));
  const Outcome other = place.shell(
      "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 alone/bubblesim sweep "
      "configs/sweeps/policies.json");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err, "");
}

}  // namespace
}  // namespace bubblesim::app_test
