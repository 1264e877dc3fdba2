#include "sim/network/fit_all_reduce.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <unsupported/Eigen/NonLinearOptimization>
#include <utility>

#include "sim/network/collective_cost.hpp"
#include "sim/network/topology.hpp"

namespace bubblesim::network {
namespace {

using hardware::ClusterSpec;
using hardware::CollectiveSpec;
using hardware::Protocol;

// Of a constant, for the derivative: wide enough that whole nanoseconds and bytes do not show.
constexpr double kStep = 0.01;
// Relative error beyond which a row's pull grows only with its root (soft L1).
constexpr double kDamping = 0.05;
constexpr int kMaxEvaluations = 200;
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
          [=](const ClusterSpec& spec) { return ns_of((spec.collectives.*member)[index]) / 1e3; },
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

/// Ring all-reduces on one node of a cluster.
class Predictor {
 public:
  explicit Predictor(const ClusterSpec& spec) : topology_(hardware::with_nodes(spec, 1)) {}

  double relative_error(const AllReduceTable& table, const AllReduceRow& row) const {
    const Transfer transfer = topology_.plan(CollectiveKind::kAllReduce, row.bytes,
                                             strided_group(0, table.gpus), Algorithm::kRing);
    return ns_of(topology_.solo_time(transfer)) / ns_of(row.measured) - 1;
  }

 private:
  Topology topology_;
};

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

/// What Eigen's Levenberg-Marquardt asks for.
class Residuals {
 public:
  Residuals(const ClusterSpec& start, const std::vector<Knob>& knobs,
            const std::vector<WeightedRow>& rows)
      : start_(start), knobs_(knobs), rows_(rows) {}

  // The names and signatures are Eigen's.
  int values() const { return static_cast<int>(rows_.size()); }
  int operator()(const Eigen::VectorXd& logs, Eigen::VectorXd& out) const {
    const Predictor predictor(spec_at(logs));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const WeightedRow& row = rows_[i];
      out[static_cast<Eigen::Index>(i)] =
          row.weight * damped(predictor.relative_error(*row.table, *row.row));
    }
    return 0;
  }
  int df(const Eigen::VectorXd& logs, Eigen::MatrixXd& out) const {
    Eigen::VectorXd above(values());
    Eigen::VectorXd below(values());
    for (Eigen::Index i = 0; i < logs.size(); ++i) {
      Eigen::VectorXd moved = logs;
      moved[i] = logs[i] + kStep;
      (*this)(moved, above);
      moved[i] = logs[i] - kStep;
      (*this)(moved, below);
      out.col(i) = (above - below) / (2 * kStep);
    }
    return 0;
  }

  ClusterSpec spec_at(const Eigen::VectorXd& logs) const {
    ClusterSpec spec = start_;
    for (std::size_t i = 0; i < knobs_.size(); ++i) {
      knobs_[i].set(spec, std::exp(logs[static_cast<Eigen::Index>(i)]));
    }
    return spec;
  }

 private:
  // Its square is the soft L1 loss, 2 d^2 (sqrt(1 + (r/d)^2) - 1); the sign is r's.
  static double damped(double r) {
    const double scaled = r / kDamping;
    const double loss = 2 * kDamping * kDamping * (std::sqrt(1 + scaled * scaled) - 1);
    return std::copysign(std::sqrt(loss), r);
  }

  const ClusterSpec& start_;
  const std::vector<Knob>& knobs_;
  const std::vector<WeightedRow>& rows_;
};

Eigen::VectorXd best_of_starts(Residuals& residuals, const Eigen::VectorXd& given) {
  Eigen::VectorXd best = given;
  Eigen::VectorXd at(residuals.values());
  double least = std::numeric_limits<double>::infinity();
  for (const double share : kShareStarts) {
    for (const double quantum : kQuantumStarts) {
      Eigen::VectorXd logs = given;
      logs[kShareKnob] += std::log(share);
      logs[kQuantumKnob] += std::log(quantum);
      Eigen::LevenbergMarquardt<Residuals> solver(residuals);
      solver.parameters.maxfev = kMaxEvaluations;
      solver.minimize(logs);
      residuals(logs, at);
      if (at.squaredNorm() >= least) continue;
      least = at.squaredNorm();
      best = logs;
    }
  }
  return best;
}

AllReduceErrors errors_of(const AllReduceTable& table, const Predictor& predictor) {
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

bool is_fit_row(const AllReduceTable& table, std::size_t row) {
  return (table.gpus == 2 || table.gpus == 4 || table.gpus == 8) && row % 2 == 0;
}

std::vector<AllReduceErrors> judge_all_reduce(std::span<const AllReduceTable> tables,
                                              const ClusterSpec& spec) {
  const Predictor predictor(spec);
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
  Residuals residuals(start, all, rows);
  Eigen::VectorXd logs(static_cast<Eigen::Index>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    logs[static_cast<Eigen::Index>(i)] = std::log(std::max(all[i].get(start), kLeast));
  }
  logs = best_of_starts(residuals, logs);
  AllReduceFit out{residuals.spec_at(logs), {}, {}};
  for (const Knob& knob : all) {
    out.constants.push_back({knob.name, knob.unit, knob.get(start), knob.get(out.spec)});
  }
  out.tables = judge_all_reduce(tables, out.spec);
  return out;
}

}  // namespace bubblesim::network
