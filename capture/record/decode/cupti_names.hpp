// Names and kinds of API calls by CUPTI's number; a name enters the tables at its first use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "capture/record/cupti/traced_calls.hpp"
#include "capture/record/store/record_tables.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

class CallNames {
 public:
  struct Call {
    NameId name{};
    traces::HostCallKind kind = traces::HostCallKind::kOther;
    bool listed = false;
  };

  /// `library`, "runtime" or "driver", is in the name of a call that `calls` lacks.
  CallNames(std::span<const TracedCall> calls, std::string_view library);
  [[nodiscard]] const Call& call(std::uint32_t id, RecordTables& tables) {
    if (id >= places_.size()) return unlisted(id, tables);
    Place& place = places_[id];
    if (!place.named) name(id, place, tables);
    return place.call;
  }

 private:
  struct Place {
    Call call;
    const char* text = nullptr;
    bool named = false;
  };
  void name(std::uint32_t id, Place& place, RecordTables& tables);
  const Call& unlisted(std::uint32_t id, RecordTables& tables);

  std::vector<Place> places_;  ///< by id
  std::string_view library_;
  Call last_unlisted_;
};

// Names of copies and memsets as Kineto writes them: "Memcpy HtoD (Pinned -> Device)".

[[nodiscard]] traces::CopyDirection direction_of(std::uint8_t copy_kind);

class CopyNames {
 public:
  /// The name of a copy by its cupti::CopyKind and two cupti::MemoryKind; any numbers are allowed.
  [[nodiscard]] NameId copy(std::uint8_t kind, std::uint8_t source, std::uint8_t target,
                            RecordTables& tables);
  [[nodiscard]] NameId memset(std::uint16_t memory, RecordTables& tables);

 private:
  static constexpr std::size_t kKinds = 11;
  static constexpr std::size_t kMemories = 8;
  std::array<std::optional<NameId>, kKinds * kMemories * kMemories> copies_;
  std::array<std::optional<NameId>, kMemories> memsets_;
};

}  // namespace bubblesim::capture
