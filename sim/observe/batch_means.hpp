// Confidence intervals of simulated figures by batch means.
//
// Samples of one run are correlated: a long iteration delays the next, a long queue stays long for
// a while. So samples are cut into batches of equal length, in order. Means of batches are far less
// correlated than samples, and Student's t over the batches gives the interval (A. M. Law,
// Simulation Modeling and Analysis, 5th ed., 9.5.3). If the batch means' correlation r at lag 1 is
// positive, the interval is widened by sqrt((1 + r) / (1 - r)) (the adjustment of SBatch: E. K.
// Lada, N. M. Steiger and J. R. Wilson, Operations Research 56(3), 2008).
//
// A percentile's interval comes from an interval of shares. The share of samples at or below the
// p-th percentile is a mean and so has an interval, p - h to p + h; the percentiles p - h and p + h
// are the ends of the percentile's interval (R. S. Woodruff, JASA 47, 1952). This assumes nothing
// of the distribution, and no batch needs to be long enough for a percentile of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "sim/base/time.hpp"

namespace bubblesim::observe {

/// A figure and its confidence interval: value - half_width to value + half_width.
struct Estimate {
  double value = 0;
  double half_width = 0;

  /// The half-width as a share of the value; 0 where there is no uncertainty at all.
  [[nodiscard]] double relative() const { return half_width == 0 ? 0 : half_width / value; }
};

/// The number of batches of an interval: fewer do not show their correlation, more add nothing.
inline constexpr std::size_t kFewestBatches = 10;
inline constexpr std::size_t kMostBatches = 20;
/// Samples that must lie beyond a percentile.
inline constexpr double kFewestBeyond = 10;

/// A finished piece of work, and the time since the end of the previous piece.
struct Progress {
  double done = 0;
  Duration took{};
};
/// The pieces of work of one place (a rank, an instance on a GPU), in order.
using Course = std::span<const Progress>;
/// The latency samples of one place (an instance on a GPU), in order of time.
using Samples = std::span<const Duration>;

/// The half-width, in standard errors, of an interval of this confidence for a mean of `count`
/// values (at least 2); infinity where 1 - confidence is below rounding.
[[nodiscard]] double students_t(double count, double confidence);

/// Work done a second in a course. Precondition: it is not empty and has taken time.
[[nodiscard]] double rate_of(Course course);

/// Estimates the work of all places together in a second: the sum over places of the work divided
/// by its time. The n-th batch is the n-th part of each place's course; `confidence` in (0, 1).
/// Nothing if a place has fewer than kFewestBatches pieces, or a batch took no time.
[[nodiscard]] std::optional<Estimate> rate_by_batches(std::span<const Course> places,
                                                      double confidence);

/// Estimates the nearest-rank percentile `percent`, in (0, 100), of the samples of parallel places,
/// in nanoseconds. Nothing if fewer than kFewestBeyond samples lie beyond the percentile, or none
/// reaches the upper end of the interval.
[[nodiscard]] std::optional<Estimate> percentile_by_batches(std::span<const Samples> places,
                                                            double percent, double confidence);

}  // namespace bubblesim::observe
