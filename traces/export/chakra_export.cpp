#include "traces/export/chakra_export.hpp"

#include <algorithm>
#include <chakra_et.pb.h>
#include <map>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "sim/base/output_file.hpp"
#include "traces/export/json_text.hpp"
#include "traces/import/chakra/chakra_attributes.hpp"
#include "traces/launch_shapes.hpp"
#include "traces/meeting_key.hpp"
#include "traces/record_names.hpp"

namespace bubblesim::traces {
namespace {

// ---- What each record of a rank depends on in a Chakra graph: launches, thread and stream order,
// edges, and what synchronising calls waited for.

/// Indices of device operations and host calls that a record follows.
struct Dependencies {
  std::vector<std::uint32_t> ops;
  std::vector<std::uint32_t> inferred_ops;  ///< of `ops`, those by an inferred edge
  std::vector<std::uint32_t> calls;
};

/// Answers for records in the order in which they are sorted: first come the calls.
class DependencyFinder {
 public:
  explicit DependencyFinder(const RankTrace& trace) : trace_(trace), edges_(trace.edges) {
    std::ranges::stable_sort(edges_, {}, &Edge::after);
    previous_op_ = previous_of(trace_.device_ops, &DeviceOp::stream, trace_.streams.size());
    previous_call_ = previous_of(trace_.host_calls, &HostCall::thread, trace_.threads.size());
    find_waits();
  }

  /// A call follows the call before it on its thread; a synchronising call also the last
  /// operations launched before it on the streams it waits for.
  [[nodiscard]] Dependencies of_call(std::uint32_t call) const {
    Dependencies out;
    if (previous_call_[call] != kNone) out.calls.push_back(previous_call_[call]);
    if (wait_index_[call] != kNone) out.ops = waits_[wait_index_[call]];
    return out;
  }
  /// An operation follows its launch, the operation before it on its stream, and its edges.
  [[nodiscard]] Dependencies of_op(std::uint32_t op) const {
    Dependencies out;
    if (trace_.device_ops[op].launch != kNone) out.calls.push_back(trace_.device_ops[op].launch);
    if (previous_op_[op] != kNone) out.ops.push_back(previous_op_[op]);
    for (const Edge& edge : std::ranges::equal_range(edges_, DeviceOpId{op}, {}, &Edge::after)) {
      if (edge.before.value == previous_op_[op]) continue;
      out.ops.push_back(edge.before.value);
      if (edge.inferred) out.inferred_ops.push_back(edge.before.value);
    }
    return out;
  }

 private:
  /// For each record the one before it on its lane.
  template <class Record, class Lane>
  static std::vector<std::uint32_t> previous_of(const std::vector<Record>& records,
                                                Lane Record::*lane, std::size_t lanes) {
    std::vector<std::uint32_t> last(lanes, kNone), previous;
    previous.reserve(records.size());
    for (std::uint32_t i = 0; i < records.size(); ++i) {
      previous.push_back(std::exchange(last[(records[i].*lane).index()], i));
    }
    return previous;
  }
  /// Walks calls in order of start with the last operation launched on each stream so far.
  void find_waits() {
    std::vector<std::vector<std::uint32_t>> launched(trace_.host_calls.size());
    for (std::uint32_t i = 0; i < trace_.device_ops.size(); ++i) {
      const std::uint32_t launch = trace_.device_ops[i].launch;
      if (launch != kNone) launched[launch].push_back(i);
    }
    std::vector<std::uint32_t> last(trace_.streams.size(), kNone);
    std::unordered_map<std::uint64_t, std::uint32_t> recorded;  // by event: the operation before
    wait_index_.assign(trace_.host_calls.size(), kNone);
    for (std::uint32_t i = 0; i < trace_.host_calls.size(); ++i) {
      const HostCall& call = trace_.host_calls[i];
      for (const std::uint32_t op : launched[i]) last[trace_.device_ops[op].stream.index()] = op;
      const bool has_stream = call.stream < last.size();
      if (call.kind == HostCallKind::kEventRecord && has_stream && call.event != 0) {
        recorded[call.event] = last[call.stream];
      }
      if (!is_synchronisation(call.kind)) continue;
      std::vector<std::uint32_t> ops;
      if (call.kind == HostCallKind::kDeviceSync) ops = last;
      if (call.kind == HostCallKind::kStreamSync && has_stream) ops = {last[call.stream]};
      if (call.kind == HostCallKind::kEventSync) {
        const auto found = recorded.find(call.event);
        if (found != recorded.end()) ops = {found->second};
      }
      // What ended after the call did was not waited for, whatever the names say.
      std::erase_if(ops, [&](std::uint32_t op) {
        return op == kNone || trace_.device_ops[op].end() > call.end();
      });
      if (ops.empty()) continue;
      wait_index_[i] = static_cast<std::uint32_t>(waits_.size());
      waits_.push_back(std::move(ops));
    }
  }

  const RankTrace& trace_;
  std::vector<std::uint32_t> previous_op_;    ///< by operation: on its stream
  std::vector<std::uint32_t> previous_call_;  ///< by call: on its thread
  std::vector<std::vector<std::uint32_t>> waits_;  ///< operations, by synchronising call
  std::vector<std::uint32_t> wait_index_;          ///< by call: into waits_
  std::vector<Edge> edges_;                        ///< by what comes after
};

// ---- The graph of a rank.

using chakra_et::Attribute;
using WireNode = chakra_et::Node;

constexpr std::string_view kVersion = "0.0.4";  // of the schema

void write_message(std::ostream& out, const google::protobuf::MessageLite& message) {
  const std::string bytes = message.SerializeAsString();
  std::uint64_t length = bytes.size();
  while (length >= 0x80) {
    out.put(static_cast<char>(0x80U | (length & 0x7fU)));
    length >>= 7U;
  }
  out.put(static_cast<char>(length));
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class Message>
Attribute& attribute(Message& message, std::string_view name) {
  Attribute& out = *message.add_attr();
  out.set_name(std::string(name));
  return out;
}

template <class Message>
void put_number(Message& message, std::string_view name, std::uint64_t value) {
  attribute(message, name).set_uint64_val(value);
}

void put_signed(WireNode& node, std::string_view name, std::int64_t value) {
  attribute(node, name).set_int64_val(value);
}

template <class Message>
void put_text(Message& message, std::string_view name, std::string_view text) {
  attribute(message, name).set_string_val(std::string(text));
}

/// Left out where zero, which is what a reader takes for absent.
void put_unless_zero(WireNode& node, std::string_view name, std::uint64_t value) {
  if (value != 0) put_number(node, name, value);
}

template <class List>
void put_list(WireNode& node, std::string_view name, const List& values) {
  auto* list = attribute(node, name).mutable_uint64_list();
  for (const auto value : values) list->add_values(value);
}

/// Nearest whole microsecond; the schema's times are unsigned.
std::uint64_t micros(std::int64_t ns) {
  return ns <= 0 ? 0 : (static_cast<std::uint64_t>(ns) + 500) / 1000;
}

/// A group of ranks that nodes name by its number: consumers expect digits.
struct NumberedGroup {
  std::uint32_t number = 0;
  std::vector<std::uint32_t> ranks;
  std::uint32_t size = 0;
};

/// Ids: operations first, then calls, metadata behind them.
class RankWriter {
 public:
  RankWriter(const RankTrace& trace, std::ostream& out, ChakraStats& stats)
      : trace_(trace), out_(out), stats_(stats), finder_(trace),
        next_id_(trace.device_ops.size() + trace.host_calls.size()) {}

  void write() {
    write_metadata();
    write_groups();
    write_records();
    for (const Marker& marker : trace_.markers) write_marker(marker);
    for (const HostStall& stall : trace_.stalls) write_stall(stall);
    stats_.records_left_out += trace_.memory.size() + trace_.clocks.size();
  }

 private:
  [[nodiscard]] std::uint64_t id_of_call(std::uint32_t call) const {
    return trace_.device_ops.size() + call;
  }

  void write_metadata() {
    chakra_et::GlobalMetadata message;
    message.set_version(std::string(kVersion));
    put_number(message, "bubblesim_chakra", chakra::kAttributesVersion);
    put_number(message, "bubblesim_rank", trace_.rank);
    put_number(message, "bubblesim_world_size", trace_.world_size);
    put_text(message, "bubblesim_device_name", trace_.device.name);
    put_number(message, "bubblesim_device_sms", trace_.device.sm_count);
    put_number(message, "bubblesim_device_memory", trace_.device.memory_bytes);
    put_number(message, "bubblesim_device_compute_major", trace_.device.compute_major);
    put_number(message, "bubblesim_device_compute_minor", trace_.device.compute_minor);
    if (!trace_.streams.empty()) put_streams(message);
    if (!trace_.threads.empty()) put_threads(message);
    write_message(out_, message);
  }

  void put_streams(chakra_et::GlobalMetadata& message) const {
    auto* ids = attribute(message, "bubblesim_streams").mutable_uint64_list();
    for (const Stream& stream : trace_.streams) ids->add_values(stream.system_id);
    auto* priorities = attribute(message, "bubblesim_stream_priorities").mutable_int64_list();
    for (const Stream& stream : trace_.streams) priorities->add_values(stream.priority);
    auto* devices = attribute(message, "bubblesim_stream_devices").mutable_uint64_list();
    for (const Stream& stream : trace_.streams) devices->add_values(stream.device);
  }

  void put_threads(chakra_et::GlobalMetadata& message) const {
    auto* ids = attribute(message, "bubblesim_threads").mutable_uint64_list();
    for (const HostThread& thread : trace_.threads) ids->add_values(thread.system_id);
    auto* names = attribute(message, "bubblesim_thread_names").mutable_string_list();
    for (const HostThread& thread : trace_.threads) names->add_values(thread.name);
  }

  /// One metadata node as PyTorch writes it, from which consumers make their groups.
  void write_groups() {
    for (const Collective& collective : trace_.collectives) {
      if (trace_.names[collective.group].empty()) continue;
      const auto number = static_cast<std::uint32_t>(groups_.size());
      NumberedGroup& group =
          groups_.try_emplace(collective.group, NumberedGroup{number, {}, 0}).first->second;
      if (group.ranks.empty()) group.ranks = group_ranks(trace_, collective);
      group.size = std::max(group.size, collective.group_size);
    }
    std::string text = "['[";
    for (const auto& [name, group] : groups_) {
      if (!is_known(group)) {
        ++stats_.groups_left_out;
        continue;
      }
      if (text.size() > 3) text += ", ";
      text += "{\"pg_name\": \"" + std::to_string(group.number) + "\", \"pg_desc\": ";
      append_json_string(text, trace_.names[name]);
      text += ", \"ranks\": [";
      for (std::size_t i = 0; i < group.ranks.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(group.ranks[i]);
      }
      text += "], \"group_size\": " + std::to_string(group.size) + "}";
    }
    if (text.size() == 3) return;
    WireNode node = metadata_node("## process_group:init ##");
    node.mutable_inputs()->set_values(text + "]']");
    write_node(node);
  }

  /// Its ranks are known, or it is everyone, which an empty list says.
  [[nodiscard]] bool is_known(const NumberedGroup& group) const {
    return !group.ranks.empty() || (group.size > 0 && group.size == trace_.world_size);
  }

  WireNode metadata_node(std::string_view name) {
    WireNode node;
    node.set_id(next_id_++);
    node.set_name(std::string(name));
    node.set_type(chakra::kMetadataNode);
    attribute(node, "is_cpu_op").set_bool_val(true);
    return node;
  }

  void write_node(const WireNode& node) {
    write_message(out_, node);
    ++stats_.nodes;
    stats_.dependencies += static_cast<std::uint64_t>(node.data_deps_size());
  }

  /// Calls and operations merged by start: parents mostly before children, as readers like it.
  void write_records() {
    std::uint32_t call = 0;
    for (std::uint32_t op = 0; op < trace_.device_ops.size(); ++op) {
      while (call < trace_.host_calls.size() &&
             trace_.host_calls[call].start <= trace_.device_ops[op].start) {
        write_call(call++);
      }
      write_op(op);
    }
    while (call < trace_.host_calls.size()) write_call(call++);
  }

  void put_times(WireNode& node, TraceTime start, Duration duration) const {
    node.set_start_time_micros(micros(to_ns(start)));
    node.set_duration_micros(micros(to_ns(duration)));
    put_signed(node, "bubblesim_start_ns", to_ns(start));
    put_signed(node, "bubblesim_duration_ns", to_ns(duration));
  }

  void put_dependencies(WireNode& node, const Dependencies& dependencies) const {
    for (const std::uint32_t call : dependencies.calls) node.add_data_deps(id_of_call(call));
    for (const std::uint32_t op : dependencies.ops) node.add_data_deps(op);
    if (!dependencies.inferred_ops.empty()) {
      put_list(node, "bubblesim_inferred_edges", dependencies.inferred_ops);
    }
  }

  void put_thread(WireNode& node, ThreadId thread) const {
    put_signed(node, "tid", static_cast<std::int64_t>(trace_.threads[thread.index()].system_id));
    put_number(node, "bubblesim_thread", thread.value);
  }

  void write_call(std::uint32_t index) {
    const HostCall& call = trace_.host_calls[index];
    WireNode node;
    node.set_id(id_of_call(index));
    node.set_name(trace_.names[call.name]);
    node.set_type(chakra::kCompNode);
    attribute(node, "is_cpu_op").set_bool_val(true);
    put_times(node, call.start, call.duration);
    put_text(node, "bubblesim_kind", name_in(chakra::kHostKinds, call.kind));
    put_thread(node, call.thread);
    if (call.stream != kNone) put_number(node, "bubblesim_stream", call.stream);
    put_unless_zero(node, "bubblesim_correlation", call.correlation);
    put_unless_zero(node, "bubblesim_event", call.event);
    put_dependencies(node, finder_.of_call(index));
    write_node(node);
  }

  void write_op(std::uint32_t index) {
    const DeviceOp& op = trace_.device_ops[index];
    WireNode node;
    node.set_id(index);
    node.set_name(trace_.names[op.name]);
    node.set_type(chakra::kCompNode);
    attribute(node, "is_cpu_op").set_bool_val(false);
    put_times(node, op.start, op.duration);
    put_text(node, "bubblesim_kind", name_of(op.kind));
    put_signed(node, "stream",
               static_cast<std::int64_t>(trace_.streams[op.stream.index()].system_id));
    put_number(node, "bubblesim_stream", op.stream.value);
    put_unless_zero(node, "bubblesim_correlation", op.correlation);
    if (op.direction != CopyDirection::kNone) {
      put_text(node, "bubblesim_direction", name_in(chakra::kDirections, op.direction));
    }
    if (op.bytes != 0) {
      put_number(node, "tensor_size", op.bytes);
      put_number(node, "bubblesim_bytes", op.bytes);
    }
    if (has_known_shape(trace_, op)) put_shape(node, trace_.shapes[op.shape]);
    if (op.collective != kNone) put_collective(node, trace_.collectives[op.collective]);
    if (op.launch != kNone) node.add_ctrl_deps(id_of_call(op.launch));
    put_dependencies(node, finder_.of_op(index));
    write_node(node);
  }

  void put_shape(WireNode& node, const LaunchShape& shape) const {
    put_list(node, "bubblesim_grid", shape.grid);
    put_list(node, "bubblesim_block", shape.block);
    put_unless_zero(node, "bubblesim_registers", shape.registers_per_thread);
    put_unless_zero(node, "bubblesim_shared_memory", shape.shared_memory_bytes);
  }

  void put_collective(WireNode& node, const Collective& collective) {
    if (collective.bytes != 0) {
      put_signed(node, "comm_size", static_cast<std::int64_t>(collective.bytes));
    }
    put_type(node, collective);
    put_text(node, "bubblesim_collective", name_of(collective.kind));
    put_text(node, "bubblesim_group", trace_.names[collective.group]);
    const auto group = groups_.find(collective.group);
    if (group != groups_.end() && is_known(group->second)) {
      put_text(node, "pg_name", std::to_string(group->second.number));
    }
    put_unless_zero(node, "bubblesim_group_size", collective.group_size);
    if (!collective.peers.empty()) put_list(node, "bubblesim_peers", collective.peers);
    put_unless_zero(node, "bubblesim_place", collective.place);
    put_number(node, collective.sequence_recorded ? "bubblesim_sequence"
                                                  : "bubblesim_sequence_by_order",
               collective.sequence);
  }

  /// Node type and the schema's own fields; computation for kinds that the schema lacks.
  void put_type(WireNode& node, const Collective& collective) {
    const bool sends = collective.kind == CollectiveKind::kSend;
    if (sends || collective.kind == CollectiveKind::kRecv) {
      node.set_type(sends ? chakra::kCommSendNode : chakra::kCommRecvNode);
      const std::vector<std::uint32_t> others = partners(trace_, collective);
      if (others.size() != 1 || collective.place != 0) {
        ++stats_.ends_unknown;
        return;
      }
      const std::uint32_t other = others.front();
      put_end(node, "comm_src", sends ? trace_.rank : other);
      put_end(node, "comm_dst", sends ? other : trace_.rank);
      put_end(node, "comm_tag", 0);
      return;
    }
    const auto type = chakra::comm_type_of(collective.kind);
    if (!type) {
      ++stats_.collectives_as_compute;
      return;
    }
    node.set_type(chakra::kCommCollNode);
    put_signed(node, "comm_type", *type);
  }

  static void put_end(WireNode& node, std::string_view name, std::uint32_t rank) {
    attribute(node, name).set_int32_val(static_cast<std::int32_t>(rank));
  }

  void write_marker(const Marker& marker) {
    WireNode node = metadata_node(trace_.names[marker.name]);
    put_times(node, marker.start, marker.duration);
    put_text(node, "bubblesim_kind", chakra::kMarkerKind);
    put_text(node, "bubblesim_marker", name_in(kMarkerKindNames, marker.kind));
    put_signed(node, "bubblesim_number", marker.number);
    put_thread(node, marker.thread);
    write_node(node);
  }

  void write_stall(const HostStall& stall) {
    WireNode node = metadata_node("stall");
    put_times(node, stall.start, stall.duration);
    put_text(node, "bubblesim_kind", chakra::kStallKind);
    put_text(node, "bubblesim_stall", name_in(kStallKindNames, stall.kind));
    put_thread(node, stall.thread);
    write_node(node);
  }

  const RankTrace& trace_;
  std::ostream& out_;
  ChakraStats& stats_;
  DependencyFinder finder_;
  std::uint64_t next_id_;
  std::map<NameId, NumberedGroup> groups_;
};

Result<void> write_file(const RankTrace& rank, const std::string& path, ChakraStats& stats) {
  BUBBLESIM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  RankWriter(rank, file.stream(), stats).write();
  BUBBLESIM_RETURN_IF_ERROR(file.finish());
  stats.files.push_back(path);
  return {};
}

}  // namespace

Result<ChakraStats> export_chakra(const JobTrace& job, const std::string& prefix) {
  ChakraStats stats;
  for (const RankTrace& rank : job.ranks) {
    const std::string path = prefix + "." + std::to_string(rank.rank) + ".et";
    BUBBLESIM_RETURN_IF_ERROR(write_file(rank, path, stats));
  }
  return stats;
}

std::string chakra_bytes(const RankTrace& rank) {
  std::ostringstream out;
  ChakraStats ignored;
  RankWriter(rank, out, ignored).write();
  return std::move(out).str();
}

}  // namespace bubblesim::traces
