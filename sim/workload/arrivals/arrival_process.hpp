// The arrivals of requests. Open loop: arrivals never wait for the service.
//
// A specification is plain data, as in a run config; make_arrivals turns it into a process. Rates
// are requests per second of simulated time. `speedup` compresses a recorded trace: at 2, every
// request arrives after half the time (rounded down to whole nanoseconds).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "sim/base/counters.hpp"
#include "sim/base/random.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::workload {

/// Exponential gaps.
struct PoissonArrivals {
  double rate_per_s = 0;  ///< > 0
};

/// Gamma-distributed gaps: cv 1 is Poisson, above is burstier, below is more even.
struct GammaArrivals {
  double rate_per_s = 0;  ///< > 0
  double cv = 1;          ///< coefficient of variation of the gaps, > 0
};

/// The format of an arrivals file; README.md shows a line of each.
enum class ArrivalFormat : std::uint8_t {
  kAzure,      ///< CSV: TIMESTAMP,ContextTokens,GeneratedTokens
  kMooncake,   ///< JSON lines with "timestamp" in ms
  kBundle,     ///< JSON lines with "arrival_time" in s (LLMServingSim's measured runs)
  kServegen,   ///< CSV with a column timestamp in s (requests of ServeGen's clients)
  kGaps,       ///< JSON array of gaps in s
  kSplitwise,  ///< CSV with a column arrived_at in s
  kQueries,    ///< JSON: {"queries": [{"timestamp": s, ...}]}
};

/// Recorded arrivals, replayed once from beginning to end. In formats with absolute times, the
/// first arrival is at the start of the run.
struct FileArrivals {
  std::string path;  ///< may end in .gz
  ArrivalFormat format = ArrivalFormat::kAzure;
  double speedup = 1;  ///< > 0
};

using ArrivalSpec = std::variant<PoissonArrivals, GammaArrivals, FileArrivals>;

/// Instants in non-decreasing order.
class ArrivalProcess {
 public:
  virtual ~ArrivalProcess() = default;
  /// The next arrival; nothing when there are no more. An instant beyond the range of SimTime also
  /// ends the process.
  [[nodiscard]] virtual std::optional<SimTime> next() = 0;
  /// Counters of dropped or changed arrivals; empty for random processes.
  [[nodiscard]] virtual const CounterSet& counters() const = 0;
};

/// The process of a specification; a fault if the specification's values are impossible or its file
/// cannot be read. Only random processes use `random`.
[[nodiscard]] Result<std::unique_ptr<ArrivalProcess>> make_arrivals(const ArrivalSpec& spec,
                                                                    RandomStream random);

struct RecordedArrivals;

/// A process over arrivals that were already read; a fault if `speedup` is not above 0.
[[nodiscard]] Result<std::unique_ptr<ArrivalProcess>> replay_arrivals(RecordedArrivals arrivals,
                                                                      double speedup);

}  // namespace bubblesim::workload
