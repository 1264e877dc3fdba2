// What each layer of a language model takes on one GPU, as a profiler measured it: dense layers by
// the tokens of a step, the head by its sequences, attention by prompts' chunks and decoding
// sequences, experts by tokens and by how many of them are busy.
//
// Layers have the names of LLMServingSim's profiles (profiler/models/*.yaml), which are vLLM's
// attributes: embedding, layernorm, qkv_proj, qk_norm, rotary_emb, attention, o_proj, gate_up_proj,
// act_fn, down_proj, moe, final_layernorm, lm_head, sampler. Times are of one call; calls_of says
// how often a block or a step calls each.
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

// Profiled times over one axis or several, and what lies between and beyond their points.
//
// Times are means of profilers, in microseconds with fractions; a step's sum is rounded to whole
// nanoseconds once (step_cost.hpp). Below the first point of an axis the first point's time holds;
// above the last one, the line through the last two goes on, but not below the last point's time
// (more work never takes less), and `Beyond` counts the lookup.

/// Lookups above the last point of an axis.
struct Beyond {
  std::uint64_t lookups = 0;
};

/// Values of one axis, ascending; at least one.
using Axis = std::vector<double>;

/// Two neighbours on an axis, and how far a value is from the one to the other: above 1 beyond the
/// last point.
struct Bracket {
  std::size_t low = 0;
  std::size_t high = 0;
  double share = 0;

  /// On the line between two neighbours' times, or beyond them.
  [[nodiscard]] double interpolated(double low_time, double high_time) const;
};
[[nodiscard]] Bracket bracket(const Axis& axis, double value, Beyond& beyond);

/// Times over one axis.
class TimeCurve {
 public:
  TimeCurve() = default;
  /// Takes as many times as points.
  TimeCurve(Axis axis, std::vector<double> microseconds);

  /// The value on the line between the two neighbours.
  [[nodiscard]] double interpolated(double value, Beyond& beyond) const;
  /// The value of the nearest point that is not smaller: matrix products work in whole tiles, so
  /// their times are stairs, and a profile's points lie at the right ends of treads.
  [[nodiscard]] double at_least(double value, Beyond& beyond) const;

  [[nodiscard]] const Axis& axis() const { return axis_; }
  [[nodiscard]] const std::vector<double>& microseconds() const { return microseconds_; }
  friend bool operator==(const TimeCurve&, const TimeCurve&) = default;

 private:
  Axis axis_;
  std::vector<double> microseconds_;
};

/// Times over the product of several axes; the last one's index runs fastest.
class TimeGrid {
 public:
  TimeGrid() = default;
  /// A time for each combination.
  TimeGrid(std::vector<Axis> axes, std::vector<double> microseconds);

  /// Linear along each axis. Takes as many coordinates as axes.
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

/// A layer's call that lasts longer than these 1,000 seconds is a slip of a unit.
inline constexpr double kMostCallUs = 1e9;
/// GPUs that share a layer.
inline constexpr std::uint32_t kMostTensor = 1024;

/// How often a layer is called: in each transformer block, or once a step.
struct LayerCalls {
  std::uint32_t each_block = 0;
  std::uint32_t each_step = 0;
};
/// Nothing: no dense layer has this name.
[[nodiscard]] std::optional<LayerCalls> dense_calls_of(std::string_view layer);
[[nodiscard]] std::vector<std::string> dense_layer_names();

/// Experts of a rank: a curve over the experts that are busy, for each count of tokens.
struct ExpertTable {
  Axis tokens;
  std::vector<TimeCurve> by_busy_experts;
  friend bool operator==(const ExpertTable&, const ExpertTable&) = default;

  [[nodiscard]] double interpolated(double tokens_here, double busy, Beyond& beyond) const;
};

/// The tables of one GPU of `tensor` that share each layer.
struct RankTables {
  std::uint32_t tensor = 1;
  std::map<std::string, TimeCurve, std::less<>> dense;  ///< by tokens
  TimeCurve lm_head;                                    ///< by sequences
  TimeCurve sampler;                                    ///< by sequences
  TimeGrid decode;   ///< sequences, tokens cached of each
  TimeGrid prefill;  ///< tokens of one chunk, tokens cached before it
  TimeGrid mixed;    ///< chunk, cached before it, decoding sequences, cached of each;
                     ///< empty: of one sequence at most, which is never beside another
  std::optional<ExpertTable> experts;  ///< in place of gate_up_proj, act_fn and down_proj
  friend bool operator==(const RankTables&, const RankTables&) = default;
};

struct LayerTables {
  std::string gpu;     ///< as the driver names it
  std::string model;   ///< as its publisher names it: "meta-llama/Llama-3.1-8B"
  std::string engine;  ///< "vLLM 0.19.0"
  std::string source;  ///< the profile's folder and date
  std::vector<RankTables> ranks;  ///< by `tensor`, ascending; at least one

  /// Fault: no profile of so many GPUs.
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
/// no tables of so many GPUs, times of experts for a model without, or none for one with.
[[nodiscard]] Result<const RankTables*> tables_for(const LayerTables& tables,
                                                   const model::ModelSpec& model,
                                                   std::uint32_t tensor);
/// Counts what is assumed when the tables stand for `model` on a GPU of that name.
void count_tables(const LayerTables& tables, const model::ModelSpec& model,
                  std::string_view gpu, CounterSet& counters);

/// Faults: layers without a table, and tables that cannot be (times that are not positive, axes
/// without a point or that do not ascend). Only a profile of one sequence may lack mixed batches.
[[nodiscard]] Result<void> check(const LayerTables& tables, const std::string& file);

// Layer times as one file of bubblesim's own, JSON: `python3 -m bubblesim.layers DIR -o FILE`
// writes it once, and what reads it need not know where the times came from.

[[nodiscard]] CheckedResult<LayerTables> read_layer_file(const std::string& path);
/// `label` stands for the file in messages.
[[nodiscard]] CheckedResult<LayerTables> parse_layers(std::string_view text, std::string label);

/// Reads a file. Fault: a folder; the message says how to make a file of a profile.
[[nodiscard]] CheckedResult<LayerTables> read_layers_at(const std::string& path);

}  // namespace bubblesim::step_cost
