// How a Kineto file is laid out says nothing. Whole recordings: conformance/recorded_jobs.
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/btr_bytes.hpp"
#include "tests/unit/traces/import/samples.hpp"
#include "tests/unit/traces/import/white_space.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

using namespace sample;

std::string bytes_of(const std::string& text) {
  auto trace = import_kineto_text(text, "sample.json");
  EXPECT_TRUE(trace) << trace.error().text();
  return trace ? btr_bytes(std::move(*trace)) : "";
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

// A launch shape that was not recorded stays unknown, and is a loss where much time lacks one.

/// A kernel of `dur` microseconds whose shape is not recorded.
std::string bare(const std::string& ts, const std::string& dur) {
  return span("kernel", "bare", 0, 7, ts, dur, R"("device": 0, "stream": 7, "correlation": 9)");
}

TEST(LaunchShapes, a_shape_that_is_not_recorded_is_not_one_block) {
  const RankTrace trace = imported(file({kernel("1"), bare("20", "10.5")}));
  EXPECT_TRUE(has_known_shape(trace, trace.device_ops[0]));
  EXPECT_FALSE(has_known_shape(trace, trace.device_ops[1]));
  EXPECT_EQ(trace.shapes[trace.device_ops[1].shape].blocks(), 0U);
}

TEST(LaunchShapes, one_block_of_one_thread_is_a_shape_where_it_is_recorded) {
  const RankTrace trace = imported(file({
      span("kernel", "one", 0, 7, "1", "2", R"("device": 0, "stream": 7, "correlation": 9,
           "grid": [1, 1, 1], "block": [1, 1, 1])")}));
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
