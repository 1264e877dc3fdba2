// The memory that a gate's host and its clients share: plain, of a fixed layout. It starts as
// zeros; the host fills in its fields before it gives out the name.
//
// Each launching thread has a row: a ring of messages with one writer and one reader, and an answer
// word that both change by compare-and-swap, so that a thread that gives up and a host that answers
// at the same moment agree on what happened.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "capture/clock/host_clock.hpp"
#include "capture/clock/process_mark.hpp"
#include "capture/gate/gate_client.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::capture {

inline constexpr std::uint64_t kGateMagic = 0x62627367'61746531ULL;
inline constexpr std::uint32_t kGateVersion = 5;
/// The most messages of one thread that the host has not taken yet.
inline constexpr std::uint32_t kGateRing = 1024;

enum class MessageKind : std::uint32_t {
  kTold,     ///< a launch that goes on
  kAsked,    ///< a launch that waits
  kUngated,  ///< a launch in mode kAsk that went on without asking
  kCompleted,
  kIteration,
  kBubbleBegan,
  kBubbleEnded,
};

struct GateMessage {
  HostTime time{};          ///< of the request
  std::uint64_t order = 0;  ///< among messages of one time
  MessageKind kind = MessageKind::kTold;
  std::uint32_t ask = 0;      ///< kAsked: the number of the question
  policy::LaunchInfo launch;  ///< kCompleted: client, kind, number, operations; else only client
  policy::BubbleInfo bubble;
  Duration length{};
};
static_assert(std::is_trivially_copyable_v<GateMessage>);

enum class Answer : std::uint32_t { kNone, kAsked, kHeld, kGo, kReleased, kWithdrawn };

/// A question and the state of its answer, in one word.
struct AnswerWord {
  std::uint32_t ask = 0;
  Answer answer = Answer::kNone;

  [[nodiscard]] std::uint64_t packed() const {
    return std::uint64_t{ask} << 32U | static_cast<std::uint32_t>(answer);
  }
  [[nodiscard]] static AnswerWord unpacked(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32U), static_cast<Answer>(word & 0xffffffffU)};
  }
};

enum class RowState : std::uint32_t {
  kFree,
  kUsed,
  kLeft,  ///< its thread writes no more; free once the host has taken its messages
};

/// The row of one launching thread.
struct GateRow {
  /// State in the lowest two bits; above them how often the row was given out.
  std::atomic<std::uint64_t> state;
  std::atomic<std::uint32_t> client;
  std::atomic<std::int32_t> thread;  ///< gettid() in the client's process
  Bell bell;                         ///< rung when the answer has changed
  alignas(64) std::atomic<std::uint64_t> answer;
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;
  alignas(64) GateMessage ring[kGateRing];

  [[nodiscard]] static RowState state_of(std::uint64_t word) {
    return static_cast<RowState>(word & 3U);
  }
  [[nodiscard]] static std::uint64_t next(std::uint64_t word, RowState to) {
    const std::uint64_t given = (word >> 2U) + (to == RowState::kUsed ? 1 : 0);
    return given << 2U | static_cast<std::uint32_t>(to);
  }
  [[nodiscard]] bool is_empty() const { return written.load() == taken.load(); }
};

/// A GPU's UUID as CUDA and NVML give it, 16 bytes.
struct GpuUuid {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const GpuUuid&, const GpuUuid&) = default;
};

/// The GPU whose launches the gate decides about; written once.
class WatchedGpu {
 public:
  /// Nothing: not known yet.
  [[nodiscard]] std::optional<GpuUuid> read() const {
    return state_.load(std::memory_order_acquire) == kKnown ? std::optional(uuid_) : std::nullopt;
  }
  std::optional<GpuUuid> read_or_set(const GpuUuid& uuid) {
    std::uint32_t unknown = 0;
    if (state_.compare_exchange_strong(unknown, kBeingWritten)) {
      uuid_ = uuid;
      state_.store(kKnown, std::memory_order_release);
    }
    return read();
  }

 private:
  static constexpr std::uint32_t kBeingWritten = 1, kKnown = 2;
  std::atomic<std::uint32_t> state_;
  GpuUuid uuid_;
};

enum class PlaceState : std::uint32_t { kEmpty, kTaken, kJoined, kLeft, kGone };

/// The place of one client.
struct alignas(64) GatePlace {
  std::atomic<PlaceState> state;
  std::atomic<GateMode> mode;
  std::atomic<std::uint32_t> window;
  std::atomic<std::uint64_t> launches;
  std::atomic<std::uint64_t> before;  ///< launches of the processes that had the place before
  std::atomic<std::uint64_t> passed;  ///< in GateMode::kPass
  std::atomic<std::uint64_t> ungated;
  std::atomic<std::uint64_t> dropped;
  ProcessMark process;  ///< the client's process, in state kJoined
};

struct GateSegment {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t clients;
  ProcessMark host;
  alignas(64) std::atomic<std::uint32_t> open;       ///< not 0: no more decisions
  std::atomic<std::uint32_t> rows_given;             ///< rows from here on were never used
  std::atomic<std::int64_t> shortest_patience;       ///< of all clients, ns; 0: none yet
  alignas(64) std::atomic<std::int64_t> heartbeat;   ///< when the host last looked, ns
  alignas(64) std::atomic<std::uint64_t> order;      ///< of the last message
  alignas(64) std::atomic<std::uint32_t> host_waits;  ///< the host wants its bell rung
  Bell host_bell;
  WatchedGpu gpu;
  GatePlace places[kMostGateClients];
  GateRow rows[kMostGateThreads];
};

// The rows of a gate as its clients use them: taken by threads, given back, written to.

/// A row that a thread holds; `state` as it was when the thread took it.
struct HeldRow {
  GateRow* row = nullptr;
  std::uint64_t state = 0;
};

/// Takes a row for the calling thread; none if all are in use.
[[nodiscard]] HeldRow take_row(GateSegment& segment, std::uint32_t client) noexcept;

/// Gives the row back; does nothing if another thread has it by now.
void give_back(const HeldRow& held) noexcept;

/// Frees the client's place for the next process, and gives back the rows of all its threads;
/// threads that still wait go on.
void leave_place(GateSegment& segment, ClientId client) noexcept;

/// Appends the message and gives it its order; false if the ring is full. Called by the row's
/// thread only.
[[nodiscard]] bool put(GateSegment& segment, GateRow& row, GateMessage& message) noexcept;

}  // namespace bubblesim::capture
