#include "capture/record/nvtx/nvtx_events.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "capture/record/nccl/nccl_calls.hpp"
#include "capture/record/nvtx/thread_ranges.hpp"
#include "capture/record/nvtx/nccl_payload.hpp"
#include "capture/record/nvtx/nvtx_text.hpp"

namespace bubblesim::capture {
namespace {

// Names with an NVTX handle: domains and registered strings. Handles are small numbers, so that a
// wrong handle has no name instead of being dereferenced. Never freed; equal names share a handle.

/// Looking up never locks. add() may throw std::bad_alloc and then has added nothing.
template <std::size_t kMost>
class NameTable {
 public:
  /// Null: the table is full.
  [[nodiscard]] void* add(std::string name) {
    const BoundedLock::Held held(lock_);
    if (!held) return nullptr;
    const auto known = indices_.find(name);
    if (known != indices_.end()) return handle_of(known->second);
    if (count_ == kMost) return nullptr;
    const auto place = indices_.emplace(std::move(name), count_).first;
    names_[count_].store(&place->first, std::memory_order_release);
    return handle_of(count_++);
  }

  /// Null for handles of other tables.
  [[nodiscard]] const std::string* find(const void* handle) const noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number == 0 || number > kMost) return nullptr;
    return names_[number - 1].load(std::memory_order_acquire);
  }

 private:
  static void* handle_of(std::size_t index) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(index + 1));
  }

  BoundedLock lock_;
  std::size_t count_ = 0;
  std::unordered_map<std::string, std::size_t> indices_;  ///< its keys never move
  std::array<std::atomic<const std::string*>, kMost> names_{};
};

using namespace nvtx_abi;

constexpr std::size_t kMostDomains = 1'024;
constexpr std::size_t kMostStrings = 16'384;

constexpr const char* kNcclDomain = "NCCL";

// Never destroyed: libraries call NVTX while the process ends.
NameTable<kMostDomains>& domains() {
  static auto& table = *[] {
    auto* fresh = new NameTable<kMostDomains>;
    (void)fresh->add(kNcclDomain);  // always has a place
    return fresh;
  }();
  return table;
}
NameTable<kMostStrings>& strings() {
  static auto& table = *new NameTable<kMostStrings>;
  return table;
}

std::string message_of(const EventAttributes& given) {
  switch (given.message_type) {
    case kMessageAscii:
      return name_of(static_cast<const char*>(given.message), kLongestAnnouncement);
    case kMessageUnicode:
      return name_of(static_cast<const wchar_t*>(given.message), kLongestAnnouncement);
    case kMessageRegistered: {
      const std::string* name = strings().find(given.message);
      return name == nullptr ? std::string() : *name;
    }
    default:
      return {};
  }
}

std::span<const PayloadData> payloads_of(const EventAttributes& given) {
  if (given.payload_type != kPayloadExtended || given.payload == 0) return {};
  if (given.reserved <= 0 || given.reserved > kMostPayloads) return {};
  const auto* first = reinterpret_cast<const PayloadData*>(given.payload);
  return {first, static_cast<std::size_t>(given.reserved)};
}

std::optional<HostEvent> nccl_range_begins(const NvtxCall& call, RangeEvent&& range) {
  const std::optional<NcclCall> operation = nccl_call(range.name.c_str());
  if (!operation) {
    if (std::string_view(range.name).substr(0, 8) == "ncclComm") return std::move(range);
    return std::nullopt;
  }
  const NcclPayload payload = read_nccl_payload(call.payloads);
  CollectiveEvent event;
  event.source = traces::CollectiveSource::kNvtx;
  event.kind = operation->kind;
  const NcclPayload known = known_communicator(payload.communicator);
  event.group_size = known.ranks;
  event.bytes = nccl_input_bytes(*operation, payload.bytes, event.group_size);
  if (payload.communicator != 0) event.group = nccl_group_name(payload.communicator);
  if (payload.peer != 0 && known.place != 0 && payload.peer <= known.ranks) {
    event.place = known.place;
    event.peers = {payload.peer - 1};
  }
  return event;
}

std::optional<HostEvent> event_of(NvtxCall&& call) {
  if (call.name.empty()) return std::nullopt;
  if (announces_collective(call.name)) return read_announcement(call.name);
  cut(call.name, kLongestName);
  const bool nccl = is_nccl(call.domain);
  RangeEvent range;
  if (const std::string* domain = domains().find(call.domain)) range.domain = *domain;
  range.name = std::move(call.name);
  if (nccl) return nccl_range_begins(call, std::move(range));
  return range;
}

}  // namespace

NvtxCall call_of(Domain domain, const EventAttributes* given) {
  if (given == nullptr || given->size < sizeof(EventAttributes)) return {domain, {}, {}};
  return {domain, message_of(*given), payloads_of(*given)};
}

NvtxCall call_of(Domain domain, const char* name) {
  return {domain, name_of(name, kLongestAnnouncement), {}};
}

NvtxCall call_of(Domain domain, const wchar_t* name) {
  return {domain, name_of(name, kLongestAnnouncement), {}};
}

std::optional<HostEvent> range_begins(NvtxCall&& call) {
  std::optional<HostEvent> event = event_of(std::move(call));
  if (!event) return event;
  std::visit(
      [](auto& opened) {
        if constexpr (requires { opened.duration; }) {
          opened.thread = host_thread_id();
          opened.start = host_now();  // last: the time before it is the recorder's, not the
                                      // program's
        }
      },
      *event);
  return event;
}

void range_ends(HostEvent&& event) noexcept {
  if (!host_recording()) return;
  const TraceTime end = host_now();
  std::visit(
      [end](auto& opened) {
        if constexpr (requires { opened.duration; }) {
          opened.duration = end > opened.start ? end - opened.start : Duration{};
        }
      },
      event);
  emit_host_event(std::move(event));
}

void mark(NvtxCall&& call) {
  if (call.name.empty() || is_nccl(call.domain)) return;
  MarkEvent event;
  event.at = host_now();
  event.thread = host_thread_id();
  cut(call.name, kLongestName);
  event.name = std::move(call.name);
  emit_host_event(std::move(event));
}

Domain create_domain(std::string name) { return domains().add(std::move(name)); }

StringHandle register_string(std::string name) { return strings().add(std::move(name)); }

bool is_nccl(Domain domain) noexcept {
  if (domain == nullptr) return false;
  try {
    const std::string* name = domains().find(domain);
    return name != nullptr && *name == kNcclDomain;
  } catch (...) {  // the table could not be made
    return false;
  }
}

}  // namespace bubblesim::capture
