#include "sim/observe/batch_means.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/base/nearest_rank.hpp"

namespace bubblesim::observe {
namespace {

// Batch means that depend on each other more than this are not much better than one batch.
constexpr double kMostCorrelation = 0.9;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Half of the confidence interval of the mean of batch means; 0 if all batches are equal.
double half_width(std::span<const double> batches, double confidence) {
  const double mean = mean_of(batches);
  double squares = 0;
  double products = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double off = batches[i] - mean;
    squares += off * off;
    if (i > 0) products += off * (batches[i - 1] - mean);
  }
  if (squares <= 0) return 0;
  const double r = std::clamp(products / squares, 0.0, kMostCorrelation);
  const auto count = static_cast<double>(batches.size());
  return students_t(count, confidence) *
         std::sqrt((1 + r) / (1 - r) * squares / (count - 1) / count);
}

std::size_t batch_count(std::size_t terms) {
  if (terms < kFewestBatches) return 0;
  return terms < kMostBatches ? kFewestBatches : kMostBatches;
}

// The n-th of `count` parts, all of one length; what does not fit is left out at the front.
template <class Term>
std::span<const Term> part(std::span<const Term> terms, std::size_t n, std::size_t count) {
  const std::size_t length = terms.size() / count;
  return terms.subspan(terms.size() - (count - n) * length, length);
}

std::vector<Duration> ascending_samples(std::span<const Samples> places) {
  std::vector<Duration> all;
  for (const Samples& place : places) all.insert(all.end(), place.begin(), place.end());
  std::sort(all.begin(), all.end());
  return all;
}

// The n-th batch's share of samples at or below `value`.
double share_within(std::span<const Samples> places, std::size_t n, Duration value) {
  std::size_t kept = 0;
  std::size_t all = 0;
  for (const Samples& place : places) {
    const Samples batch = part(place, n, kMostBatches);
    kept += static_cast<std::size_t>(
        std::ranges::count_if(batch, [value](Duration sample) { return sample <= value; }));
    all += batch.size();
  }
  return all == 0 ? 0 : static_cast<double>(kept) / static_cast<double>(all);
}

double value_at(const std::vector<Duration>& ascending, double percent) {
  return static_cast<double>(percentile_of(ascending, percent).count());
}

}  // namespace

// No overflow throws: Boost makes sure of its tables when the program starts, in `long double`,
// which valgrind cuts to 64 bits, and arguments that then become 0 would end the program.
double students_t(double count, double confidence) {
  namespace policies = boost::math::policies;
  using NoThrow = policies::policy<policies::overflow_error<policies::errno_on_error>>;
  const boost::math::students_t_distribution<double, NoThrow> t(count - 1);
  return boost::math::quantile(t, (1 + confidence) / 2);
}

double rate_of(Course course) {
  double done = 0;
  Duration took{};
  for (const Progress& piece : course) {
    done += piece.done;
    took += piece.took;
  }
  return done / to_seconds(took);
}

std::optional<Estimate> rate_by_batches(std::span<const Course> places, double confidence) {
  if (places.empty()) return std::nullopt;
  const Course& shortest = *std::ranges::min_element(places, {}, &Course::size);
  const std::size_t count = batch_count(shortest.size());
  std::vector<double> batches(count, 0);
  double value = 0;
  for (const Course& place : places) {
    for (std::size_t i = 0; i < count; ++i) batches[i] += rate_of(part(place, i, count));
    value += rate_of(place);
  }
  const bool finite = std::ranges::all_of(batches, [](double rate) { return std::isfinite(rate); });
  if (count == 0 || !finite) return std::nullopt;
  return Estimate{value, half_width(batches, confidence)};
}

std::optional<Estimate> percentile_by_batches(std::span<const Samples> places, double percent,
                                              double confidence) {
  const std::vector<Duration> ascending = ascending_samples(places);
  const auto count = static_cast<double>(ascending.size());
  if (count * (100 - percent) / 100 < kFewestBeyond) return std::nullopt;
  const Duration middle = percentile_of(ascending, percent);
  std::vector<double> shares;
  for (std::size_t i = 0; i < kMostBatches; ++i) {
    shares.push_back(share_within(places, i, middle));
  }
  const double off = 100 * half_width(shares, confidence);
  if (percent + off > 100) return std::nullopt;
  const auto value = static_cast<double>(middle.count());
  const double above = value_at(ascending, percent + off) - value;
  const double below = value - value_at(ascending, std::max(percent - off, 0.0));
  return Estimate{value, std::max(above, below)};
}

}  // namespace bubblesim::observe
