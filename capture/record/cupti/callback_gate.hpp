// The way from CUPTI's callbacks to the session that they are for.
//
// CUPTI's buffer callbacks carry no user data, so one atomic pointer of the process says where they
// go: the recorder's only mutable global. CUPTI may call from any thread, and after a session has
// ended: a callback that finds the gate shut gives CUPTI a discard buffer, for old CUPTIs crash on
// a nullptr, and tells no session.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "capture/record/cupti/api.hpp"
#include "capture/record/cupti/session.hpp"

namespace bubblesim::capture {

/// The state that callbacks of one session use.
struct CallbackTarget {
  const CuptiApi& api;
  BufferOwner& owner;
  std::atomic<std::int64_t> buffers_out{0};  ///< handed to CUPTI, not returned yet
};

/// Lets callbacks through to `target`. False: the gate is open for another one.
[[nodiscard]] bool open_gate(CallbackTarget& target) noexcept;
/// Lets no callback begin with `target` any more; waits for callbacks under way, at most two
/// seconds. False: one still runs (or made this call), and `target` must stay.
[[nodiscard]] bool shut_gate(CallbackTarget& target) noexcept;

/// The callbacks, with CUPTI's signatures.
void on_buffer_requested(std::uint8_t** buffer, std::size_t* size,
                         std::size_t* max_records) noexcept;
void on_buffer_completed(void* context, std::uint32_t stream, std::uint8_t* buffer,
                         std::size_t size, std::size_t valid) noexcept;
void on_callback(void* user, std::uint32_t domain, std::uint32_t id, const void* data) noexcept;

}  // namespace bubblesim::capture
