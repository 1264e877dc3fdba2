#include "sim/advise/known_errors.hpp"

#include <array>
#include <string_view>

#include "sim/base/csv_table.hpp"
#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/config_edit.hpp"

namespace bubblesim::advise {
namespace {

constexpr std::array<std::string_view, 5> kColumns{"policy", "device", "figure", "error_percent",
                                                   "table"};

/// Of the device's file; empty: it has none.
std::string device_name(const std::string& config_folder, const std::string& id) {
  const auto text = read_text_file(config_folder + "/devices/" + id + ".json");
  const Json file = Json::parse(text.value_or("{}"), nullptr, false);
  const Json* name = sweep::find_value(file, "/name/value");
  return name != nullptr && name->is_string() ? name->get<std::string>() : "";
}

}  // namespace

CheckedResult<std::vector<KnownError>> known_errors(const std::string& config_folder,
                                                    const std::string& policy,
                                                    const std::string& device) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto table,
                             CsvTable::read(config_folder + "/validation/errors.csv"));
  BUBBLESIM_RETURN_IF_ERROR(table.expect(kColumns));
  std::vector<KnownError> errors;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "policy") != policy) continue;
    const auto percent = table.figure(row, "error_percent");
    if (!percent) {
      return tl::make_unexpected(table.fault(row, "error_percent", "a number").value());
    }
    const std::string measured(table.text(row, "device"));
    errors.push_back({policy, measured, std::string(table.text(row, "figure")), *percent,
                      std::string(table.text(row, "table")),
                      device_name(config_folder, measured) == device});
  }
  return errors;
}

}  // namespace bubblesim::advise
