// Turns an NVTX range or mark into the event that the session's writer gets.
//
// Announcements of stand-ins and NCCL's operations become CollectiveEvents, other ranges
// RangeEvents, marks MarkEvents. NCCL's other ranges are bookkeeping of its own: left out, but for
// the making and ending of communicators. A range without a name gives no event.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "capture/record/host/host_event.hpp"
#include "capture/record/nvtx/nvtx_abi.hpp"

namespace bubblesim::capture {

/// A range or a mark as the program gave it.
struct NvtxCall {
  nvtx_abi::Domain domain = nullptr;
  std::string name;  ///< at most kLongestAnnouncement bytes
  std::span<const nvtx_abi::PayloadData> payloads;
};

/// May throw std::bad_alloc, as everything below that is not noexcept. Attributes that are null,
/// too small, or of unknown message types have no name.
[[nodiscard]] NvtxCall call_of(nvtx_abi::Domain domain, const nvtx_abi::EventAttributes* given);
[[nodiscard]] NvtxCall call_of(nvtx_abi::Domain domain, const char* name);
[[nodiscard]] NvtxCall call_of(nvtx_abi::Domain domain, const wchar_t* name);

/// The event of a range that begins now, without its duration; nothing: the range is no event.
[[nodiscard]] std::optional<HostEvent> range_begins(NvtxCall&& call);
/// Gives `event` its duration and hands it over.
void range_ends(HostEvent&& event) noexcept;
void mark(NvtxCall&& call);

[[nodiscard]] nvtx_abi::Domain create_domain(std::string name);
[[nodiscard]] nvtx_abi::StringHandle register_string(std::string name);
[[nodiscard]] bool is_nccl(nvtx_abi::Domain domain) noexcept;

}  // namespace bubblesim::capture
