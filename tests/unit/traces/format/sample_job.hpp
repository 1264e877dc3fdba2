// A small job in which every field of every record has a value of its own, and helpers to compare
// jobs and to hold .btr files as bytes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "traces/format/chunk_scanner.hpp"
#include "traces/format/layout.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format::testing {

using Bytes = std::vector<std::uint8_t>;

/// The bytes that write_job writes.
[[nodiscard]] Bytes file_of(const JobTrace& job, const WriterOptions& options = {});

inline TraceTime at(std::int64_t ns) { return TraceTime{Duration{ns}}; }

inline void add_calls(RankTrace& trace, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    trace.host_calls.push_back({.start = at(1'700'000'000'000'000'000 + 1000 * i),
                                .duration = Duration{150 + i * i * 90},
                                .correlation = 500 + i,
                                .name = NameId{i % 3},
                                .thread = ThreadId{i % 2},
                                .kind = static_cast<HostCallKind>(i % 13),
                                .stream = i % 4 == 0 ? kNone : i % 2,
                                .event = i % 5 == 0 ? 0x7F00DEADBEEFULL + i : 0});
  }
}

inline void add_ops(RankTrace& trace, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    trace.device_ops.push_back({.start = at(1'700'000'000'000'005'000 + 1700 * i),
                                .duration = Duration{20 + i * i * i * 7},
                                .correlation = 500 + i,
                                .name = NameId{3 + i % 2},
                                .stream = StreamId{i % 2},
                                .kind = static_cast<DeviceOpKind>(i % 4),
                                .direction = static_cast<CopyDirection>(i % 6),
                                .shape = ShapeId{i % 2},
                                .bytes = i % 4 == 1 ? 1ULL << (4 * i) : 0,
                                .collective = i % 4 == 3 ? i % 2 : kNone,
                                .launch = i % 3 == 2 ? kNone : i % 2});
  }
}

/// What the field's type allows and no profiler should write.
inline void add_extremes(RankTrace& trace) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  trace.host_calls.push_back({.start = at(kMax), .duration = Duration{kMin}, .correlation = ~0ULL});
  trace.host_calls.push_back({.start = at(kMin), .duration = Duration{-1}, .event = ~0ULL});
  trace.memory.push_back({at(-5), ~0ULL, 0});
  trace.memory.push_back({at(-9), 0, ~0ULL});
}

inline RankTrace first_rank() {
  RankTrace trace;
  trace.rank = 0;
  trace.world_size = 4;
  trace.device = {"NVIDIA H200", 132, 9, 0, 150'754'820'096};
  for (const char* name : {"cudaLaunchKernel", "cudaMemcpyAsync", "", "gemm", "ncclAllReduce"}) {
    trace.names.intern(name);
  }
  trace.shapes.intern({{128, 2, 3}, {256, 1, 4}, 90, 49'152});
  trace.shapes.intern({{4'294'967'295, 65'535, 1}, {1024, 1, 1}, 65'535, 232'448});
  trace.threads = {{0x7F0011223344, "main"}, {17, "autograd"}};
  trace.streams = {{7, 0, 0, StreamKind::kLegacyDefault}, {20, -5, 1}};
  add_calls(trace, 10);
  add_ops(trace, 10);
  add_extremes(trace);
  trace.edges = {{{0}, {3}, false}, {{9}, {1}, true}};
  trace.collectives = {
      {CollectiveKind::kAllReduce, 1'048'576, {4}, 4, {0, 1, 2, 3}, 11, true},
      {CollectiveKind::kSend, 0, {2}, 0, {7}, 0, false, 4}};
  trace.markers = {{at(100), Duration{900}, {3}, {1}, MarkerKind::kIteration, 17},
                   {at(50), Duration{10}, {2}, {0}, MarkerKind::kUser, -1}};
  trace.stalls = {{at(70), Duration{30}, {1}, StallKind::kQueueFull},
                  {at(60), Duration{0}, {0}, StallKind::kOther}};
  trace.clocks = {{at(100), 1'700'000'000'000'000'007, 42}, {at(90), -1, -2}};
  trace.syncs = {{at(40), 501, HostCallKind::kStreamWaitEvent, 1, 99},
                 {at(30), 500, HostCallKind::kStreamSync, kNone, 0}};
  trace.notes = {{at(20), Duration{5}, {1}, CollectiveSource::kNvtx, 1},
                 {at(10), Duration{0}, {0}, CollectiveSource::kStandIn, kNone}};
  trace.provenance = {"rank0.json", "kineto", "torch 2.5", "two iterations"};
  trace.counters.add("orphan_kernels", {Severity::kNotice, "kernels without a launch", 7});
  trace.counters.add("records_dropped", {Severity::kLoss, "dropped by CUPTI", 1'000'000'000'000});
  return trace;
}

/// Rank 0 with 12 host calls and 10 device operations, rank 3 with 2 and 1.
inline JobTrace sample_job() {
  JobTrace job;
  job.ranks.push_back(first_rank());
  RankTrace other;
  other.rank = 3;
  other.world_size = 4;
  other.names.intern("gemm");
  other.shapes.intern({});
  other.threads = {{1, ""}};
  other.streams = {{7, 0, 0}};
  other.host_calls = {{.start = at(5)}, {.start = at(4)}};
  other.device_ops = {{.start = at(6)}};
  job.ranks.push_back(std::move(other));
  return job;
}

/// Every field of every record, a line each; equal texts mean equal traces.
inline std::string text_of(const CounterSet& counters) {
  std::string text;
  for (const auto& [name, entry] : counters) {
    text += fmt::format("counter {} {} {} {}\n", name, severity_name(entry.severity), entry.help,
                        entry.count);
  }
  return text;
}

inline std::string text_of(const RankTrace& t) {
  std::string text = fmt::format("rank {} of {}\n", t.rank, t.world_size);
  text += fmt::format("device {} {} {} {} {}\n", t.device.name, t.device.sm_count,
                      t.device.compute_major, t.device.compute_minor, t.device.memory_bytes);
  text += fmt::format("from {}|{}|{}|{}\n", t.provenance.source, t.provenance.format,
                      t.provenance.tool, t.provenance.note);
  for (std::uint32_t i = 0; i < t.names.size(); ++i) text += "name " + t.names[{i}] + "\n";
  for (std::uint32_t i = 0; i < t.shapes.size(); ++i) {
    const LaunchShape& s = t.shapes[{i}];
    text += fmt::format("shape {} {} {} {} {} {} {} {}\n", s.grid[0], s.grid[1], s.grid[2],
                        s.block[0], s.block[1], s.block[2], s.registers_per_thread,
                        s.shared_memory_bytes);
  }
  for (const HostThread& r : t.threads) text += fmt::format("thread {} {}\n", r.system_id, r.name);
  for (const Stream& r : t.streams) {
    text += fmt::format("stream {} {} {} {}\n", r.system_id, r.priority, r.device,
                        static_cast<int>(r.kind));
  }
  for (const HostCall& r : t.host_calls) {
    text += fmt::format("call {} {} {} {} {} {} {} {}\n", to_ns(r.start), to_ns(r.duration),
                        r.correlation, r.name.value, r.thread.value, static_cast<int>(r.kind),
                        r.stream, r.event);
  }
  for (const DeviceOp& r : t.device_ops) {
    text += fmt::format("op {} {} {} {} {} {} {} {} {} {} {}\n", to_ns(r.start),
                        to_ns(r.duration), r.correlation, r.name.value, r.stream.value,
                        static_cast<int>(r.kind), static_cast<int>(r.direction), r.shape.value,
                        r.bytes, r.collective, r.launch);
  }
  for (const Edge& r : t.edges) {
    text += fmt::format("edge {} {} {}\n", r.before.value, r.after.value, r.inferred);
  }
  for (const Collective& r : t.collectives) {
    text += fmt::format("collective {} {} {} {} {} {} {} {}\n", static_cast<int>(r.kind), r.bytes,
                        r.group.value, r.group_size, fmt::join(r.peers, ","), r.sequence,
                        r.sequence_recorded, r.place);
  }
  for (const Marker& r : t.markers) {
    text += fmt::format("marker {} {} {} {} {} {}\n", to_ns(r.start), to_ns(r.duration),
                        r.name.value, r.thread.value, static_cast<int>(r.kind), r.number);
  }
  for (const MemorySample& r : t.memory) {
    text += fmt::format("memory {} {} {}\n", to_ns(r.at), r.allocated_bytes, r.reserved_bytes);
  }
  for (const HostStall& r : t.stalls) {
    text += fmt::format("stall {} {} {} {}\n", to_ns(r.start), to_ns(r.duration), r.thread.value,
                        static_cast<int>(r.kind));
  }
  for (const ClockPair& r : t.clocks) {
    text += fmt::format("clock {} {} {}\n", to_ns(r.at), r.realtime_ns, r.monotonic_ns);
  }
  for (const SyncRecord& r : t.syncs) {
    text += fmt::format("sync {} {} {} {} {} {}\n", to_ns(r.at), r.correlation,
                        static_cast<int>(r.kind), r.stream, r.event, r.device);
  }
  for (const CollectiveNote& r : t.notes) {
    text += fmt::format("note {} {} {} {} {}\n", to_ns(r.start), to_ns(r.duration),
                        r.thread.value, static_cast<int>(r.source), r.collective);
  }
  return text + text_of(t.counters);
}

inline std::string text_of(const JobTrace& job) {
  std::string text;
  for (const RankTrace& trace : job.ranks) text += text_of(trace);
  return text;
}

/// A path in the test's temporary folder, different for each test.
inline std::string temporary_path() {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return ::testing::TempDir() + test->test_suite_name() + "." + test->name() + ".btr";
}

inline Bytes bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline Bytes file_of(const JobTrace& job, const WriterOptions& options) {
  const std::string path = temporary_path();
  const auto written = write_job(path, job, options);
  EXPECT_TRUE(written) << written.error().text();
  Bytes bytes = bytes_of_file(path);
  std::remove(path.c_str());
  return bytes;
}

/// The chunks of an undamaged file; `file` must outlive them.
inline std::vector<ScannedChunk> chunks_of(const Bytes& file) {
  MemorySource source(file);
  ChunkScanner scanner(source);
  std::vector<ScannedChunk> chunks;
  while (const auto chunk = scanner.next()) chunks.push_back(*chunk);
  return chunks;
}

inline std::string_view kind_of(const ScannedChunk& chunk) {
  return chunk_kind_name(chunk.header.kind);
}

/// A chunk with right checksums around any payload; sizes are set unless given.
inline Bytes chunk_of(ChunkHeader header, const Bytes& payload) {
  const auto size = static_cast<std::uint32_t>(payload.size());
  if (header.stored_bytes == 0) header.stored_bytes = size;
  if (header.raw_bytes == 0) header.raw_bytes = size;
  header.payload_crc = crc32_of(payload);
  const auto head = encode_chunk_header(header);
  Bytes bytes(head.size() + payload.size());
  std::ranges::copy(payload, std::ranges::copy(head, bytes.begin()).out);
  return bytes;
}

/// A file header and these chunks.
inline Bytes file_of_chunks(const std::vector<Bytes>& chunks) {
  const auto head = encode_file_header();
  Bytes bytes(head.begin(), head.end());
  for (const Bytes& chunk : chunks) bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  return bytes;
}

}  // namespace bubblesim::traces::format::testing
