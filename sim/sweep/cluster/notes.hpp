// What ranks of a sweep tell each other, as bytes with a check sum: damage in between is found, and
// is as if the message had not come.
//
// Workers ask and deliver; the leader only answers. A worker that is gone is thus sent nothing:
// Open MPI ends a process that sends to a closed socket twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/store/planned_run.hpp"
#include "sim/store/run_record.hpp"

namespace bubblesim::sweep {

/// A run that a worker has: waiting for a thread, or on one.
struct HeldRun {
  std::uint64_t index = 0;  ///< PlannedRun::index
  bool started = false;
  friend bool operator==(const HeldRun&, const HeldRun&) = default;
};

/// A worker says that it lives, what it has, and how many more runs it can take.
struct Ask {
  std::uint64_t number = 0;  ///< from 1; the answer has it too
  std::string host;
  std::string version;       ///< of the program, as keys have it
  std::uint32_t threads = 0;
  std::uint32_t idle = 0;    ///< threads without a run
  std::uint32_t spare = 0;   ///< runs beyond those, so that threads need not wait for answers
  std::vector<HeldRun> held;
  bool leaving = false;      ///< takes nothing more: it was sent a signal
};

/// A worker says that a run has ended.
struct Delivery {
  Duration took{};  ///< by the clock on the wall
  store::RunRecord record;
};

/// A worker cannot do a run as planned, for its files are not those of the plan.
struct ClusterRefusal {
  std::uint64_t index = 0;
  std::string reason;
};

enum class LeaderOrder : std::uint8_t {
  kGoOn,        ///< do these runs; with none: wait, some may come back from others
  kStop,        ///< drop what waits, end what runs
  kPart,        ///< nothing is left: end, all together
  kPartAlone,   ///< the same, but some rank is lost
};

/// The leader answers an ask.
struct ClusterAnswer {
  std::uint64_t number = 0;
  LeaderOrder order = LeaderOrder::kGoOn;
  std::string sweep;
  std::vector<store::PlannedRun> runs;
};

using ClusterNote = std::variant<Ask, Delivery, ClusterRefusal, ClusterAnswer>;

[[nodiscard]] std::vector<std::uint8_t> encode(const ClusterNote& note);
/// Fault: damaged, or of another form.
[[nodiscard]] Result<ClusterNote> decode_note(std::span<const std::uint8_t> bytes);

}  // namespace bubblesim::sweep
