// What a run's key depends on: content, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json.hpp"
#include "sim/sweep/run_key.hpp"
#include "tests/unit/sim/sweep/sweep_case.hpp"

namespace bubblesim::sweep {
namespace {

using testing::HasSubstr;

class RunKey : public testing::Test {
 protected:
  RunKey() {
    folder_.write("a.btr", "trace");
    for (const char* name : {"devices", "efficiency", "models", "plans", "clusters", "software"}) {
      std::filesystem::create_directory(folder_.path(name));
    }
    folder_.write("devices/h100.json", "h");
    folder_.write("efficiency/h100.json", "e");
    folder_.write("models/m.json", "m");
    folder_.write("plans/p.json", R"({"software": "s", "routing": {"shares": "k.csv"}})");
    folder_.write("plans/k.csv", "k");
    folder_.write("clusters/c.json", R"({"device": {"value": "h100"}})");
    folder_.write("software/s.json", "s");
    folder_.write("software/pytorch.json", "p");
  }

  std::string key(const std::string& config, std::uint64_t seed = 1,
                  const std::string& version = "1") {
    FileHashes files;
    const auto content = run_content(Json::parse(config), folder_.path(""), files);
    EXPECT_TRUE(content) << texts(content.error());
    return content ? run_key(*content, seed, version) : "";
  }
  std::string fault(const std::string& config) {
    FileHashes files;
    const auto content = run_content(Json::parse(config), folder_.path(""), files);
    return content ? "" : texts(content.error());
  }
  [[nodiscard]] std::string recorded(const std::string& file) const {
    return R"({"training": {"trace": ")" + folder_.path(file) + R"("}, "x": 1})";
  }

  const std::string synth_ =
      R"({"training": {"synth": {"model": "m", "plan": "p", "cluster": "c"}}})";
  Folder folder_;
};

// XXH3-128 of no bytes, as the library's own tests have it.
TEST_F(RunKey, IsTheKnownHash) {
  EXPECT_EQ(hash_text(""), "99aa06d3014798d86001c324468d497f");
}

// What reads the folder skips them, too.
TEST_F(RunKey, LeavesHiddenFilesOfAFolderOut) {
  std::filesystem::create_directory(folder_.path("ranks"));
  folder_.write("ranks/rank0.json", "trace");
  const std::string before = key(recorded("ranks"));
  folder_.write("ranks/._rank0.json", "of an archive");
  EXPECT_EQ(key(recorded("ranks")), before);
  folder_.write("ranks/rank1.json", "trace");
  EXPECT_NE(key(recorded("ranks")), before);
}

TEST_F(RunKey, IsTheSameWhereverTheTraceLiesAndHoweverTheConfigIsWritten) {
  folder_.write("b.btr", "trace");
  EXPECT_EQ(key(recorded("a.btr")), key(recorded("b.btr")));
  const std::string turned =
      R"({ "x": 1, "training": {"trace": ")" + folder_.path("a.btr") + R"("}, "seed": 9})";
  EXPECT_EQ(key(recorded("a.btr")), key(turned));  // the seed is given apart
}

TEST_F(RunKey, ChangesWithContentSeedAndVersion) {
  const std::string config = recorded("a.btr");
  const std::string before = key(config);
  EXPECT_NE(key(config, 2), before);
  EXPECT_NE(key(config, 1, "2"), before);
  folder_.write("a.btr", "tracf");
  EXPECT_NE(key(config), before);
}

TEST_F(RunKey, AFolderIsItsNamesAndContents) {
  std::filesystem::create_directory(folder_.path("job"));
  folder_.write("job/0.btr", "x");
  const std::string before = key(recorded("job"));
  folder_.write("job/1.btr", "");
  EXPECT_NE(key(recorded("job")), before);
  std::filesystem::rename(folder_.path("job/1.btr"), folder_.path("job/2.btr"));
  const std::string second = key(recorded("job"));
  std::filesystem::remove(folder_.path("job/2.btr"));
  EXPECT_NE(second, key(recorded("job")));
  EXPECT_EQ(key(recorded("job")), before);
}

TEST_F(RunKey, ChangesWithEveryFileThatTheConfigLeadsTo) {
  std::string last = key(synth_);
  for (const char* file : {"models/m.json", "plans/p.json", "plans/k.csv", "clusters/c.json",
                           "software/s.json", "devices/h100.json", "efficiency/h100.json"}) {
    std::ofstream(folder_.path(file), std::ios::app) << " ";
    const std::string now = key(synth_);
    EXPECT_NE(now, last) << file;
    last = now;
  }
}

TEST_F(RunKey, DoesNotChangeWithOtherFiles) {
  const std::string before = key(synth_);
  folder_.write("models/other.json", "o");
  folder_.write("devices/other.json", "o");
  EXPECT_EQ(key(synth_), before);
}

// The recorded GPU's name is looked for in all of them.
TEST_F(RunKey, ATraceWithoutADeviceDependsOnAllDevices) {
  const std::string before = key(recorded("a.btr"));
  folder_.write("devices/other.json", "o");
  EXPECT_NE(key(recorded("a.btr")), before);
}

TEST_F(RunKey, NamesWhatIsNotThere) {
  EXPECT_THAT(fault(R"({"training": {"synth": {"model": "n", "plan": "p", "cluster": "c"}}})"),
              HasSubstr("/training/synth/model: unknown model \"n\""));
  EXPECT_THAT(fault(recorded("none")), HasSubstr("/training/trace: there is no file or folder"));
}

TEST_F(RunKey, AFileIsReadOnce) {
  FileHashes files;
  const auto before = files.hash(folder_.path("a.btr"));
  folder_.write("a.btr", "changed");
  EXPECT_EQ(*files.hash(folder_.path("a.btr")), *before);
}

}  // namespace
}  // namespace bubblesim::sweep
