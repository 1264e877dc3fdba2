// What commands write never replaces what they read, nor, without --force, a file of another
// program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/app/command.hpp"

namespace bubblesim::app_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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
