// Chooses the form of a filler's kernel under Tally: unchanged, as slices of its grid launched one
// after the other, or as persistent workers that stop between blocks when told. This is the search
// of Tally's scheduler, with estimated times in place of measured ones. Pure functions.
//
// Estimates: a compute-bound kernel runs at full speed while every SM has `busy_threads`; a
// memory-bound kernel, while `dram_share` of the blocks that fit are resident; a kernel of unknown
// class, while both hold. The estimated duration of a form decides its resident blocks in the
// GPU model, not its number of workers. Kernels with at most one block an SM stay unchanged, as
// in Tally's code, and cannot retreat.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

/// A kernel as profiled.
struct TallyKernel {
  Duration length{};            ///< of the unchanged kernel alone
  std::uint64_t blocks = 0;
  std::uint32_t threads = 0;    ///< of a block; 0: not known
  std::uint64_t sm_blocks = 0;  ///< that all SMs hold at once; 0: not known
  policy::KernelClass bound = policy::KernelClass::kUnknown;
};

/// The constants and limits of the search.
struct TallyLimits {
  std::uint32_t sms = 0;
  Duration turnaround{};           ///< the time within which a form must be off the GPU
  double persistent_slowdown = 1;  ///< of persistent workers, for the work between blocks
  Duration slice_overhead{};       ///< of each slice's launch after the first
  std::uint32_t threads_per_sm = 1536;  ///< the most threads of workers on an SM
  std::uint32_t least_blocks = 24;      ///< the fewest workers, and the smallest slice
  double lowest_speed = 0.1;            ///< slower forms of a block an SM or more are not chosen
  double short_speed = 0.5;             ///< the same, for kernels shorter than the turnaround
  std::uint32_t busy_threads = 128;     ///< threads that keep an SM's units busy
  double dram_share = 0.45;             ///< this share of the blocks that fit keeps DRAM busy
};

struct TallyForm {
  enum class Kind : std::uint8_t { kOriginal, kPersistent, kSliced };
  Kind kind = Kind::kOriginal;
  std::uint64_t most_blocks = 0;  ///< the most resident blocks in the GPU model; 0: all that fit
  double slowdown = 1;            ///< on top of the effect of `most_blocks`
  double speed = 1;               ///< estimated, over the original's
  Duration turnaround{};          ///< estimated
};

/// The fastest form within the limit; else a smaller one; else the original.
[[nodiscard]] TallyForm choose_form(const TallyKernel& kernel, const TallyLimits& limits);

}  // namespace bubblesim::policies
