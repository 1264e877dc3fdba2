#include "traces/import/chakra/chakra_records.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "traces/import/kernel_args.hpp"
#include "traces/launch_shapes.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::traces::chakra {
namespace {

/// Collectives that the layout ended without some of their ranks are numbered from here on, far
/// above any place in an order.
constexpr std::uint64_t kLeftMeetings = std::uint64_t{1} << 32U;

TraceTime at(std::int64_t ns) { return TraceTime{Duration{ns}}; }

class Maker {
 public:
  Maker(File file, const std::vector<std::uint32_t>& order)
      : file_(std::move(file)), order_(order), trace_(file_.trace),
        place_(file_.nodes.size(), kNone) {
    for (const ChakraGroup& group : file_.groups) groups_.insert_or_assign(group.name, &group);
  }

  RankTrace make() {
    sort_nodes();
    for (const std::uint32_t node : sorted_) {
      if (file_.nodes[node].on_device()) add_op(node);
    }
    for (const std::uint32_t node : sorted_) add_of_host(node);
    for (std::uint32_t op = 0; op < op_nodes_.size(); ++op) {
      link_launch(op);
      add_edges(op);
    }
    trace_.counters.add(kNoShapes, shapeless_);
    trace_.counters.add(kOrphanOps, orphans_);
    finish_calls();
    number_collectives();
    count_missing_shapes(trace_);
    return std::move(trace_);
  }

 private:
  const ChakraNode& node_at(std::uint64_t index) const { return file_.nodes[index]; }
  const OwnFields* own_of(const ChakraNode& node, OwnFields::What what) const {
    return file_.native && node.own && node.own->what == what ? node.own.get() : nullptr;
  }

  void sort_nodes() {
    struct Place {
      std::int64_t start_ns;
      std::uint32_t order;
      std::uint32_t node;
      auto operator<=>(const Place&) const = default;
    };
    std::vector<Place> places;
    places.reserve(file_.nodes.size());
    for (std::uint32_t i = 0; i < file_.nodes.size(); ++i) {
      if (node_at(i).start_ns) places.push_back({*node_at(i).start_ns, order_[i], i});
    }
    if (!std::ranges::is_sorted(places)) std::ranges::sort(places);
    sorted_.reserve(places.size());
    for (const Place& place : places) sorted_.push_back(place.node);
  }

  void add_op(std::uint32_t index) {
    const ChakraNode& node = node_at(index);
    const OwnFields* own = own_of(node, OwnFields::What::kDeviceOp);
    DeviceOp op;
    op.start = at(*node.start_ns);
    op.duration = Duration{node.duration_ns};
    op.name = node.name;
    op.stream = StreamId{node.lane};
    if (own != nullptr) {
      op.kind = static_cast<DeviceOpKind>(own->kind);
      op.direction = own->direction;
      op.bytes = own->bytes;
      op.correlation = own->correlation;
    } else {
      set_kind(node, op);
    }
    if (has_shape(op)) {
      const bool shaped = own != nullptr && own->has_shape;
      if (!shaped) ++shapeless_;
      op.shape = trace_.shapes.intern(shaped ? own->shape : kUnknownShape);
    }
    if (op.kind == DeviceOpKind::kCollective) {
      op.collective = static_cast<std::uint32_t>(trace_.collectives.size());
      trace_.collectives.push_back(own != nullptr ? own->collective : collective(node));
      trace_.collectives.back().bytes = node.comm_size;
    }
    if (node.duration_ns == 0 && op.kind != DeviceOpKind::kCollective) {
      trace_.counters.add(kNoDuration);
    }
    place_[index] = static_cast<std::uint32_t>(trace_.device_ops.size());
    trace_.device_ops.push_back(op);
    op_nodes_.push_back(index);
  }

  void set_kind(const ChakraNode& node, DeviceOp& op) const {
    const std::string& name = trace_.names[node.name];
    if (node.collective) {
      op.kind = DeviceOpKind::kCollective;
    } else if (node.type == kMemLoadNode || node.type == kMemStoreNode) {
      op.kind = DeviceOpKind::kCopy;
      op.direction = node.type == kMemLoadNode ? CopyDirection::kHostToDevice
                                               : CopyDirection::kDeviceToHost;
      op.bytes = node.tensor_size;
    } else if (name.starts_with("Memcpy")) {
      op.kind = DeviceOpKind::kCopy;
      op.direction = copy_direction(name);
      op.bytes = node.tensor_size;
    } else if (name.starts_with("Memset")) {
      op.kind = DeviceOpKind::kMemset;
      op.bytes = node.tensor_size;
    }
  }

  Collective collective(const ChakraNode& node) {
    Collective out;
    out.kind = *node.collective;
    if (is_one_end(out.kind)) {
      const auto other = sends(out.kind) ? node.destination : node.source;
      if (other) out.peers = {*other};
    }
    if (node.group) {
      out.group = *node.group;
      set_members(out);
    } else if (out.peers.empty()) {
      trace_.counters.add(kGroupsAssumed);
      out.group = trace_.names.intern(kWorldGroup);
    }
    if (out.kind == CollectiveKind::kUnknown) trace_.counters.add(kUnknownCollectives);
    if (node.involves_dims) trace_.counters.add(kInvolvedDims);
    return out;
  }

  void set_members(Collective& out) const {
    const auto found = groups_.find(out.group);
    if (found == groups_.end()) return;
    out.group_size = found->second->size;
    if (out.peers.empty()) out.peers = found->second->ranks;
  }

  void add_of_host(std::uint32_t index) {
    const ChakraNode& node = node_at(index);
    if (node.on_host()) {
      add_call(index);
    } else if (node.type != kMetadataNode) {
      return;
    } else if (const OwnFields* marker = own_of(node, OwnFields::What::kMarker)) {
      trace_.markers.push_back({at(*node.start_ns), Duration{node.duration_ns}, node.name,
                                ThreadId{node.lane}, static_cast<MarkerKind>(marker->sort),
                                marker->number});
    } else if (const OwnFields* stall = own_of(node, OwnFields::What::kStall)) {
      trace_.stalls.push_back({at(*node.start_ns), Duration{node.duration_ns},
                               ThreadId{node.lane}, static_cast<StallKind>(stall->sort)});
    }
  }

  void add_call(std::uint32_t index) {
    const ChakraNode& node = node_at(index);
    const OwnFields* own = own_of(node, OwnFields::What::kHostCall);
    HostCall call;
    call.start = at(*node.start_ns);
    call.duration = Duration{node.duration_ns};
    call.name = node.name;
    call.thread = ThreadId{node.lane};
    if (own != nullptr) {
      call.kind = static_cast<HostCallKind>(own->kind);
      call.correlation = own->correlation;
      call.event = own->event;
      if (own->stream && *own->stream < trace_.streams.size()) call.stream = *own->stream;
    } else {
      add_waits(node);
    }
    place_[index] = static_cast<std::uint32_t>(trace_.host_calls.size());
    trace_.host_calls.push_back(call);
    call_is_own_.push_back(own != nullptr);
  }

  /// A host node that depends on device nodes waits for their streams before it.
  void add_waits(const ChakraNode& node) {
    std::set<std::uint32_t> streams;
    for (const std::uint64_t parent : node.data) {
      if (!node_at(parent).on_device() || place_[parent] == kNone) continue;
      if (*node_at(parent).start_ns > *node.start_ns) {
        trace_.counters.add(kAgainstTime);
      } else {
        streams.insert(node_at(parent).lane);
      }
    }
    for (const std::uint32_t stream : streams) {
      HostCall wait;
      wait.start = at(*node.start_ns);
      wait.name = trace_.names.intern("wait for stream");
      wait.thread = ThreadId{node.lane};
      wait.kind = HostCallKind::kStreamSync;
      wait.stream = stream;
      trace_.host_calls.push_back(wait);
      call_is_own_.push_back(false);
      trace_.counters.add(kSyncsInserted);
    }
  }

  /// The host node that a device node depends on and that starts last, else its caller.
  void link_launch(std::uint32_t op) {
    const ChakraNode& node = node_at(op_nodes_[op]);
    std::uint32_t launch = kNone;
    for (const auto* parents : {&node.data, &node.control}) {
      for (const std::uint64_t parent : *parents) {
        if (!node_at(parent).on_host() || place_[parent] == kNone) continue;
        if (launch == kNone || place_[parent] > launch) launch = place_[parent];
      }
      if (launch != kNone) break;
    }
    trace_.device_ops[op].launch = launch;
    if (launch == kNone) ++orphans_;
  }

  void add_edges(std::uint32_t op) {
    const ChakraNode& node = node_at(op_nodes_[op]);
    std::set<std::uint32_t> before;
    for (const std::uint64_t parent : node.data) {
      if (node_at(parent).type == kMetadataNode) trace_.counters.add(kThroughMetadata);
      if (!node_at(parent).on_device() || place_[parent] == kNone) continue;
      if (place_[parent] >= op) {
        trace_.counters.add(kAgainstTime);
      } else if (node_at(parent).lane != node.lane && before.insert(place_[parent]).second) {
        trace_.edges.push_back(
            {DeviceOpId{place_[parent]}, DeviceOpId{op}, is_inferred(node, parent)});
      }
    }
  }

  bool is_inferred(const ChakraNode& node, std::uint64_t parent) const {
    const OwnFields* own = own_of(node, OwnFields::What::kDeviceOp);
    if (own == nullptr) return false;
    const auto& ids = own->inferred_edges;
    return std::binary_search(ids.begin(), ids.end(), parent);
  }

  /// Kinds of calls by what they launch; correlations, one a call.
  void finish_calls() {
    std::vector<std::uint32_t> launches(trace_.host_calls.size(), 0);
    for (const DeviceOp& op : trace_.device_ops) {
      if (op.launch == kNone) continue;
      HostCall& call = trace_.host_calls[op.launch];
      if (launches[op.launch]++ == 1) trace_.counters.add(kManyOps);
      if (call_is_own_[op.launch] || launches[op.launch] > 1) continue;
      call.kind = op.kind == DeviceOpKind::kCopy     ? HostCallKind::kCopy
                  : op.kind == DeviceOpKind::kMemset ? HostCallKind::kMemset
                                                     : HostCallKind::kLaunchKernel;
      call.stream = op.stream.value;
    }
    std::unordered_set<std::uint64_t> used;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      HostCall& call = trace_.host_calls[i];
      if (call.correlation != 0 && !used.insert(call.correlation).second) call.correlation = 0;
    }
    std::uint64_t next = 1;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      HostCall& call = trace_.host_calls[i];
      if (call.correlation != 0 || launches[i] == 0 || call_is_own_[i]) continue;
      while (!used.insert(next).second) ++next;
      call.correlation = next;
    }
    for (DeviceOp& op : trace_.device_ops) {
      if (op.launch != kNone) op.correlation = trace_.host_calls[op.launch].correlation;
    }
  }

  /// The order of a graph is the program's, and a file holds a whole rank: the n-th of a group
  /// meets the n-th of every other rank. What the layout ended without some ranks takes its place
  /// in that order, but its number is one that the missing ranks do not have.
  void number_collectives() {
    if (file_.native) return;
    std::map<std::tuple<NameId, CollectiveKind, std::uint32_t>, std::uint64_t> next;
    trace_.counters.add(kSequenceByOrder, trace_.collectives.size());
    for (std::size_t op = 0; op < op_nodes_.size(); ++op) {
      if (trace_.device_ops[op].collective == kNone) continue;
      Collective& collective = trace_.collectives[trace_.device_ops[op].collective];
      const bool pair = is_one_end(collective.kind) && collective.peers.size() == 1;
      const auto key = std::tuple(collective.group, collective.kind,
                                  pair ? collective.peers.front() : kNone);
      collective.sequence = next[key]++;
      const std::uint32_t left = node_at(op_nodes_[op]).left_meeting;
      if (left > 0) collective.sequence = kLeftMeetings + left;
      collective.sequence_recorded = true;
    }
  }

  File file_;
  const std::vector<std::uint32_t>& order_;
  RankTrace& trace_;
  std::vector<std::uint32_t> place_;   ///< by node: index of its operation or call
  std::vector<std::uint32_t> sorted_;  ///< nodes with a start, by start
  std::vector<std::uint32_t> op_nodes_;
  std::vector<bool> call_is_own_;
  std::map<NameId, const ChakraGroup*> groups_;
  std::uint64_t shapeless_ = 0;
  std::uint64_t orphans_ = 0;
};

}  // namespace

RankTrace make_records(File file, const std::vector<std::uint32_t>& order) {
  return Maker(std::move(file), order).make();
}

}  // namespace bubblesim::traces::chakra
