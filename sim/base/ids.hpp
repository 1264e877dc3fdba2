// Strong identifiers: an index into one kind of thing, which cannot be taken for another kind.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace bubblesim {

/// An index of `Tag`s. Value semantics, 4 bytes, ordered by index.
template <class Tag>
struct StrongId {
  std::uint32_t value = 0;

  [[nodiscard]] constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

using RankId = StrongId<struct RankTag>;          ///< a rank of a distributed job
using GpuId = StrongId<struct GpuTag>;            ///< a GPU of the simulated cluster
using ClientId = StrongId<struct ClientTag>;      ///< one job's process on one GPU
using StreamId = StrongId<struct StreamTag>;      ///< index into a rank's stream table
using ThreadId = StrongId<struct ThreadTag>;      ///< index into a rank's host thread table
using NameId = StrongId<struct NameTag>;          ///< index into a string table
using ShapeId = StrongId<struct ShapeTag>;        ///< index into a table of launch shapes
using DeviceOpId = StrongId<struct DeviceOpTag>;  ///< index into a rank's device operations
using HostCallId = StrongId<struct HostCallTag>;  ///< index into a rank's host calls

}  // namespace bubblesim

template <class Tag>
struct std::hash<bubblesim::StrongId<Tag>> {
  std::size_t operator()(bubblesim::StrongId<Tag> id) const noexcept { return id.value; }
};
