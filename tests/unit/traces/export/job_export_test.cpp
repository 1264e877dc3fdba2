#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "sim/base/json.hpp"
#include "sim/base/random.hpp"
#include "traces/export/chrome_trace.hpp"
#include "traces/export/job_export.hpp"
#include "traces/export/json_text.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {
namespace {

/// One launch of one kernel, inside an iteration, at a clock far from zero.
JobTrace one_launch() {
  const TraceTime start{Duration{1'700'000'000'000'000'000}};
  RankTrace rank;
  rank.rank = 3;
  rank.device.name = "H100";
  rank.threads = {{4711, "python"}};
  rank.streams = {{7, 0}};
  HostCall call;
  call.start = start + Duration{100};
  call.duration = Duration{50};
  call.name = rank.names.intern("cudaLaunchKernel");
  rank.host_calls = {call};
  DeviceOp op;
  op.start = start + Duration{200};
  op.duration = Duration{1000};
  op.name = rank.names.intern("gemm");
  op.launch = 0;
  rank.device_ops = {op};
  Marker marker;
  marker.start = start;
  marker.duration = Duration{2000};
  marker.name = rank.names.intern("iteration 0");
  marker.kind = MarkerKind::kIteration;
  rank.markers = {marker};
  rank.memory = {{start + Duration{300}, 10, 20}};
  return {{rank, rank}};
}

TEST(JobToChrome, TimesCountFromTheFirstRecord) {
  const JobTrace job = one_launch();
  const ChromeTrace trace = job_to_chrome(job);
  EXPECT_EQ(trace.notes[0].second, "1700000000000000000");
  ASSERT_EQ(trace.slices.size(), 6U);  // two ranks of a call, a marker, a kernel
  EXPECT_EQ(trace.slices[0].start_ns, 100);
  EXPECT_EQ(trace.slices[1].name, "iteration 0");
  EXPECT_EQ(trace.slices[1].start_ns, 0);
  EXPECT_EQ(trace.slices[2].duration_ns, 1000);
}

TEST(JobToChrome, EveryThreadAndStreamHasATrack) {
  const JobTrace job = one_launch();
  const ChromeTrace trace = job_to_chrome(job);
  EXPECT_EQ(trace.processes[0], "rank 3, H100");
  ASSERT_EQ(trace.tracks.size(), 4U);
  EXPECT_EQ(trace.tracks[0].name, "python, thread 4711");
  EXPECT_EQ(trace.tracks[1].name, "stream 7");
  EXPECT_EQ(trace.slices[5].track, 3U);  // the second rank's kernel
  EXPECT_EQ(trace.counters[1].name, "reserved_bytes");
  EXPECT_EQ(trace.counters[1].samples[0].value, 20);
}

TEST(JobToChrome, LaunchAndKernelShareAFlowOfTheirRank) {
  const JobTrace job = one_launch();
  const ChromeTrace trace = job_to_chrome(job);
  EXPECT_EQ(trace.slices[0].flow, trace.slices[2].flow);
  EXPECT_EQ(trace.slices[3].flow, trace.slices[5].flow);
  EXPECT_NE(trace.slices[0].flow, trace.slices[3].flow);
  EXPECT_EQ(trace.slices[1].flow, kNoFlow);
}

TEST(JobToChrome, StallsAreSlicesOfTheirThread) {
  JobTrace job = one_launch();
  const TraceTime start = job.ranks[0].host_calls[0].start;
  job.ranks[0].stalls = {{start + Duration{10}, Duration{20}, ThreadId{0}, StallKind::kQueueFull}};
  const ChromeTrace trace = job_to_chrome(job);
  ASSERT_EQ(trace.slices.size(), 7U);
  EXPECT_EQ(trace.slices[1].name, "launch queue full");
  EXPECT_EQ(trace.slices[1].category, "stall");
  EXPECT_EQ(trace.slices[1].track, 0U);
  EXPECT_EQ(trace.slices[1].start_ns, 110);
  EXPECT_EQ(trace.slices[1].duration_ns, 20);
}

TEST(JobToChrome, EmptyJobIsAnEmptyTrace) { EXPECT_TRUE(job_to_chrome(JobTrace{}).slices.empty()); }

JobTrace one_collective() {
  RankTrace rank;
  rank.rank = 3;
  rank.threads = {{4711, "python"}};
  rank.streams = {{7, 0, 1}};
  HostCall call;
  call.start = TraceTime{Duration{1'700'000'000'000'000'001}};
  call.duration = Duration{50};
  call.name = rank.names.intern("cudaLaunchKernel");
  call.kind = HostCallKind::kLaunchKernel;
  call.correlation = 9;
  rank.host_calls = {call};
  DeviceOp op;
  op.start = call.start + Duration{100};
  op.duration = Duration{1};
  op.name = rank.names.intern("gemm<2, \"x\">");
  op.shape = rank.shapes.intern(LaunchShape{{4, 5, 6}, {32, 2, 1}, 40, 1024});
  op.correlation = 9;
  op.launch = 0;
  op.kind = DeviceOpKind::kCollective;
  op.collective = 0;
  rank.device_ops = {op};
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.bytes = 4096;
  collective.group = rank.names.intern("dp");
  collective.group_size = 8;
  rank.collectives = {collective};
  return {{rank}};
}

std::vector<std::string> lines_of(const JobTrace& job) {
  std::ostringstream out;
  write_job_csv(out, job);
  std::istringstream in(out.str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(JobToCsv, ACallAndAnOperationAreARowEach) {
  const auto lines = lines_of(one_collective());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1],
            "3,host_call,0,launch_kernel,cudaLaunchKernel,1700000000000000001,50,4711,,,9,"
            ",,,,,,,,,,,,,,,");
  EXPECT_EQ(lines[2],
            "3,device_op,0,collective,\"gemm<2, \"\"x\"\">\",1700000000000000101,1,,7,1,9,0,"
            "4,5,6,32,2,1,40,1024,4096,,all_reduce,dp,8,0,");
}

TEST(JobToCsv, RowsHaveAsManyCellsAsTheHeader) {
  JobTrace job = one_collective();
  job.ranks[0].device_ops[0].name = job.ranks[0].names.intern("plain");
  for (const std::string& line : lines_of(job)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 26) << line;
  }
}

TEST(JobToCsv, AFileThatCannotBeWrittenIsAFault) {
  EXPECT_FALSE(write_job_csv_file("no/such/folder/job.csv", one_collective()));
}

Json written(const ChromeTrace& trace) {
  std::ostringstream out;
  write_chrome_trace(out, trace);
  return Json::parse(out.str());
}

std::vector<Json> events_of(const Json& json, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

ChromeTrace two_tracks() {
  ChromeTrace trace;
  trace.processes = {"GPU 0", "GPU 1"};
  trace.tracks = {{0, "training", LaneShape::kFlat}, {1, "filler", LaneShape::kFlat}};
  return trace;
}

class ChromeTraceTest : public ::testing::Test {
 protected:
  ChromeTrace trace = two_tracks();
};

TEST_F(ChromeTraceTest, NothingIsAValidFile) {
  const Json json = written({});
  EXPECT_EQ(json["displayTimeUnit"], "ns");
  EXPECT_TRUE(json["traceEvents"].empty());
}

TEST_F(ChromeTraceTest, TimesAreMicrosecondsWithEveryNanosecond) {
  trace.slices = {{1, "gemm", "kernel", 1'234'567, 2'001, kNoFlow}};
  std::ostringstream out;
  write_chrome_trace(out, trace);
  EXPECT_NE(out.str().find(R"("ts":1234.567,"dur":2.001,"name":"gemm","cat":"kernel")"),
            std::string::npos);
}

TEST_F(ChromeTraceTest, ProcessesAndLanesAreNamedInOrder) {
  trace.slices = {{0, "a", "k", 0, 10, kNoFlow}, {0, "b", "k", 5, 10, kNoFlow}};
  std::map<std::string, Json> names;  // kind, process, thread
  for (const Json& event : events_of(written(trace), "M")) {
    const std::string thread = event.contains("tid") ? event["tid"].dump() : "-";
    names[event["name"].get<std::string>() + " " + event["pid"].dump() + " " + thread] =
        event["args"].front();
  }
  EXPECT_EQ(names["process_name 1 -"], "GPU 0");
  EXPECT_EQ(names["process_sort_index 2 -"], 1);
  EXPECT_EQ(names["thread_name 1 1"], "training");
  EXPECT_EQ(names["thread_name 1 2"], "training (2)");
  EXPECT_EQ(names["thread_sort_index 1 2"], 2);
  EXPECT_EQ(names["thread_name 2 1"], "filler");
}

TEST_F(ChromeTraceTest, CountersAreWrittenAndWhatJsonCannotHoldIsCounted) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  trace.counters = {{1, "queue_requests", {{0, 2.5}, {1500, kInfinity}, {2000, 3}}}};
  std::ostringstream out;
  const ChromeStats stats = write_chrome_trace(out, trace);
  EXPECT_EQ(stats.samples, 2U);
  EXPECT_EQ(stats.dropped_samples, 1U);
  const auto events = events_of(Json::parse(out.str()), "C");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1]["args"]["value"], 3);
  EXPECT_EQ(events[1]["ts"], 2.0);
  EXPECT_EQ(events[1]["pid"], 2);
}

// Request 7 goes from process 2 over process 1 to process 2; request 8 has one slice, no arrow.
TEST_F(ChromeTraceTest, SlicesOfAFlowAreJoinedInOrderOfStart) {
  trace.flow_name = "request";
  trace.slices = {{1, "end", "k", 40, 5, 7},
                  {0, "run", "k", 20, 5, 7},
                  {1, "arrive", "k", 0, 5, 7},
                  {0, "other", "k", 30, 5, 8}};
  std::ostringstream out;
  EXPECT_EQ(write_chrome_trace(out, trace).arrows, 2U);
  const Json json = Json::parse(out.str());
  const auto begins = events_of(json, "s");
  ASSERT_EQ(begins.size(), 1U);
  EXPECT_EQ(begins[0]["ts"], 0);
  EXPECT_EQ(begins[0]["pid"], 2);
  EXPECT_EQ(events_of(json, "t").at(0)["ts"], 0.02);
  const auto ends = events_of(json, "f");
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0]["ts"], 0.04);
  EXPECT_EQ(ends[0]["id"], 7);
  EXPECT_EQ(ends[0]["bp"], "e");
}

TEST_F(ChromeTraceTest, NegativeDurationsAreClampedAndCounted) {
  trace.slices = {{0, "a", "k", 10, -5, kNoFlow}};
  std::ostringstream out;
  EXPECT_EQ(write_chrome_trace(out, trace).clamped_slices, 1U);
  EXPECT_EQ(events_of(Json::parse(out.str()), "X").at(0)["dur"], 0);
}

TEST_F(ChromeTraceTest, ExtremeTimesDoNotOverflow) {
  constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
  trace.slices = {{0, "a", "k", kLast, kLast, kNoFlow}, {0, "b", "k", -kLast, kLast, kNoFlow}};
  EXPECT_EQ(events_of(written(trace), "X").size(), 2U);
}

TEST_F(ChromeTraceTest, NamesAreEscaped) {
  trace.slices = {{0, "void f<\"x\\y\">(\n\x01\xFF)", "k", 0, 1, kNoFlow}};
  trace.notes = {{"ori\"gin", "a\tb"}};
  const Json json = written(trace);
  EXPECT_EQ(events_of(json, "X").at(0)["name"], "void f<\"x\\y\">(\n\x01\xEF\xBF\xBD)");
  EXPECT_EQ(json["otherData"]["ori\"gin"], "a\tb");
}

// Its kernels would be taken for a recording's; cut within the events, it still says what it is.
TEST_F(ChromeTraceTest, ImportRefusesIt) {
  trace.slices = {{0, "a", "kernel", 0, 10, kNoFlow}, {0, "b", "kernel", 10, 10, kNoFlow}};
  trace.notes = {{"origin_ns", "5"}};
  std::ostringstream out;
  write_chrome_trace(out, trace);
  const std::string whole = out.str();
  for (const std::string& text : {whole, whole.substr(0, whole.find("\"b\""))}) {
    const auto imported = import_kineto_text(text, "timeline.json");
    ASSERT_FALSE(imported);
    EXPECT_EQ(imported.error().message.find("is a timeline that bubblesim wrote"), 0U);
  }
}

/// Whole nanoseconds of a time as viewers read it.
std::int64_t ns_of(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

TEST_F(ChromeTraceTest, RandomSlicesNeverPartlyOverlapOnAThread) {
  RandomStream random(5, "slices");
  trace.tracks[1].shape = LaneShape::kNested;
  for (int i = 0; i < 1500; ++i) {
    const auto start = static_cast<std::int64_t>(random.uniform() * 1'000'000);
    const auto length = static_cast<std::int64_t>(random.exponential(3000));
    trace.slices.push_back({i % 2 == 0 ? 0U : 1U, "k", "k", start, length, kNoFlow});
  }
  std::map<std::pair<int, int>, std::vector<LaneSpan>> threads;
  const auto slices = events_of(written(trace), "X");
  ASSERT_EQ(slices.size(), 1500U);
  for (const Json& slice : slices) {
    const std::int64_t start = ns_of(slice["ts"]);
    threads[{slice["pid"], slice["tid"]}].push_back({start, start + ns_of(slice["dur"])});
  }
  for (const auto& [thread, spans] : threads) {
    for (std::size_t a = 0; a < spans.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const LaneSpan& first = spans[a].start_ns <= spans[b].start_ns ? spans[a] : spans[b];
        const LaneSpan& second = &first == &spans[a] ? spans[b] : spans[a];
        const bool disjoint = first.end_ns <= second.start_ns;
        const bool inside = second.end_ns <= first.end_ns ||
                            (first.start_ns == second.start_ns && first.end_ns <= second.end_ns);
        ASSERT_TRUE(disjoint || inside);
      }
    }
  }
}

TEST_F(ChromeTraceTest, FileThatCannotBeWrittenIsAFault) {
  EXPECT_FALSE(write_chrome_trace_file("/no/such/folder/trace.json", {}));
  const std::string path = testing::TempDir() + "bubblesim_chrome.json";
  EXPECT_TRUE(write_chrome_trace_file(path, two_tracks()));
  std::ifstream file(path);
  EXPECT_TRUE(Json::accept(file));
  std::filesystem::remove(path);
}

using Lanes = std::vector<std::uint32_t>;

//  0   10   20   30
//  [a       ]          0..20
//       [b       ]    10..30   overlaps a
//           [c   ]    20..30   may follow a
TEST(Lanes, OverlappingSpansGoToTheLowestFreeLane) {
  EXPECT_EQ(assign_lanes({{0, 20}, {10, 30}, {20, 30}}, LaneShape::kFlat), (Lanes{0, 1, 0}));
}

TEST(Lanes, SpanInsideAnotherStaysOnANestedLaneOnly) {
  const std::vector<LaneSpan> spans{{0, 20}, {5, 10}, {10, 20}};
  EXPECT_EQ(assign_lanes(spans, LaneShape::kNested), (Lanes{0, 0, 0}));
  EXPECT_EQ(assign_lanes(spans, LaneShape::kFlat), (Lanes{0, 1, 1}));
}

TEST(Lanes, OuterSpanComesFirstWhateverTheOrderOfInput) {
  EXPECT_EQ(assign_lanes({{0, 5}, {0, 20}}, LaneShape::kNested), (Lanes{0, 0}));
}

TEST(Lanes, PartialOverlapLeavesANestedLane) {
  EXPECT_EQ(assign_lanes({{0, 20}, {10, 30}}, LaneShape::kNested), (Lanes{0, 1}));
}

TEST(Lanes, SpansOfNoLengthTakeNoRoom) {
  EXPECT_EQ(assign_lanes({{5, 5}, {5, 5}, {5, 9}}, LaneShape::kNested), (Lanes{0, 0, 0}));
}

bool partly_overlap(const LaneSpan& a, const LaneSpan& b) {
  const bool disjoint = a.end_ns <= b.start_ns || b.end_ns <= a.start_ns;
  const bool a_in_b = b.start_ns <= a.start_ns && a.end_ns <= b.end_ns;
  const bool b_in_a = a.start_ns <= b.start_ns && b.end_ns <= a.end_ns;
  return !disjoint && !a_in_b && !b_in_a;
}

TEST(Lanes, RandomSpansNeverPartlyOverlapOnALane) {
  RandomStream random(3, "lanes");
  for (const LaneShape shape : {LaneShape::kFlat, LaneShape::kNested}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<LaneSpan> spans;
      for (int i = 0; i < 150; ++i) {  // dense: some need more lanes than are tried for nesting
        const auto start = static_cast<std::int64_t>(random.uniform() * 200);
        spans.push_back({start, start + static_cast<std::int64_t>(random.uniform() * 60)});
      }
      const Lanes lanes = assign_lanes(spans, shape);
      for (std::size_t a = 0; a < spans.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          ASSERT_FALSE(lanes[a] == lanes[b] && partly_overlap(spans[a], spans[b]));
        }
      }
    }
  }
}

// Staircase: each span partly overlaps its neighbours, so a hundred thousand of them would take
// as many tries each if every lane were looked at.
TEST(Lanes, ManyOverlapsStayFast) {
  std::vector<LaneSpan> spans;
  for (std::int64_t i = 0; i < 100'000; ++i) spans.push_back({i, 200'000 + i});
  EXPECT_EQ(assign_lanes(spans, LaneShape::kNested).back(), 99'999U);
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string microseconds(std::int64_t ns) {
  std::string out;
  append_microseconds(out, ns);
  return out;
}

TEST(JsonText, EveryAsciiLetterIsReadBack) {
  std::string all;
  for (char letter = 0; letter < 127; ++letter) all += letter;
  EXPECT_EQ(Json::parse(json_string(all)), all);
}

TEST(JsonText, Utf8IsKept) {
  const std::string text = "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80";
  EXPECT_EQ(Json::parse(json_string(text)), text);
}

TEST(JsonText, EachByteThatIsNotUtf8IsReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(Json::parse(json_string("a\xFF\xC3")), "a" + replaced + replaced);
  EXPECT_EQ(Json::parse(json_string("\xC0\xAF")), replaced + replaced);  // overlong "/"
  EXPECT_EQ(Json::parse(json_string("\xED\xA0\x80")), replaced + replaced + replaced);  // surrogate
  EXPECT_EQ(Json::parse(json_string("\xE2\x82")), replaced + replaced);  // cut off
}

TEST(JsonText, MicrosecondsKeepEveryNanosecond) {
  EXPECT_EQ(microseconds(0), "0.000");
  EXPECT_EQ(microseconds(1), "0.001");
  EXPECT_EQ(microseconds(1'234'567), "1234.567");
  EXPECT_EQ(microseconds(-1'500), "-1.500");
  EXPECT_EQ(microseconds(std::numeric_limits<std::int64_t>::min()), "-9223372036854775.808");
}

}  // namespace
}  // namespace bubblesim::traces
