// Counterfactuals: the same program with one kind of work, or the link, made faster or slower.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.hpp"
#include "sim/workload/job_program.hpp"

namespace bubblesim::workload {

enum class WhatIfTarget : std::uint8_t {
  kAllKernels,      ///< "kernels"
  kComputeKernels,  ///< "compute": by name, see kernel_class.hpp
  kMemoryKernels,   ///< "memory"
  kNamedKernels,    ///< "kernel:TEXT": names that contain TEXT
  kCopies,          ///< "copies": copies and memsets
  kLink,            ///< "link": collectives from the last arrival on; if not joined with other
                    ///< ranks, their whole duration. Modelled ones: only on all ranks
  kHost,            ///< "host": think time and calls of the host
};

/// Makes the target `speed` times as fast (0.5: half as fast), on one rank or on all.
struct WhatIf {
  WhatIfTarget target = WhatIfTarget::kAllKernels;
  std::string name;                   ///< kNamedKernels
  std::optional<std::uint32_t> rank;  ///< nothing: every rank
  double speed = 1.0;                 ///< 1e-6 to below 1e9
};

/// "compute=2", "link=0.5", "host@3=0.8" (rank 3 only), "kernel:gemm=1.5", "kernels@0=0.5".
[[nodiscard]] Result<WhatIf> parse_what_if(std::string_view text);

/// Several changes, separated by commas: "kernels=2,host=2". A kernel's name may contain commas.
[[nodiscard]] Result<std::vector<WhatIf>> parse_what_ifs(std::string_view text);

/// Faults: a rank that the job lacks (with the ranks that it has); no kernel of that name. `text`
/// is the change as the user wrote it.
[[nodiscard]] Result<void> check_concerns(const WhatIf& change, std::string_view text,
                                          const JobProgram& job);

/// Changes durations; the causal structure stays. Host spans that grow beyond 4.29 s are clamped
/// and counted (program_spans_clamped); returns how many.
std::uint64_t apply(const WhatIf& change, JobProgram& job);

/// Applies "host" to one rank: divides think time and calls by `speed`, 1e-6 to below 1e9.
std::uint64_t speed_up_host(double speed, program::Program& program);

}  // namespace bubblesim::workload
