// Names of copies and memsets as Kineto writes them: "Memcpy HtoD (Pinned -> Device)".
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "capture/record/store/record_tables.hpp"
#include "traces/trace.hpp"

namespace bubblesim::capture {

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
