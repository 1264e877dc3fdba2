// Finds entries of a table by their hash.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace bubblesim::gpu {

/// Entries are added one at a time, and forgotten all at once. Hashes use all of 64 bits.
class HashIndex {
 public:
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

  /// The position with this hash for which is(position) is true; kNowhere: none.
  template <class Is>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Is is) const {
    for (std::size_t at = hash >> shift_;; at = next(at)) {
      const Place& place = places_[at];
      if (place.position == kNowhere) return kNowhere;
      if (place.mark == mark_of(hash) && is(place.position)) return place.position;
    }
  }

  void add(std::uint64_t hash, std::uint32_t position) {
    if (2 * ++size_ > places_.size()) grow();
    enter({mark_of(hash), position});
  }

  void clear() {
    size_ = 0;
    places_.assign(places_.size(), {});
  }

 private:
  static constexpr std::size_t kLeast = 16;

  struct Place {
    std::uint32_t mark = 0;  ///< the upper half of the hash
    std::uint32_t position = kNowhere;
  };

  [[nodiscard]] static std::uint32_t mark_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32U);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (places_.size() - 1); }

  void enter(const Place& place) {
    std::size_t at = (std::uint64_t{place.mark} << 32U) >> shift_;
    while (places_[at].position != kNowhere) at = next(at);
    places_[at] = place;
  }

  void grow() {
    const std::vector<Place> before =
        std::exchange(places_, std::vector<Place>(2 * places_.size()));
    --shift_;
    for (const Place& place : before) {
      if (place.position != kNowhere) enter(place);
    }
  }

  std::vector<Place> places_ = std::vector<Place>(kLeast);  ///< at most half of them are in use
  int shift_ = 64 - std::countr_zero(kLeast);  ///< right shift of a hash to an index into places_
  std::size_t size_ = 0;
};

}  // namespace bubblesim::gpu
