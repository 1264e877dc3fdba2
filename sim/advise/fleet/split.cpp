#include "sim/advise/fleet/split.hpp"

#include <algorithm>
#include <cmath>

namespace bubblesim::advise {
namespace {

constexpr double kZero = 1e-12;
// Rounding could still make a cycle of what has none; any split on the way is a valid one.
constexpr std::size_t kMostPivots = 100000;

/// max c x, A x <= b, x >= 0, with b >= 0: x = 0 is where it begins.
class Tableau {
 public:
  Tableau(std::size_t variables, std::size_t rows)
      : columns_(variables + rows + 1), rows_(rows, std::vector<double>(columns_, 0)),
        objective_(columns_, 0), basis_(rows) {
    for (std::size_t row = 0; row < rows; ++row) {
      rows_[row][variables + row] = 1;
      basis_[row] = variables + row;
    }
  }

  void set(std::size_t row, std::size_t variable, double factor) { rows_[row][variable] = factor; }
  void set_bound(std::size_t row, double bound) { rows_[row].back() = bound; }
  void set_value(std::size_t variable, double value) { objective_[variable] = -value; }

  void solve() {
    for (std::size_t pivots = 0; pivots < kMostPivots; ++pivots) {
      const auto column = entering();
      const auto row = column ? leaving(*column) : std::nullopt;
      if (!row) return;
      pivot(*row, *column);
    }
  }

  [[nodiscard]] std::vector<double> solution(std::size_t variables) const {
    std::vector<double> values(variables, 0);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (basis_[row] < variables) values[basis_[row]] = std::max(0.0, rows_[row].back());
    }
    return values;
  }

 private:
  [[nodiscard]] std::optional<std::size_t> entering() const {
    for (std::size_t column = 0; column + 1 < columns_; ++column) {
      if (objective_[column] < -kZero) return column;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::size_t> leaving(std::size_t column) const {
    std::optional<std::size_t> best;
    double least = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row][column] <= kZero) continue;
      const double ratio = rows_[row].back() / rows_[row][column];
      const double equal = kZero * std::max(1.0, least);
      const bool less = !best || ratio < least - equal ||
                        (ratio <= least + equal && basis_[row] < basis_[*best]);
      if (!less) continue;
      best = row;
      least = ratio;
    }
    return best;
  }

  void pivot(std::size_t row, std::size_t column) {
    std::vector<double>& pivot_row = rows_[row];
    const double factor = pivot_row[column];
    for (double& value : pivot_row) value /= factor;
    for (std::size_t other = 0; other < rows_.size(); ++other) {
      if (other != row) subtract(rows_[other], pivot_row, rows_[other][column]);
    }
    subtract(objective_, pivot_row, objective_[column]);
    basis_[row] = column;
  }

  static void subtract(std::vector<double>& from, const std::vector<double>& row, double factor) {
    if (factor == 0) return;
    for (std::size_t i = 0; i < row.size(); ++i) from[i] -= factor * row[i];
  }

  std::size_t columns_;
  std::vector<std::vector<double>> rows_;
  std::vector<double> objective_;
  std::vector<std::size_t> basis_;
};

}  // namespace

std::vector<std::vector<double>> best_split(const SplitProblem& problem) {
  const std::size_t kinds = problem.hours.size();
  const std::size_t works = problem.left.size();
  const auto limited = static_cast<std::size_t>(std::ranges::count_if(
      problem.left, [](const auto& left) { return left.has_value(); }));
  Tableau tableau(kinds * works, kinds + limited);
  std::size_t row = kinds;
  for (std::size_t work = 0; work < works; ++work) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      const std::size_t variable = kind * works + work;
      tableau.set(kind, variable, 1);
      tableau.set_bound(kind, problem.hours[kind]);
      tableau.set_value(variable, problem.value[kind][work]);
      if (problem.left[work]) tableau.set(row, variable, problem.done[kind][work]);
    }
    if (problem.left[work]) tableau.set_bound(row++, *problem.left[work]);
  }
  tableau.solve();
  const std::vector<double> flat = tableau.solution(kinds * works);
  std::vector<std::vector<double>> split(kinds, std::vector<double>(works, 0));
  for (std::size_t i = 0; i < flat.size(); ++i) split[i / works][i % works] = flat[i];
  return split;
}

}  // namespace bubblesim::advise
