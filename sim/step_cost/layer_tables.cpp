#include "sim/step_cost/layer_tables.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <variant>

#include "sim/base/check.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"

namespace bubblesim::step_cost {
namespace {

using NamedCalls = std::pair<std::string_view, LayerCalls>;

// vLLM's decoder layers normalise before attention and before the feed-forward part; Qwen3's
// attention normalises queries and keys, each by a call.
constexpr std::array<NamedCalls, 10> kDenseLayers = {{{"embedding", {0, 1}},
                                                      {"layernorm", {2, 0}},
                                                      {"qkv_proj", {1, 0}},
                                                      {"qk_norm", {2, 0}},
                                                      {"rotary_emb", {1, 0}},
                                                      {"o_proj", {1, 0}},
                                                      {"gate_up_proj", {1, 0}},
                                                      {"act_fn", {1, 0}},
                                                      {"down_proj", {1, 0}},
                                                      {"final_layernorm", {0, 1}}}};

constexpr std::array<std::string_view, 6> kAlways = {"embedding", "layernorm", "qkv_proj",
                                                     "rotary_emb", "o_proj", "final_layernorm"};
constexpr std::array<std::string_view, 3> kFeedForward = {"gate_up_proj", "act_fn", "down_proj"};

bool is_sound(const Axis& axis, const std::vector<double>& times) {
  return !axis.empty() &&
         std::adjacent_find(axis.begin(), axis.end(), std::greater_equal<>{}) == axis.end() &&
         std::all_of(times.begin(), times.end(), [](double time) { return time > 0; });
}

bool is_sound(const TimeGrid& grid) {
  return !grid.empty() && std::all_of(grid.axes().begin(), grid.axes().end(),
                                      [&](const Axis& axis) {
                                        return is_sound(axis, grid.microseconds());
                                      });
}

std::string unsound_part(const RankTables& rank) {
  for (const auto& [name, curve] : rank.dense) {
    if (!is_sound(curve.axis(), curve.microseconds())) return name;
  }
  if (!is_sound(rank.lm_head.axis(), rank.lm_head.microseconds())) return "lm_head";
  if (!is_sound(rank.sampler.axis(), rank.sampler.microseconds())) return "sampler";
  for (const TimeGrid* grid : {&rank.decode, &rank.prefill}) {
    if (!is_sound(*grid)) return "attention";
  }
  const bool has_one_sequence = rank.decode.axes()[0].back() <= 1;
  if (!is_sound(rank.mixed) && !(rank.mixed.empty() && has_one_sequence)) return "attention";
  if (!rank.experts) return {};
  if (!is_sound(rank.experts->tokens, {})) return "moe";
  for (const TimeCurve& curve : rank.experts->by_busy_experts) {
    if (!is_sound(curve.axis(), curve.microseconds())) return "moe";
  }
  return {};
}

std::string missing_layer(const RankTables& rank) {
  for (const std::string_view name : kAlways) {
    if (!rank.dense.contains(name)) return std::string(name);
  }
  for (const std::string_view name : kFeedForward) {
    if (!rank.experts && !rank.dense.contains(name)) return std::string(name);
  }
  return {};
}

}  // namespace

std::optional<LayerCalls> dense_calls_of(std::string_view layer) {
  for (const auto& [name, calls] : kDenseLayers) {
    if (name == layer) return calls;
  }
  return std::nullopt;
}

std::vector<std::string> dense_layer_names() {
  std::vector<std::string> names;
  for (const auto& [name, calls] : kDenseLayers) names.emplace_back(name);
  return names;
}

double ExpertTable::interpolated(double tokens_here, double busy, Beyond& beyond) const {
  // Few tokens cannot keep many experts busy, so each row of the profile ends where it must.
  const auto of_row = [&](std::size_t row) {
    const TimeCurve& curve = by_busy_experts[row];
    return curve.interpolated(std::min(busy, curve.axis().back()), beyond);
  };
  const Bracket at = bracket(tokens, tokens_here, beyond);
  const double low = of_row(at.low);
  return at.share == 0 ? low : at.interpolated(low, of_row(at.high));
}

Result<const RankTables*> LayerTables::of_tensor(std::uint32_t tensor) const {
  std::string known;
  for (const RankTables& rank : ranks) {
    if (rank.tensor == tensor) return &rank;
    known += (known.empty() ? "" : ", ") + std::to_string(rank.tensor);
  }
  return fail("no layer times of " + model + " on " + std::to_string(tensor) +
              " GPUs that share each layer; profiled: " + known);
}

Result<const RankTables*> tables_for(const LayerTables& tables, const model::ModelSpec& model,
                                     std::uint32_t tensor) {
  const auto& names = model.published_as;
  if (!names.empty() && std::ranges::find(names, tables.model) == names.end()) {
    std::string found;
    for (const std::string& name : names) found += (found.empty() ? "'" : ", '") + name + "'";
    return fail("found the model " + found + "; the layer times are of '" + tables.model + "'");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const RankTables* const rank, tables.of_tensor(tensor));
  const auto* network = std::get_if<model::TransformerSpec>(&model.network);
  const bool has_experts = network != nullptr && network->mixture.has_value();
  if (has_experts == rank->experts.has_value()) return rank;
  return fail(has_experts ? "the layer times have none of experts, and the model has experts; "
                            "expected the tables of that model"
                          : "the layer times have some of experts, and the model has none; "
                            "expected the tables of that model");
}

void count_tables(const LayerTables& tables, const model::ModelSpec& model,
                  std::string_view gpu, CounterSet& counters) {
  if (tables.gpu != gpu) counters.add(kLayersOfOtherGpu);
  if (model.published_as.empty()) counters.add(kLayersOfUnknownModel);
}

namespace {

// Layers without a table, and impossible tables: times that are not positive, axes without a point
// or not ascending. Only a profile of one sequence may lack mixed batches.
Result<void> check(const LayerTables& tables, const std::string& file) {
  for (const RankTables& rank : tables.ranks) {
    const std::string place = "tp" + std::to_string(rank.tensor);
    if (const std::string name = missing_layer(rank); !name.empty()) {
      return fail(file, place, "no times of the layer '" + name + "'");
    }
    if (const std::string name = unsound_part(rank); !name.empty()) {
      return fail(file, place, "the times of '" + name +
                                   "' are none or not all positive, or its points do not ascend");
    }
  }
  return {};
}

constexpr std::size_t kMostAxes = 4;

}  // namespace

Bracket bracket(const Axis& axis, double value, Beyond& beyond) {
  if (axis.size() == 1 || value <= axis.front()) {
    if (value > axis.front()) ++beyond.lookups;
    return {};
  }
  if (value > axis.back()) ++beyond.lookups;
  const auto above = std::lower_bound(axis.begin(), axis.end(), value);
  const auto high = std::min(static_cast<std::size_t>(above - axis.begin()), axis.size() - 1);
  const std::size_t low = high - 1;
  return {low, high, (value - axis[low]) / (axis[high] - axis[low])};
}

double Bracket::interpolated(double low_time, double high_time) const {
  const double time = low_time + share * (high_time - low_time);
  return share > 1 ? std::max(time, high_time) : time;
}

TimeCurve::TimeCurve(Axis axis, std::vector<double> microseconds)
    : axis_(std::move(axis)), microseconds_(std::move(microseconds)) {
  BUBBLESIM_CHECK(!axis_.empty() && axis_.size() == microseconds_.size(),
                  "a curve needs a time for each of its points");
}

double TimeCurve::interpolated(double value, Beyond& beyond) const {
  const Bracket at = bracket(axis_, value, beyond);
  return at.interpolated(microseconds_[at.low], microseconds_[at.high]);
}

double TimeCurve::at_least(double value, Beyond& beyond) const {
  if (value > axis_.back()) return interpolated(value, beyond);
  const auto point = std::lower_bound(axis_.begin(), axis_.end(), value);
  return microseconds_[static_cast<std::size_t>(point - axis_.begin())];
}

TimeGrid::TimeGrid(std::vector<Axis> axes, std::vector<double> microseconds)
    : axes_(std::move(axes)), microseconds_(std::move(microseconds)) {
  std::size_t points = 1;
  for (const Axis& axis : axes_) points *= axis.size();
  BUBBLESIM_CHECK(axes_.size() <= kMostAxes && points == microseconds_.size() && points > 0,
                  "a grid needs a time for each of its points");
}

double TimeGrid::interpolated(std::span<const double> point, Beyond& beyond) const {
  BUBBLESIM_CHECK(point.size() == axes_.size(), "a grid was asked with too few coordinates");
  std::array<Bracket, kMostAxes> at;
  bool is_beyond = false;
  for (std::size_t i = 0; i < point.size(); ++i) {
    at[i] = bracket(axes_[i], point[i], beyond);
    is_beyond = is_beyond || at[i].share > 1;
  }
  const std::span brackets(at.data(), point.size());
  const double time = sum_of_corners(brackets);
  if (!is_beyond) return time;
  for (Bracket& side : brackets) side.share = std::min(side.share, 1.0);
  return std::max(time, sum_of_corners(brackets));
}

double TimeGrid::sum_of_corners(std::span<const Bracket> at) const {
  double sum = 0;
  for (std::size_t corner = 0; corner < (std::size_t{1} << at.size()); ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t i = 0; i < at.size() && weight != 0; ++i) {
      const bool high = (corner >> i & 1U) != 0;
      weight *= high ? at[i].share : 1 - at[i].share;
      index = index * axes_[i].size() + (high ? at[i].high : at[i].low);
    }
    if (weight != 0) sum += weight * microseconds_[index];
  }
  return sum;
}

namespace {

constexpr std::string_view kFormat = "bubblesim.layers/1";
constexpr Range<double> kPoint{0, 1e9};
constexpr Range<double> kMicroseconds{0, kMostCallUs};

/// The faults of a file are those of its form and those of sizes that do not fit each other.
class LayerReader {
 public:
  LayerReader(Errors& errors, std::string file) : errors_(errors), file_(std::move(file)) {}

  TimeCurve curve(ObjectReader object) {
    Axis axis = object.numbers("at", kPoint);
    std::vector<double> times = object.numbers("us", kMicroseconds);
    if (!axis.empty() && axis.size() == times.size()) return {std::move(axis), std::move(times)};
    add(object, "'at' and 'us' must have the same length, at least 1");
    return {Axis{0}, {1}};
  }

  TimeGrid grid(ObjectReader object, std::initializer_list<const char*> names) {
    std::vector<Axis> axes;
    std::size_t points = 1;
    for (const char* name : names) {
      axes.push_back(object.numbers(name, kPoint));
      points *= axes.back().size();
    }
    std::vector<double> times = object.numbers("us", kMicroseconds);
    if (points > 0 && points == times.size()) return {std::move(axes), std::move(times)};
    add(object, "a hole: " + std::to_string(times.size()) + " times for " +
                    std::to_string(points) + " points");
    return {std::vector<Axis>(names.size(), Axis{0}), {1}};
  }

  RankTables rank(ObjectReader object) {
    RankTables out;
    out.tensor = object.integer<std::uint32_t>("tensor", {1, kMostTensor});
    ObjectReader dense = object.child("dense");
    for (const std::string& name : dense_layer_names()) {
      if (dense.has(name)) out.dense.emplace(name, curve(dense.child(name)));
    }
    out.lm_head = curve(object.child("lm_head"));
    out.sampler = curve(object.child("sampler"));
    out.decode = grid(object.child("decode"), {"sequences", "cached"});
    out.prefill = grid(object.child("prefill"), {"chunk", "before"});
    if (object.has("mixed")) {
      out.mixed = grid(object.child("mixed"), {"chunk", "before", "sequences", "cached"});
    }
    if (object.has("experts")) out.experts = experts(object);
    return out;
  }

 private:
  ExpertTable experts(ObjectReader& object) {
    ExpertTable out;
    for (ObjectReader row : object.children("experts")) {
      out.tokens.push_back(row.number("tokens", kPoint));
      out.by_busy_experts.push_back(curve(row));
    }
    return out;
  }

  void add(const ObjectReader& object, std::string message) {
    errors_.add(Error{file_, object.pointer(), std::move(message)});
  }

  Errors& errors_;
  std::string file_;
};

}  // namespace

CheckedResult<LayerTables> read_layer_file(const std::string& path) {
  Errors sizes;
  auto read = read_whole_file(path, [&](ObjectReader& root) {
    LayerReader reader(sizes, path);
    LayerTables out;
    root.expect("format", kFormat);
    out.gpu = root.text("gpu");
    out.model = root.text("model");
    out.engine = root.text("engine");
    out.source = root.text("source");
    for (ObjectReader rank : root.children("ranks")) out.ranks.push_back(reader.rank(rank));
    root.finish();
    return out;
  });
  if (!read) return read;
  if (!sizes.empty()) return tl::make_unexpected(std::move(sizes));
  if (read->ranks.empty()) return fail(path, "/ranks", "is empty; expected layer times");
  BUBBLESIM_RETURN_IF_ERROR(check(*read, path));
  return read;
}

CheckedResult<LayerTables> read_layers_at(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return read_layer_file(path);
  return fail(path, {}, "is a folder; expected a file of layer times: of a profile, "
                        "python3 -m bubblesim.layers DIR -o FILE writes one");
}

}  // namespace bubblesim::step_cost
