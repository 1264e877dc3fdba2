#include "sim/step_cost/layer_file.hpp"

#include <filesystem>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"

namespace bubblesim::step_cost {
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

CheckedResult<LayerTables> read_document(const JsonDocument& document, const std::string& file) {
  Errors sizes;
  auto read = read_whole(document, [&](ObjectReader& root) {
    LayerReader reader(sizes, file);
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
  if (read->ranks.empty()) return fail(file, "/ranks", "is empty; expected layer times");
  BUBBLESIM_RETURN_IF_ERROR(check(*read, file));
  return read;
}

}  // namespace

CheckedResult<LayerTables> parse_layers(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  return read_document(document, label);
}

CheckedResult<LayerTables> read_layer_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  return read_document(document, path);
}

CheckedResult<LayerTables> read_layers_at(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return read_layer_file(path);
  return fail(path, {}, "is a folder; expected a file of layer times: of a profile, "
                        "python3 -m bubblesim.layers DIR -o FILE writes one");
}

}  // namespace bubblesim::step_cost
