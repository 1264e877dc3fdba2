// Runs with a daemon of MPS, which is a script here.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "capture/rig/rig.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/substrate/mps_script.hpp"

namespace bubblesim::capture {
namespace {

using ::testing::HasSubstr;

/// Goes when it is first spoken to, with its program: nobody can tell it to quit.
constexpr const char* kLeaves = "rm \"$0\"\nkill \"$(cat \"$pid\")\"";

class MpsRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/bubblesim-rig-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    place_.folder = pattern;
    place_.environment = {{"PATH", pattern + ":/usr/bin:/bin"}};
    place_.progress = [this](const std::string& text) { said_ += text + "\n"; };
    setup_.substrate = Substrate::kMps;
    daemon(kQuitsWhenTold);
  }
  void TearDown() override { std::filesystem::remove_all(place_.folder); }

  void daemon(const char* when_told) const {
    write_mps_program(place_.folder, mps_script(when_told));
  }

  RigPlace place_;
  RigSetup setup_;
  std::string said_;
};

TEST_F(MpsRun, AClientThatCannotRunSaysWhatItWasGiven) {
  place_.worker = "/bin/false";
  setup_.jobs.resize(14);
  for (std::uint32_t i = 0; i < 14; ++i) {
    setup_.jobs[i].plan.client = ClientId{i};
    setup_.jobs[i].sm_percentage = 58;
  }
  EXPECT_THAT(error_of(run_rig(place_, setup_, {}, {})).text(),
              HasSubstr("exited with 1; clients of MPS: 14, this one with 58 % and "
                        "CUDA_DEVICE_MAX_CONNECTIONS=4"));
}

TEST_F(MpsRun, ADaemonThatDoesNotQuitCostsNoResult) {
  daemon(kLeaves);
  const auto result = run_rig(place_, setup_, {}, {});
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->counters.count("rig_mps_did_not_quit"), 1U);
  EXPECT_FALSE(result->counters.has_error());
  EXPECT_NE(said_, "");
}

}  // namespace
}  // namespace bubblesim::capture
