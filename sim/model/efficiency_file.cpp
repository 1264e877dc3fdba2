#include "sim/model/efficiency_file.hpp"

#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/model/efficiency_fields.hpp"

namespace bubblesim::model {
namespace {

void check_source(ObjectReader& constant) {
  if (!constant.present()) return;
  const bool found = constant.require(
      "source", "this constant has no \"source\"; expected where its value comes from");
  if (found && constant.text("source").empty()) {
    constant.fault("source", "found no text; expected where the value comes from");
  }
}

void read_field(ObjectReader& root, const EfficiencyField& field, Efficiency& out) {
  const std::size_t slash = field.path.find('/');
  ObjectReader section =
      slash == std::string_view::npos ? root : root.child(field.path.substr(0, slash));
  ObjectReader reader =
      section.child(slash == std::string_view::npos ? field.path : field.path.substr(slash + 1));
  if (!reader.present()) return;
  reader.expect("unit", field.unit);
  field.value(out) = reader.number("value", {field.low, field.high});
  check_source(reader);
}

}  // namespace

Efficiency read_efficiency(ObjectReader& root) {
  Efficiency out;
  ObjectReader software = root.child("software");
  out.software = software.text("value");
  check_source(software);
  for (const EfficiencyField& field : efficiency_fields()) read_field(root, field, out);
  root.finish();
  return out;
}

CheckedResult<Efficiency> find_efficiency(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path,
                             find_data_file(name, folder, "efficiency"));
  BUBBLESIM_ASSIGN_OR_RETURN(Efficiency efficiency, read_whole_file(path, read_efficiency));
  efficiency.id = data_file_id(path);
  return efficiency;
}

}  // namespace bubblesim::model
