#include "capture/record/decode/call_names.hpp"

#include <fmt/format.h>

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

}  // namespace bubblesim::capture
