// Device memory that the process holds, followed from one allocation and release to the next.
//
// Begins at zero when the recording does: what was there before is not known. The release of such
// memory changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace bubblesim::capture {

class LiveMemory {
 public:
  enum class Outcome : std::uint8_t {
    kDone,
    kReplaced,  ///< the address was live: its release was not recorded, and is taken as done
    kUnknown,   ///< of a release: no such allocation
    kFull,      ///< too many live allocations to follow
  };
  Outcome allocate(std::uint64_t address, std::uint64_t bytes);
  Outcome release(std::uint64_t address);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  /// Bounds the memory that the recorder takes from the job: some 60 MB.
  static constexpr std::size_t kMaxLive = std::size_t{1} << 20U;

  std::unordered_map<std::uint64_t, std::uint64_t> live_;  ///< bytes by address
  std::uint64_t bytes_ = 0;
};

}  // namespace bubblesim::capture
