// Times of a language model's layers on one GPU, measured by a profiler: dense layers by the tokens
// of a step, the head by its sequences, attention by prompts' chunks and decoding sequences,
// experts by tokens and the number of busy experts.
//
// Layers have the names of LLMServingSim's profiles (profiler/models/*.yaml), which are vLLM's
// attributes: embedding, layernorm, qkv_proj, qk_norm, rotary_emb, attention, o_proj, gate_up_proj,
// act_fn, down_proj, moe, final_layernorm, lm_head, sampler. Times are of one call; LayerCalls says
// how often each is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/model/model_spec.hpp"

namespace bubblesim::step_cost {

// Profiled times over one or several axes, with interpolation between points and extrapolation
// beyond them.
//
// Times are means of profilers, in microseconds with fractions; a step's sum is rounded to whole
// nanoseconds once (step_cost.hpp). Below the first point of an axis the first point's time holds;
// above the last point the line through the last two continues, but never below the last point's
// time (more work never takes less), and `Beyond` counts the lookup.

/// Lookups above the last point of an axis.
struct Beyond {
  std::uint64_t lookups = 0;
};

/// Values of one axis, ascending; at least one.
using Axis = std::vector<double>;

/// Two neighbours on an axis, and a value's position from the first to the second: above 1 beyond
/// the last point.
struct Bracket {
  std::size_t low = 0;
  std::size_t high = 0;
  double share = 0;

  /// The time on the line through the two neighbours' times.
  [[nodiscard]] double interpolated(double low_time, double high_time) const;
};
[[nodiscard]] Bracket bracket(const Axis& axis, double value, Beyond& beyond);

/// Times over one axis.
class TimeCurve {
 public:
  TimeCurve() = default;
  /// Needs as many times as points.
  TimeCurve(Axis axis, std::vector<double> microseconds);

  /// The value on the line between the two neighbours.
  [[nodiscard]] double interpolated(double value, Beyond& beyond) const;
  /// The value of the nearest point that is not smaller: matrix products work in whole tiles, so
  /// that their times are steps, with a profile's points at the right ends of steps.
  [[nodiscard]] double at_least(double value, Beyond& beyond) const;

  [[nodiscard]] const Axis& axis() const { return axis_; }
  [[nodiscard]] const std::vector<double>& microseconds() const { return microseconds_; }
  friend bool operator==(const TimeCurve&, const TimeCurve&) = default;

 private:
  Axis axis_;
  std::vector<double> microseconds_;
};

/// Times over the product of several axes; the last axis's index changes fastest.
class TimeGrid {
 public:
  TimeGrid() = default;
  /// Needs a time for each combination.
  TimeGrid(std::vector<Axis> axes, std::vector<double> microseconds);

  /// Linear along each axis. `point` has a coordinate for each axis.
  [[nodiscard]] double interpolated(std::span<const double> point, Beyond& beyond) const;

  [[nodiscard]] bool empty() const { return microseconds_.empty(); }
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  [[nodiscard]] const std::vector<double>& microseconds() const { return microseconds_; }
  friend bool operator==(const TimeGrid&, const TimeGrid&) = default;

 private:
  [[nodiscard]] double sum_of_corners(std::span<const Bracket> at) const;

  std::vector<Axis> axes_;
  std::vector<double> microseconds_;
};

/// A layer's call longer than these 1,000 seconds is an error of a unit.
inline constexpr double kMostCallUs = 1e9;
/// The most GPUs that share a layer.
inline constexpr std::uint32_t kMostTensor = 1024;

/// How often a layer is called: in each transformer block, or once in a step.
struct LayerCalls {
  std::uint32_t each_block = 0;
  std::uint32_t each_step = 0;
};
/// Nothing: no dense layer has this name.
[[nodiscard]] std::optional<LayerCalls> dense_calls_of(std::string_view layer);
[[nodiscard]] std::vector<std::string> dense_layer_names();

/// Experts of a rank: for each token count, a curve over the number of busy experts.
struct ExpertTable {
  Axis tokens;
  std::vector<TimeCurve> by_busy_experts;
  friend bool operator==(const ExpertTable&, const ExpertTable&) = default;

  [[nodiscard]] double interpolated(double tokens_here, double busy, Beyond& beyond) const;
};

/// The tables of one of `tensor` GPUs that share each layer.
struct RankTables {
  std::uint32_t tensor = 1;
  std::map<std::string, TimeCurve, std::less<>> dense;  ///< by tokens
  TimeCurve lm_head;                                    ///< by sequences
  TimeCurve sampler;                                    ///< by sequences
  TimeGrid decode;   ///< by sequences, and cached tokens of each
  TimeGrid prefill;  ///< by tokens of one chunk, and tokens cached before it
  TimeGrid mixed;    ///< by chunk, cached tokens before it, decoding sequences, cached tokens of
                     ///< each; empty: of at most one sequence, without others beside it
  std::optional<ExpertTable> experts;  ///< in place of gate_up_proj, act_fn and down_proj
  friend bool operator==(const RankTables&, const RankTables&) = default;
};

struct LayerTables {
  std::string gpu;     ///< name by the driver
  std::string model;   ///< name by its publisher: "meta-llama/Llama-3.1-8B"
  std::string engine;  ///< "vLLM 0.19.0"
  std::string source;  ///< the profile's folder and date
  std::vector<RankTables> ranks;  ///< by `tensor`, ascending; at least one

  /// Fault: no profile of this many GPUs.
  [[nodiscard]] Result<const RankTables*> of_tensor(std::uint32_t tensor) const;
  friend bool operator==(const LayerTables&, const LayerTables&) = default;
};

inline constexpr CounterSpec kLayersOfOtherGpu{
    "layer_tables_of_other_gpu", Severity::kNotice,
    "servers whose layer times were measured on another GPU than the one simulated; they are taken "
    "as they are"};
inline constexpr CounterSpec kLayersOfUnknownModel{
    "layer_tables_of_unknown_model", Severity::kNotice,
    "servers whose model file does not say as what the model is published (published_as): whether "
    "the layer times are of that model is not known"};

/// The tables of `model` on `tensor` GPUs that share each layer. Faults: tables of another model,
/// no tables of this many GPUs, experts in only one of the two.
[[nodiscard]] Result<const RankTables*> tables_for(const LayerTables& tables,
                                                   const model::ModelSpec& model,
                                                   std::uint32_t tensor);
/// Counts the assumptions in using the tables for `model` on a GPU of this name.
void count_tables(const LayerTables& tables, const model::ModelSpec& model,
                  std::string_view gpu, CounterSet& counters);

// Layer times as a file of bubblesim's own, JSON: `python3 -m bubblesim.layers DIR -o FILE` writes
// it, so that readers need not know the source's format.

[[nodiscard]] CheckedResult<LayerTables> read_layer_file(const std::string& path);
/// Reads a file. Fault: a folder; the message says how to convert a profile.
[[nodiscard]] CheckedResult<LayerTables> read_layers_at(const std::string& path);

}  // namespace bubblesim::step_cost
