// The fake CUPTI's activity buffers, which it requests, fills and gives back as CUPTI does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "capture/record/cupti/abi.hpp"

namespace fake {

class Buffers {
 public:
  void set_callbacks(bubblesim::capture::cupti::BufferRequested requested,
                     bubblesim::capture::cupti::BufferCompleted completed);

  /// Writes a record for `thread`; it is complete from `end` on.
  void write(std::uint32_t thread, std::span<const std::uint8_t> record, std::uint64_t end);
  /// Gives back the buffers whose records are all complete; `forced`: all buffers.
  void flush(bool forced);
  /// Records dropped since the last call: those that found no buffer, plus the option `drops`.
  [[nodiscard]] std::size_t take_dropped();

 private:
  struct Buffer {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    std::uint64_t complete_at = 0;
  };
  /// Invokes the completion callback. The lock is not held: the callback may call CUPTI.
  void give_back(const std::vector<Buffer>& buffers);

  std::mutex mutex_;
  std::map<std::uint32_t, Buffer> buffers_;  ///< by thread
  std::vector<Buffer> kept_;  ///< never given back
  std::atomic<std::size_t> dropped_{0};
  std::atomic<bool> dropped_told_{false};
  std::atomic<bubblesim::capture::cupti::BufferRequested> requested_{nullptr};
  std::atomic<bubblesim::capture::cupti::BufferCompleted> completed_{nullptr};
};

/// Bytes from one record of this kind to the next, as in CUDA 13.0; 0: unknown kind.
[[nodiscard]] std::size_t stride_of(std::uint32_t kind);

/// A kind of record that no CUPTI has.
inline constexpr std::uint32_t kUnknownKind = 4711;

}  // namespace fake
