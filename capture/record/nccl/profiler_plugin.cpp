#include "capture/record/nccl/profiler_plugin.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "capture/record/host/host_event.hpp"
#include "capture/record/nccl/nccl_calls.hpp"

namespace bubblesim::capture {
namespace {

using traces::CollectiveKind;

constexpr std::int64_t kNoTime = 0;

// A report older than this does not bound the next launch's start: the thread did other work.
constexpr std::int64_t kOldestReportNs = 10'000'000'000;

// In larger communicators peers have no counters, which would take a quarter of a megabyte each.
constexpr std::uint32_t kMostCounted = 16'384;

// A launch with more peers is an all-to-all, or its peers are not kept.
constexpr std::size_t kMostPeers = 32;

std::int64_t now_ns() noexcept { return to_ns(host_now()); }

TraceTime instant(std::int64_t ns) noexcept { return TraceTime{Duration{ns}}; }

/// A message as NCCL describes it; null names are allowed.
struct NcclMessage {
  const char* function = nullptr;
  const char* datatype = nullptr;
  std::size_t count = 0;
  int peer = -1;  ///< of a send or a receive: its rank in the communicator
};

enum class GraphCapture : std::uint8_t { kNo, kYes };

/// An instant of a thread as an opaque handle, null for none: NCCL carries it from a call to the
/// call's launches (none, one or more).
using CallHandle = void*;

std::uint64_t message_bytes(const NcclMessage& message) noexcept {
  const std::uint64_t size = nccl_type_bytes(message.datatype);
  if (size != 0 && message.count > std::numeric_limits<std::uint64_t>::max() / size) return 0;
  return size * message.count;
}

/// The communicator of most ranks, the first of several such: the number of its ranks, and below it
/// half of its hash. Ranks make communicators in one order, so all choose the same.
std::atomic<std::uint64_t> leader{0};

std::uint64_t leading(std::uint32_t ranks, std::uint64_t hash) {
  return std::uint64_t{ranks} << 32U | (hash & 0xFFFFFFFFU);
}

/// Emits an event if the operation is known; without memory the event is lost, and nothing else. A
/// captured operation has no number: its graph may run any number of times.
void emit_collective(const NcclMessage& message, std::uint64_t hash, std::uint32_t ranks,
                     std::uint32_t place, std::uint64_t sequence, std::int64_t start_ns,
                     GraphCapture captured, bool leads) noexcept {
  const std::optional<NcclCall> call = nccl_call(message.function);
  if (!call) return;
  try {
    CollectiveEvent event;
    event.start = instant(start_ns);
    event.thread = host_thread_id();
    event.kind = call->kind;
    event.bytes = nccl_input_bytes(*call, message_bytes(message), ranks);
    event.group = nccl_group_name(hash);
    event.group_size = ranks;
    event.place = place;
    event.sequence = sequence;
    event.sequence_recorded = captured == GraphCapture::kNo;
    event.leads = leads && event.sequence_recorded;
    if (captured == GraphCapture::kYes) await_graph_node(std::move(event));
    else emit_host_event(std::move(event));
  } catch (...) {
  }
}

/// What NCCL's profiler interface says of one communicator, made into CollectiveEvents.
///
/// Every event's time lies before the launch of the kernel that does the work and after the launch
/// before it on the thread, whatever the version of the interface: traces/join relies on it.
///  - v5 and v6 report the program's calls before anything is launched: their time is taken.
///  - v4 reports what a launch consisted of right after it: the event takes the end of the report
///    before it on the thread. The first launch of a thread in a recording has none and is left
///    out.
/// Sends and receives of one launch are one event, which names their peers. A lone send or receive
/// is numbered among those to, or from, its peer: the other end counts alike. No function here
/// locks or throws.
class NcclCommunicator {
 public:
  /// `rank`: of this process in the communicator.
  NcclCommunicator(std::uint64_t hash, int ranks, int rank) noexcept
      : hash_(hash), ranks_(ranks > 0 ? static_cast<std::uint32_t>(ranks) : 0),
        place_(rank >= 0 && rank < ranks ? static_cast<std::uint32_t>(rank) + 1 : 0),
        transfers_(ranks_ > kMostCounted
                       ? nullptr
                       : new (std::nothrow) std::atomic<std::uint64_t>[2 * std::size_t{ranks_}]{}) {
    for (std::uint64_t seen = leader; ranks_ > seen >> 32U;) {
      if (leader.compare_exchange_weak(seen, leading(ranks_, hash_))) break;
    }
  }
  ~NcclCommunicator() {
    std::uint64_t own = leading(ranks_, hash_);
    leader.compare_exchange_strong(own, 0);
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// v5: the program calls a collective. A call captured into a graph is recorded, too, with its
  /// kernel's node: it runs whenever the graph does.
  void collective_called(const NcclMessage& message, GraphCapture captured) noexcept {
    // Counted also while nothing is recorded, so ranks agree whenever they begin to record.
    const std::uint64_t sequence = collectives_.fetch_add(1, std::memory_order_relaxed);
    if (!host_recording()) return;
    emit_collective(message, hash_, ranks_, place_, sequence, now_ns(), captured,
                    leader.load(std::memory_order_relaxed) == leading(ranks_, hash_));
  }
  /// v5: the program calls ncclSend or ncclRecv. Null: no launch is awaited. A captured call is
  /// recorded with its kernel's node, with the bytes sent and no peer.
  [[nodiscard]] static CallHandle exchange_called(const NcclMessage& message,
                                                  GraphCapture captured) noexcept {
    if (!host_recording()) return nullptr;
    if (captured == GraphCapture::kNo)
      return reinterpret_cast<CallHandle>(static_cast<std::intptr_t>(now_ns()));
    const std::optional<NcclCall> call = nccl_call(message.function);
    CollectiveEvent event;
    event.kind = CollectiveKind::kSendRecv;
    if (call && call->kind == CollectiveKind::kSend) event.bytes = message_bytes(message);
    await_graph_node(std::move(event));
    return nullptr;
  }
  /// v4: a collective was part of the thread's latest launch.
  void collective_launched(const NcclMessage& message, std::uint64_t sequence) noexcept {
    const std::int64_t start = after_previous();
    if (start == kNoTime) return;
    emit_collective(message, hash_, ranks_, place_, sequence, start, GraphCapture::kNo, false);
  }
  /// A send or receive was part of the thread's latest launch. `call` is v5's, null in v4.
  void exchange_launched(const NcclMessage& message, CallHandle call) noexcept {
    add_exchange(message, static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(call)));
  }
  void exchange_launched_v4(const NcclMessage& message) noexcept {
    add_exchange(message, after_previous());
  }

  /// Called before and after NCCL reports one launch, on the launching thread.
  static void launch_report_begins() noexcept {
    LaunchReport& current = report();
    const std::int64_t previous_end_ns = current.previous_end_ns;
    current = {};
    current.open = true;
    current.previous_end_ns = previous_end_ns;
  }
  static void launch_report_ends() noexcept {
    LaunchReport& current = report();
    if (!current.open) return;
    current.open = false;
    if (current.communicator != nullptr) current.communicator->emit_exchange(current);
    current.communicator = nullptr;
    current.previous_end_ns = host_recording() ? now_ns() : kNoTime;
  }

 private:
  /// The launch that is being reported on a thread, and the time of the thread's last report. Plain
  /// data: it outlives the thread's other objects.
  struct LaunchReport {
    bool open;
    NcclCommunicator* communicator;  ///< of its sends and receives; null: none
    std::uint32_t sends;
    std::uint32_t receives;
    std::uint64_t sent_bytes;
    std::uint64_t received_bytes;
    std::int64_t start_ns;
    std::int64_t previous_end_ns;  ///< of the report before; kNoTime: not recorded
    std::optional<std::uint64_t> number;  ///< of the last send or receive
    std::uint32_t peer_count;             ///< more than kMostPeers: they are not kept
    std::array<std::uint32_t, kMostPeers> peers;

    void add_peer(int peer) noexcept {
      const auto known = peers.begin() + std::min<std::size_t>(peer_count, kMostPeers);
      const auto rank = static_cast<std::uint32_t>(peer);
      if (std::find(peers.begin(), known, rank) != known) return;
      if (peer >= 0 && peer_count < kMostPeers) peers[peer_count++] = rank;
      else peer_count = kMostPeers + 1;
    }
  };
  static LaunchReport& report() noexcept {
    static thread_local LaunchReport current{};
    return current;
  }
  /// v4: an instant between the latest launch and the one before it on this thread or, for a
  /// communicator that does not block, on any thread.
  [[nodiscard]] std::int64_t after_previous() noexcept {
    const std::int64_t now = host_recording() ? now_ns() : kNoTime;
    const std::int64_t before = previous_ns_.exchange(now, std::memory_order_relaxed);
    const std::int64_t own = report().previous_end_ns;
    const std::int64_t previous = own == kNoTime ? before : own;
    if (now == kNoTime || previous == kNoTime) return kNoTime;
    return std::max(previous, now - kOldestReportNs);
  }
  void add_exchange(const NcclMessage& message, std::int64_t start_ns) noexcept {
    const std::optional<NcclCall> call = nccl_call(message.function);
    LaunchReport& current = report();
    if (!call || !current.open) return;
    if (call->kind != CollectiveKind::kSend && call->kind != CollectiveKind::kRecv) return;
    current.communicator = this;
    const bool sends = call->kind == CollectiveKind::kSend;
    (sends ? current.sends : current.receives) += 1;
    (sends ? current.sent_bytes : current.received_bytes) += message_bytes(message);
    current.number = next_number(message.peer, sends);
    if (message.peer < 0 || static_cast<std::uint32_t>(message.peer) + 1 != place_) {
      current.add_peer(message.peer);
    }
    if (start_ns == kNoTime) return;
    current.start_ns =
        current.start_ns == kNoTime ? start_ns : std::min(current.start_ns, start_ns);
  }
  std::optional<std::uint64_t> next_number(int peer, bool sends) noexcept {
    if (!transfers_ || peer < 0 || static_cast<std::uint32_t>(peer) >= ranks_) return std::nullopt;
    const std::size_t direction = 2 * static_cast<std::size_t>(peer) + (sends ? 1 : 0);
    return transfers_[direction].fetch_add(1, std::memory_order_relaxed);
  }
  void emit_exchange(const LaunchReport& done) noexcept {
    const std::uint64_t sequence = exchanges_.fetch_add(1, std::memory_order_relaxed);
    if (done.start_ns == kNoTime || !host_recording()) return;
    try {
      CollectiveEvent event;
      event.start = instant(done.start_ns);
      event.thread = host_thread_id();
      event.bytes = done.sends > 0 ? done.sent_bytes : done.received_bytes;
      event.group = nccl_group_name(hash_);
      event.group_size = ranks_;
      const bool lone = done.sends + done.receives == 1;
      event.kind = CollectiveKind::kSendRecv;
      if (ranks_ > 2 && lone) {
        event.kind = done.sends == 1 ? CollectiveKind::kSend : CollectiveKind::kRecv;
      } else if (ranks_ > 2 && std::min(done.sends, done.receives) >= ranks_ - 1) {
        event.kind = CollectiveKind::kAllToAll;
      }
      if (event.kind != CollectiveKind::kAllToAll && place_ != 0 && done.peer_count <= kMostPeers) {
        event.place = place_;
        event.peers.assign(done.peers.begin(), done.peers.begin() + done.peer_count);
      }
      // Two ranks meet in every launch, so both count alike; with more, a launch may leave any two
      // out.
      const std::optional<std::uint64_t> number = ranks_ == 2 ? sequence : done.number;
      event.sequence_recorded = number.has_value() && (ranks_ == 2 || lone);
      event.sequence = event.sequence_recorded ? *number : 0;
      emit_host_event(std::move(event));
    } catch (...) {
    }
  }

  const std::uint64_t hash_;
  const std::uint32_t ranks_;  ///< 0: not known
  const std::uint32_t place_;  ///< of this rank, plus 1; 0: not known
  /// By peer, the sends to it and the receives from it since the communicator was made; null: too
  /// many peers.
  const std::unique_ptr<std::atomic<std::uint64_t>[]> transfers_;
  std::atomic<std::uint64_t> collectives_{0};  ///< called since the communicator was made
  std::atomic<std::int64_t> previous_ns_{0};   ///< time of the last report; 0: not recorded
  std::atomic<std::uint64_t> exchanges_{0};    ///< launches with sends or receives so far
};

using namespace nccl_abi;

// The handle of a launch's report; every other handle is an instant and needs no stop.
char launch_handle;

void make_communicator(void** context, int* mask, std::uint64_t events, std::uint64_t hash,
                       int ranks, int rank) noexcept {
  if (context == nullptr || mask == nullptr) return;
  *context = new (std::nothrow) NcclCommunicator(hash, ranks, rank);
  *mask = *context == nullptr ? 0 : static_cast<int>(events);
}

Result init_v4(void** context, int* mask, const char*, std::uint64_t hash, int, int ranks, int rank,
               Logger) noexcept {
  make_communicator(context, mask, kColl | kP2p, hash, ranks, rank);
  return kSuccess;
}

Result init_v5(void** context, std::uint64_t hash, int* mask, const char*, int, int ranks, int rank,
               Logger) noexcept {
  make_communicator(context, mask, kCollApi | kP2pApi | kP2p, hash, ranks, rank);
  return kSuccess;
}

NcclMessage message_of(const Coll& coll) noexcept {
  return {coll.function, coll.datatype, coll.count, -1};
}
NcclMessage message_of(const P2p& p2p) noexcept {
  return {p2p.function, p2p.datatype, p2p.count, p2p.peer};
}

GraphCapture captured(bool yes) noexcept { return yes ? GraphCapture::kYes : GraphCapture::kNo; }

Result start_v4(void* context, void** handle, DescriptorV4* event) noexcept {
  if (handle != nullptr) *handle = nullptr;
  if (context == nullptr || handle == nullptr || event == nullptr) return kSuccess;
  auto& communicator = *static_cast<NcclCommunicator*>(context);
  switch (event->type) {
    case kGroup:
      // NCCL 2.27 reports the operations of a launch only if the launch has a handle.
      NcclCommunicator::launch_report_begins();
      *handle = &launch_handle;
      break;
    case kColl:
      communicator.collective_launched(message_of(event->coll), event->coll.sequence);
      break;
    case kP2p:
      communicator.exchange_launched_v4(message_of(event->p2p));
      break;
    default:
      break;
  }
  return kSuccess;
}

Result start_v5(void* context, void** handle, DescriptorV5* event) noexcept {
  if (handle != nullptr) *handle = nullptr;
  if (context == nullptr || handle == nullptr || event == nullptr) return kSuccess;
  auto& communicator = *static_cast<NcclCommunicator*>(context);
  switch (event->type) {
    case kCollApi:
      communicator.collective_called(
          {event->coll_api.function, event->coll_api.datatype, event->coll_api.count, -1},
          captured(event->coll_api.graph_captured));
      break;
    case kP2pApi:
      *handle = NcclCommunicator::exchange_called(
          {event->p2p_api.function, event->p2p_api.datatype, event->p2p_api.count, -1},
          captured(event->p2p_api.graph_captured));
      break;
    case kGroup:
      NcclCommunicator::launch_report_begins();
      *handle = &launch_handle;
      break;
    case kP2p:
      communicator.exchange_launched(message_of(event->p2p), event->parent);
      break;
    default:
      break;
  }
  return kSuccess;
}

Result stop_event(void* handle) noexcept {
  if (handle == &launch_handle) NcclCommunicator::launch_report_ends();
  return kSuccess;
}

Result record_event_state(void*, int, void*) noexcept { return kSuccess; }

Result finalize(void* context) noexcept {
  delete static_cast<NcclCommunicator*>(context);
  return kSuccess;
}

constexpr ProfilerV4 kVersion4{"bubblesim", init_v4, start_v4, stop_event, record_event_state,
                               finalize};
constexpr ProfilerV5 kVersion5{"bubblesim", init_v5, start_v5, stop_event, record_event_state,
                               finalize};

}  // namespace
}  // namespace bubblesim::capture

extern "C" {
const bubblesim::capture::nccl_abi::ProfilerV4 ncclProfiler_v4 = bubblesim::capture::kVersion4;
const bubblesim::capture::nccl_abi::ProfilerV5 ncclProfiler_v5 = bubblesim::capture::kVersion5;
const bubblesim::capture::nccl_abi::ProfilerV5 ncclProfiler_v6 = bubblesim::capture::kVersion5;
}
