// Files that are cut, flipped, badly escaped or hostile: never a crash, never a silent loss.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/gzip_samples.hpp"
#include "tests/unit/traces/import/invariants.hpp"
#include "tests/unit/traces/import/samples.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces {
namespace {

using sample::call, sample::file, sample::gzip, sample::kernel, sample::span;

std::string twenty_kernels() {
  std::vector<std::string> events;
  for (int i = 1; i <= 20; ++i) {
    events.push_back(call(std::to_string(100 * i) + ".125", std::to_string(i)));
    events.push_back(kernel(std::to_string(100 * i + 10) + ".250", std::to_string(i)));
  }
  return file(events, "\"distributedInfo\": {\"rank\": 0, \"world_size\": 1},");
}

TEST(KinetoRefusal, damage_behind_the_events_ends_the_file_if_little_follows) {
  const auto with_tail = [](std::size_t bytes) {
    return imported(file({call("1"), kernel("3")}, "", ", \"a\": ?" + std::string(bytes, ' ')));
  };
  for (const std::size_t bytes : {10, 100'000, 400'000}) {
    EXPECT_EQ(with_tail(bytes).counters.count("kineto_truncated"), 1U) << bytes;
  }
  const RankTrace trace = with_tail(2'000'000);
  EXPECT_EQ(trace.counters.count("kineto_truncated"), 0U);
  EXPECT_EQ(trace.counters.count("kineto_damaged_events_dropped"), 1U);
}

TEST(KinetoDamage, gzip_is_told_by_content_and_members_follow_each_other) {
  const std::string text = twenty_kernels();
  EXPECT_EQ(imported(gzip(text)).device_ops.size(), 20U);
  EXPECT_EQ(imported(gzip(text.substr(0, 999)) + gzip(text.substr(999))).device_ops.size(), 20U);
}

TEST(KinetoDamage, cut_gzip_keeps_what_unpacked) {
  const std::string packed = gzip(twenty_kernels());
  const RankTrace trace = imported(packed.substr(0, packed.size() - 20));
  EXPECT_EQ(trace.counters.count("kineto_gzip_damaged"), 1U);
  EXPECT_EQ(trace.counters.count("kineto_truncated"), 1U);
  EXPECT_GT(trace.device_ops.size(), 0U);
}

TEST(KinetoDamage, every_cut_keeps_the_events_before_it) {
  const std::string text = twenty_kernels();
  for (std::size_t percent = 0; percent < 100; ++percent) {
    const std::string cut = text.substr(0, text.size() * percent / 100);
    const auto trace = import_kineto_text(cut, "cut.json");
    const auto whole = static_cast<std::size_t>(
        std::count(cut.begin(), cut.end(), '\n'));  // one event a line, after two lines of head
    if (whole < 5) {
      EXPECT_FALSE(trace.has_value() && trace->device_ops.size() > 2);
      continue;
    }
    ASSERT_TRUE(trace.has_value()) << percent << ": " << trace.error().text();
    EXPECT_EQ(broken_promise(*trace), "");
    // Lines before the last are whole events; every second one is a kernel.
    EXPECT_GE(trace->device_ops.size(), (whole - 2) / 2);
    EXPECT_EQ(trace->counters.count("kineto_truncated"), 1U) << percent;
  }
}

TEST(KinetoDamage, text_after_the_end_is_counted) {
  const std::string array = "[" + kernel("1.5") + "]";
  for (const std::string& text : {twenty_kernels(), array}) {
    const std::size_t ops = imported(text).device_ops.size();
    EXPECT_EQ(imported(text + " \n\t").counters.count("kineto_text_after_end_dropped"), 0U);
    for (const std::string& more : {std::string("x"), std::string("}"), text}) {
      const RankTrace trace = imported(text + "\n" + more);
      EXPECT_EQ(trace.device_ops.size(), ops);
      EXPECT_EQ(trace.counters.count("kineto_text_after_end_dropped"), 1U) << more;
      EXPECT_EQ(trace.counters.count("kineto_truncated"), 0U);
    }
  }
}

TEST(KinetoDamage, a_bare_array_may_lack_its_end) {
  const RankTrace trace = imported("[" + kernel("1.5") + ",\n" + kernel("20.5", "2") + ",");
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.counters.count("kineto_array_unterminated"), 1U);
  EXPECT_EQ(trace.counters.count("kineto_truncated"), 0U);
}

TEST(KinetoDamage, bit_flips_never_crash_nor_break_a_promise) {
  const std::string text = twenty_kernels();
  for (std::size_t at = 0; at < text.size(); at += 3) {
    for (const unsigned bit : {0U, 1U, 5U, 7U}) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ (1U << bit));
      const auto trace = import_kineto_text(flipped, "flip.json");
      if (!trace) continue;
      ASSERT_EQ(broken_promise(*trace), "") << "byte " << at << " bit " << bit;
      // One flip costs at most the event it hits and its neighbour.
      ASSERT_GE(trace->device_ops.size(), 18U) << "byte " << at << " bit " << bit;
    }
  }
}

TEST(KinetoDamage, raw_control_characters_in_names_are_kept) {
  const RankTrace trace = imported(file({kernel("1", "1", "two\nlines\tand\x01more")}));
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "two\nlines\tand\x01more");
  EXPECT_EQ(trace.counters.count("kineto_names_with_control_characters"), 1U);
}

// Two times in one event: the last one counts, and the event is counted.
TEST(KinetoDamage, a_key_that_stands_twice_is_counted) {
  const std::string once = kernel("1", "1");
  for (const std::string more : {R"("ts": 30, )", R"("dur": 1, )", R"("name": "", )",
                                 R"("cat": "kernel", )", R"("ph": "X", )", R"("args": {}, )"}) {
    const RankTrace trace = imported(file({"{" + more + once.substr(1), kernel("40", "2")}));
    EXPECT_EQ(trace.counters.count("kineto_events_with_repeated_keys"), 1U) << more;
    EXPECT_EQ(trace.device_ops.size(), 2U) << more;
    EXPECT_EQ(to_ns(trace.device_ops.front().duration), 10500) << more;
  }
  EXPECT_EQ(imported(file({once})).counters.count("kineto_events_with_repeated_keys"), 0U);
}

TEST(KinetoDamage, an_argument_that_stands_twice_is_counted_for_every_kind_of_event) {
  std::string twice = kernel("1", "1");
  twice.replace(twice.find("\"args\": {"), 9, R"("args": {"stream": 99, )");
  const RankTrace trace = imported(file({twice, kernel("40", "2")}));
  EXPECT_EQ(trace.counters.count("kineto_events_with_repeated_keys"), 1U);
  ASSERT_EQ(trace.streams.size(), 1U);  // the last one counts
  for (const std::string category : {"cuda_runtime", "cuda_sync"}) {
    const std::string event =
        span(category, "call", 1, 1, "3", "1", R"("correlation": 1, "correlation": 7)");
    EXPECT_EQ(imported(file({kernel("40", "2"), event}))
                  .counters.count("kineto_events_with_repeated_keys"), 1U) << category;
  }
}

TEST(KinetoDamage, unescaped_quotes_and_backslashes_are_repaired) {
  for (const std::string name : {R"(a "quoted" name)", R"(one " quote)", R"(C:\path\)",
                                 R"("all")", R"(x", y)", R"(lambda "a": {b})", R"(\)", R"(a"})"}) {
    SCOPED_TRACE(name);
    const RankTrace trace = imported(
        file({kernel("1", "1", "before"), kernel("20", "2", name), kernel("40", "3", "after")}));
    ASSERT_EQ(trace.device_ops.size(), 3U);
    EXPECT_EQ(trace.device_ops[1].correlation, 2U);
    EXPECT_EQ(trace.names[trace.device_ops[2].name], "after");
    EXPECT_EQ(trace.counters.count("kineto_events_repaired"), 1U);
    EXPECT_EQ(trace.counters.count("kineto_damaged_events_dropped"), 0U);
  }
}

TEST(KinetoDamage, what_cannot_be_repaired_costs_one_event) {
  const RankTrace trace = imported(
      file({kernel("1", "1"), R"({"ph": "X", "cat": "kernel", "name": "k", "ts": })",
            R"({"ph": "X", "cat": "kernel", "name": "never closed, "pid")", kernel("40", "3")}));
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.counters.count("kineto_damaged_events_dropped"), 2U);
}

TEST(KinetoDamage, damage_before_the_events_does_not_lose_them) {
  const RankTrace trace = imported(file({kernel("1")}, R"("env": "a "bad" value",)"));
  EXPECT_EQ(trace.device_ops.size(), 1U);
  EXPECT_EQ(trace.counters.count("kineto_damaged_events_dropped"), 1U);
}

TEST(KinetoDamage, escapes_and_bytes_that_are_not_utf8_are_read) {
  const RankTrace trace = imported(
      file({kernel("1", "1", R"(a\"b\\c\u00e9\ud83d\ude00\/)"), kernel("20", "2", "x\xff" "y")}));
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "a\"b\\c\xc3\xa9\xf0\x9f\x98\x80/");
  EXPECT_EQ(trace.names[trace.device_ops[1].name], "x\xef\xbf\xbdy");
  EXPECT_EQ(trace.counters.count("kineto_names_not_utf8"), 1U);
}

TEST(KinetoDamage, a_name_of_a_million_characters_is_read) {
  const std::string name(1000000, 'n');
  const RankTrace trace = imported(file({kernel("1", "1", name), kernel("20", "2")}));
  ASSERT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.names[trace.device_ops[0].name].size(), 1000000U);
}

TEST(KinetoDamage, an_event_beyond_the_limit_is_dropped) {
  ImportOptions options;
  options.max_event_bytes = std::size_t{1} << 20U;
  const std::string text =
      file({kernel("1"), kernel("20", "2", std::string(5000000, 'n')), kernel("40", "3")});
  const auto trace = must(import_kineto_text(text, "t.json", options));
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_GE(trace.counters.count("kineto_damaged_events_dropped"), 1U);
}

TEST(KinetoDamage, deep_nesting_neither_overflows_nor_hangs) {
  const std::string deep(1000000, '[');
  const std::string objects = [] {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += R"({"ph":)";
    return text;
  }();
  for (const std::string& middle : {deep, objects}) {
    const auto trace = must(import_kineto_text(
        file({kernel("1"), R"({"ph": "X", "a": )" + middle, kernel("40", "3")}), "t.json"));
    EXPECT_EQ(trace.device_ops.size(), 2U);
  }
  EXPECT_FALSE(import_kineto_text(deep, "deep.json").has_value());
  EXPECT_FALSE(import_kineto_text(objects, "deep.json").has_value());
}

TEST(KinetoDamage, hostile_numbers_are_dropped_or_clamped) {
  const std::string big = "99999999999999999999999999";
  const RankTrace trace = imported(file(
      {kernel("1"), kernel(big), kernel("5", big), kernel("6", "-1"),
       span("kernel", "k", 0, 7, "9", "1", R"("stream": 7, "device": 99999999999,
            "grid": [4294967295, 4294967295, 4294967295], "block": [0, -1, 1],
            "registers per thread": 70000, "shared memory": 1e99)")},
      R"("baseTimeNanoseconds": 99999999999999999999,
         "distributedInfo": {"rank": 9, "world_size": 2},)"));
  EXPECT_EQ(trace.device_ops.size(), 3U);  // the fourth ran on another device: another rank
  EXPECT_EQ(trace.counters.count("kineto_events_without_time_dropped"), 1U);
  EXPECT_EQ(trace.counters.count("kineto_launch_shapes_missing"), 1U);
  EXPECT_EQ(trace.counters.count("kineto_metadata_unreadable"), 2U);
  EXPECT_EQ(trace.rank, 0U);
}

/// A call of another process.
std::string foreign(std::string event) {
  return event.replace(event.find("\"pid\": 100"), 10, "\"pid\": 200");
}

TEST(KinetoRefusal, processes_that_launch_under_the_same_correlation_are_to_be_split) {
  const auto trace = error_of(import_kineto_text(
      file({call("1", "11"), kernel("5", "11"), foreign(call("2", "11")), kernel("30", "11"),
            foreign(call("3", "12"))}),
      "merged.json"));
  EXPECT_EQ(trace.message,
            "holds the launches of 2 processes, which share correlation ids (11 is of pid 100 and "
            "of pid 200); split it by pid, one file a process");
}

TEST(KinetoRefusal, processes_whose_launches_cannot_be_confused_are_no_reason) {
  const RankTrace trace = imported(
      file({call("1", "11"), kernel("5", "11"), foreign(call("2", "11", "cudaMalloc")),
            foreign(call("3", "12")), kernel("30", "12")}));
  EXPECT_EQ(trace.device_ops.size(), 2U);
  EXPECT_EQ(trace.host_calls[trace.device_ops[0].launch].start, TraceTime{Duration{1000}});
  EXPECT_EQ(trace.host_calls[trace.device_ops[1].launch].start, TraceTime{Duration{3000}});
}

TEST(KinetoDamage, events_that_are_no_whole_spans_are_lost_and_counted) {
  const auto as = [](std::string event, const char* phase) {
    return event.replace(event.find("\"X\""), 3, "\"" + std::string(phase) + "\"");
  };
  const RankTrace trace =
      imported(file({call("1", "11"), kernel("5", "11"), as(kernel("20", "12"), "B"),
                     as(kernel("30", "12"), "E"), as(call("15", "12"), "i")}));
  EXPECT_EQ(trace.device_ops.size(), 1U);
  EXPECT_EQ(trace.host_calls.size(), 1U);
  EXPECT_EQ(trace.counters.count("kineto_events_of_other_phase"), 3U);
}

/// Eight kernels, whose launch calls take 4 of the file's units, times `scale`.
RankTrace launches_of(std::int64_t scale, const char* fraction = "") {
  std::vector<std::string> events;
  for (int i = 1; i <= 8; ++i) {
    const std::string number = std::to_string(i);
    std::string launch = call(std::to_string(20 * i * scale) + fraction, number);
    launch.replace(launch.find("4, \"args"), 1, std::to_string(4 * scale));
    std::string run = kernel(std::to_string((20 * i + 5) * scale), number);
    run.replace(run.find("10.500"), 6, std::to_string(10 * scale));
    events.insert(events.end(), {launch, run});
  }
  return imported(file(events));
}

// Launches of 4 ms, in whole numbers, are of a file in nanoseconds; a fraction says microseconds.
TEST(KinetoUnits, whole_times_in_which_launches_last_milliseconds_are_a_loss) {
  EXPECT_EQ(launches_of(1).counters.count("kineto_time_unit_doubtful"), 0U);
  EXPECT_EQ(launches_of(1000).counters.count("kineto_time_unit_doubtful"), 1U);
  EXPECT_EQ(launches_of(1000, ".5").counters.count("kineto_time_unit_doubtful"), 0U);
}

TEST(KinetoRefusal, other_files_are_refused_with_what_they_look_like) {
  for (const auto& [text, reason] : std::vector<std::pair<std::string, const char*>>{
           {"", "is empty"},
           {"   ", "is not JSON"},
           {"hello", "is not JSON"},
           {"[]", "is an array, but not of events"},
           {"[1, 2, 3]", "is an array, but not of events"},
           {"[[1, 2], [3, 4]]", "as PyTorch writes memory timelines"},
           {std::string("\n\x20\x08\x01\x12\x09/host:CPU\x1a\x02", 17),
            "is an XPlane file of XLA's profiler"},
           {"{}", "has no traceEvents"},
           {"{\"traceEvents\": []}", "no readable event"},
           {R"({"schema": "1.1.0-chakra.0.0.4", "nodes": [{"id": 2}]})", "execution trace"},
           {R"({"maps": {"device0": {"Receive-op1893": {"st": 1.5}}}})", "Ascend"},
           {R"({"queries": [{"id": 0}]})", "request arrivals"},
           {R"({"timestamp": 0, "input_length": 5})", "request arrivals"},
           {R"({"num_layer": 24})", "'num_layer'"},
           {R"({"rocprofiler-sdk-tool": [{"metadata": {}}]})", "AMD's profiler (rocprofv3)"},
           {file({R"({"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1})",
                  R"({"ph": "X", "cat": "mtia_ccp_events", "name": "b", "ts": 1, "dur": 1})"}),
            "is a profile of Meta's MTIA, not of a GPU: 1 events of category 'mtia_ccp_events'"},
           {"SQLite format 3", "SQLite"},
           {std::string("\x0a\x08\x00\x01", 4), "binary"},
           {R"({"traceEvents": [{"ph": "X", "cat": "sched", "name": "a", "ts": 1, "dur": 1}]})",
            "category 'sched'"},
           {file({R"({"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1})"}),
            "no device activity"},
           {file({R"({"ph": "B", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1})"}),
            "none of them usable: 1 operations, calls and annotations written as a begin"}}) {
    const auto trace = import_kineto_text(text, "odd.json");
    ASSERT_FALSE(trace.has_value()) << text;
    EXPECT_NE(trace.error().message.find(reason), std::string::npos) << trace.error().text();
    EXPECT_EQ(trace.error().file, "odd.json");
  }
}

}  // namespace
}  // namespace bubblesim::traces
