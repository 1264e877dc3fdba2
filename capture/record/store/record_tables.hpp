// Names, launch shapes, threads and streams of a session, numbered in the order of their first use.
// Entries since the last take_new() go into the file before the records that refer to them. One
// thread at a time: the writer's.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.hpp"
#include "traces/format/schema.hpp"
#include "traces/intern.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

class RecordTables {
 public:
  [[nodiscard]] NameId name(std::string_view text);
  /// Looks up the name of a kernel by CUPTI's pointer, which is faster than by text: one string for
  /// the process's life, or nullptr, which reads "(unnamed)". A mangled C++ name is demangled.
  [[nodiscard]] NameId name_at(const char* pointer);
  /// From now on name_at() and hidden_name() give hashes, equal on all ranks. Communication kernels
  /// keep their names, which identify collectives.
  void hash_names() { hashed_ = true; }
  [[nodiscard]] NameId hidden_name(std::string_view text);
  [[nodiscard]] ShapeId shape(const traces::LaunchShape& shape);
  /// `system_id`: gettid() of the thread.
  [[nodiscard]] ThreadId thread(std::uint64_t system_id);
  /// `context` and `stream` are CUPTI's ids, which identify the stream; `device` is noted at its
  /// first use.
  [[nodiscard]] StreamId stream(std::uint32_t device, std::uint32_t context, std::uint32_t stream);
  /// Describes a stream, or names a thread. False: too late, take_new() has handed it out.
  bool describe_stream(StreamId stream, std::int32_t priority, traces::StreamKind kind);
  bool name_thread(ThreadId thread, std::string_view name);

  /// Notes the collective of a kernel captured into a graph; of grouped collectives, the sum.
  void announce(std::uint64_t graph_node, const traces::Collective& collective);
  void copy_node(std::uint64_t graph_node, std::uint64_t copy_of);
  /// nullptr: nothing was announced for the node.
  [[nodiscard]] const traces::Collective* announced(std::uint64_t graph_node) const {
    const auto found = nodes_.find(graph_node);
    return found == nodes_.end() ? nullptr : &found->second;
  }

  struct NewEntries {
    std::vector<traces::format::NameRecord> names;
    std::vector<traces::LaunchShape> shapes;
    std::vector<traces::HostThread> threads;
    std::vector<traces::Stream> streams;
  };
  /// The entries added since the last call.
  [[nodiscard]] NewEntries take_new();

 private:
  /// CUPTI numbers contexts by process, so a stream is known without its device.
  static std::uint64_t stream_key(std::uint32_t context, std::uint32_t stream) {
    return std::uint64_t{context} << 32U | stream;
  }
  struct ShapeHash {
    std::size_t operator()(const traces::LaunchShape& shape) const noexcept;
  };

  bool hashed_ = false;
  traces::StringTable names_;
  std::unordered_map<const char*, NameId> names_at_;
  std::unordered_map<traces::LaunchShape, ShapeId, ShapeHash> shapes_;
  std::unordered_map<std::uint64_t, ThreadId> threads_;
  std::unordered_map<std::uint64_t, StreamId> streams_;
  std::unordered_map<std::uint64_t, traces::Collective> nodes_;  ///< of graph nodes, by CUPTI's id
  // A fast path: successive records often have the same thread and stream.
  std::uint64_t last_thread_ = 0;
  ThreadId last_thread_id_{};
  std::uint64_t last_stream_ = 0;
  StreamId last_stream_id_{};
  NewEntries fresh_;
};

// What decoders of one session hand to the store: records of one rank, in any order.
//
// Ids of names, shapes, threads and streams come from the session's tables
// (capture/record/store/record_tables.hpp).

struct RecordedBatch {
  std::vector<traces::HostCall> calls;
  std::vector<traces::DeviceOp> ops;
  std::vector<traces::SyncRecord> syncs;
  std::vector<traces::Marker> markers;
  std::vector<traces::MemorySample> memory;
  std::vector<traces::HostStall> stalls;
  std::vector<traces::ClockPair> clocks;
  /// The `collective` of an operation or a note is an index into `collectives` of this batch; the
  /// store makes it an index into the rank's table.
  std::vector<traces::Collective> collectives;
  std::vector<traces::CollectiveNote> notes;

  void clear() {
    calls.clear(), ops.clear(), syncs.clear(), markers.clear(), memory.clear(), stalls.clear();
    clocks.clear(), collectives.clear(), notes.clear();
  }
};

}  // namespace bubblesim::capture
