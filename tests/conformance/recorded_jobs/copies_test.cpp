// Files that say the same import the same, byte for byte of the .btr file: laid out otherwise,
// compressed otherwise, with the events in another order. A generated job, the project's samples,
// and the recorded jobs of the data folder.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string_view>
#include <utility>

#include "sim/run/load_trace.hpp"
#include "tests/conformance/recorded_jobs/generated_job.hpp"
#include "tests/conformance/recorded_jobs/recorded_cases.hpp"
#include "tests/unit/traces/import/gzip_samples.hpp"
#include "tests/unit/traces/import/white_space.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/import/kineto_counters.hpp"

namespace bubblesim::testing {
namespace {

namespace fs = std::filesystem;

// Of the files of one job, compressed: under sanitizers, five imports of more take seconds.
constexpr std::uintmax_t kLargestCopiedJob = 650'000;

bool is_blank(char letter) {
  return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
}

std::size_t next_token(std::string_view json, std::size_t at) {
  while (at < json.size() && is_blank(json[at])) ++at;
  return at;
}

/// The elements of the array that begins at `open`, and where it ends.
struct Elements {
  std::vector<std::string_view> texts;
  std::size_t end = 0;  ///< of its closing bracket
};

Elements elements_of(std::string_view json, std::size_t open) {
  Elements elements;
  std::size_t depth = 0;
  std::size_t begin = next_token(json, open + 1);
  const auto add = [&](std::size_t end) {
    while (end > begin && is_blank(json[end - 1])) --end;
    if (end > begin) elements.texts.push_back(json.substr(begin, end - begin));
  };
  for (std::size_t at = begin; at < json.size(); ++at) {
    const char letter = json[at];
    if (letter == '"') {
      at = traces::sample::string_end(json, at) - 1;
    } else if (letter == '{' || letter == '[') {
      ++depth;
    } else if (letter == ',' && depth == 0) {
      add(at);
      begin = next_token(json, at + 1);
    } else if (letter == '}' || letter == ']') {
      if (depth == 0) {
        add(at);
        elements.end = at;
        return elements;
      }
      --depth;
    }
  }
  elements.end = json.size();
  return elements;
}

// Where the list of events begins.
std::size_t events_begin(std::string_view json) {
  const std::size_t key = json.find("\"traceEvents\"");
  return json.find('[', key == std::string_view::npos ? 0 : key);
}

/// The same file with the elements of "traceEvents", or of the bare array that the file consists
/// of, in an order drawn from `seed`.
std::string shuffled_events(std::string_view json, std::uint64_t seed) {
  const std::size_t open = events_begin(json);
  Elements elements = elements_of(json, open);
  std::mt19937_64 random(seed);
  // std::shuffle's order is not the same in every library.
  for (std::size_t i = elements.texts.size(); i > 1; --i) {
    std::swap(elements.texts[i - 1], elements.texts[random() % i]);
  }
  std::string out(json.substr(0, open + 1));
  for (std::size_t i = 0; i < elements.texts.size(); ++i) {
    if (i > 0) out += ",\n";
    out += elements.texts[i];
  }
  return out.append(json.substr(elements.end));
}

/// The bytes of a file, unpacked if it is gzip. Empty: it cannot be read.
std::string text_of(const std::string& path) {
  std::string text;
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (file == nullptr) return text;
  std::array<char, 1 << 16> block{};
  for (int got = 0; (got = gzread(file, block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  gzclose(file);
  return text;
}

/// A file of a job: its name, and what it holds.
struct NamedText {
  std::string name;
  std::string text;
};

/// The .btr file of a job; of one that is refused, why.
using BtrBytes = std::string;

Result<traces::JobTrace> imported(const std::vector<NamedText>& files, const fs::path& folder) {
  std::vector<std::string> paths;
  for (const NamedText& file : files) {
    paths.push_back((folder / file.name).string());
    std::ofstream(paths.back(), std::ios::binary) << file.text;
  }
  BUBBLESIM_ASSIGN_OR_RETURN(run::LoadedTrace loaded, run::load_trace(paths));
  return std::move(loaded.job);
}

BtrBytes btr_of(const Result<traces::JobTrace>& job, const fs::path& folder) {
  if (!job) return job.error().text();
  const std::string path = (folder / "job.btr").string();
  const auto written = traces::format::write_job(path, *job);
  EXPECT_TRUE(written) << written.error().text();
  return text_of(path);
}

std::vector<NamedText> copies(const std::vector<NamedText>& files,
                              const std::function<std::string(const std::string&)>& copy) {
  std::vector<NamedText> made;
  for (const NamedText& file : files) made.push_back({file.name, copy(file.text)});
  return made;
}

void expect_copies_import_equal(const std::vector<NamedText>& files) {
  const TempFolder folder;
  const auto import = [&](const auto& copy) {
    return btr_of(imported(copies(files, copy), folder.path()), folder.path());
  };
  const BtrBytes expected = import([](const std::string& text) { return text; });
  for (const traces::sample::Layout& layout : traces::sample::layouts()) {
    EXPECT_TRUE(expected == import([&](const std::string& text) {
      return traces::sample::laid_out(text, layout);
    })) << layout.name;
  }
  for (const int level : {1, 9}) {
    EXPECT_TRUE(expected == import([level](const std::string& text) {
      return traces::sample::gzip(text, nullptr, level);
    })) << "compressed, level " << level;
  }
}

// How many operations stood out of order is all that a shuffled file may say besides.
void drop_order_counters(traces::JobTrace& job) {
  for (traces::RankTrace& rank : job.ranks) {
    CounterSet kept;
    for (const auto& [name, entry] : rank.counters) {
      if (name != traces::kineto::kUnsorted.name) kept.add(name, entry);
    }
    rank.counters = std::move(kept);
  }
}

void expect_order_of_events_does_not_matter(const std::vector<NamedText>& files) {
  const TempFolder folder;
  const auto import = [&](const auto& copy) {
    auto job = imported(copies(files, copy), folder.path());
    if (job) drop_order_counters(*job);
    return btr_of(job, folder.path());
  };
  const BtrBytes expected = import([](const std::string& text) { return text; });
  for (const std::uint64_t seed : {1, 2}) {
    EXPECT_TRUE(expected == import([seed](const std::string& text) {
      return shuffled_events(text, seed);
    })) << "seed " << seed;
  }
}

std::vector<NamedText> generated() {
  std::vector<NamedText> files;
  GeneratedJob job;
  job.warmups = 1;
  job.before_window = 2;
  for (std::string& text : kineto_files(job)) {
    files.push_back({"rank" + std::to_string(files.size()) + ".json", std::move(text)});
  }
  return files;
}

/// Jobs of traces/samples.
std::vector<std::vector<NamedText>> samples() {
  const std::string folder = BUBBLESIM_SOURCE_DIR "/traces/samples/";
  std::vector<std::vector<NamedText>> jobs{
      {{"inference.json.gz", text_of(folder + "inference.json.gz")}}, {}};
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = "rank" + std::to_string(rank) + ".json.gz";
    jobs[1].push_back({name, text_of(folder + "training/" + name)});
  }
  return jobs;
}

TEST(Copies, of_a_generated_job_import_equal) { expect_copies_import_equal(generated()); }
TEST(Copies, of_a_generated_job_may_be_shuffled) {
  expect_order_of_events_does_not_matter(generated());
}
TEST(Copies, of_the_samples_import_equal) {
  for (const auto& job : samples()) expect_copies_import_equal(job);
}
TEST(Copies, of_the_samples_may_be_shuffled) {
  for (const auto& job : samples()) expect_order_of_events_does_not_matter(job);
}

class RecordedCopies : public RecordedJobTest {
 protected:
  void SetUp() override {
    RecordedJobTest::SetUp();
    if (IsSkipped()) return;
    if (GetParam().paths.front().find(".json") == std::string::npos) {
      GTEST_SKIP() << GetParam().name << " is no JSON";
    }
    for (const std::string& path : GetParam().paths) {
      files_.push_back({fs::path(path).filename().string(), text_of(path)});
    }
  }
  std::vector<NamedText> files_;
};

TEST_P(RecordedCopies, import_equal) { expect_copies_import_equal(files_); }
TEST_P(RecordedCopies, may_be_shuffled) { expect_order_of_events_does_not_matter(files_); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordedCopies);
INSTANTIATE_TEST_SUITE_P(data, RecordedCopies, ::testing::ValuesIn(jobs_up_to(kLargestCopiedJob)),
                         case_name);

}  // namespace
}  // namespace bubblesim::testing
