// Runs with a daemon of MPS, which is a script here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "capture/rig/rig.hpp"

namespace bubblesim::capture {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDaemon = R"sh(#!/bin/sh
pid="$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
if [ "$1" = -d ]; then
  sleep 60 </dev/null >/dev/null 2>&1 &
  echo $! > "$pid"
  exit 0
fi
read -r word
[ "$word" = quit ] && kill "$(cat "$pid")"
exit 0
)sh";

class MpsRun : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/bubblesim-rig-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    place_.folder = pattern;
    place_.environment = {{"PATH", pattern + ":/usr/bin:/bin"}};
    place_.progress = [this](const std::string& text) { said_ += text + "\n"; };
    setup_.substrate = Substrate::kMps;
    const std::string path = pattern + "/nvidia-cuda-mps-control";
    std::ofstream(path) << kDaemon;
    ::chmod(path.c_str(), 0755);
  }
  void TearDown() override { std::filesystem::remove_all(place_.folder); }

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
  const auto result = run_rig(place_, setup_, {}, {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().text(),
              HasSubstr("exited with 1; clients of MPS: 14, this one with 58 % and "
                        "CUDA_DEVICE_MAX_CONNECTIONS=4"));
}

}  // namespace
}  // namespace bubblesim::capture
