// Finds how many loops make a stand-in last as long as traced: fits a straight line to measured
// durations, and measures again until the line predicts well.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/replay/cuda/stand_in_mix.hpp"
#include "capture/replay/job_plan.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"

namespace bubblesim::capture::cuda {

/// duration = floor_ns + loop_ns * loops, near the wanted duration. With fewer loops, a kernel may
/// last as long as starting its many blocks takes.
struct DurationLine {
  double floor_ns = 0;
  double loop_ns = 0;
  /// Loops that last `ns`; may be negative below the floor.
  [[nodiscard]] double loops(double ns) const { return (ns - floor_ns) / loop_ns; }
};

struct Fit {
  DurationLine line;
  double error = 0;       ///< of the last check: |measured - solo| / solo
  std::uint32_t rounds = 0;  ///< 0: the known line was within the tolerance
  bool at_floor = false;  ///< without any loop it lasts longer than `solo`
  bool held = false;      ///< within the tolerance, or at the floor
};

inline constexpr double kFitTolerance = 0.02;
inline constexpr std::uint32_t kFitRounds = 5;

struct FitLimits {
  /// Nanoseconds by which a measured duration may be off: no check is stricter, and lines are
  /// fitted to durations of at least 50 times as much.
  double resolution_ns = 0;
  std::uint32_t rounds = kFitRounds;
};

/// Runs the stand-in alone with `loops` (a fraction: on average over its blocks); returns its
/// duration in nanoseconds.
using Measure = std::function<Result<double>(double loops)>;

/// The whole number of nanoseconds of which all differences between `durations` are multiples: the
/// step of the device's clock as read at starts and ends of kernels. A kernel that reads that clock
/// in a loop sees finer steps (H100: 32 ns against 256 ns). 0: too few durations differ.
[[nodiscard]] double step_of(const std::vector<double>& durations);

/// Tries `known` first, then no loop at all, then up to kFitRounds rounds of three points about the
/// wanted loops (least squares) and a check. Returns the line with the best check. `guess` > 0:
/// loops that may last `solo`. Fault: the measurement's own.
[[nodiscard]] Result<Fit> fit_loops(const Measure& measure, Duration solo, double guess,
                                    const DurationLine* known = nullptr,
                                    const FitLimits& limits = {});

// Fits of stand-ins, kept in a file between processes: a worker that has only a part of the GPU
// (MPS percentages) cannot measure how long a kernel lasts on all of it.

/// Stand-ins with equal keys have the same fit.
struct FitKey {
  KernelForm form;
  Duration solo{};
  friend auto operator<=>(const FitKey&, const FitKey&) = default;
};

/// The fit found for one key.
struct CachedFit {
  DurationLine line;
  Mix mix;
  double error = 0;       ///< Fit::error: |measured - solo| / solo at the last check
  bool at_floor = false;  ///< Fit::at_floor
};

class FitCache {
 public:
  /// `path` empty: nothing is read or written. A file that is missing, damaged, or of another GPU
  /// or driver gives an empty cache: measuring again only costs time.
  FitCache(std::string path, const DeviceFacts& facts);

  [[nodiscard]] const CachedFit* find(const FitKey& key) const;
  void put(const FitKey& key, const CachedFit& fit) { fits_.insert_or_assign(key, fit); }
  /// Writes another file and renames it. False: it could not be written.
  [[nodiscard]] bool save() const;

 private:
  void read();

  std::string path_;
  std::string head_;  ///< GPU, driver, version of this format
  std::map<FitKey, CachedFit> fits_;
};

}  // namespace bubblesim::capture::cuda
