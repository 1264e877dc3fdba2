#include "sim/model/efficiency_file.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "sim/base/data_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/model/efficiency_fields.hpp"

namespace bubblesim::model {
namespace {

std::string source_of(ObjectReader& constant) {
  if (!constant.present()) return {};
  const bool found = constant.require(
      "source", "this constant has no \"source\"; expected where its value comes from");
  if (!found) return {};
  std::string source = constant.text("source");
  if (source.empty()) {
    constant.fault("source", "found no text; expected where the value comes from");
  }
  return source;
}

void read_field(ObjectReader& root, const EfficiencyField& field, EfficiencyFile& out) {
  const std::size_t slash = field.path.find('/');
  ObjectReader section =
      slash == std::string_view::npos ? root : root.child(field.path.substr(0, slash));
  ObjectReader reader =
      section.child(slash == std::string_view::npos ? field.path : field.path.substr(slash + 1));
  if (!reader.present()) return;
  reader.expect("unit", field.unit);
  field.value(out.efficiency) = reader.number("value", {field.low, field.high});
  out.sources[std::string(field.path)] = source_of(reader);
}

// Four digits: what a fit is worth, and the same text on every machine.
double rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return std::strtod(text.data(), nullptr);
}

}  // namespace

EfficiencyFile read_efficiency(ObjectReader& root) {
  EfficiencyFile out;
  ObjectReader software = root.child("software");
  out.efficiency.software = software.text("value");
  out.sources["software"] = source_of(software);
  for (const EfficiencyField& field : efficiency_fields()) read_field(root, field, out);
  root.finish();
  return out;
}

CheckedResult<EfficiencyFile> read_efficiency_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(EfficiencyFile file, read_whole_file(path, read_efficiency));
  file.efficiency.id = data_file_id(path);
  return file;
}

CheckedResult<Efficiency> find_efficiency(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             find_data_file(name, folder, "efficiency"));
  BUBBLESIM_ASSIGN_OR_RETURN(EfficiencyFile file, read_efficiency_file(path));
  return std::move(file.efficiency);
}

std::string efficiency_text(const EfficiencyFile& file) {
  Efficiency efficiency = file.efficiency;
  const auto source = [&](std::string_view path) {
    const auto at = file.sources.find(std::string(path));
    return at == file.sources.end() ? std::string("inferred") : at->second;
  };
  Json root;
  root["software"] = {{"value", efficiency.software}, {"source", source("software")}};
  for (const EfficiencyField& field : efficiency_fields()) {
    const Json constant = {{"value", rounded(field.value(efficiency))},
                           {"unit", field.unit},
                           {"source", source(field.path)}};
    const std::size_t slash = field.path.find('/');
    if (slash == std::string_view::npos) {
      root[std::string(field.path)] = constant;
    } else {
      root[std::string(field.path.substr(0, slash))][std::string(field.path.substr(slash + 1))] =
          constant;
    }
  }
  return indented_text(root, 2) + "\n";
}

}  // namespace bubblesim::model
