// A disk without room, an output that nobody can take, an interrupt, a run that is too large: said,
// with an exit code, and no half file under a final name. And how far a run is before it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kExampleRun =
    "bubblesim run configs/runs/example.json --policy exclusive,mps ";

TEST(FullOutput, IsAFaultOfEveryCommandThatPrints) {
  const ShortWorkplace place;
  for (const char* command : {"--help", "devices", "policies --json", "run --help",
                              "inspect traces/samples/training --json",
                              "run configs/runs/example.json --policy exclusive",
                              "run configs/runs/example.json --policy exclusive --json"}) {
    const Outcome outcome = place.bubblesim(std::string(command) + " > /dev/full");
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("standard output: could not be written whole")) << command;
  }
}

// Files may grow to 8 KiB: room for the table and the CSV, not for JSON and timeline.
TEST(FullDisk, LeavesNoHalfFileUnderAFinalName) {
  const ShortWorkplace place;
  place.write("old.json", "whole");
  const std::string small = "trap '' XFSZ; ulimit -f 16; ";
  for (const std::string& option : {std::string("--out results"), std::string("--timeline t.json"),
                                    std::string("--timeline old.json --force")}) {
    const Outcome outcome = place.shell("(" + small + kExampleRun + option + ")");
    EXPECT_EQ(outcome.code, 2) << option << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("json: cannot be written: File too large")) << option;
  }
  EXPECT_EQ(place.read("old.json"), "whole");
  EXPECT_FALSE(std::filesystem::exists(place.path("t.json")));
  for (const auto& file : std::filesystem::recursive_directory_iterator(place.path("results"))) {
    EXPECT_THAT(file.path().string(), Not(testing::EndsWith(".partial")));
    EXPECT_THAT(file.path().string(), Not(testing::EndsWith(".json")));
  }
  for (const char* command : {"export traces/samples/training --chrome t.json",
                              "inspect traces/samples/training --plot t.svg",
                              "import traces/samples/training -o t.btr"}) {
    EXPECT_EQ(place.shell("(" + small + "bubblesim " + command + ")").code, 2) << command;
  }
  for (const char* name : {"t.json", "t.svg", "t.btr", "t.json.partial", "t.svg.partial",
                           "t.btr.partial"}) {
    EXPECT_FALSE(std::filesystem::exists(place.path(name))) << name;
  }
}

// Folders have the names of two files: the table is printed, the other files are there.
TEST(Outputs, OneFileThatCannotBeWrittenCostsNoOther) {
  const ShortWorkplace place;
  std::filesystem::create_directories(place.path("dir/results.json"));
  std::filesystem::create_directories(place.path("dir/timeline.json"));
  const Outcome outcome = place.bubblesim("run configs/runs/example.json --out dir");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("train kept"));
  EXPECT_THAT(outcome.err, HasSubstr("dir/results.json: cannot be written: Is a directory"));
  EXPECT_THAT(outcome.err, HasSubstr("dir/timeline.json: cannot be written: Is a directory"));
  for (const char* name : {"dir/results.csv", "dir/table.txt", "dir/view.json"}) {
    EXPECT_NE(place.read(name), "") << name;
  }
}

// On a terminal only: other tests find standard error empty.
TEST(Progress, OfARunIsAShareAndTheTimeLeft) {
  const Workplace place;
  if (place.shell("command -v script").code != 0) GTEST_SKIP() << "needs script(1), a terminal";
  const Outcome outcome = place.shell(
      "script -qec 'bubblesim run --training traces/samples/training "
      "--filler traces/samples/inference.json.gz --policy mps,specinf --duration 30s "
      "--warmup 1s --threads 1' /dev/null");
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("offline: [0-9]+ %, about 0:[0-9]+ left"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("online: [5-9][0-9] %, about 0:[0-9]+ left"));
}

// Days of work, ended after a second.
TEST(Interrupt, EndsARunWithItsOwnExitCode) {
  const Workplace place;
  const Outcome outcome = place.shell(
      "bubblesim run --training traces/samples/training --filler traces/samples/inference.json.gz "
      "--policy mps --duration 1000000s --force & sleep 1; kill -TERM $!; wait $!");
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("interrupted: keeps what is done"));
}

TEST(Interrupt, OfAMeasurementLeavesNoFolderWhateverTheSignal) {
  const Workplace place;
  place.write("run.json", R"({
    "name": "long", "seed": 1, "duration": "600s",
    "training": {"trace": "traces/samples/training", "memory": "24GB"},
    "fillers": [], "policies": ["mps"]})");
  for (const std::string signal : {"INT", "TERM", "HUP", "QUIT"}) {
    const Outcome outcome = place.shell(
        "mkdir " + signal + "; TMPDIR=$PWD/" + signal + " bubblesim measure run.json --fake & "
        "while kill -0 $! && [ ! -e " + signal + "/bubblesim-* ]; do sleep 0.1; done; sleep 0.5; "
        "kill -" + signal + " $!; wait $!");
    EXPECT_EQ(outcome.code, 2) << signal;
    EXPECT_THAT(outcome.err, HasSubstr("stopped before its end")) << signal;
    EXPECT_EQ(place.shell("rmdir " + signal).code, 0) << signal << " leaves a folder";
  }
}

TEST(Size, ARunThatWouldTakeAllMemoryIsRefusedBeforeItStarts) {
  const Workplace place;
  std::string text = place.read("configs/runs/example.json");
  text.replace(text.find("\"rate_per_s\": 200"), 17, "\"rate_per_s\": 1e9");
  for (std::size_t up = text.find("../../"); up != std::string::npos; up = text.find("../../")) {
    text.erase(up, 6);
  }
  place.write("run.json", text);
  const Outcome outcome = place.bubblesim("run run.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, testing::IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("run.json: would simulate 1.2e+10 requests (up to 384 GB"));
  EXPECT_THAT(outcome.err, HasSubstr("--force"));
}

}  // namespace
}  // namespace bubblesim::app_test
