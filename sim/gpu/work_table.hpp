// The work and the clients of one GPU, by id, shared by the parts of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/gpu/gpu.hpp"
#include "sim/gpu/sm_blocks.hpp"
#include "sim/gpu/usage.hpp"
#include "sim/gpu/waves.hpp"

namespace bubblesim::gpu {

struct ClientState {
  ClientSetup setup;
  WorkListener* listener = nullptr;
  std::optional<program::Preemption> off;  ///< how it was driven off the GPU; nothing: it was not
  SmRange sms;                             ///< on which its blocks may be
  std::uint32_t told_sms = 0;              ///< SMs of the device that the client knows
  std::uint32_t listed = 0;                ///< how many of its works are `listed`
  bool overlaps = false;  ///< several of its kernels are resident, placed as they were recorded
};

/// One submitted operation. Copies and memsets use only `work`.
struct WorkState {
  Work work;
  Waves waves;
  FootprintId placed;             ///< SMs of its resident blocks, as its context's pool has it
  std::uint64_t arrival = 0;      ///< order of submission
  std::uint32_t sized_sms = 0;    ///< the grid is sized for this many SMs, not for all; 0: as
                                  ///< recorded
  double sm_share = 1;            ///< share of the SMs that a full wave covers
  SimTime end = SimTime::max();   ///< kCollective: when it ends, once that is known
  bool started = false;           ///< the listener has been told
  bool listed = false;            ///< in its context's list of resident work
  bool refills = false;           ///< its waiting blocks replace its ending ones
  bool behind_held = false;       ///< waits behind work held by an SM cap
  bool stalled = false;           ///< driven off the GPU: the listener has been told
};

/// In SMs. Covers are sums of fractions; their rounding must not keep a block out.
inline constexpr double kCoverSlack = 1e-9;

/// SMs that its resident blocks cover; one block covers 1 / blocks_per_sm of an SM.
[[nodiscard]] inline double covered_sms(const WorkState& state) {
  return static_cast<double>(state.waves.resident()) /
         state.work.profile->residency.blocks_per_sm;
}

/// Blocks of a full wave on the whole GPU, whatever the grid was sized for.
[[nodiscard]] inline std::uint64_t whole_wave(const WorkState& state) {
  return state.sized_sms > 0 ? state.work.profile->blocks : state.waves.full_wave();
}

/// Starts the kernel's waves, on a GPU of this many SMs.
inline void start_waves(WorkState& state, std::uint32_t sms) {
  const program::KernelProfile& profile = *state.work.profile;
  const std::uint64_t capacity = std::uint64_t{profile.residency.blocks_per_sm} * sms;
  const std::uint64_t sized =
      std::uint64_t{profile.residency.blocks_per_sm} * state.sized_sms;
  state.waves.start(state.work.solo, state.sized_sms > 0 ? sized : profile.blocks, capacity);
}

/// A message to a listener.
struct Note {
  enum class Kind : std::uint8_t { kStarted, kPaused, kResumed, kFinished };
  Kind kind;
  WorkId work;
};

/// Slots are reused, so that a steady run does not allocate.
class WorkTable {
 public:
  /// The slot has old contents: every field must be set, except `placed`, which is empty.
  WorkId allocate() {
    if (free_count_ > 0) return free_[--free_count_];
    works_.emplace_back();
    free_.emplace_back();
    return WorkId{static_cast<std::uint32_t>(works_.size() - 1)};
  }
  void release(WorkId id) { free_[free_count_++] = id; }
  [[nodiscard]] bool holds(WorkId id) const { return id.index() < works_.size(); }

  WorkState& operator[](WorkId id) { return works_[id.index()]; }
  const WorkState& operator[](WorkId id) const { return works_[id.index()]; }

 private:
  std::vector<WorkState> works_;
  std::vector<WorkId> free_;  ///< the first free_count_ are free; as long as the table
  std::size_t free_count_ = 0;
};

/// State that the model and its contexts share.
struct SharedState {
  hardware::GpuSpec spec;
  WorkTable works;
  std::vector<ClientState> clients;
  Usage usage;
  bool processes = false;   ///< clients are processes of an MPS server
  bool even = false;        ///< clients of one priority share room evenly
  bool confined = false;    ///< a client may use a part of the SMs only, by PartSpec
  double lit = 1;           ///< share of the SMs that a client may use
  std::vector<Note> notes;  ///< in the order of the listeners' calls

  // Written in place: copying members that were just set would stall.
  void note(Note::Kind kind, WorkId work) {
    Note& next = notes.emplace_back();
    next.kind = kind;
    next.work = work;
  }
};

}  // namespace bubblesim::gpu
