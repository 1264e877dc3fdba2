#include "capture/record/nvtx/nccl_payload.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

namespace bubblesim::capture {
namespace {

using namespace nvtx_abi;

constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMostEntries = 32;
constexpr std::size_t kMostSchemas = 128;        // NCCL 2.30 has 25
constexpr std::size_t kMostCommunicators = 4096;
constexpr std::uint64_t kLargestOffset = 4096;

/// Offsets in a payload. The communicator and the bytes have 8 bytes, numbers of ranks 4.
struct Layout {
  std::uint32_t communicator = kAbsent;
  std::uint32_t bytes = kAbsent;
  std::uint32_t ranks = kAbsent;
  std::uint32_t place = kAbsent;
  std::uint32_t peer = kAbsent;
  std::size_t size = 0;  ///< of the payload; 0: not said
};

/// Bytes of NVTX's predefined types; 0 for those that NCCL's fields do not have.
std::uint64_t type_bytes(std::uint64_t type) {
  switch (type) {
    case 1: case 2: case 11: case 12: return 1;          // char, int8
    case 3: case 4: case 13: case 14: return 2;          // short, int16
    case 5: case 6: case 15: case 16: case 19: return 4; // int, int32, float
    case 7: case 8: case 9: case 10: case 17: case 18: case 20: case 22: case 23: return 8;
    default: return type >= kFirstStaticSchema ? 4 : 0;  // an enumeration that NCCL registered
  }
}

void place(std::string_view name, std::uint64_t bytes, std::uint64_t offset, Layout& layout) {
  const auto at = static_cast<std::uint32_t>(offset);
  if (bytes == 8 && name == "NCCL communicator ID") layout.communicator = at;
  if (bytes == 8 && name == "Message size [bytes]") layout.bytes = at;
  if (bytes == 4 && (name == "No. of ranks" || name == "No. of devices")) layout.ranks = at;
  if (bytes == 4 && name == "Rank") layout.place = at;
  if (bytes == 4 && name == "Peer rank") layout.peer = at;
}

Layout layout_of(const SchemaAttributes& schema) {
  Layout layout;
  if ((schema.fields & kSchemaSize) != 0) layout.size = schema.size;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < schema.entry_count && i < kMostEntries; ++i) {
    const SchemaEntry& entry = schema.entries[i];
    const std::uint64_t bytes = type_bytes(entry.type);
    if (bytes == 0 || entry.flags != 0) break;  // the fields after it have unknown offsets
    const std::uint64_t aligned = (end + bytes - 1) / bytes * bytes;
    const std::uint64_t offset = entry.offset != 0 ? entry.offset : aligned;
    if (offset > kLargestOffset) break;
    end = offset + bytes;
    if (entry.name != nullptr) place(entry.name, bytes, offset, layout);
  }
  return layout;
}

using Layouts = std::array<std::atomic<const Layout*>, kMostSchemas>;
Layouts registered_layouts{};

/// Payloads of NCCL's operations whose registration was not seen.
Layout layout_by_size(std::uint64_t number, std::size_t size) {
  constexpr std::uint64_t kFirstOperation = 4, kLastOperation = 10;  // AllGather ... Recv
  constexpr std::uint64_t kAllGather = 4, kSend = 9, kAlltoAll = 16, kScatter = 18;
  const bool operates = (number >= kFirstOperation && number <= kLastOperation) ||
                        (number >= kAlltoAll && number <= kScatter);
  const bool lone_size = number == kAllGather || number == kAlltoAll;  // nothing follows the bytes
  const bool named = size == (lone_size ? 16U : 24U);
  if (!operates || (!named && size != (lone_size ? 8U : 16U))) return {};
  const std::uint32_t bytes = named ? 8 : 0;
  return {.communicator = named ? 0 : kAbsent,
          .bytes = bytes,
          .peer = number == kSend || number == kLastOperation ? bytes + 8 : kAbsent,
          .size = size};
}

template <class Number>
Number read(const PayloadData& part, std::uint32_t offset, std::size_t size) {
  Number value = 0;
  if (offset != kAbsent && std::size_t{offset} + sizeof value <= size) {
    std::memcpy(&value, static_cast<const char*>(part.payload) + offset, sizeof value);
  }
  return value;
}

/// Plus 1; 0: none.
std::uint32_t read_place(const PayloadData& part, std::uint32_t offset, std::size_t size) {
  if (offset == kAbsent || std::size_t{offset} + sizeof(std::int32_t) > size) return 0;
  const auto number = read<std::int32_t>(part, offset, size);
  return number < 0 ? 0 : static_cast<std::uint32_t>(number) + 1;
}

NcclPayload read_part(const PayloadData& part) {
  NcclPayload out;
  if (part.payload == nullptr || part.schema < kFirstStaticSchema) return out;
  const std::uint64_t number = part.schema - kFirstStaticSchema;
  if (number >= kMostSchemas) return out;
  const Layout* known = registered_layouts[number].load(std::memory_order_acquire);
  const Layout layout = known != nullptr ? *known : layout_by_size(number, part.size);
  const bool unsaid = part.size == std::numeric_limits<std::size_t>::max();
  const std::size_t size = unsaid ? layout.size : part.size;
  out.communicator = read<std::uint64_t>(part, layout.communicator, size);
  out.bytes = read<std::uint64_t>(part, layout.bytes, size);
  const auto ranks = read<std::int32_t>(part, layout.ranks, size);
  out.ranks = ranks > 0 ? static_cast<std::uint32_t>(ranks) : 0;
  out.place = read_place(part, layout.place, size);
  out.peer = read_place(part, layout.peer, size);
  return out;
}

/// Communicators by their hashes, open addressing; a hash of 0 is a free place.
struct Communicator {
  std::atomic<std::uint64_t> hash;
  std::atomic<std::uint32_t> ranks;
  std::atomic<std::uint32_t> place;  ///< kAbsent: there are several
};
std::array<Communicator, kMostCommunicators> communicators{};

Communicator& probe(std::uint64_t hash, std::size_t i) {
  return communicators[(hash + i) % kMostCommunicators];
}

}  // namespace

void register_nccl_schema(const SchemaAttributes& schema) noexcept {
  constexpr std::uint64_t kNeeded = kSchemaEntries | kSchemaEntryCount | kSchemaId;
  if ((schema.fields & kNeeded) != kNeeded || schema.entries == nullptr) return;
  if (schema.schema < kFirstStaticSchema) return;
  const std::uint64_t number = schema.schema - kFirstStaticSchema;
  if (number >= kMostSchemas) return;
  if (registered_layouts[number].load(std::memory_order_acquire) != nullptr) return;
  const auto* fresh = new (std::nothrow) Layout(layout_of(schema));
  const Layout* none = nullptr;
  if (!registered_layouts[number].compare_exchange_strong(none, fresh)) delete fresh;
}

NcclPayload read_nccl_payload(std::span<const PayloadData> parts) noexcept {
  for (const PayloadData& part : parts) {
    const NcclPayload payload = read_part(part);
    if (payload.communicator != 0 || payload.bytes != 0 || payload.ranks != 0) return payload;
  }
  return {};
}

void remember_communicator(const NcclPayload& made) noexcept {
  if (made.communicator == 0 || made.ranks == 0) return;
  for (std::size_t i = 0; i < kMostCommunicators; ++i) {
    Communicator& entry = probe(made.communicator, i);
    std::uint64_t found = 0;
    const bool taken = entry.hash.compare_exchange_strong(found, made.communicator);
    if (!taken && found != made.communicator) continue;
    std::uint32_t first = 0;
    const bool alone = entry.place.compare_exchange_strong(first, made.place);
    if (!alone && first != made.place) entry.place.store(kAbsent, std::memory_order_relaxed);
    entry.ranks.store(made.ranks, std::memory_order_release);
    return;
  }
}

NcclPayload known_communicator(std::uint64_t hash) noexcept {
  for (std::size_t i = 0; i < kMostCommunicators && hash != 0; ++i) {
    const Communicator& entry = probe(hash, i);
    const std::uint64_t found = entry.hash.load(std::memory_order_acquire);
    if (found == 0) return {};
    if (found != hash) continue;
    const std::uint32_t ranks = entry.ranks.load(std::memory_order_acquire);
    const std::uint32_t place = entry.place.load(std::memory_order_relaxed);
    return {.communicator = hash, .ranks = ranks, .place = place == kAbsent ? 0 : place};
  }
  return {};
}

}  // namespace bubblesim::capture
