// The columns of every chunk kind, in file order. One list serves writing, checking and reading,
// so the three cannot drift apart. A coder (traces/format/columns.hpp) offers:
//   plain(f)        the field's number
//   added(f)        as plain; reads as 0 in files of earlier minor versions, which lack the column
//   delta(f)        zigzagged difference from the record before, mod 2^64; 0 before the first
//   index(f)        number + 1 mod 2^32, so that kNone is 0
//   index_delta(f)  as index, then as delta
//   text(f)         two columns: lengths, then the bytes of all
//   list(f)         two columns: lengths, then the numbers of all
// Columns may only be added at the end of a list, and only with a new minor version.
#pragma once

#include <string>

#include "traces/format/layout.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

/// A rank's properties, known before any record. A later one replaces an earlier one.
struct RankDescription {
  std::uint32_t world_size = 1;
  DeviceInfo device;
  Provenance provenance;
  std::uint32_t process = 0;
};

/// One string of a rank's table.
struct NameRecord {
  std::string text;
};

/// One data-quality count that came with the trace. A later chunk replaces earlier ones.
struct CounterRecord {
  std::string name;
  Severity severity = Severity::kInfo;
  std::string help;
  std::uint64_t count = 0;
};

/// A record of the end chunk: how many records of a kind a rank has in the whole file.
struct TotalRecord {
  std::uint32_t rank = 0;
  std::uint16_t kind = 0;
  std::uint64_t records = 0;
};

template <auto Member>
inline constexpr auto field = [](auto& record) -> auto& { return record.*Member; };
template <auto Member, auto Inner>
inline constexpr auto inner = [](auto& record) -> auto& { return record.*Member.*Inner; };
template <auto Member, std::size_t Place>
inline constexpr auto element = [](auto& record) -> auto& { return (record.*Member)[Place]; };

template <class Record>
struct Schema;

template <>
struct Schema<TotalRecord> {
  static constexpr ChunkKind kKind = ChunkKind::kEnd;
  static void columns(auto& coder) {
    coder.plain(field<&TotalRecord::rank>);
    coder.plain(field<&TotalRecord::kind>);
    coder.plain(field<&TotalRecord::records>);
  }
};

template <>
struct Schema<RankDescription> {
  static constexpr ChunkKind kKind = ChunkKind::kRank;
  static void columns(auto& coder) {
    using D = RankDescription;
    coder.plain(field<&D::world_size>);
    coder.text(inner<&D::device, &DeviceInfo::name>);
    coder.plain(inner<&D::device, &DeviceInfo::sm_count>);
    coder.plain(inner<&D::device, &DeviceInfo::compute_major>);
    coder.plain(inner<&D::device, &DeviceInfo::compute_minor>);
    coder.plain(inner<&D::device, &DeviceInfo::memory_bytes>);
    coder.text(inner<&D::provenance, &Provenance::source>);
    coder.text(inner<&D::provenance, &Provenance::format>);
    coder.text(inner<&D::provenance, &Provenance::tool>);
    coder.text(inner<&D::provenance, &Provenance::note>);
    coder.added(field<&D::process>);  // 1.4
  }
};

template <>
struct Schema<NameRecord> {
  static constexpr ChunkKind kKind = ChunkKind::kNames;
  static void columns(auto& coder) { coder.text(field<&NameRecord::text>); }
};

template <>
struct Schema<LaunchShape> {
  static constexpr ChunkKind kKind = ChunkKind::kShapes;
  static void columns(auto& coder) {
    coder.plain(element<&LaunchShape::grid, 0>);
    coder.plain(element<&LaunchShape::grid, 1>);
    coder.plain(element<&LaunchShape::grid, 2>);
    coder.plain(element<&LaunchShape::block, 0>);
    coder.plain(element<&LaunchShape::block, 1>);
    coder.plain(element<&LaunchShape::block, 2>);
    coder.plain(field<&LaunchShape::registers_per_thread>);
    coder.plain(field<&LaunchShape::shared_memory_bytes>);
  }
};

template <>
struct Schema<HostThread> {
  static constexpr ChunkKind kKind = ChunkKind::kThreads;
  static void columns(auto& coder) {
    coder.plain(field<&HostThread::system_id>);
    coder.text(field<&HostThread::name>);
  }
};

template <>
struct Schema<Stream> {
  static constexpr ChunkKind kKind = ChunkKind::kStreams;
  static void columns(auto& coder) {
    coder.plain(field<&Stream::system_id>);
    coder.plain(field<&Stream::priority>);
    coder.added(field<&Stream::device>);  // 1.1
    coder.added(field<&Stream::kind>);    // 1.3
  }
};

template <>
struct Schema<HostCall> {
  static constexpr ChunkKind kKind = ChunkKind::kHostCalls;
  static void columns(auto& coder) {
    coder.delta(field<&HostCall::start>);
    coder.plain(field<&HostCall::duration>);
    coder.delta(field<&HostCall::correlation>);
    coder.plain(field<&HostCall::name>);
    coder.plain(field<&HostCall::thread>);
    coder.plain(field<&HostCall::kind>);
    coder.index(field<&HostCall::stream>);
    coder.plain(field<&HostCall::event>);
  }
};

template <>
struct Schema<DeviceOp> {
  static constexpr ChunkKind kKind = ChunkKind::kDeviceOps;
  static void columns(auto& coder) {
    coder.delta(field<&DeviceOp::start>);
    coder.plain(field<&DeviceOp::duration>);
    coder.delta(field<&DeviceOp::correlation>);
    coder.plain(field<&DeviceOp::name>);
    coder.plain(field<&DeviceOp::stream>);
    coder.plain(field<&DeviceOp::kind>);
    coder.plain(field<&DeviceOp::direction>);
    coder.plain(field<&DeviceOp::shape>);
    coder.plain(field<&DeviceOp::bytes>);
    coder.index(field<&DeviceOp::collective>);
    coder.index_delta(field<&DeviceOp::launch>);
  }
};

template <>
struct Schema<Edge> {
  static constexpr ChunkKind kKind = ChunkKind::kEdges;
  static void columns(auto& coder) {
    coder.delta(field<&Edge::before>);
    coder.delta(field<&Edge::after>);
    coder.plain(field<&Edge::inferred>);
  }
};

template <>
struct Schema<Collective> {
  static constexpr ChunkKind kKind = ChunkKind::kCollectives;
  static void columns(auto& coder) {
    coder.plain(field<&Collective::kind>);
    coder.plain(field<&Collective::bytes>);
    coder.plain(field<&Collective::group>);
    coder.plain(field<&Collective::group_size>);
    coder.list(field<&Collective::peers>);
    coder.delta(field<&Collective::sequence>);
    coder.plain(field<&Collective::sequence_recorded>);
    coder.added(field<&Collective::place>);  // 1.3
  }
};

template <>
struct Schema<Marker> {
  static constexpr ChunkKind kKind = ChunkKind::kMarkers;
  static void columns(auto& coder) {
    coder.delta(field<&Marker::start>);
    coder.plain(field<&Marker::duration>);
    coder.plain(field<&Marker::name>);
    coder.plain(field<&Marker::thread>);
    coder.plain(field<&Marker::kind>);
    coder.plain(field<&Marker::number>);
  }
};

template <>
struct Schema<MemorySample> {
  static constexpr ChunkKind kKind = ChunkKind::kMemory;
  static void columns(auto& coder) {
    coder.delta(field<&MemorySample::at>);
    coder.delta(field<&MemorySample::allocated_bytes>);
    coder.delta(field<&MemorySample::reserved_bytes>);
  }
};

template <>
struct Schema<HostStall> {
  static constexpr ChunkKind kKind = ChunkKind::kStalls;
  static void columns(auto& coder) {
    coder.delta(field<&HostStall::start>);
    coder.plain(field<&HostStall::duration>);
    coder.plain(field<&HostStall::thread>);
    coder.plain(field<&HostStall::kind>);
  }
};

template <>
struct Schema<ClockPair> {
  static constexpr ChunkKind kKind = ChunkKind::kClocks;
  static void columns(auto& coder) {
    coder.delta(field<&ClockPair::at>);
    coder.plain(field<&ClockPair::realtime_ns>);
    coder.plain(field<&ClockPair::monotonic_ns>);
  }
};

template <>
struct Schema<SyncRecord> {
  static constexpr ChunkKind kKind = ChunkKind::kSyncs;
  static void columns(auto& coder) {
    coder.delta(field<&SyncRecord::at>);
    coder.delta(field<&SyncRecord::correlation>);
    coder.plain(field<&SyncRecord::kind>);
    coder.index(field<&SyncRecord::stream>);
    coder.delta(field<&SyncRecord::event>);
    coder.added(field<&SyncRecord::device>);  // 1.5
  }
};

template <>
struct Schema<CollectiveNote> {
  static constexpr ChunkKind kKind = ChunkKind::kNotes;
  static void columns(auto& coder) {
    coder.delta(field<&CollectiveNote::start>);
    coder.plain(field<&CollectiveNote::duration>);
    coder.plain(field<&CollectiveNote::thread>);
    coder.plain(field<&CollectiveNote::source>);
    coder.index_delta(field<&CollectiveNote::collective>);
  }
};

template <>
struct Schema<CounterRecord> {
  static constexpr ChunkKind kKind = ChunkKind::kCounters;
  static void columns(auto& coder) {
    coder.text(field<&CounterRecord::name>);
    coder.plain(field<&CounterRecord::severity>);
    coder.text(field<&CounterRecord::help>);
    coder.plain(field<&CounterRecord::count>);
  }
};

}  // namespace bubblesim::traces::format
