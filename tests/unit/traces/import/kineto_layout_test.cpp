// How a Kineto file is laid out says nothing: white space between its tokens, order of its events.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "sim/base/random.hpp"
#include "tests/fault.hpp"
#include "tests/unit/traces/import/btr_bytes.hpp"
#include "tests/unit/traces/import/samples.hpp"
#include "tests/unit/traces/import/white_space.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/import/byte_stream.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

using namespace sample;

std::string text_of(const std::filesystem::path& path) {
  ByteStream source = ByteStream::open(path).value();
  std::string text;
  char block[4096];
  for (std::size_t got = source.read(block, sizeof block); got > 0;
       got = source.read(block, sizeof block)) {
    text.append(block, got);
  }
  return text;
}

std::string bytes_of(const std::string& text) {
  auto trace = import_kineto_text(text, "sample.json");
  EXPECT_TRUE(trace) << trace.error().text();
  return trace ? btr_bytes(std::move(*trace)) : "";
}

TEST(KinetoLayout, samples_import_alike_in_every_layout) {
  const std::filesystem::path folder =
      std::filesystem::path(BUBBLESIM_SOURCE_DIR) / "traces" / "samples";
  for (const char* name : {"inference.json.gz", "training/rank0.json.gz"}) {
    const std::string text = text_of(folder / name);
    const std::string expected = bytes_of(text);
    for (const Layout& layout : layouts()) {
      EXPECT_TRUE(bytes_of(laid_out(text, layout)) == expected) << name << ": " << layout.name;
    }
  }
}

TEST(KinetoLayout, what_samples_lack_imports_alike_in_every_layout) {
  // Lists as strings and as arrays, rank lists, strings with escapes, a base time, memory.
  const std::string text = file(
      {call("1", "1"), kernel("2", "1", "a \\\"quoted\\\" \\u00e9"),
       kernel("20", "2", "ncclDevKernel_AllReduce",
              R"(, "Collective name": "allreduce", "In msg nelems": 4, "dtype": "Float",
                 "Group size": 2, "Process Group Name": "0", "Process Group Ranks": [0, 1],
                 "Seq": "3")"),
       R"({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 0, "tid": 0, "ts": 3,
           "args": {"Total Allocated": 7, "Total Reserved": 9, "Device Type": 1}})"},
      R"("baseTimeNanoseconds": 5000, "deviceProperties": [{"id": 0, "name": "H", "numSms": 132}],
         "distributedInfo": {"rank": 1, "world_size": 2, "pg_config": [
           {"pg_name": "0", "pg_size": 2, "ranks": [0, 1]}]},)");
  const std::string expected = bytes_of(text);
  for (const Layout& layout : layouts()) {
    EXPECT_TRUE(bytes_of(laid_out(text, layout)) == expected) << layout.name;
  }
}

TEST(KinetoLayout, an_indented_launch_shape_is_the_compact_one) {
  // kernel() writes a grid of 2 by 1 by 1 blocks, each of 128 threads.
  for (const Layout& layout : layouts()) {
    const auto trace = must(import_kineto_text(laid_out(file({kernel("1")}), layout), "t.json"));
    const LaunchShape& shape = trace.shapes[trace.device_ops[0].shape];
    EXPECT_EQ(shape.blocks(), 2U) << layout.name;
    EXPECT_EQ(shape.threads_per_block(), 128U) << layout.name;
    EXPECT_EQ(trace.counters.count("kineto_launch_shapes_missing"), 0U);
  }
}

/// The file with its events in another order, a pseudo-random one.
std::string shuffled(const std::string& text) {
  const std::size_t open = text.find('[', text.find("\"traceEvents\""));
  std::vector<std::string> events;
  std::size_t at = open + 1;
  for (std::size_t begin = text.find('{', at); text[begin] == '{';) {
    std::size_t depth = 0;
    at = begin;
    do {
      if (text[at] == '"') {
        do at += text[at] == '\\' ? 2 : 1;
        while (text[at] != '"');
      }
      depth += text[at] == '{' ? 1 : 0;
      depth -= text[at] == '}' ? 1 : 0;
      ++at;
    } while (depth > 0);
    events.push_back(text.substr(begin, at - begin));
    begin = text.find_first_not_of(" ,\n", at);
  }
  RandomStream random(7, "shuffle");
  for (std::size_t i = events.size(); i > 1; --i) {
    const double place = random.uniform() * static_cast<double>(i);
    std::swap(events[i - 1], events[static_cast<std::size_t>(place)]);
  }
  return text.substr(0, open + 1) + joined(events) + text.substr(at);
}

TEST(KinetoLayout, the_order_of_events_in_the_file_changes_nothing) {
  const std::filesystem::path folder =
      std::filesystem::path(BUBBLESIM_SOURCE_DIR) / "traces" / "samples";
  const auto without_note = [](const std::string& text) {
    RankTrace trace = import_kineto_text(text, "sample.json").value();
    CounterSet counters;
    for (const auto& [name, entry] : trace.counters) {
      if (name != "kineto_device_ops_out_of_order") counters.add(name, entry);
    }
    trace.counters = counters;
    return btr_bytes(std::move(trace));
  };
  for (const char* name : {"inference.json.gz", "training/rank0.json.gz"}) {
    const std::string text = text_of(folder / name);
    const std::string other = shuffled(text);
    ASSERT_EQ(std::count(other.begin(), other.end(), '{'),
              std::count(text.begin(), text.end(), '{'));
    EXPECT_NE(other, text);
    EXPECT_TRUE(without_note(other) == without_note(text)) << name;
  }
}

TEST(KinetoLayout, equal_starts_are_ordered_by_correlation_not_by_place) {
  // Whole microseconds: both kernels start at 5, and the file has the later launch first.
  const auto trace = must(import_kineto_text(
      file({kernel("5", "2", "second"), kernel("5", "1", "first"), call("1", "1"),
            call("2", "2")}),
      "t.json"));
  EXPECT_EQ(trace.names[trace.device_ops[0].name], "first");
  EXPECT_EQ(trace.names[trace.device_ops[1].name], "second");
}

// A launch shape that was not recorded stays unknown, and is a loss where much time lacks one.

/// A kernel of `dur` microseconds whose shape is not recorded.
std::string bare(std::string_view ts, std::string_view dur) {
  return R"({"ph": "X", "cat": "kernel", "name": "bare", "pid": 0, "tid": 7, "ts": )" +
         std::string(ts) + R"(, "dur": )" + std::string(dur) +
         R"(, "args": {"device": 0, "stream": 7, "correlation": 9}})";
}

TEST(LaunchShapes, a_shape_that_is_not_recorded_is_not_one_block) {
  const RankTrace trace = imported(file({kernel("1"), bare("20", "10.5")}));
  EXPECT_TRUE(has_known_shape(trace, trace.device_ops[0]));
  EXPECT_FALSE(has_known_shape(trace, trace.device_ops[1]));
  EXPECT_EQ(trace.shapes[trace.device_ops[1].shape].blocks(), 0U);
}

TEST(LaunchShapes, one_block_of_one_thread_is_a_shape_where_it_is_recorded) {
  const RankTrace trace = imported(file({
      R"({"ph": "X", "cat": "kernel", "name": "one", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args":
          {"device": 0, "stream": 7, "correlation": 9, "grid": [1, 1, 1], "block": [1, 1, 1]}})"}));
  EXPECT_TRUE(has_known_shape(trace, trace.device_ops[0]));
  EXPECT_EQ(trace.counters.count("kineto_launch_shapes_missing"), 0U);
}

TEST(LaunchShapes, missing_shapes_are_a_loss_above_a_twentieth_of_the_kernel_time) {
  // kernel() lasts 10.5 us. 0.5 of 11 us is 4.5 %; 1 of 11.5 us is 8.7 %.
  const RankTrace few = imported(file({kernel("1"), bare("20", "0.5")}));
  EXPECT_NEAR(kernel_time(few).unknown_share(), 0.5 / 11, 1e-9);
  EXPECT_EQ(few.counters.count("kineto_launch_shapes_missing"), 1U);
  EXPECT_EQ(few.counters.count("launch_shapes_mostly_missing"), 0U);
  const RankTrace many = imported(file({kernel("1"), bare("20", "1")}));
  EXPECT_NEAR(kernel_time(many).unknown_share(), 1 / 11.5, 1e-9);
  EXPECT_EQ(many.counters.count("launch_shapes_mostly_missing"), 1U);
}

TEST(LaunchShapes, an_unknown_shape_survives_a_file) {
  const std::string bytes = btr_bytes(imported(file({kernel("1"), bare("20", "10")})));
  const auto again = must(format::read_job_bytes(
      {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "t.btr"));
  const RankTrace& trace = again.job.ranks.at(0);
  EXPECT_TRUE(has_known_shape(trace, trace.device_ops[0]));
  EXPECT_FALSE(has_known_shape(trace, trace.device_ops[1]));
}

}  // namespace
}  // namespace bubblesim::traces
