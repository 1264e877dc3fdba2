// Why a job left no recording.
#include "capture/control/recorder_client.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>

#include "tests/unit/capture/control/fake_recorder.hpp"

namespace bubblesim::capture {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const JobFacts kMinute{Duration{60s}, {}, false};

TEST(Watch, SeesRecordersOfTheJobsProcesses) {
  RecorderStatus status = testing::own_status(RecorderState::kRecording);
  status.records = 1000;
  status.bytes = 3'000'000;
  testing::FakeRecorder recorder(testing::always(status));
  RecorderWatch watch(getpid(), "/o", {});
  EXPECT_EQ(watch.progress(), "");
  watch.look();
  EXPECT_EQ(watch.seen().count(getpid()), 1U);
  EXPECT_THAT(watch.progress(), HasSubstr("1 of 1 recording, 1000 records, 3 MB"));
}

TEST(Watch, LeavesOtherJobsAlone) {
  testing::FakeRecorder recorder(testing::always(testing::own_status(RecorderState::kRecording)));
  RecorderWatch watch(1 << 30, "/o", {});
  watch.look();
  EXPECT_TRUE(watch.seen().empty());
  EXPECT_TRUE(recorder.heard().empty());
}

TEST(WhyNothing, TheRecordersOwnWordComesFirst) {
  RecorderStatus failed;
  failed.state = RecorderState::kFailed;
  failed.executable = "python3";
  failed.message = "found no libcupti";
  EXPECT_EQ(why_nothing({{42, failed}}, DriverState::kMissing, kMinute),
            "the recorder of process 42 (python3) says: found no libcupti");
}

TEST(WhyNothing, AJobShorterThanTheDelayIsTold) {
  EXPECT_THAT(why_nothing({}, DriverState::kFound, {Duration{2s}, Duration{5s}, false}),
              HasSubstr("ended after 2s, before the recording was to begin"));
  EXPECT_THAT(why_nothing({}, DriverState::kFound, {Duration{2s}, {}, true}),
              HasSubstr("before the recording was to begin"));
}

TEST(WhyNothing, NoDriverAndNoCudaAreDifferentSentences) {
  EXPECT_THAT(why_nothing({}, DriverState::kMissing, kMinute), HasSubstr("no NVIDIA driver"));
  EXPECT_THAT(why_nothing({}, DriverState::kFound, kMinute), HasSubstr("nothing initialised CUDA"));
  EXPECT_THAT(why_nothing({{42, RecorderStatus{}}}, DriverState::kFound, kMinute),
              HasSubstr("recorders were there"));
}

}  // namespace
}  // namespace bubblesim::capture
