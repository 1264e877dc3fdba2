// Names, launch shapes, threads and streams of a session, each known by the order of its first
// use. What is new since the last call of take_new() goes into the file before the records that
// refer to it. One thread at a time: the writer's.
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
  /// By the pointer that CUPTI hands out for a kernel's name: it is one string for the process's
  /// life, or nullptr, which reads "(unnamed)". Faster than by text.
  [[nodiscard]] NameId name_at(const char* pointer);
  [[nodiscard]] ShapeId shape(const traces::LaunchShape& shape);
  /// `system_id`: gettid() of the thread.
  [[nodiscard]] ThreadId thread(std::uint64_t system_id);
  /// Contexts of one device share no stream: `context` and `stream` are CUPTI's ids.
  [[nodiscard]] StreamId stream(std::uint32_t device, std::uint32_t context, std::uint32_t stream);
  void set_priority(StreamId stream, std::int32_t priority);
  void name_thread(ThreadId thread, std::string_view name);

  struct NewEntries {
    std::vector<traces::format::NameRecord> names;
    std::vector<traces::LaunchShape> shapes;
    std::vector<traces::HostThread> threads;
    std::vector<traces::Stream> streams;
  };
  /// What was added since the last call.
  [[nodiscard]] NewEntries take_new();

 private:
  struct StreamKey {
    std::uint32_t device, context, stream;
    friend bool operator==(const StreamKey&, const StreamKey&) = default;
  };
  struct StreamKeyHash {
    std::size_t operator()(const StreamKey& key) const noexcept {
      return (std::size_t{key.device} << 56U) ^ (std::size_t{key.context} << 32U) ^ key.stream;
    }
  };
  struct ShapeHash {
    std::size_t operator()(const traces::LaunchShape& shape) const noexcept;
  };

  traces::StringTable names_;
  std::unordered_map<const char*, NameId> names_at_;
  std::unordered_map<traces::LaunchShape, ShapeId, ShapeHash> shapes_;
  std::unordered_map<std::uint64_t, ThreadId> threads_;
  std::unordered_map<StreamKey, StreamId, StreamKeyHash> streams_;
  NewEntries fresh_;
  std::uint32_t names_taken_ = 0;
  std::uint32_t threads_taken_ = 0;
  std::uint32_t streams_taken_ = 0;
};

}  // namespace bubblesim::capture
