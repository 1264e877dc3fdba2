#include "sim/fit/fit_all_reduce.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "sim/fit/least_squares.hpp"
#include "sim/network/collective_cost.hpp"

namespace bubblesim::fit {
namespace {

using Eigen::VectorXd;
using hardware::ClusterSpec;
using hardware::CollectiveSpec;
using hardware::Protocol;
using validate::AllReducePredictor;
using validate::AllReduceRow;
using validate::AllReduceTable;

// Of a constant, for the derivative: wide enough that whole nanoseconds and bytes do not show.
constexpr double kStep = 0.01;
// Relative error beyond which a row's pull grows only with its root (soft L1).
constexpr double kDamping = 0.05;
constexpr double kLeastGain = 1e-9;
constexpr double kWide = 50;  // logarithms stay within: no bound
// The two protocols can take each other's part, so the search begins at several places: LL128's
// share and the quantum as given and times these.
constexpr double kShareStarts[] = {1.0, 0.75};
constexpr double kQuantumStarts[] = {1.0, 0.5};
constexpr Eigen::Index kShareKnob = 4;
constexpr Eigen::Index kQuantumKnob = 7;
constexpr double kLeast = 1e-3;  // a constant that starts at zero starts here instead

/// A constant of a spec as a number in a unit.
struct Knob {
  std::string name;
  std::string unit;
  std::function<double(const ClusterSpec&)> get;
  std::function<void(ClusterSpec&, double)> set;
};

using Latencies = hardware::PerProtocol<Duration> CollectiveSpec::*;

Knob latency_knob(std::string name, Latencies member, Protocol protocol) {
  const auto index = static_cast<std::size_t>(protocol);
  return {std::move(name), "us",
          [=](const ClusterSpec& spec) {
            return network::ns_of((spec.collectives.*member)[index]) / 1e3;
          },
          [=](ClusterSpec& spec, double us) {
            (spec.collectives.*member)[index] = Duration{std::llround(us * 1e3)};
          }};
}

std::vector<Knob> knobs() {
  constexpr auto kLl128 = static_cast<std::size_t>(Protocol::kLl128);
  return {
      latency_knob("collectives/ring_base/LL128", &CollectiveSpec::ring_base, Protocol::kLl128),
      latency_knob("collectives/ring_base/Simple", &CollectiveSpec::ring_base, Protocol::kSimple),
      latency_knob("collectives/ring_hop/LL128", &CollectiveSpec::ring_hop, Protocol::kLl128),
      latency_knob("collectives/ring_hop/Simple", &CollectiveSpec::ring_hop, Protocol::kSimple),
      {"collectives/bandwidth_share/LL128", "share",
       [](const ClusterSpec& spec) { return spec.collectives.bandwidth_share[kLl128]; },
       [](ClusterSpec& spec, double share) {
         spec.collectives.bandwidth_share[kLl128] = std::min(share, 1.0);
       }},
      {"node/bandwidth", "GB/s",
       [](const ClusterSpec& spec) { return spec.node.bandwidth.value / 1e9; },
       [](ClusterSpec& spec, double rate) { spec.node.bandwidth.value = rate * 1e9; }},
      {"collectives/local_copies", "steps",
       [](const ClusterSpec& spec) { return spec.collectives.local_copies; },
       [](ClusterSpec& spec, double steps) { spec.collectives.local_copies = steps; }},
      {"collectives/channel_quantum", "KiB",
       [](const ClusterSpec& spec) {
         return static_cast<double>(spec.collectives.channel_quantum.value) / 1024;
       },
       [](ClusterSpec& spec, double kib) {
         spec.collectives.channel_quantum.value =
             static_cast<std::uint64_t>(std::llround(kib * 1024));
       }},
  };
}

int octave(const AllReduceRow& row) {
  return static_cast<int>(std::bit_width(row.bytes.value));
}

struct WeightedRow {
  const AllReduceTable* table;
  const AllReduceRow* row;
  double weight;  ///< of the residual
};

std::vector<WeightedRow> fit_rows(std::span<const AllReduceTable> tables) {
  std::vector<WeightedRow> out;
  for (const AllReduceTable& table : tables) {
    std::map<int, std::size_t> rows;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      if (is_fit_row(table, i)) ++rows[octave(table.rows[i])];
    }
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      if (!is_fit_row(table, i)) continue;
      const auto count = static_cast<double>(rows[octave(table.rows[i])]);
      out.push_back({&table, &table.rows[i], 1 / std::sqrt(count)});
    }
  }
  return out;
}

// Its square is the soft L1 loss, 2 d^2 (sqrt(1 + (r/d)^2) - 1); the sign is r's. So a row's weight
// is that of its loss, not of its error.
double damped(double r) {
  const double scaled = r / kDamping;
  const double loss = 2 * kDamping * kDamping * (std::sqrt(1 + scaled * scaled) - 1);
  return std::copysign(std::sqrt(loss), r);
}

ClusterSpec spec_at(ClusterSpec spec, const std::vector<Knob>& knobs, const VectorXd& logs) {
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    knobs[i].set(spec, std::exp(logs[static_cast<Eigen::Index>(i)]));
  }
  return spec;
}

Result<VectorXd> best_of_starts(const Residuals& residuals, const VectorXd& given) {
  FitOptions options;
  options.loss = Loss::kSquares;
  options.step = kStep;
  options.least_gain = kLeastGain;
  const VectorXd low = VectorXd::Constant(given.size(), -kWide);
  FitResult best{given, std::numeric_limits<double>::infinity(), 0};
  for (const double share : kShareStarts) {
    for (const double quantum : kQuantumStarts) {
      VectorXd logs = given;
      logs[kShareKnob] += std::log(share);
      logs[kQuantumKnob] += std::log(quantum);
      BUBBLESIM_ASSIGN_OR_RETURN(FitResult found,
                                 fit_least_squares(residuals, logs, low, -low, options));
      if (found.loss < best.loss) best = std::move(found);
    }
  }
  return best.parameters;
}

AllReduceErrors errors_of(const AllReduceTable& table, const AllReducePredictor& predictor) {
  AllReduceErrors out{.gpus = table.gpus};
  std::map<int, std::pair<double, double>> octaves;  // sum, count
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const double error = std::abs(predictor.relative_error(table, table.rows[i]));
    auto& [sum, count] = octaves[octave(table.rows[i])];
    sum += error;
    count += 1;
    out.worst = std::max(out.worst, error);
    (is_fit_row(table, i) ? out.fit_mean : out.judge_mean) += error;
    ++(is_fit_row(table, i) ? out.fit_rows : out.judge_rows);
  }
  if (out.fit_rows > 0) out.fit_mean /= static_cast<double>(out.fit_rows);
  if (out.judge_rows > 0) out.judge_mean /= static_cast<double>(out.judge_rows);
  for (const auto& [key, sums] : octaves) out.octave_mean += sums.first / sums.second;
  out.octave_mean /= static_cast<double>(std::max<std::size_t>(octaves.size(), 1));
  return out;
}

}  // namespace

std::vector<AllReduceErrors> judge_all_reduce(std::span<const AllReduceTable> tables,
                                              const ClusterSpec& spec) {
  const AllReducePredictor predictor(spec);
  std::vector<AllReduceErrors> out;
  for (const AllReduceTable& table : tables) out.push_back(errors_of(table, predictor));
  return out;
}

Result<AllReduceFit> fit_all_reduce(std::span<const AllReduceTable> tables,
                                    const ClusterSpec& start) {
  for (const AllReduceTable& table : tables) {
    if (table.gpus <= start.gpus_per_node) continue;
    return fail(table.path, {}, "found " + std::to_string(table.gpus) +
                                    " GPUs; expected at most a node of the cluster, " +
                                    std::to_string(start.gpus_per_node));
  }
  const std::vector<WeightedRow> rows = fit_rows(tables);
  const std::vector<Knob> all = knobs();
  if (rows.size() < all.size()) {
    return fail("found " + std::to_string(rows.size()) +
                " rows to fit; expected tables of 2, 4 or 8 GPUs with at least " +
                std::to_string(all.size()));
  }
  const Residuals residuals = [&](const VectorXd& logs) {
    const AllReducePredictor predictor(spec_at(start, all, logs));
    VectorXd out(static_cast<Eigen::Index>(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const WeightedRow& row = rows[i];
      out[static_cast<Eigen::Index>(i)] =
          row.weight * damped(predictor.relative_error(*row.table, *row.row));
    }
    return out;
  };
  VectorXd logs(static_cast<Eigen::Index>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    logs[static_cast<Eigen::Index>(i)] = std::log(std::max(all[i].get(start), kLeast));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(logs, best_of_starts(residuals, logs));
  AllReduceFit out{spec_at(start, all, logs), {}, {}};
  for (const Knob& knob : all) {
    out.constants.push_back({knob.name, knob.unit, knob.get(start), knob.get(out.spec), {}});
  }
  out.tables = judge_all_reduce(tables, out.spec);
  return out;
}

}  // namespace bubblesim::fit
