#include "sim/workload/match_by_end.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace bubblesim::workload {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::ptrdiff_t kBand = 256;
/// Longer lists of very different lengths stay unmatched: a gigabyte.
constexpr std::size_t kMostCells = std::size_t{1} << 30U;

std::ptrdiff_t signed_size(std::size_t size) { return static_cast<std::ptrdiff_t>(size); }

enum class Move : std::uint8_t { kMatch, kSkipReference, kSkipOther };

/// Costs and moves of prefix pairs (i of the reference, j of the other) with |j - i| in a band.
class Table {
 public:
  Table(std::size_t rows, std::size_t columns)
      : low_(-kBand - std::max<std::ptrdiff_t>(0, signed_size(rows) - signed_size(columns))),
        width_(width_of(rows, columns)), moves_((rows + 1) * width_), cost_(width_, kNever),
        cost_above_(width_, kNever) {}

  static std::size_t width_of(std::size_t rows, std::size_t columns) {
    return 2 * std::size_t{kBand} + std::max(rows, columns) - std::min(rows, columns) + 1;
  }

  /// Starts row i: the last one becomes the row before.
  void next_row() {
    std::swap(cost_, cost_above_);
    std::fill(cost_.begin(), cost_.end(), kNever);
  }
  [[nodiscard]] bool inside(std::ptrdiff_t i, std::ptrdiff_t j) const {
    const std::ptrdiff_t k = j - i - low_;
    return k >= 0 && k < signed_size(width_);
  }
  [[nodiscard]] std::int64_t cost_at(std::ptrdiff_t i, std::ptrdiff_t j) const {
    return inside(i, j) ? cost_[slot(i, j)] : kNever;
  }
  [[nodiscard]] std::int64_t cost_above(std::ptrdiff_t i, std::ptrdiff_t j) const {
    return inside(i, j) ? cost_above_[slot(i, j)] : kNever;
  }
  void set(std::ptrdiff_t i, std::ptrdiff_t j, std::int64_t cost, Move move) {
    cost_[slot(i, j)] = cost;
    moves_[static_cast<std::size_t>(i) * width_ + slot(i, j)] = move;
  }
  [[nodiscard]] Move move(std::ptrdiff_t i, std::ptrdiff_t j) const {
    return moves_[static_cast<std::size_t>(i) * width_ + slot(i, j)];
  }

 private:
  [[nodiscard]] std::size_t slot(std::ptrdiff_t i, std::ptrdiff_t j) const {
    return static_cast<std::size_t>(j - i - low_);
  }

  std::ptrdiff_t low_;
  std::size_t width_;
  std::vector<Move> moves_;
  std::vector<std::int64_t> cost_;
  std::vector<std::int64_t> cost_above_;
};

void fill(Table& table, const std::vector<TraceTime>& reference,
          const std::vector<TraceTime>& ends, std::int64_t gap) {
  const auto rows = static_cast<std::ptrdiff_t>(reference.size());
  const auto columns = static_cast<std::ptrdiff_t>(ends.size());
  for (std::ptrdiff_t i = 0; i <= rows; ++i) {
    table.next_row();
    for (std::ptrdiff_t j = 0; j <= columns; ++j) {
      if (!table.inside(i, j)) continue;
      if (i == 0 && j == 0) {
        table.set(0, 0, 0, Move::kMatch);
        continue;
      }
      std::int64_t best = kNever;
      Move move = Move::kMatch;
      const auto consider = [&](std::int64_t cost, Move candidate) {
        if (cost >= best) return;
        best = cost;
        move = candidate;
      };
      if (i > 0 && j > 0) {
        const Duration apart = reference[static_cast<std::size_t>(i - 1)] -
                               ends[static_cast<std::size_t>(j - 1)];
        consider(table.cost_above(i - 1, j - 1) + std::min(std::abs(apart.count()), kNever),
                 Move::kMatch);
      }
      if (i > 0) consider(table.cost_above(i - 1, j) + gap, Move::kSkipReference);
      if (j > 0) consider(table.cost_at(i, j - 1) + gap, Move::kSkipOther);
      table.set(i, j, std::min(best, kNever), move);
    }
  }
}

/// The places of the first, and one after the last, of ascending instants that lie within `reach`
/// of the others'.
std::pair<std::size_t, std::size_t> within_reach(const std::vector<TraceTime>& instants,
                                                 const std::vector<TraceTime>& others,
                                                 Duration reach) {
  if (others.empty()) return {0, 0};
  const auto first = std::ranges::lower_bound(instants, others.front() - reach);
  const auto last = std::ranges::upper_bound(first, instants.end(), others.back() + reach);
  return {static_cast<std::size_t>(first - instants.begin()),
          static_cast<std::size_t>(last - instants.begin())};
}

}  // namespace

std::vector<std::uint32_t> match_by_end(const std::vector<TraceTime>& reference,
                                        const std::vector<TraceTime>& ends, Duration gap) {
  std::vector<std::uint32_t> partners(ends.size(), kUnmatched);
  // What is further away is cheaper unmatched.
  const auto [first_row, last_row] = within_reach(reference, ends, 2 * gap);
  const auto [first_column, last_column] = within_reach(ends, reference, 2 * gap);
  const std::vector<TraceTime> rows(reference.begin() + signed_size(first_row),
                                    reference.begin() + signed_size(last_row));
  const std::vector<TraceTime> columns(ends.begin() + signed_size(first_column),
                                       ends.begin() + signed_size(last_column));
  if (rows.size() > kMostCells / Table::width_of(rows.size(), columns.size())) return partners;
  Table table(rows.size(), columns.size());
  fill(table, rows, columns, gap.count());
  auto i = signed_size(rows.size());
  auto j = signed_size(columns.size());
  while (i > 0 || j > 0) {
    switch (table.move(i, j)) {
      case Move::kMatch:
        --i;
        --j;
        partners[first_column + static_cast<std::size_t>(j)] =
            static_cast<std::uint32_t>(first_row + static_cast<std::size_t>(i));
        break;
      case Move::kSkipReference: --i; break;
      case Move::kSkipOther: --j; break;
    }
  }
  return partners;
}

}  // namespace bubblesim::workload
