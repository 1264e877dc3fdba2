// Counterfactuals: the same program with one kind of thing made faster or slower.
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
  kLink,            ///< "link": collectives, from the last arrival on; not-joined ones whole;
                    ///< modelled ones only on all ranks
  kHost,            ///< "host": think time and calls of the host
};

/// Speeds things up by `speed` (0.5: half as fast), on one rank or on all.
struct WhatIf {
  WhatIfTarget target = WhatIfTarget::kAllKernels;
  std::string name;                   ///< kNamedKernels
  std::optional<std::uint32_t> rank;  ///< nothing: every rank
  double speed = 1.0;                 ///< 1e-6 to below 1e9
};

/// "compute=2", "link=0.5", "host@3=0.8" (rank 3 only), "kernel:gemm=1.5", "kernels@0=0.5".
[[nodiscard]] Result<WhatIf> parse_what_if(std::string_view text);

/// Several at once, with commas between them: "kernels=2,host=2". Kernels' names may have commas.
[[nodiscard]] Result<std::vector<WhatIf>> parse_what_ifs(std::string_view text);

/// Fault: a rank that the job does not have; names those that it has. Or no kernel of that name.
/// `text` is what was asked for.
[[nodiscard]] Result<void> check_concerns(const WhatIf& change, std::string_view text,
                                          const JobProgram& job);

/// Changes durations; the causal structure stays. Host spans that grow beyond 4.29 s are clamped
/// and counted (program_spans_clamped).
void apply(const WhatIf& change, JobProgram& job);

/// "host" alone, of one rank: think time and calls divided by `speed`, 1e-6 to below 1e9. Returns
/// what was clamped, which is not counted yet.
[[nodiscard]] CounterSet speed_up_host(double speed, program::Program& program);

}  // namespace bubblesim::workload
