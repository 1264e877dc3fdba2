// What NCCL's profiler interface says of one communicator, made into CollectiveEvents.
//
// Every event's time lies before the launch of the kernel that does the work and after the launch
// before it on the thread, whatever the version of the interface: traces/join relies on it.
//  - v5 and v6 report the program's calls before anything is launched: their time is taken.
//  - v4 reports what a launch consisted of right after it: the event takes the end of the report
//    before it on the thread. The first launch of a thread in a recording has none and is left out.
// Sends and receives of one launch are one event, which names their peers. A lone send or receive
// is numbered among those to, or from, its peer: the other end counts alike. No function here locks
// or throws.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "capture/record/nccl/nccl_calls.hpp"

namespace bubblesim::capture {

/// A message as NCCL describes it; null names are allowed.
struct NcclMessage {
  const char* function = nullptr;
  const char* datatype = nullptr;
  std::size_t count = 0;
  int peer = -1;  ///< of a send or a receive: its rank in the communicator
};

enum class GraphCapture : std::uint8_t { kNo, kYes };

/// An instant of a thread as an opaque handle, null for none: NCCL carries it from a call to the
/// call's launches (none, one or more).
using CallHandle = void*;

class NcclCommunicator {
 public:
  /// `rank`: of this process in the communicator.
  NcclCommunicator(std::uint64_t hash, int ranks, int rank) noexcept;
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// v5: the program calls a collective. A call captured into a graph is recorded, too, with its
  /// kernel's node: it runs whenever the graph does.
  void collective_called(const NcclMessage& message, GraphCapture captured) noexcept;
  /// v5: the program calls ncclSend or ncclRecv. Null: no launch is awaited. A captured call is
  /// recorded with its kernel's node, with the bytes sent and no peer.
  [[nodiscard]] static CallHandle exchange_called(const NcclMessage& message,
                                                  GraphCapture captured) noexcept;
  /// v4: a collective was part of the thread's latest launch.
  void collective_launched(const NcclMessage& message, std::uint64_t sequence) noexcept;
  /// A send or receive was part of the thread's latest launch. `call` is v5's, null in v4.
  void exchange_launched(const NcclMessage& message, CallHandle call) noexcept;
  void exchange_launched_v4(const NcclMessage& message) noexcept;

  /// Called before and after NCCL reports one launch, on the launching thread.
  static void launch_report_begins() noexcept;
  static void launch_report_ends() noexcept;

 private:
  struct LaunchReport;
  static LaunchReport& report() noexcept;
  /// v4: an instant between the latest launch and the one before it on this thread or, for a
  /// communicator that does not block, on any thread.
  [[nodiscard]] std::int64_t after_previous() noexcept;
  void add_exchange(const NcclMessage& message, std::int64_t start_ns) noexcept;
  std::optional<std::uint64_t> next_number(int peer, bool sends) noexcept;
  void emit_exchange(const LaunchReport& report) noexcept;

  const std::uint64_t hash_;
  const std::uint32_t ranks_;  ///< 0: not known
  const std::uint32_t place_;  ///< of this rank, plus 1; 0: not known
  /// By peer, the sends to it and the receives from it since the communicator was made; null: too
  /// many peers.
  const std::unique_ptr<std::atomic<std::uint64_t>[]> transfers_;
  std::atomic<std::uint64_t> collectives_{0};  ///< called since the communicator was made
  std::atomic<std::int64_t> previous_ns_{0};   ///< time of the last report; 0: not recorded
  std::atomic<std::uint64_t> exchanges_{0};    ///< launches with sends or receives so far
};

}  // namespace bubblesim::capture
