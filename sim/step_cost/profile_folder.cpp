#include "sim/step_cost/profile_folder.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/nearest.hpp"
#include "sim/step_cost/profile_meta.hpp"
#include "traces/import/byte_stream.hpp"

namespace bubblesim::step_cost {
namespace {

/// Chunk, cached before it, decoding sequences, cached of each.
using AttentionPoint = std::array<std::uint64_t, 4>;
using AttentionTimes = std::map<AttentionPoint, double>;
using Points = std::map<double, double>;  ///< point of the axis to microseconds

Result<std::string> unpacked(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(traces::ByteStream stream, traces::ByteStream::open(path));
  std::string text;
  std::vector<char> block(1U << 16U);
  while (const std::size_t size = stream.read(block.data(), block.size())) {
    text.append(block.data(), size);
    if (text.size() > (std::size_t{256} << 20U)) return fail(path, {}, "more than 256 MiB");
  }
  if (stream.damaged()) return fail(path, {}, "its gzip ends early or is damaged");
  return text;
}

Result<CsvTable> read_table(const std::string& path, std::span<const std::string_view> columns) {
  const bool is_plain = std::filesystem::exists(path);
  const std::string file = is_plain ? path : path + ".gz";
  if (!is_plain && !std::filesystem::exists(file)) {
    return fail(path, {}, "is missing, and so is '" + file + "'");
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, unpacked(file));
  BUBBLESIM_ASSIGN_OR_RETURN(CsvTable table, CsvTable::parse(text, file));
  if (const auto there = table.expect(columns); !there) {
    return tl::make_unexpected(there.error().front());
  }
  return table;
}

Result<double> time_of(const CsvTable& table, std::size_t row) {
  const auto value = table.figure(row, "time_us");
  if (value && *value > 0 && *value <= kMostCallUs) return *value;
  return table.fault(row, "time_us", "a number above 0, at most 1e9");
}

/// Puts a time where its point is; a point that has another time already is counted.
template <class Times>
void set_time(Times& times, const typename Times::key_type& point, double time,
              CounterSet& counters) {
  const auto [at, is_new] = times.try_emplace(point, time);
  if (!is_new && at->second != time) counters.add(kPointsTwice);
  at->second = time;
}

Result<std::uint64_t> whole(const CsvTable& table, std::size_t row, std::string_view column) {
  const auto value = table.figure(row, column);
  if (value && *value >= 0 && *value <= 1e9 && std::floor(*value) == *value) {
    return static_cast<std::uint64_t>(*value);
  }
  return table.fault(row, column, "a whole number");
}

TimeCurve curve_of(const Points& points) {
  Axis axis;
  std::vector<double> times;
  for (const auto& [at, time] : points) {
    axis.push_back(at);
    times.push_back(time);
  }
  return {std::move(axis), std::move(times)};
}

/// Times by layer; the axis is the column `axis_column`.
Result<std::map<std::string, Points>> read_layers(const std::string& path,
                                                  std::string_view axis_column,
                                                  CounterSet& counters) {
  const std::array<std::string_view, 3> columns = {"layer", axis_column, "time_us"};
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_table(path, columns));
  std::map<std::string, Points> layers;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t at, table.count(row, axis_column));
    BUBBLESIM_ASSIGN_OR_RETURN(const double time, time_of(table, row));
    set_time(layers[std::string(table.text(row, "layer"))], static_cast<double>(at), time,
             counters);
  }
  return layers;
}

Result<void> read_dense(const std::string& path, RankTables& rank, CounterSet& counters) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto layers, read_layers(path, "tokens", counters));
  for (const auto& [name, points] : layers) {
    if (!dense_calls_of(name)) {
      const std::vector<std::string> known = dense_layer_names();
      const std::vector<std::string_view> names(known.begin(), known.end());
      return fail(path, {}, "the layer '" + name + "' is not known; known: " + list_names(names));
    }
    rank.dense.emplace(name, curve_of(points));
  }
  return {};
}

Result<void> read_per_sequence(const std::string& path, RankTables& rank, CounterSet& counters) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto layers, read_layers(path, "sequences", counters));
  for (const auto& [name, points] : layers) {
    if (name == "lm_head") {
      rank.lm_head = curve_of(points);
    } else if (name == "sampler") {
      rank.sampler = curve_of(points);
    } else {
      return fail(path, {}, "the layer '" + name + "' is not known; known: lm_head, sampler");
    }
  }
  if (rank.lm_head.axis().empty()) return fail(path, {}, "no times of the layer 'lm_head'");
  if (rank.sampler.axis().empty()) return fail(path, {}, "no times of the layer 'sampler'");
  return {};
}

constexpr std::array<std::string_view, 5> kAttentionColumns = {
    "prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"};

Result<AttentionTimes> read_attention_times(const CsvTable& table, CounterSet& counters) {
  AttentionTimes times;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    AttentionPoint point{};
    for (std::size_t i = 0; i < point.size(); ++i) {
      BUBBLESIM_ASSIGN_OR_RETURN(point[i], whole(table, row, kAttentionColumns[i]));
    }
    BUBBLESIM_ASSIGN_OR_RETURN(const double time, time_of(table, row));
    set_time(times, point, time, counters);
  }
  return times;
}

/// Takes grids out of the points, and remembers which were taken.
class GridTaker {
 public:
  GridTaker(const AttentionTimes& times, const std::string& file) : times_(times), file_(file) {}

  /// The product of four axes, of which those of one point 0 are left out of the grid.
  Result<TimeGrid> take(const std::array<Axis, 4>& axes) {
    std::vector<double> values;
    for (const double chunk : axes[0]) {
      for (const double before : axes[1]) {
        for (const double sequences : axes[2]) {
          for (const double cached : axes[3]) {
            BUBBLESIM_ASSIGN_OR_RETURN(const double time,
                                       time_at({chunk, before, sequences, cached}));
            values.push_back(time);
          }
        }
      }
    }
    std::vector<Axis> kept;
    for (const Axis& axis : axes) {
      if (axis != Axis{0}) kept.push_back(axis);
    }
    return TimeGrid(std::move(kept), std::move(values));
  }

  [[nodiscard]] std::size_t taken() const { return taken_.size(); }

 private:
  Result<double> time_at(const std::array<double, 4>& at) {
    AttentionPoint point{};
    std::string text;
    for (std::size_t i = 0; i < point.size(); ++i) {
      point[i] = static_cast<std::uint64_t>(at[i]);
      text += (i == 0 ? "" : ", ") + std::string(kAttentionColumns[i]) + " " +
              std::to_string(point[i]);
    }
    const auto found = times_.find(point);
    if (found == times_.end()) {
      return fail(file_, {}, "a hole: no time at " + text + ", which meta.yaml declares");
    }
    taken_.insert(point);
    return found->second;
  }

  const AttentionTimes& times_;
  const std::string& file_;
  std::set<AttentionPoint> taken_;
};

Axis within_limits(Axis axis, double limit_low, double limit_high) {
  std::erase_if(axis, [&](double at) { return at < limit_low || at > limit_high; });
  return axis;
}

Result<void> read_attention(const std::string& path, const ProfileMeta& meta, RankTables& rank,
                            CounterSet& counters) {
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_table(path, kAttentionColumns));
  BUBBLESIM_ASSIGN_OR_RETURN(const AttentionTimes times,
                             read_attention_times(table, counters));
  const Axis none{0};
  const double most = std::numeric_limits<double>::max();
  const Axis chunks = within_limits(meta.chunks, 1, most);
  const Axis cached = within_limits(meta.cached, 1, most);
  GridTaker grids(times, table.file());
  BUBBLESIM_ASSIGN_OR_RETURN(
      rank.decode,
      grids.take({none, none, within_limits(meta.sequences, 1, meta.max_sequences), cached}));
  BUBBLESIM_ASSIGN_OR_RETURN(rank.prefill, grids.take({chunks, meta.cached, none, none}));
  if (meta.most_beside_prompt() > 0) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        rank.mixed,
        grids.take({chunks, meta.cached,
                    within_limits(meta.sequences, 1, meta.most_beside_prompt()), cached}));
  }
  counters.add(kPointsOffGrid, times.size() - grids.taken());
  return {};
}

Result<ExpertTable> read_experts(const std::string& path, CounterSet& counters) {
  constexpr std::array<std::string_view, 3> columns = {"tokens", "activated_experts", "time_us"};
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, read_table(path, columns));
  std::map<double, Points> rows;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t tokens, table.count(row, columns[0]));
    BUBBLESIM_ASSIGN_OR_RETURN(const std::uint64_t busy, table.count(row, columns[1]));
    BUBBLESIM_ASSIGN_OR_RETURN(const double time, time_of(table, row));
    set_time(rows[static_cast<double>(tokens)], static_cast<double>(busy), time, counters);
  }
  ExpertTable experts;
  for (const auto& [tokens, points] : rows) {
    experts.tokens.push_back(tokens);
    experts.by_busy_experts.push_back(curve_of(points));
  }
  return experts;
}

/// A mixture's experts are profiled on one GPU; sharing a layer does not change a rank's experts.
Result<std::optional<ExpertTable>> experts_of(const std::string& folder,
                                              CounterSet& counters) {
  const std::string path = folder + "/tp1/moe.csv";
  if (!std::filesystem::exists(path) && !std::filesystem::exists(path + ".gz")) {
    return std::optional<ExpertTable>{};
  }
  BUBBLESIM_ASSIGN_OR_RETURN(ExpertTable experts, read_experts(path, counters));
  return std::optional(std::move(experts));
}

/// Folders below this one that are profiles: a profiler writes one for each card, model and number
/// format. Empty: none, or no folder.
std::set<std::string> profiles_below(const std::filesystem::path& folder) {
  constexpr int kDeepest = 4;
  std::set<std::string> found;
  std::error_code unreadable;
  std::filesystem::recursive_directory_iterator at(
      folder, std::filesystem::directory_options::skip_permission_denied, unreadable);
  while (!unreadable && at != std::filesystem::recursive_directory_iterator()) {
    if (at.depth() >= kDeepest) at.disable_recursion_pending();
    const std::filesystem::path& path = at->path();
    if (path.filename() == "meta.yaml") {
      found.insert(path.parent_path().lexically_relative(folder).generic_string());
    }
    at.increment(unreadable);
  }
  return found;
}

}  // namespace

Result<ImportedLayers> read_profile_folder(const std::string& folder) {
  const std::string meta_path = folder + "/meta.yaml";
  if (!std::filesystem::exists(meta_path)) {
    const std::set<std::string> below = profiles_below(folder);
    const std::vector<std::string_view> names(below.begin(), below.end());
    if (!names.empty()) {
      return fail(folder, {}, "no meta.yaml; profiles are below it: " + list_names(names));
    }
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, read_text_file(meta_path));
  BUBBLESIM_ASSIGN_OR_RETURN(const ProfileMeta meta, parse_profile_meta(text, meta_path));
  ImportedLayers out;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto experts, experts_of(folder, out.counters));
  out.tables.gpu = meta.gpu;
  out.tables.model = meta.model;
  out.tables.engine = "vLLM " + meta.engine_version;
  out.tables.source = "LLMServingSim profile of " + meta.profiled_at;
  for (const std::uint32_t tensor : meta.tensor_degrees) {
    const std::string here = folder + "/tp" + std::to_string(tensor);
    // A folder may hold fewer degrees than were profiled.
    if (!std::filesystem::exists(here)) continue;
    RankTables& rank = out.tables.ranks.emplace_back();
    rank.tensor = tensor;
    rank.experts = experts;
    BUBBLESIM_RETURN_IF_ERROR(read_dense(here + "/dense.csv", rank, out.counters));
    BUBBLESIM_RETURN_IF_ERROR(
        read_per_sequence(here + "/per_sequence.csv", rank, out.counters));
    BUBBLESIM_RETURN_IF_ERROR(
        read_attention(here + "/attention.csv", meta, rank, out.counters));
  }
  if (out.tables.ranks.empty()) return fail(folder, {}, "no folder tp1, tp2, ... of layer times");
  BUBBLESIM_RETURN_IF_ERROR(check(out.tables, folder));
  return out;
}

}  // namespace bubblesim::step_cost
