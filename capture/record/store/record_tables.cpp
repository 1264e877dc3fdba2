#include "capture/record/store/record_tables.hpp"

#include <fmt/format.h>

#include <bit>
#include <string>
#include <utility>

#include "sim/base/hash.hpp"
#include "traces/names/collective_names.hpp"

namespace bubblesim::capture {
namespace {

constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15;  ///< 2^64 / golden ratio

}  // namespace

NameId RecordTables::name(std::string_view text) {
  const std::size_t before = names_.size();
  const NameId id = names_.intern(text);
  if (names_.size() > before) fresh_.names.push_back({std::string(text)});
  return id;
}

// If a name is known, its hash can be computed: this hides a model's structure, no secret.
NameId RecordTables::hidden_name(std::string_view text) {
  if (!hashed_) return name(text);
  std::uint64_t hash = kFnvBasis;
  for (const char letter : text) hash = fnv1a(hash, static_cast<unsigned char>(letter));
  return name(fmt::format("#{:016x}", hash));
}

NameId RecordTables::name_at(const char* pointer) {
  if (const auto found = names_at_.find(pointer); found != names_at_.end()) return found->second;
  const std::string text = pointer == nullptr ? "(unnamed)" : traces::demangled(pointer);
  const NameId id = traces::is_communication_kernel(text) ? name(text) : hidden_name(text);
  names_at_.emplace(pointer, id);
  return id;
}

std::size_t RecordTables::ShapeHash::operator()(
    const traces::LaunchShape& shape) const noexcept {
  std::uint64_t hash = 0;
  const auto mix = [&hash](std::uint64_t a, std::uint64_t b) {
    hash = (std::rotl(hash, 23) ^ (a << 32U | b)) * kMix;
  };
  mix(shape.grid[0], shape.grid[1]);
  mix(shape.grid[2], shape.block[0]);
  mix(shape.block[1], shape.block[2]);
  mix(shape.registers_per_thread, shape.shared_memory_bytes);
  return hash;
}

ShapeId RecordTables::shape(const traces::LaunchShape& shape) {
  const ShapeId next{static_cast<std::uint32_t>(shapes_.size())};
  const auto [place, fresh] = shapes_.try_emplace(shape, next);
  if (fresh) fresh_.shapes.push_back(shape);
  return place->second;
}

ThreadId RecordTables::thread(std::uint64_t system_id) {
  if (system_id == last_thread_ && !threads_.empty()) return last_thread_id_;
  const ThreadId next{static_cast<std::uint32_t>(threads_.size())};
  const auto [place, fresh] = threads_.try_emplace(system_id, next);
  if (fresh) fresh_.threads.push_back({system_id, {}});
  last_thread_ = system_id;
  return last_thread_id_ = place->second;
}

StreamId RecordTables::stream(std::uint32_t device, std::uint32_t context, std::uint32_t stream) {
  const std::uint64_t key = stream_key(context, stream);
  if (key == last_stream_ && !streams_.empty()) return last_stream_id_;
  const StreamId next{static_cast<std::uint32_t>(streams_.size())};
  const auto [place, fresh] = streams_.try_emplace(key, next);
  if (fresh) fresh_.streams.push_back({.system_id = stream, .device = device});
  last_stream_ = key;
  return last_stream_id_ = place->second;
}

bool RecordTables::describe_stream(StreamId stream, std::int32_t priority,
                                   traces::StreamKind kind) {
  const std::size_t taken = streams_.size() - fresh_.streams.size();
  if (stream.index() < taken) return false;
  traces::Stream& fresh = fresh_.streams[stream.index() - taken];
  fresh.priority = priority;
  fresh.kind = kind;
  return true;
}

bool RecordTables::name_thread(ThreadId thread, std::string_view name) {
  const std::size_t taken = threads_.size() - fresh_.threads.size();
  if (thread.index() < taken) return false;
  fresh_.threads[thread.index() - taken].name = name;
  return true;
}

void RecordTables::announce(std::uint64_t graph_node, const traces::Collective& collective) {
  const auto [place, fresh] = nodes_.try_emplace(graph_node, collective);
  if (!fresh) place->second.bytes += collective.bytes;
}

void RecordTables::copy_node(std::uint64_t graph_node, std::uint64_t copy_of) {
  if (const auto* original = announced(copy_of)) nodes_.insert_or_assign(graph_node, *original);
}

RecordTables::NewEntries RecordTables::take_new() { return std::exchange(fresh_, {}); }

}  // namespace bubblesim::capture
