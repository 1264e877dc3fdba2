#include "capture/record/decode/cupti_names.hpp"

#include <fmt/format.h>

#include <string_view>

#include "traces/names/host_call_names.hpp"

namespace bubblesim::capture {

CallNames::CallNames(std::span<const TracedCall> calls, std::string_view library)
    : places_(kCallNumbers), library_(library) {
  for (const TracedCall& call : calls) {
    places_[call.id].call = {{}, traces::classify_host_call(call.name), true};
    places_[call.id].text = call.name;
  }
}

void CallNames::name(std::uint32_t id, Place& place, RecordTables& tables) {
  place.call.name = place.text != nullptr ? tables.name(place.text) : unlisted(id, tables).name;
  place.named = true;
}

const CallNames::Call& CallNames::unlisted(std::uint32_t id, RecordTables& tables) {
  last_unlisted_.name = tables.name(fmt::format("(cuda {} call {})", library_, id));
  return last_unlisted_;
}

namespace {

using traces::CopyDirection;

struct CopyWord {
  std::string_view word;
  CopyDirection direction;
};

/// By cupti::CopyKind. An array lies on the device.
constexpr std::array kCopies{
    CopyWord{"Unknown", CopyDirection::kNone},
    CopyWord{"HtoD", CopyDirection::kHostToDevice},
    CopyWord{"DtoH", CopyDirection::kDeviceToHost},
    CopyWord{"HtoA", CopyDirection::kHostToDevice},
    CopyWord{"AtoH", CopyDirection::kDeviceToHost},
    CopyWord{"AtoA", CopyDirection::kDeviceToDevice},
    CopyWord{"AtoD", CopyDirection::kDeviceToDevice},
    CopyWord{"DtoA", CopyDirection::kDeviceToDevice},
    CopyWord{"DtoD", CopyDirection::kDeviceToDevice},
    CopyWord{"HtoH", CopyDirection::kHostToHost},
    CopyWord{"PtoP", CopyDirection::kPeerToPeer},
};

/// By cupti::MemoryKind.
constexpr std::array<std::string_view, 8> kMemoryWords{
    "Unknown", "Pageable", "Pinned",        "Device",
    "Array",   "Managed",  "Device Static", "Managed Static"};

std::size_t known_copy(std::uint8_t kind) { return kind < kCopies.size() ? kind : 0; }
std::size_t known_memory(std::size_t kind) { return kind < kMemoryWords.size() ? kind : 0; }

}  // namespace

CopyDirection direction_of(std::uint8_t copy_kind) {
  return kCopies[known_copy(copy_kind)].direction;
}

NameId CopyNames::copy(std::uint8_t kind, std::uint8_t source, std::uint8_t target,
                       RecordTables& tables) {
  const std::size_t from = known_memory(source);
  const std::size_t to = known_memory(target);
  auto& name = copies_[(known_copy(kind) * kMemories + from) * kMemories + to];
  if (!name) {
    name = tables.name(fmt::format("Memcpy {} ({} -> {})", kCopies[known_copy(kind)].word,
                                   kMemoryWords[from], kMemoryWords[to]));
  }
  return *name;
}

NameId CopyNames::memset(std::uint16_t memory, RecordTables& tables) {
  auto& name = memsets_[known_memory(memory)];
  if (!name) name = tables.name(fmt::format("Memset ({})", kMemoryWords[known_memory(memory)]));
  return *name;
}

}  // namespace bubblesim::capture
