// NVIDIA's own runtime before a stand-in of the driver, as far as that carries it.
#include <gmock/gmock.h>

#include "tests/unit/capture/live/job_run.hpp"

namespace bubblesim::capture {
namespace {

#ifdef CUDART_JOB
TEST(Runtime, LooksUpTheDriversFunctionsThroughTheGate) {
  const TempFolder folder;
  Variables variables = driver_environment(folder.path("driver"));
  variables["LD_PRELOAD"] = PROBE_GATE;
  variables["BUBBLESIM_PROBE"] = folder.path("probe");
  RunningJob({CUDART_JOB}, variables).wait();
  const auto calls = lines_of_file(folder.path("driver"));
  // It asks for several hundred functions, and for each through the gate's own function.
  EXPECT_GT(calls.size(), 100U);
  EXPECT_THAT(calls, testing::Each(testing::EndsWith("cuGetProcAddress_v2 from libprobe_gate.so")));
}
#else
TEST(Runtime, LooksUpTheDriversFunctionsThroughTheGate) {
  GTEST_SKIP() << "libcudart_static.a: not found";
}
#endif

}  // namespace
}  // namespace bubblesim::capture
