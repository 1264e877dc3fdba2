// Which form a filler's kernel is launched in under Tally: as it is, as slices of its grid that are
// launched one after the other, or as persistent workers that stop between blocks when told. The
// search of Tally's scheduler, on estimates in place of measured forms. Pure.
//
// Estimates. Fewer resident blocks are not slower in proportion. A kernel that DRAM does not bound
// runs at full speed while every SM has `busy_threads`; one that it bounds, while `dram_share` of
// the blocks that fit are resident; one of an unknown class, while both hold. A form's workers hold
// as many blocks as take that long in the GPU model, not as many as there are workers. Kernels of
// no more blocks than SMs stay as they are, as in the code, and cannot retreat.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"

namespace bubblesim::policies {

/// A kernel as profiled.
struct TallyKernel {
  Duration length{};            ///< alone, in its own form
  std::uint64_t blocks = 0;
  std::uint32_t threads = 0;    ///< a block; 0: not known
  std::uint64_t sm_blocks = 0;  ///< that all SMs hold at once; 0: not known
  policy::KernelClass bound = policy::KernelClass::kUnknown;
};

/// What the search is held to.
struct TallyLimits {
  std::uint32_t sms = 0;
  Duration turnaround{};           ///< a form must be off the GPU in so long
  double persistent_slowdown = 1;  ///< of persistent workers, for the work between blocks
  Duration slice_overhead{};       ///< of each further slice's launch
  std::uint32_t threads_per_sm = 1536;  ///< workers are not packed denser
  std::uint32_t least_blocks = 24;      ///< no fewer workers, no smaller slices
  double lowest_speed = 0.1;            ///< slower forms are not taken
  double short_speed = 0.5;             ///< nor for kernels that end within the turnaround
  std::uint32_t busy_threads = 128;     ///< so many keep an SM's units busy
  double dram_share = 0.45;             ///< of the blocks that fit: so many keep DRAM busy
};

struct TallyForm {
  enum class Kind : std::uint8_t { kOriginal, kPersistent, kSliced };
  Kind kind = Kind::kOriginal;
  std::uint64_t most_blocks = 0;  ///< resident at the pace of a full GPU; 0: all that fit
  double slowdown = 1;            ///< besides having no more blocks resident
  double speed = 1;               ///< estimated, over the original's
  Duration turnaround{};          ///< estimated
};

/// The fastest form within the limit; else a smaller one; else the original.
[[nodiscard]] TallyForm choose_form(const TallyKernel& kernel, const TallyLimits& limits);

}  // namespace bubblesim::policies
