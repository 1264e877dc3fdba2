// Every recorded job of the data folder: `inspect`, `inspect --replay` and `run exclusive` mean the
// same iterations, and what the job is said to hang on adds up.
//
// As a program of its own it prints the figures: `conformance_recorded_jobs --table DATA_DIR
// [TSV_FILE]` (scripts/check-recorded-jobs).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/run/load_trace.hpp"
#include "tests/conformance/recorded_jobs/job_figures.hpp"
#include "tests/conformance/recorded_jobs/recorded_cases.hpp"
#include "tests/folders.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/trace.hpp"

namespace bubblesim::testing {
namespace {

using namespace std::chrono_literals;

// A recording with more idle time before its first mark.
std::optional<TraceTime> first_mark(const traces::RankTrace& rank) {
  std::optional<TraceTime> first;
  for (const traces::Marker& marker : rank.markers) {
    if (marker.kind != traces::MarkerKind::kIteration) continue;
    first = std::min(first.value_or(marker.start), marker.start);
  }
  return first;
}

// The end of the longest span without anything before `mark`.
std::optional<TraceTime> idle_end(const traces::RankTrace& rank, TraceTime mark) {
  std::vector<std::pair<TraceTime, TraceTime>> spans{{mark, mark}};
  for (const auto& op : rank.device_ops) spans.emplace_back(op.start, op.end());
  for (const auto& call : rank.host_calls) spans.emplace_back(call.start, call.end());
  std::sort(spans.begin(), spans.end());
  std::optional<TraceTime> end;
  Duration longest{};
  TraceTime busy_until = spans.front().second;
  for (const auto& [start, stop] : spans) {
    if (start > mark) break;
    if (start - busy_until > longest) {
      longest = start - busy_until;
      end = start;
    }
    busy_until = std::max(busy_until, stop);
  }
  return end;
}

void move_all_before(traces::RankTrace& rank, TraceTime end, Duration by) {
  const auto move = [&](TraceTime& at) {
    if (at < end) at -= by;
  };
  for (auto& call : rank.host_calls) move(call.start);
  for (auto& op : rank.device_ops) move(op.start);
  for (auto& marker : rank.markers) move(marker.start);
  for (auto& sample : rank.memory) move(sample.at);
  for (auto& stall : rank.stalls) move(stall.start);
  for (auto& clock : rank.clocks) move(clock.at);
}

/// Adds idle time of length `more` to the beginning of a rank's recording:
///   - the longest span before its first iteration marker in which neither the device nor a
///     recorded call is at work, if any, grows by `more`: the records before it become earlier;
///   - a cudaGetDevice call is inserted `more` before the first record, on the thread of the first
///     call; not for a rank without calls.
void add_idle_at_begin(traces::RankTrace& rank, Duration more) {
  const auto mark = first_mark(rank);
  const auto end = mark ? idle_end(rank, *mark) : std::nullopt;
  if (end) move_all_before(rank, *end, more);
  if (rank.host_calls.empty()) return;
  traces::HostCall call;
  call.start = std::min(rank.host_calls.front().start, rank.device_ops.front().start) - more;
  call.duration = Duration{1'000};
  call.name = rank.names.intern("cudaGetDevice");
  call.thread = rank.host_calls.front().thread;
  rank.host_calls.insert(rank.host_calls.begin(), call);
  for (auto& op : rank.device_ops) {
    if (op.launch != traces::kNone) ++op.launch;
  }
}

// Figures of a larger job, twice, take tens of seconds under sanitizers.
constexpr std::uintmax_t kLargestIdleJob = 1'000'000;

/// A rule that does not hold for a job, and why it cannot.
struct Exception {
  std::string job;
  Rule rule;
  const char* cause;
};

const std::array kExceptions{
    Exception{"AMD-AGI+TraceLens/tests/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
              Rule::kBusy, "one iteration, of which the host's time is as long as the device's"},
    Exception{"facebookresearch+HolisticTraceAnalysis/tests/data/rank_non_gpu/rank_non_gpu.json.gz",
              Rule::kReadable, "a rank that was profiled without a GPU: nothing to repeat"},
};

class RecordedJobs : public RecordedJobTest {
 protected:
  static std::vector<Exception> exceptions() {
    std::vector<Exception> found;
    std::copy_if(kExceptions.begin(), kExceptions.end(), std::back_inserter(found),
                 [](const Exception& exception) { return exception.job == GetParam().name; });
    return found;
  }
};

TEST_P(RecordedJobs, says_the_same_whichever_way_it_is_asked) {
  const std::vector<BrokenRule> broken = broken_rules(figures_of(GetParam()));
  const std::vector<Exception> excepted = exceptions();
  for (const BrokenRule& rule : broken) {
    EXPECT_TRUE(std::any_of(excepted.begin(), excepted.end(), [&](const Exception& exception) {
      return exception.rule == rule.rule;
    })) << rule.text;
  }
  for (const Exception& exception : excepted) {
    EXPECT_TRUE(std::any_of(broken.begin(), broken.end(),
                            [&](const BrokenRule& rule) { return exception.rule == rule.rule; }))
        << "holds now, and is excepted no more: " << exception.cause;
  }
}

class RecordedIdle : public RecordedJobTest {};

TEST_P(RecordedIdle, before_the_first_mark_changes_nothing) {
  auto trace = run::load_trace(GetParam().paths);
  if (!trace) GTEST_SKIP() << trace.error().text();
  for (auto& rank : trace->job.ranks) add_idle_at_begin(rank, 1s);
  const TempFolder folder;
  const std::string path = folder.path("job.btr");
  const auto written = traces::format::write_job(path, trace->job);
  ASSERT_TRUE(written) << written.error().text();
  const auto expected = figures_of(GetParam());
  const auto figures = figures_of({GetParam().name, {path}});
  ASSERT_TRUE(expected && figures);
  expect_same(*figures, *expected);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordedJobs);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordedIdle);
INSTANTIATE_TEST_SUITE_P(data, RecordedIdle, ::testing::ValuesIn(jobs_up_to(kLargestIdleJob)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(data, RecordedJobs,
                         ::testing::ValuesIn(validation::every_job(kDataFolder)), case_name);

}  // namespace

int print_table(const std::string& data_folder, const char* tsv_file) {
  if (!validation::has_data(data_folder)) {
    std::fprintf(stderr, "%s: found no INDEX.tsv in it, expected the data folder\n",
                 data_folder.c_str());
    return 2;
  }
  const std::vector<JobRow> rows = rows_of(data_folder);
  std::fputs(markdown(rows).c_str(), stdout);
  if (tsv_file != nullptr) std::ofstream(tsv_file) << tsv(rows);
  return 0;
}

}  // namespace bubblesim::testing

int main(int argc, char** argv) {
  if (argc >= 3 && argc <= 4 && std::string_view(argv[1]) == "--table") {
    return bubblesim::testing::print_table(argv[2], argc == 4 ? argv[3] : nullptr);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
