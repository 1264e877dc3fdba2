// What import, inspect, export, policies and devices print and write.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/app/chrome_file.hpp"
#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

using testing::ContainsRegex, testing::HasSubstr, testing::IsEmpty, testing::Not;
using Lists = AtWorkplace;

class Import : public AtWorkplace {};

TEST_F(Import, WritesAFileThatInspectsLikeItsSources) {
  EXPECT_THAT(succeed(place, "import traces/samples/training -o job.btr").out,
              HasSubstr("job.btr: 4 ranks"));
  EXPECT_EQ(succeed(place, "inspect job.btr --json").out,
            succeed(place, "inspect traces/samples/training --json").out);
  EXPECT_EQ(succeed(place, "inspect job.btr").out,
            succeed(place, "inspect traces/samples/training").out);
}

TEST_F(Import, FilesInAnyOrderGiveTheSameBytes) {
  const std::string folder = "traces/samples/training/";
  succeed(place, "import " + folder + " -o up.btr");
  succeed(place, "import " + folder + "rank3.json.gz " + folder + "rank1.json.gz " + folder +
                     "rank0.json.gz " + folder + "rank2.json.gz -o mixed.btr");
  EXPECT_FALSE(place.read("up.btr").empty());
  EXPECT_TRUE(place.read("up.btr") == place.read("mixed.btr"));
}

TEST_F(Import, JsonSaysWhatTheTextSays) {
  const Json json = json_of(place, "import traces/samples/training -o job.btr --json");
  EXPECT_EQ(json.value("format", ""), "bubblesim.import/1");
  EXPECT_EQ(json["ranks"].size(), 4U);
  EXPECT_EQ(json["kernel_ns_without_launch_shape"], 0);
  EXPECT_GT(json["kernel_ns"], 0);
  EXPECT_EQ(json["bytes"], place.read("job.btr").size());
}

// The first rank's file, cut after a number of bytes.
void write_cut(const Workplace& place, std::size_t bytes) {
  place.write("cut.btr", place.read("job.btr").substr(0, bytes));
}

class Inspect : public AtWorkplace {};

TEST_F(Inspect, ACutFileSaysFirstWhatIsLost) {
  succeed(place, "import traces/samples/training/rank0.json.gz -o job.btr");
  const std::size_t whole = place.read("job.btr").size();
  for (std::size_t part = 1; part < 8; ++part) {
    write_cut(place, part * whole / 8);
    const Outcome text = place.bubblesim("inspect cut.btr");
    const Outcome json = place.bubblesim("inspect cut.btr --json");
    EXPECT_EQ(text.code, json.code);
    if (text.code != 0) continue;  // not even one rank is left: a fault
    EXPECT_THAT(text.out, HasSubstr("btr_end_missing")) << part;
    EXPECT_EQ(text.out.find("Lost: "), text.out.find('\n') + 1) << part;
    EXPECT_EQ(parse_json(json.out)["job"]["counters"]["btr_end_missing"]["count"], 1) << part;
    EXPECT_THAT(text.out, Not(HasSubstr(" 0 ns "))) << part;
  }
}

TEST_F(Inspect, AFlippedByteIsCountedInTextAndJson) {
  succeed(place, "import traces/samples/training/rank0.json.gz -o job.btr");
  std::string bytes = place.read("job.btr");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  place.write("cut.btr", bytes);
  EXPECT_THAT(place.bubblesim("inspect cut.btr").out, HasSubstr("btr_chunks_lost"));
  const Json json = parse_json(place.bubblesim("inspect cut.btr --json").out);
  EXPECT_EQ(json["job"]["counters"]["btr_chunks_lost"]["count"], 1);
  // The chunk held all device operations: there is nothing to replay, and why is said.
  expect_fault(place, "inspect cut.btr --replay", HasSubstr("btr_chunks_lost"));
}

TEST_F(Inspect, ATruncatedProfileSaysHowFarItWasRead) {
  const std::string packed = place.read("traces/samples/training/rank0.json.gz");
  place.write("cut.json.gz", packed.substr(0, packed.size() / 2));
  EXPECT_THAT(place.bubblesim("inspect cut.json.gz").out,
              ContainsRegex("cut.json.gz is truncated after [0-9]+ bytes of text, [0-9]+ events"));
  place.write("cut.json.gz", packed.substr(0, 400));
  expect_fault(place, "inspect cut.json.gz",
               ContainsRegex("truncated after [0-9]+ bytes of text, 0 events read"));
}

TEST_F(Inspect, JsonNamesItsFormatAndAllRanks) {
  const Json json = json_of(place, "inspect traces/samples/training --json");
  EXPECT_EQ(json.value("format", ""), "bubblesim.inspect/1");
  EXPECT_EQ(json["job"]["ranks"], 4);
}

TEST_F(Inspect, DrawsAPicture) {
  EXPECT_EQ(place.bubblesim("inspect traces/samples/training --plot job.svg").code, 0);
  const std::string picture = place.read("job.svg");
  EXPECT_THAT(picture, HasSubstr("<svg "));
  EXPECT_THAT(picture, HasSubstr("</svg>"));
}

TEST_F(Inspect, ReplayMeetsTheRecordingAndSlowerKernelsTakeLonger) {
  const Json json = json_of(place, "inspect traces/samples/training --what-if kernels=0.5 --json");
  EXPECT_LT(json["replay"]["mean_error"], 0.001);
  ASSERT_EQ(json["what_if"].size(), 1U);
  EXPECT_EQ(json["what_if"][0]["what_if"], "kernels=0.5");
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_GT(json["what_if"][0]["replay"]["ranks"][rank]["simulated_span_ns"],
              json["replay"]["ranks"][rank]["simulated_span_ns"]);
  }
}

/// An event of process 0 on stream 7.
Json event_of(const char* kind, const char* name, int ts, int length, int correlation) {
  return {{"ph", "X"},     {"cat", kind},
          {"name", name},  {"pid", 0},
          {"tid", 7},      {"ts", ts},
          {"dur", length}, {"args", {{"device", 0}, {"stream", 7}, {"correlation", correlation}}}};
}

void write_trace(const Workplace& place, const std::string& name, const Json& events) {
  place.write(name, Json{{"schemaVersion", 1}, {"traceEvents", events}}.dump());
}

// Ten launches a millisecond apart, all of whose kernels the file puts at one instant.
TEST_F(Inspect, AReplayThatDoesNotMeetTheRecordingIsNotTrusted) {
  Json events = Json::array();
  for (int i = 1; i <= 10; ++i) {
    events.push_back(event_of("cuda_runtime", "cudaLaunchKernel", 100, 5, i));
    events.push_back(event_of("kernel", "work", 100, 50, i));
  }
  write_trace(place, "equal.json", events);
  const Outcome text = place.bubblesim("inspect equal.json --replay");
  EXPECT_EQ(text.code, 1) << text.out << text.err;
  EXPECT_THAT(text.out, ContainsRegex("worst rank [0-9.]+ %.* !\n! the replay does not meet"));
  const Outcome json = place.bubblesim("inspect equal.json --replay --json");
  EXPECT_EQ(json.code, 1);
  EXPECT_THAT(parse_json(json.out)["replay"].value("doubt", ""), HasSubstr("does not meet"));
}

// A call of 3 s at half the speed takes 6, of which a step holds 4.29.
TEST_F(Inspect, AWhatIfThatIsNotDoneWholeSaysSo) {
  write_trace(place, "slow.json",
              {event_of("user_annotation", "ProfilerStep#1", 50, 3'000'300, 0),
               event_of("cuda_runtime", "cudaLaunchKernel", 100, 5, 1),
               event_of("kernel", "work", 110, 50, 1),
               event_of("cuda_runtime", "cudaFree", 200, 3'000'000, 2)});
  const std::string text =
      succeed(place, "inspect slow.json --what-if host=0.5 --what-if host=2").out;
  EXPECT_THAT(text, ContainsRegex("what if host=0.5:.*\n.*\n.* !\n! changed less than asked"));
  EXPECT_THAT(text, Not(ContainsRegex("what if host=2:.*\n.*\n.* !\n")));
  const Json json = json_of(place, "inspect slow.json --what-if host=0.5 --what-if host=2 --json");
  EXPECT_EQ(json["what_if"][0]["spans_clamped"], 1);
  EXPECT_EQ(json["what_if"][1]["spans_clamped"], 0);
}

TEST_F(Inspect, AReplayOfOperationsWithoutLaunchesIsNotCalledACheck) {
  write_trace(place, "kernels.json",
              {event_of("kernel", "work", 100, 50, 1), event_of("kernel", "work", 200, 50, 2)});
  EXPECT_THAT(succeed(place, "inspect kernels.json --replay").out,
              HasSubstr("mean error 0.000 %, worst rank 0.000 %; not a check: 100 % of operations "
                        "have no launch call, and start when they were recorded"));
  const Json json = json_of(place, "inspect kernels.json --replay --json");
  EXPECT_EQ(json["replay"]["ops_without_launch"], 2);
  EXPECT_THAT(json["replay"].value("doubt", ""), HasSubstr("not a check"));
  const Json whole = json_of(place, "inspect traces/samples/training --replay --json");
  EXPECT_TRUE(whole["replay"]["doubt"].is_null());
}

TEST_F(Inspect, says_what_the_iteration_time_depends_on) {
  const Json whole = json_of(place, "inspect traces/samples/training --json");
  const Json alone = json_of(place, "inspect traces/samples/training --sensitivities --json");
  EXPECT_EQ(alone["sensitivities"], whole["job"]["sensitivities"]);
  double sum = 0;
  for (const char* what : {"kernels", "copies", "link", "host"}) {
    const double value = alone["sensitivities"][what];
    EXPECT_GE(value, 0) << what;
    sum += value;
  }
  EXPECT_GT(sum, 0.5);
  EXPECT_LE(sum, 1);
  EXPECT_THAT(succeed(place, "inspect traces/samples/training").out,
              HasSubstr("Sensitivities of the replayed iteration"));
}

TEST(Export, WritesAChromeTraceWhoseSlicesNest) {
  const Workplace place;
  EXPECT_THAT(succeed(place, "export traces/samples/training --chrome job.json").out,
              HasSubstr("job.json"));
  expect_slices_nest(parse_json(place.read("job.json")));
}

TEST_F(Lists, OfPoliciesAndDevicesAreJsonWithTheNamesOfTheText) {
  const Json policies = json_of(place, "policies --json");
  const std::string policy_text = succeed(place, "policies").out;
  ASSERT_GE(policies.size(), 6U);
  for (const Json& policy : policies) {
    const std::string mark = policy.value("oracle", false) ? " (oracle): " : ": ";
    EXPECT_THAT(policy_text, HasSubstr(policy.value("name", "?") + mark));
    for (const Json& parameter : policy["parameters"]) {
      EXPECT_THAT(parameter.value("source", ""), testing::Not(IsEmpty())) << parameter;
    }
  }
  const Json devices = json_of(place, "devices --json");
  const std::string device_text = succeed(place, "devices").out;
  ASSERT_GE(devices.size(), 7U);
  for (const Json& device : devices) {
    EXPECT_THAT(device_text, HasSubstr(device.value("name", "?")));
    EXPECT_GT(device.value("sm_count", 0), 0);
  }
}

TEST_F(Lists, OfOnePolicyShowOnlyThat) {
  const Json tgs = json_of(place, "policies tgs --json");
  ASSERT_EQ(tgs.size(), 1U);
  EXPECT_EQ(tgs[0].value("name", ""), "tgs");
}

// What commands write never replaces what they read, nor, without --force, a file of another
// program.

namespace fs = std::filesystem;

enum class Again { kTried, kOnce };  ///< kOnce: needs a GPU, data sets or minutes, or is a config

/// A command that writes: OUT is what the option is given.
struct Writer {
  const char* command;
  const char* option;
  const char* rest;          ///< of its line
  const char* out = "out";   ///< the option's value
  const char* file = "out";  ///< what is written
  Again again = Again::kTried;
};

constexpr const char* kTrace = "job.btr";
constexpr Again kOnce = Again::kOnce;

const std::vector<Writer> kWriters{
    {"import", "--output", "job.btr"},
    {"inspect", "--plot", "job.btr"},
    {"run", "--timeline", "run.json"},
    {"run", "--usage", "run.json"},
    {"run", "--out", "run.json", "dir", "dir/results.csv"},
    {"run", "--out", "run.json", "dir", "dir/results.json"},
    {"run", "--out", "run.json", "dir", "dir/table.txt"},
    {"run", "--out", "run.json", "dir", "dir/view.json"},
    {"run", "--out", "run.json", "dir", "dir/timeline.json"},
    {"measure", "--out", "run.json --fake", "dir", "dir/results.csv", kOnce},
    {"measure", "--operations", "run.json --fake", "dir", "dir/exclusive.csv", kOnce},
    {"calibrate", "--output", "--fake", "out", "out", kOnce},
    {"calibrate", "--residuals", "--fake", "out", "out", kOnce},
    {"advise", "--config", "question.json --budget 100ms", "out", "out", kOnce},
    {"advise", "--html", "question.json --budget 100ms"},
    {"results export", "--output", "store.db"},
    {"report", "--output", "store.db"},
    {"view", "--output", "job.btr --no-open"},
    {"view", "--svg", "job.btr"},
    {"export", "--output", "job.btr --format csv"},
    {"export", "--chrome", "job.btr"},
    {"retarget", "--output", "job.btr --cluster ethernet-25g", "out.btr", "out.btr", kOnce},
    {"retarget", "--output", "job.btr --cluster ethernet-25g", "out.btr", "out.json", kOnce},
    {"synth", "--output", "--model roberta-large --plan ddp-4 --cluster a100-40gb-4"},
    {"synth", "--json", "--model roberta-large --plan ddp-4 --cluster a100-40gb-4"},
    {"synth", "--csv-schedule", "--model gpt2-large --plan pp-4-1f1b --cluster a100-40gb-4"},
    {"synth-inference", "--output", "--model bert-base --device h100"},
    {"schedule", "--csv", "1f1b --stages 2 --micro-batches 2"},
    {"schedule", "--plot", "1f1b --stages 2 --micro-batches 2"},
    {"schedule", "--json", "1f1b --stages 2 --micro-batches 2"},
    {"schema", "--write", "run", "dir", "dir/run.schema.json"},
    {"validate", "--json", "results.json results.json"},
    {"validate", "--csv", "results.json results.json"},
    {"capture", "--output", "-- true", "dir", "dir/rank0.btr", kOnce},
    {"capture attach", "--output", "1", "dir", "dir/rank0.btr", kOnce},
    {"fill", "--fill-log", "--policy mps --train true --fill true", "out", "out", kOnce},
};

/// These open a store and look for themselves, or refuse all that is there.
const std::vector<Writer> kOwnGuard{
    {"sweep", "--store", "sweep.json"},
    {"advise", "--store", "question.json --budget 100ms"},
    {"results merge", "--output", "store.db"},
    {"new-policy", "--dir", "my_gate", "dir", "dir/CMakeLists.txt"},
};

std::string line_of(const Writer& writer) {
  const std::string option = std::string(" ") + writer.option + " " + writer.out + " ";
  return writer.command + option + writer.rest;
}

/// A place with a trace, a store, a run config, a sweep and a question, all of them short.
class Overwrite : public testing::Test {
 protected:
  Overwrite() {
    succeed(place_, "import traces/samples/training -o job.btr");
    place_.write("run.json", R"({"name": "r", "duration": "900ms", "warmup": "300ms",
      "training": {"trace": "job.btr", "memory": "24GB"}, "policies": ["exclusive"],
      "fillers": [{"name": "f", "mode": "offline", "memory": "2GB",
                   "program": {"trace": "traces/samples/inference.json.gz"}}]})");
    place_.write("sweep.json", R"({"name": "s", "base": "run.json"})");
    place_.write("question.json", R"({"name": "../../x", "base": "run.json",
                                      "axes": [], "budget": "100ms"})");
    succeed(place_, "run run.json --json > results.json");
    succeed(place_, "sweep sweep.json --store store.db");
  }

  void put(const Writer& writer, const std::string& text) const {
    fs::create_directories(fs::path(place_.path(writer.file)).parent_path());
    place_.write(writer.file, text);
  }
  void clear(const Writer& writer) const {
    fs::remove_all(place_.path(writer.out));
    fs::remove_all(place_.path(writer.file));
  }

  Workplace place_;
};

TEST_F(Overwrite, AFileOfAnotherProgramStaysWithoutForce) {
  for (const auto& list : {kWriters, kOwnGuard}) {
    for (const Writer& writer : list) {
      put(writer, "mine");
      const Outcome outcome = place_.bubblesim(line_of(writer));
      EXPECT_EQ(outcome.code, 2) << line_of(writer) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(writer.file)) << line_of(writer);
      EXPECT_EQ(place_.read(writer.file), "mine") << line_of(writer);
      clear(writer);
    }
  }
}

// By inode: the name that is written is another one of the trace.
TEST_F(Overwrite, WhatIsReadStaysWithForceToo) {
  const std::string trace = place_.read(kTrace);
  for (const Writer& writer : kWriters) {
    const std::string rest = writer.rest;
    if (rest.find(".json") == std::string::npos && rest.find(kTrace) == std::string::npos) continue;
    put(writer, "");
    fs::remove(place_.path(writer.file));
    fs::create_hard_link(place_.path(kTrace), place_.path(writer.file));
    const bool reads = rest.find(kTrace) != std::string::npos || rest.starts_with("run.json") ||
                       rest.starts_with("question.json");
    if (reads) {
      const Outcome outcome = place_.bubblesim(line_of(writer) + " --force");
      EXPECT_EQ(outcome.code, 2) << line_of(writer);
      EXPECT_THAT(outcome.err, HasSubstr("which it would overwrite")) << line_of(writer);
    }
    EXPECT_EQ(place_.read(kTrace), trace) << line_of(writer);
    clear(writer);
  }
}

TEST_F(Overwrite, AStoreIsNoPage) {
  const std::string store = place_.read("store.db");
  for (const char* line : {"report store.db -o store.db", "view store.db -o store.db --no-open",
                           "results store.db export -o store.db",
                           "results export store.db --format json -o ./store.db --force"}) {
    expect_fault(place_, line, HasSubstr("which it would overwrite"));
    EXPECT_EQ(place_.read("store.db"), store) << line;
  }
}

TEST_F(Overwrite, OwnFilesAreReplaced) {
  for (const Writer& writer : kWriters) {
    if (writer.again == Again::kOnce) continue;
    const Outcome first = place_.bubblesim(line_of(writer));
    EXPECT_NE(first.code, 2) << line_of(writer) << first.err;
    EXPECT_TRUE(fs::exists(place_.path(writer.file))) << line_of(writer);
    const Outcome second = place_.bubblesim(line_of(writer));
    EXPECT_EQ(second.code, first.code) << line_of(writer) << second.err;
    clear(writer);
  }
}

TEST_F(Overwrite, ForceReplaces) {
  place_.write("out", "mine");
  succeed(place_, "inspect job.btr --plot out --force");
  EXPECT_THAT(place_.read("out"), HasSubstr("</svg>"));
}

TEST_F(Overwrite, AdviseWritesOnlyWhatItWasToldTo) {
  std::set<std::string> before;
  for (const auto& entry : fs::directory_iterator(place_.path("."))) before.insert(entry.path());
  const Outcome outcome = succeed(place_, "advise question.json --budget 100ms");
  for (const auto& entry : fs::directory_iterator(place_.path("."))) {
    EXPECT_TRUE(before.contains(entry.path())) << entry.path();
  }
}

/// Options with a value whose help says that they write.
std::set<std::string> writing_options(const Workplace& place, const std::string& command) {
  std::set<std::string> found;
  std::string name;
  for (const std::string& line : lines_of(place.bubblesim("help " + command).out)) {
    if (line.starts_with("  -")) {
      const std::size_t at = line.find("--");
      const std::size_t end = line.find_first_of(" ,=", at);
      name = line.compare(end, 6, " TEXT ") == 0 ? line.substr(at, end - at) : "";
    } else if (!line.starts_with("   ")) {
      name.clear();
    }
    if (name.empty()) continue;
    for (const char* word : {"rite", "Draw ", "Folder for ", "File (default"}) {
      if (line.find(word) != std::string::npos) found.insert(name);
    }
  }
  return found;
}

TEST_F(Overwrite, TheListHasEveryOptionThatWrites) {
  std::set<std::string> commands;
  std::set<std::pair<std::string, std::string>> listed;
  for (const auto& list : {kWriters, kOwnGuard}) {
    for (const Writer& writer : list) listed.insert({writer.command, writer.option});
  }
  for (const std::string& line : lines_of(place_.bubblesim("--help").out)) {
    if (line.starts_with("  ") && line.size() > 2 && line[2] >= 'a' && line[2] <= 'z') {
      commands.insert(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  for (const auto& [command, option] : listed) commands.insert(command);
  std::size_t found = 0;
  for (const std::string& command : commands) {
    for (const std::string& option : writing_options(place_, command)) {
      ++found;
      EXPECT_TRUE(listed.contains({command, option})) << command << " " << option;
    }
  }
  EXPECT_GE(found, 27U);
}

}  // namespace
}  // namespace bubblesim::app_test
