// Input faults: exit code 2, nothing on standard output, a message that says what was found and
// what is allowed.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/conformance/app/command.hpp"
#include "tests/conformance/app/doubtful_trace.hpp"

namespace bubblesim::app_test {
namespace {

using testing::AllOf, testing::HasSubstr;
using Interrupt = AtWorkplace;

// The example config with one text in the place of another.
std::string changed_config(const Workplace& place, const std::string& old_text,
                           const std::string& new_text) {
  std::string text = place.read("configs/runs/example.json");
  const std::size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  text.replace(at, old_text.size(), new_text);
  // Paths are relative to the config's folder.
  for (std::size_t up = text.find("../../"); up != std::string::npos; up = text.find("../../")) {
    text.erase(up, 6);
  }
  return text;
}

class Faults : public AtWorkplace {};

TEST_F(Faults, OfTheCommandLineSayWhatIsExpected) {
  expect_fault("", HasSubstr("subcommand"));
  expect_fault("simulate", HasSubstr("bubblesim help says"));
  expect_fault("devices --frob", HasSubstr("--frob"));
  expect_fault("inspect", HasSubstr("PATHS"));
  expect_fault("run", HasSubstr("expected either CONFIG, or TRAINING and FILLER"));
  expect_fault("run configs/runs/example.json --json --csv", HasSubstr("excludes"));
  expect_fault("import traces/samples/training", HasSubstr("--output"));
  expect_fault("run a b --training c", HasSubstr("found two paths beside --training"));
  expect_fault("run --training traces/samples/training "
               "--filler traces/samples/inference.json.gz --policy exclusive --device h10x",
               AllOf(HasSubstr("\"h10x\""), HasSubstr("did you mean \"h100\"?"),
                     HasSubstr("a100-40gb"), HasSubstr("v100-32gb")));
  expect_fault("inspect traces/samples/training --what-if host@99=2",
               HasSubstr("the job has no rank 99; expected one of 0, 1, 2, 3"));
  expect_fault("inspect traces/samples/training --what-if kernel:nosuch=2",
               HasSubstr("no kernel's name contains \"nosuch\""));
  expect_fault("inspect traces/samples/training --what-if compte=2",
               AllOf(HasSubstr("compte=2"), HasSubstr("kernels, compute, memory")));
}

TEST_F(Faults, AnUnknownWordNamesTheNearest) {
  expect_fault("rnu", HasSubstr("unknown command \"rnu\"; did you mean \"run\"? Known: import, "));
  expect_fault("help rnu", HasSubstr("unknown command \"rnu\"; did you mean \"run\"? Known: "));
  expect_fault("rnu --help", HasSubstr("did you mean \"run\"?"));
  expect_fault("--confgs x run", AllOf(HasSubstr("unknown option \"--confgs\""),
                                       HasSubstr("did you mean \"--configs\"?")));
  expect_fault("run configs/runs/example.json --polcy=mps",
               AllOf(HasSubstr("run: unknown option \"--polcy\"; did you mean \"--policy\"?"),
                     HasSubstr("bubblesim help run says what they do")));
  expect_fault("run a b c", HasSubstr("found \"c\", expected no more words"));
  expect_fault("results x.db lst", HasSubstr("did you mean \"list\"? Known: "));
}

TEST_F(Faults, OneTraceWithoutTheOtherSaysWhatIsMissing) {
  const auto message =
      HasSubstr("is a trace or a folder, not a run config; expected a second path");
  expect_fault("run traces/samples/training", message);
  expect_fault("run traces/samples/inference.json.gz", message);
  place.write("plain.json", R"({"schemaVersion": 1, "traceEvents": []})");
  EXPECT_THAT(place.bubblesim("run plain.json").err,
              testing::StartsWith("bubblesim: plain.json: is a trace"));
}

TEST_F(Faults, LimitsOfNothingAreRefusedAsInAConfig) {
  const std::string run = "run configs/runs/llm-server.json --slo ";
  expect_fault(run + "ttft=0s", HasSubstr("--slo: found \"ttft=0s\", expected more than 0s"));
  expect_fault(run + "ttft=1s,", HasSubstr("--slo: found \"ttft=1s,\", expected one limit"));
  expect_fault(run + "ttft=1s,,tpot=1s", HasSubstr("expected one limit between commas"));
}

TEST_F(Faults, AnUnknownPolicyNamesTheNearestAndAll) {
  const auto message = AllOf(HasSubstr("\"tgss\""), HasSubstr("did you mean \"tgs\"?"),
                             HasSubstr("exclusive, time_slicing, mps, mig"),
                             HasSubstr("pipefill"), HasSubstr("ideal_spatial"));
  expect_fault("policies tgss", message);
  expect_fault("run configs/runs/example.json --policy mps,tgss", message);
}

TEST_F(Faults, APolicyIsAskedForOnce) {
  const std::string run = "run configs/runs/example.json --policy ";
  const auto message = HasSubstr("--policy: found \"mps\" again with the same parameters");
  expect_fault(run + "mps,mps", message);
  expect_fault(run + "mps,mps:filler_percentage=100", message);
  expect_fault(run + "all,mps", message);
  expect_fault("view configs/runs/example.json --policy mps,mps", message);
}

TEST_F(Faults, OfAPolicysParametersNameTheParameter) {
  const std::string run = "run configs/runs/example.json --policy ";
  expect_fault(run + "mps:", HasSubstr("found \"mps:\", expected NAME:PARAMETER=VALUE"));
  expect_fault(run + "tgss:budget=1", HasSubstr("did you mean \"tgs\"?"));
  expect_fault(run + "specinf:budgt=1", HasSubstr("did you mean \"budget\"?"));
  expect_fault(run + "specinf:budget=2", AllOf(HasSubstr("budget"), HasSubstr("0.9")));
}

// Nothing that is said on the command line is ignored.
TEST_F(Faults, WhatAConfigSaysIsNotSaidBesideIt) {
  const std::string run = "run configs/runs/example.json ";
  expect_fault(run + "--mode online",
               HasSubstr("--mode: found beside configs/runs/example.json; the run config says it"));
  expect_fault(run + "--load 0.5", HasSubstr("--load: found beside"));
  expect_fault(run + "--duration auto", HasSubstr("--duration: found auto beside a config"));
  expect_fault(run + "--duration 1s --warmup 1s", HasSubstr("--warmup: a warm-up of 1s leaves"));
  for (const char* option : {"--seed 1", "--duration 1s", "--warmup 1s", "--filler-memory 1GB"}) {
    expect_fault(std::string("advise configs/advise/none.json ") + option,
                 HasSubstr("the question says it: /base/"));
  }
}

TEST_F(Faults, NumbersAreNeitherWrappedNorSaturatedNorNotNumbers) {
  const std::string run = "run configs/runs/example.json ";
  expect_fault(run + "--seed -1", HasSubstr("found -1, expected a whole number from 0"));
  expect_fault(run + "--seed 99999999999999999999999", HasSubstr("18446744073709551615"));
  expect_fault(run + "--threads -1", HasSubstr("expected a whole number from 0 to 1024"));
  expect_fault(run + "--threads 1025", HasSubstr("found 1025"));
  expect_fault("sweep none.json --limit -1", HasSubstr("found -1"));
  expect_fault("advise a b --load nan", HasSubstr("found nan, expected a number"));
  expect_fault("advise a b --keep nan", HasSubstr("found nan, expected a number"));
  expect_fault("schedule interleaved --chunks 0", HasSubstr("1 to 65536"));
  expect_fault("retarget a --replicas 0 -o b.btr", HasSubstr("1 to 16777216"));
  expect_fault("synth-inference --model bert-base --device h100 --precision 0",
               AllOf(HasSubstr("fp16"), testing::Not(HasSubstr("->"))));
}

TEST_F(Faults, MissingFilesAreNamed) {
  expect_fault("inspect nowhere", HasSubstr("nowhere: found no such file or folder"));
  expect_fault("inspect policies", HasSubstr("found no .btr, .json, .et or .sqlite file"));
  expect_fault("run nowhere.json", HasSubstr("nowhere.json: no such file"));
  expect_fault("export nowhere --chrome job.json", HasSubstr("nowhere"));
}

TEST_F(Faults, OutputsDoNotOverwriteWhatIsRead) {
  ASSERT_EQ(place.shell("mkdir job && gzip -dc traces/samples/training/rank0.json.gz > job/r.json")
                .code, 0);
  const auto refused = HasSubstr("found a file that this command reads");
  expect_fault(place, "import job/r.json -o job/r.json", refused);
  expect_fault(place, "export job --format csv -o job/r.json", refused);
  expect_fault(place, "inspect job/r.json --plot job/../job/r.json", refused);
  expect_fault(place, "retarget job/r.json -o job/r.btr", refused);
  expect_fault(place, "retarget job/r.json -o job/other.json", HasSubstr("expected NAME.btr"));
}

// The question is a config, which is UTF-8: its name of the file is one that is not there.
TEST_F(Faults, AFileWhoseNameIsNotUtf8IsRefused) {
  ASSERT_EQ(place.shell("cp traces/samples/inference.json.gz 'job\xff.json.gz'").code, 0);
  expect_fault(place, "advise traces/samples/training 'job\xff.json.gz' --keep 0.9 --can mps",
               HasSubstr("job\xef\xbf\xbd.json.gz: found no such file"));
}

TEST_F(Faults, OutputsThatCannotBeWrittenAreNamed) {
  for (const char* line :
       {"import traces/samples/training -o ", "export traces/samples/training --chrome ",
        "inspect traces/samples/training --plot "}) {
    expect_fault(place, line + std::string("traces/samples/README.md/job"),
                 HasSubstr("traces/samples/README.md: cannot be made"));
  }
}

TEST_F(Faults, ATextThatIsNoTraceIsRefusedByItsName) {
  place.write("letter.json", "Dear reader,");
  expect_fault(place, "inspect letter.json", HasSubstr("letter.json"));
}

TEST_F(Faults, OfAConfigAreReportedTogetherEachWithItsPlace) {
  std::string text = changed_config(place, "\"seed\"", "\"sed\"");
  text.replace(text.find("\"time_slicing\""), 14, "\"time_slice\"");
  place.write("run.json", text);
  expect_fault(place, "run run.json",
               AllOf(HasSubstr("run.json: /sed: unknown key \"sed\"; did you mean \"seed\"?"),
                     HasSubstr("/policies/1: unknown policy \"time_slice\"; did you mean "
                               "\"time_slicing\"?"),
                     testing::ResultOf(lines_of, testing::SizeIs(2))));
}

// Every switch costs 100 ms and every turn is 1 us: the job needs more than a hundred times as
// long as alone and is cut.
TEST_F(Faults, AResultThatMustNotBeTrustedExitsWithOneAndSaysWhy) {
  std::string text = changed_config(place, "\"duration\": \"3s\"", "\"iterations\": 1");
  text.replace(text.find("\"300ms\""), 7, "\"0ms\"");
  text.erase(text.find("\"time_slicing\","));
  text += R"({"name": "time_slicing", "parameters": {"slice": "1us", "switch_cost": "100ms"}}]})";
  text.replace(text.find("\"rate_per_s\": 200"), 17, "\"rate_per_s\": 2000");
  place.write("run.json", text);
  const Outcome outcome = place.bubblesim("run run.json");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("! error: run_iterations_not_reached: time_slicing 1: "));
}

TEST_F(Faults, ATraceOfAnUnknownCardIsRetargetedFromOneThatIsNamed) {
  std::string trace = doubtful_trace();
  const std::string card = "NVIDIA A100-SXM4-40GB";
  trace.replace(trace.find(card), card.size(), "NVIDIA Foo");
  place.write("foo.json", trace);
  expect_fault(place, "retarget foo.json --device h100 -o new.btr",
               AllOf(HasSubstr("foo.json: was recorded on \"NVIDIA Foo\""),
                     HasSubstr("expected --recorded-device")));
  const Outcome named = place.bubblesim(
      "retarget foo.json --device h100 --recorded-device a100-40gb -o new.btr");
  EXPECT_EQ(named.code, 0) << named.err;
}

// A disk without room, an output that nobody can take, an interrupt, a run that is too large: said,
// with an exit code, and no half file under a final name. And how far a run is before it ends.

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
TEST_F(Interrupt, EndsARunWithItsOwnExitCode) {
  const Outcome outcome = place.shell(
      "bubblesim run --training traces/samples/training --filler traces/samples/inference.json.gz "
      "--policy mps --duration 1000000s --force & sleep 1; kill -TERM $!; wait $!");
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("interrupted: keeps what is done"));
}

TEST_F(Interrupt, OfAMeasurementLeavesNoFolderWhateverTheSignal) {
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
  place.write("run.json", changed_config(place, "\"rate_per_s\": 200", "\"rate_per_s\": 1e9"));
  expect_fault(place, "run run.json",
               AllOf(HasSubstr("run.json: would simulate 1.2e+10 requests (up to 384 GB"),
                     HasSubstr("--force")));
}

}  // namespace
}  // namespace bubblesim::app_test
