// A driver that fails, a device that breaks or hangs: faults, and nobody waits for ever.
#include <gmock/gmock.h>

#include "capture/replay/cuda/driver.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/replay_cuda/cuda_bench.hpp"

namespace bubblesim::capture {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(CudaBench, ADriverThatIsNotThereIsAFault) {
  options_.library = "/nonexistent/libcuda.so.1";
  EXPECT_THAT(error_of(open()).text(), HasSubstr("there is no CUDA driver on this machine"));
}

TEST_F(CudaBench, ALibraryThatIsNoDriverOfTodayIsAFaultThatNamesTheFunction) {
  options_.library = "libm.so.6";
  EXPECT_THAT(error_of(open()).text(), HasSubstr("has no cuInit; expected a driver of CUDA 12"));
}

TEST_F(CudaBench, AGpuThatIsNotThereIsAFault) {
  EXPECT_EQ(error_of(open_cuda_device(3, clock_, options_)).text(), "no GPU 3: the driver has 1");
}

TEST_F(CudaBench, SmsOfAJobsOwnFromADriverThatRefusesAreAFault) {
  fake_driver::set_green_contexts_broken(true);
  plan_.sms = 16;
  kernel(10us);
  EXPECT_THAT(error_of(open()).text(), HasSubstr("cuDeviceGetDevResource"));
}

TEST_F(CudaBench, ADeviceThatHangsEndsWaitsAndIsAFault) {
  const auto op = kernel(100us);
  ASSERT_TRUE(open());
  fake_driver::hang_device();
  launch(op);
  device_->wait_op(op, 0);
  launch(op, 1, 1);
  device_->wait_all();
  EXPECT_EQ(device_->in_flight(), 0U);
  EXPECT_TRUE(device_->counters().has_error());
  EXPECT_THAT(error_of(close()).text(), HasSubstr("it hangs (op 0, execution 1, begun)"));
  EXPECT_TRUE(listener_.told().empty());
}

TEST_F(CudaBench, ADeviceWhoseRecordsAreLostIsNotSaidToHang) {
  const auto op = kernel(100us);
  ASSERT_TRUE(open());
  launch(op);
  device_->wait_all();
  fake_driver::lose_records();
  launch(op, 1, 1);
  device_->wait_all();
  EXPECT_THAT(error_of(close()).text(),
              HasSubstr("and 1 are in flight: its streams are done, so records are lost "
                        "(op 0, execution 2, begun)"));
}

TEST_F(CudaBench, AnErrorThatSticksToTheContextEndsWaitsAndIsAFault) {
  const auto op = kernel(100us);
  ASSERT_TRUE(open());
  fake_driver::break_device(cuda::Status::kLaunchFailed);
  launch(op);
  device_->wait_all();
  EXPECT_THAT(error_of(close()).text(), HasSubstr("cuStreamQuery: the fake's failure (719)"));
}

TEST_F(CudaBench, ADeviceThatHangsWhileItIsMeasuredIsAFaultOfPrepare) {
  fake_driver::hang_device();
  kernel(100us);
  EXPECT_THAT(error_of(open()).text(), HasSubstr("gemm: Fake H100 does not answer"));
}

/// Every function of the table, failing at its first and at a later call.
std::vector<std::pair<std::string, int>> calls_that_fail() {
  std::vector<std::pair<std::string, int>> all;
#define BUBBLESIM_TEST_NAME(field, symbol, arguments) \
  for (const int after : {0, 3}) all.emplace_back(#symbol, after);
  BUBBLESIM_CUDA_NEEDED(BUBBLESIM_TEST_NAME)
  BUBBLESIM_CUDA_WANTED(BUBBLESIM_TEST_NAME)
#undef BUBBLESIM_TEST_NAME
  return all;
}

TEST_F(CudaBench, AnyCallThatFailsLeavesAFaultOrNothing) {
  plan_.sms = 8;  // devices that fail keep theirs until the process ends
  const auto first = kernel(20us, 0);
  kernel(20us, 1, {first});
  const auto last = copy(1'000, CopyPath::kHostToDevice, 2);
  copy(1'000, CopyPath::kDeviceToHost, 2);
  copy(0, CopyPath::kDeviceToDevice, 2);
  const auto after = kernel(20us, 0, {last});
  graph(first, 2);
  int faults = 0;
  for (const auto& [name, after_calls] : calls_that_fail()) {
    fake_driver::reset();
    fake_driver::fail_call(name, cuda::Status::kInvalidValue, after_calls);
    auto result = open();
    if (result) {
      launch(first, 2);
      for (std::uint32_t op = last; op <= after; ++op) launch(op);
      device_->wait_all();
      result = close();
    }
    if (!result) {
      ++faults;
      EXPECT_THAT(result.error().text(), HasSubstr(name)) << "failing after " << after_calls;
    }
    device_.reset();
  }
  // All but those that let things go, ask for texts, or are not called so often.
  EXPECT_GT(faults, 45);
  fake_driver::reset();
  EXPECT_TRUE(open());
}

}  // namespace
}  // namespace bubblesim::capture
