// configs/schema is what the declarations of the readers say, and an independent validator agrees
// with the readers by it: it accepts what they accept, and refuses what is plainly broken.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/builtin.hpp"
#include "sim/app/schema_kinds.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "tests/temp_folder.hpp"

namespace bubblesim::schema_test {
namespace {

namespace {

// Files like a given one: each key left out, unknown keys added, and each value replaced by
// others, some of which readers accept.

/// By key: what files say there, as compact JSON.
using KnownValues = std::map<std::string, std::set<std::string>>;

/// A key as JSON pointers have it.
[[nodiscard]] std::string escaped(const std::string& key);

constexpr std::size_t kMostOthers = 6;  // values that other files have for a key

class Maker {
 public:
  Maker(const Json& file, const KnownValues& known) : file_(file), known_(known) {}

  void visit(const Json& at, const std::string& pointer) {
    if (at.is_object()) add(pointer + "/no_such_key", 1);
    for (const auto& [key, value] : at.items()) {
      const std::string inner = pointer + "/" + escaped(key);
      if (at.is_object()) {
        leave_out(pointer, key);
        replace(key, inner);
      }
      if (value.is_structured()) visit(value, inner);
    }
  }

  std::vector<Json> take() { return std::move(made_); }

 private:
  void add(const std::string& pointer, const Json& value) {
    made_.push_back(file_);
    made_.back()[Json::json_pointer(pointer)] = value;
  }
  void leave_out(const std::string& pointer, const std::string& key) {
    made_.push_back(file_);
    made_.back()[Json::json_pointer(pointer)].erase(key);
  }
  void replace(const std::string& key, const std::string& pointer) {
    for (const char* text : {"true", "-1", "1", "0.5", "1e30", "\"x\"", "\"2ms\"", "\"2GB\"",
                             "{}", "[]", "[1]", "[{}]", "null"}) {
      add(pointer, Json::parse(text));
    }
    std::size_t count = 0;
    const auto others = known_.find(key);
    if (others == known_.end()) return;
    for (const std::string& text : others->second) {
      if (++count > kMostOthers) return;
      add(pointer, Json::parse(text));
    }
  }

  const Json& file_;
  const KnownValues& known_;
  std::vector<Json> made_;
};

std::string escaped(const std::string& key) {
  std::string text;
  for (const char letter : key) {
    text += letter == '~' ? "~0" : letter == '/' ? "~1" : std::string(1, letter);
  }
  return text;
}

void collect_values(const Json& file, KnownValues& known) {
  for (const auto& [key, value] : file.items()) {
    if (file.is_object()) known[key].insert(value.dump());
    if (value.is_structured()) collect_values(value, known);
  }
}

/// In a fixed order; each differs from the file in one place.
std::vector<Json> variants(const Json& file, const KnownValues& known) {
  Maker maker(file, known);
  maker.visit(file, "");
  return maker.take();
}

}  // namespace

namespace fs = std::filesystem;
using app::SchemaKind;

constexpr std::size_t kMostVariants = 2000;  // of each kind, spread evenly; bounds the time

const std::string kConfigs = std::string(BUBBLESIM_SOURCE_DIR) + "/configs/";

std::vector<Json> files_of(const SchemaKind& kind) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kConfigs + kind.folder)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Json> files;
  for (const fs::path& path : paths) files.push_back(Json::parse(*read_text_file(path)));
  return files;
}

std::string schema_file(const SchemaKind& kind) {
  return kConfigs + "schema/" + kind.name + ".schema.json";
}

Errors faults(const SchemaKind& kind, const Json& file) {
  const auto document = JsonDocument::parse(file.dump(), "file.json");
  return document ? kind.read(*document) : document.error();
}

class SchemaOfKind : public ::testing::TestWithParam<std::string> {
 protected:
  SchemaOfKind() {
    for (const SchemaKind& kind : app::schema_kinds(policies_)) {
      if (kind.name == GetParam()) kind_ = kind;
    }
  }

  static bool has_validator() {
    return std::system("python3 -c 'import jsonschema; jsonschema.Draft202012Validator' "
                       ">/dev/null 2>&1") == 0;
  }

  /// "ok" or the first fault, for each file.
  std::vector<std::string> verdicts(const std::vector<Json>& files) const {
    std::ofstream documents(folder_ / "documents");
    for (const Json& file : files) documents << file.dump() << "\n";
    documents.close();
    const std::string line = "python3 " BUBBLESIM_SOURCE_DIR
                             "/tests/conformance/schema/validate.py '" +
                             schema_file(kind_) + "' '" + (folder_ / "documents").string() +
                             "' > '" + (folder_ / "verdicts").string() + "'";
    EXPECT_EQ(std::system(line.c_str()), 0) << line;
    std::vector<std::string> out;
    std::ifstream in(folder_ / "verdicts");
    for (std::string verdict; std::getline(in, verdict);) out.push_back(verdict);
    EXPECT_EQ(out.size(), files.size());
    out.resize(files.size());
    return out;
  }

  policy::Registry policies_ = policies::builtin_policies();
  SchemaKind kind_;
  const TempFolder temp_;
  const fs::path folder_{temp_.path()};
};

TEST_P(SchemaOfKind, IsWhatTheReaderDeclares) {
  EXPECT_TRUE(*read_text_file(schema_file(kind_)) == app::schema_text(kind_, policies_))
      << schema_file(kind_) << " differs from what its reader declares now. Write it anew:\n"
      << "  bubblesim schema " << kind_.name << " --write configs/schema";
}

TEST_P(SchemaOfKind, EveryFileOfTheRepositoryPasses) {
  if (!has_validator()) GTEST_SKIP() << "needs python3-jsonschema, 4.0 or later";
  std::vector<Json> files = files_of(kind_);
  ASSERT_FALSE(files.empty());
  const std::size_t count = files.size();
  for (std::size_t i = 0; i < count; ++i) {
    files.push_back(files[i]);
    files.back()["$schema"] = "../schema/" + kind_.name + ".schema.json";
  }
  for (const std::string& verdict : verdicts(files)) EXPECT_EQ(verdict, "ok");
}

TEST_P(SchemaOfKind, WhatTheReaderAcceptsPasses) {
  if (!has_validator()) GTEST_SKIP() << "needs python3-jsonschema, 4.0 or later";
  const std::vector<Json> files = files_of(kind_);
  KnownValues known;
  for (const Json& file : files) collect_values(file, known);
  std::vector<Json> accepted;
  for (const Json& file : files) {
    const std::vector<Json> all = variants(file, known);
    const std::size_t step = all.size() * files.size() / kMostVariants + 1;
    for (std::size_t i = 0; i < all.size(); i += step) {
      if (faults(kind_, all[i]).empty()) accepted.push_back(all[i]);
    }
  }
  std::sort(accepted.begin(), accepted.end());
  accepted.erase(std::unique(accepted.begin(), accepted.end()), accepted.end());
  ASSERT_FALSE(accepted.empty());
  RecordProperty("accepted", static_cast<int>(accepted.size()));
  const auto found = verdicts(accepted);
  for (std::size_t i = 0; i < accepted.size(); ++i) EXPECT_EQ(found[i], "ok") << accepted[i].dump();
}

/// Everywhere in the file, one place at a time; policies' parameters too.
void break_everywhere(const Json& file, const Json& at, const std::string& pointer,
                      std::vector<Json>& out) {
  if (at.is_object()) {
    out.push_back(file);
    out.back()[Json::json_pointer(pointer)]["no_such_key"] = 1;
  }
  for (const auto& [key, value] : at.items()) {
    const std::string inner = pointer + "/" + escaped(key);
    out.push_back(file);
    out.back()[Json::json_pointer(inner)] = nullptr;  // no key of any file may be null
    if (value.is_number()) {
      out.push_back(file);
      out.back()[Json::json_pointer(inner)] = -1e30;  // below every range
    }
    if (value.is_structured()) break_everywhere(file, value, inner, out);
  }
}

TEST_P(SchemaOfKind, UnknownKeysWrongTypesAndNumbersBelowRangeAreRefused) {
  if (!has_validator()) GTEST_SKIP() << "needs python3-jsonschema, 4.0 or later";
  std::vector<Json> broken;
  const Json file = files_of(kind_).front();
  break_everywhere(file, file, "", broken);
  // A value of an axis may be anything, and a base needs its axes: both are read point by point.
  if (kind_.name == "sweep" || kind_.name == "advise") {
    std::erase_if(broken, [this](const Json& document) { return faults(kind_, document).empty(); });
    ASSERT_GT(broken.size(), 10U);
  }
  const auto found = verdicts(broken);
  for (std::size_t i = 0; i < broken.size(); ++i) EXPECT_NE(found[i], "ok") << broken[i].dump();
}

INSTANTIATE_TEST_SUITE_P(Kinds, SchemaOfKind,
                         ::testing::Values("run", "sweep", "advise", "device", "cluster", "model",
                                           "plan", "software", "engine", "efficiency"),
                         [](const auto& tested) { return tested.param; });

TEST(SchemaKinds, AllAreTested) {
  const policy::Registry registry = policies::builtin_policies();
  std::vector<std::string> names;
  for (const SchemaKind& kind : app::schema_kinds(registry)) names.push_back(kind.name);
  EXPECT_THAT(names, ::testing::ElementsAre("run", "sweep", "advise", "device", "cluster", "model",
                                            "plan", "software", "engine", "efficiency"));
}

}  // namespace
}  // namespace bubblesim::schema_test
