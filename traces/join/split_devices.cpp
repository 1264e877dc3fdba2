#include "traces/join/split_devices.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/join/join_parts.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces {
namespace {

constexpr std::uint64_t kLeastPercent = 1;

std::uint32_t device_of(const RankTrace& trace, const DeviceOp& op) {
  return trace.streams[op.stream.index()].device;
}

struct DeviceUse {
  std::uint64_t kernels = 0;
  std::uint64_t operations = 0;
};

std::map<std::uint32_t, DeviceUse> uses_of(const RankTrace& trace) {
  std::map<std::uint32_t, DeviceUse> uses;
  for (const DeviceOp& op : trace.device_ops) {
    DeviceUse& use = uses[device_of(trace, op)];
    ++use.operations;
    use.kernels += has_shape(op) ? 1 : 0;
  }
  return uses;
}

/// The devices that are ranks, by number.
struct Parts {
  explicit Parts(const RankTrace& trace) {
    const std::uint32_t most = main_device(trace);
    for (const auto& [device, use] : uses_of(trace)) {
      const bool enough = 100 * use.operations >= kLeastPercent * trace.device_ops.size();
      if (device == most) main = devices.size();
      if (device == most || (use.kernels > 0 && enough)) devices.push_back(device);
      else elsewhere += use.operations;
    }
  }
  [[nodiscard]] std::size_t of(std::uint32_t device) const {
    const auto found = std::ranges::lower_bound(devices, device);
    const bool own = found != devices.end() && *found == device;
    return own ? static_cast<std::size_t>(found - devices.begin()) : main;
  }

  std::vector<std::uint32_t> devices;
  std::size_t main = 0;         ///< into devices: that of most operations
  std::uint64_t elsewhere = 0;  ///< operations on devices that are no ranks
};

/// Which part each call is of.
class CallParts {
 public:
  CallParts(const RankTrace& trace, const Parts& parts, std::span<const std::uint32_t> devices)
      : trace_(trace), devices_(devices), found_(trace.host_calls.size(), kUnknown),
        used_(trace.threads.size(), parts.main),
        busy_until_(parts.devices.size(), TraceTime::min()) {
    std::vector<TraceTime> ends(found_.size(), TraceTime::min());
    for (const DeviceOp& op : trace.device_ops) {
      if (op.launch == kNone) continue;
      found_[op.launch] = parts.of(device_of(trace, op));
      ends[op.launch] = std::max(ends[op.launch], op.end());
    }
    find_named(parts);
    for (std::size_t call = 0; call < found_.size(); ++call) settle(call, ends[call]);
  }

  [[nodiscard]] std::size_t operator[](std::size_t call) const { return found_[call]; }
  [[nodiscard]] std::uint64_t given() const { return given_; }

 private:
  static constexpr std::size_t kUnknown = SIZE_MAX;

  // Threads begin with the first GPU that they name.
  void find_named(const Parts& parts) {
    for (std::size_t i = found_.size(); i-- > 0;) {
      const HostCall& call = trace_.host_calls[i];
      const bool said = !devices_.empty() && devices_[i] != 0;
      if (found_[i] == kUnknown && said) found_[i] = parts.of(devices_[i] - 1);
      if (found_[i] == kUnknown && call.stream != kNone) {
        found_[i] = parts.of(trace_.streams[call.stream].device);
      }
      if (found_[i] != kUnknown) used_[call.thread.index()] = found_[i];
    }
  }

  void settle(std::size_t index, TraceTime end) {
    const HostCall& call = trace_.host_calls[index];
    std::size_t& used = used_[call.thread.index()];
    std::size_t& part = found_[index];
    if (part == kUnknown) {
      part = is_synchronisation(call.kind) ? waited_for(call, used) : used;
      ++given_;
    } else {
      used = part;
      busy_until_[part] = std::max(busy_until_[part], end);
    }
  }

  // All that was launched before has ended when the call returns, and some of it within the call.
  [[nodiscard]] bool may_be(const HostCall& call, std::size_t part) const {
    return busy_until_[part] > call.start && busy_until_[part] <= call.end() + kClockError;
  }
  [[nodiscard]] std::size_t waited_for(const HostCall& call, std::size_t used) const {
    if (may_be(call, used)) return used;
    std::size_t best = used;
    for (std::size_t part = 0; part < busy_until_.size(); ++part) {
      const bool later = best == used || busy_until_[part] > busy_until_[best];
      if (may_be(call, part) && later) best = part;
    }
    return best;
  }

  const RankTrace& trace_;
  std::span<const std::uint32_t> devices_;
  std::vector<std::size_t> found_;    ///< by call
  std::vector<std::size_t> used_;     ///< by thread: the part that it used last
  std::vector<TraceTime> busy_until_;  ///< by part
  std::uint64_t given_ = 0;
};

/// Hands out the records of a process.
class Splitter {
 public:
  Splitter(RankTrace& process, const Parts& parts, std::span<const std::uint32_t> call_devices)
      : process_(process), parts_(parts), calls_(process, parts, call_devices),
        ranks_(parts.devices.size()) {}

  std::vector<RankTrace> run() {
    for (RankTrace& rank : ranks_) describe(rank);
    move_calls();
    move_ops();
    move_edges();
    for (const HostStall& stall : process_.stalls) ranks_[part_of(stall)].stalls.push_back(stall);
    process_.counters.add(join::kMemoryGiven, process_.memory.size());
    ranks_[parts_.main].memory = std::move(process_.memory);
    ranks_.front().counters = std::move(process_.counters);
    ranks_.front().counters.add(join::kCallsGiven, calls_.given());
    return std::move(ranks_);
  }

 private:
  void describe(RankTrace& rank) const {
    rank.names = process_.names;
    rank.shapes = process_.shapes;
    rank.threads = process_.threads;
    rank.streams = process_.streams;
    rank.markers = process_.markers;
    rank.clocks = process_.clocks;
    rank.provenance = process_.provenance;
  }

  void move_calls() {
    for (std::size_t i = 0; i < process_.host_calls.size(); ++i) {
      std::vector<HostCall>& calls = ranks_[calls_[i]].host_calls;
      call_places_.push_back(static_cast<std::uint32_t>(calls.size()));
      calls.push_back(process_.host_calls[i]);
    }
  }

  void move_ops() {
    for (DeviceOp op : process_.device_ops) {
      const std::size_t part = parts_.of(device_of(process_, op));
      RankTrace& rank = ranks_[part];
      if (op.launch != kNone) {
        op.launch = calls_[op.launch] == part ? call_places_[op.launch] : kNone;
      }
      if (op.collective != kNone) {
        rank.collectives.push_back(std::move(process_.collectives[op.collective]));
        op.collective = static_cast<std::uint32_t>(rank.collectives.size() - 1);
      }
      op_places_.push_back({part, static_cast<std::uint32_t>(rank.device_ops.size())});
      rank.device_ops.push_back(op);
    }
  }

  void move_edges() {
    std::uint64_t between = 0;
    for (const Edge& edge : process_.edges) {
      const auto& [part, before] = op_places_[edge.before.index()];
      const auto& [other, after] = op_places_[edge.after.index()];
      between += part != other ? 1 : 0;
      if (part != other) continue;
      ranks_[part].edges.push_back({DeviceOpId{before}, DeviceOpId{after}, edge.inferred});
    }
    process_.counters.add(join::kWaitsBetween, between);
  }

  // The part of the launch of its thread that began last.
  [[nodiscard]] std::size_t part_of(const HostStall& stall) const {
    const auto& calls = process_.host_calls;
    auto call = std::ranges::upper_bound(calls, stall.start, {}, &HostCall::start);
    while (call != calls.begin()) {
      --call;
      const auto place = static_cast<std::size_t>(call - calls.begin());
      if (call->thread == stall.thread) return calls_[place];
    }
    return parts_.main;
  }

  RankTrace& process_;
  const Parts& parts_;
  CallParts calls_;
  std::vector<RankTrace> ranks_;
  std::vector<std::uint32_t> call_places_;
  std::vector<std::pair<std::size_t, std::uint32_t>> op_places_;
};

}  // namespace

std::uint32_t main_device(const RankTrace& rank) {
  std::pair<std::uint64_t, std::uint32_t> most{};
  for (const auto& [device, use] : uses_of(rank)) {
    if (use.operations > most.first) most = {use.operations, device};
  }
  return most.second;
}

std::vector<RankTrace> split_by_device(RankTrace process,
                                       std::span<const std::uint32_t> call_devices) {
  const Parts parts(process);
  process.counters.add(join::kOtherDevices, parts.elsewhere);
  if (parts.devices.size() > 1) return Splitter(process, parts, call_devices).run();
  std::vector<RankTrace> ranks;
  ranks.push_back(std::move(process));
  return ranks;
}

}  // namespace bubblesim::traces
