// "training/synth": model, plan, cluster and so on, each a name of a file of configs or a path; the
// plan may be written out.
#include "sim/run/run_config_parts.hpp"
#include "sim/synth/plan_file.hpp"

namespace bubblesim::run::config_detail {

std::string read_id(const ReadContext& context, ObjectReader& reader, std::string_view key) {
  std::string name = read_name(reader, key);
  const bool path = name.find('/') != std::string::npos || name.ends_with(".json");
  return path ? resolve(context, reader, key, name) : name;
}

std::optional<std::string> read_optional_id(const ReadContext& context, ObjectReader& reader,
                                            std::string_view key) {
  if (!reader.has(key)) return std::nullopt;
  return read_id(context, reader, key);
}

synth::JobNames read_synth(const ReadContext& context, ObjectReader reader) {
  synth::JobNames names;
  names.model = read_id(context, reader, "model");
  names.cluster = read_id(context, reader, "cluster");
  names.software = read_optional_id(context, reader, "software");
  if (reader.has("nodes")) names.nodes = reader.integer<std::uint32_t>("nodes", {1, 65'536});
  if (reader.has("hash_seed")) names.hash_seed = reader.integer<std::uint64_t>("hash_seed", {});
  if (reader.has("folding")) names.folding = reader.choice("folding", synth::kFoldingNames);
  if (reader.kind("plan") == JsonKind::kObject) {
    ObjectReader plan = reader.child("plan");
    names.plan = synth::read_plan(plan, context.folder.string());
  } else {
    names.plan = read_id(context, reader, "plan");
  }
  return names;
}

}  // namespace bubblesim::run::config_detail
