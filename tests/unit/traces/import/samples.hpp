// Small handmade Kineto texts: pieces that tests put together to show one quirk of the format each.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fault.hpp"
#include "tests/unit/traces/import/invariants.hpp"
#include "traces/import/kineto_import.hpp"

namespace bubblesim::traces::sample {

/// A span of `dur` us on thread `tid` of process `pid`; `args`: the members of its "args".
inline std::string span(const std::string& category, const std::string& name, int pid, int tid,
                        const std::string& ts, const std::string& dur, const std::string& args) {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": )" +
         std::to_string(pid) + R"(, "tid": )" + std::to_string(tid) + R"(, "ts": )" + ts +
         R"(, "dur": )" + dur + R"(, "args": {)" + args + "}}";
}

/// A kernel on device 0, stream 7: 10.500 us long, two blocks of 128 threads.
inline std::string kernel(const std::string& ts, const std::string& correlation = "1",
                          const std::string& name = "gemm", const std::string& more = "") {
  return span("kernel", name, 0, 7, ts, "10.500",
              R"("device": 0, "stream": 7, "correlation": )" + correlation +
                  R"(, "registers per thread": 32, "shared memory": 1024, "grid": [2, 1, 1], )"
                  R"("block": [128, 1, 1])" + more);
}

inline std::string call(const std::string& ts, const std::string& correlation = "1",
                        const std::string& name = "cudaLaunchKernel",
                        const std::string& more = "") {
  return span("cuda_runtime", name, 100, 101, ts, "4",
              R"("cbid": 211, "correlation": )" + correlation + more);
}

inline std::string annotation(const std::string& ts, const std::string& dur,
                              const std::string& name) {
  return span("user_annotation", name, 100, 101, ts, dur, "");
}

inline std::string joined(const std::vector<std::string>& events) {
  std::string out;
  for (const std::string& event : events) out += (out.empty() ? "\n  " : ",\n  ") + event;
  return out;
}

/// An object with the given events; `head` goes before traceEvents, `tail` after.
inline std::string file(const std::vector<std::string>& events, std::string_view head = "",
                        std::string_view tail = "") {
  return "{\"schemaVersion\": 1," + std::string(head) + "\n\"traceEvents\": [" + joined(events) +
         "\n]" + std::string(tail) + "}";
}

}  // namespace bubblesim::traces::sample

namespace bubblesim::traces {

/// Expects success and a trace that keeps the invariants of imports.
inline RankTrace imported(const std::string& text) {
  auto trace = must(import_kineto_text(text, "t.json"));
  EXPECT_EQ(broken_promise(trace), "");
  return trace;
}

/// Events, how many operations and calls are read from them, and what is counted.
struct Counted {
  std::string_view name;
  std::vector<std::string> events;
  std::size_t device_ops = 0;
  std::size_t host_calls = 0;
  std::vector<std::pair<std::string_view, std::uint64_t>> counters{};
  std::vector<std::uint32_t> launches{};  ///< of the operations, as numbers of calls; empty: any
};

inline void expect_counted(const std::vector<Counted>& rows) {
  for (const Counted& row : rows) {
    SCOPED_TRACE(row.name);
    const RankTrace trace = imported(sample::file(row.events));
    EXPECT_EQ(trace.device_ops.size(), row.device_ops);
    EXPECT_EQ(trace.host_calls.size(), row.host_calls);
    EXPECT_TRUE(trace.markers.empty());
    for (const auto& [name, count] : row.counters) EXPECT_EQ(trace.counters.count(name), count);
    for (std::size_t op = 0; op < row.launches.size(); ++op) {
      EXPECT_EQ(trace.device_ops.at(op).launch, row.launches[op]) << "of " << op;
    }
  }
}

}  // namespace bubblesim::traces
