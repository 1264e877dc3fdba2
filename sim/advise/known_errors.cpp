#include "sim/advise/known_errors.hpp"

#include <array>
#include <string_view>

#include "sim/base/csv_table.hpp"

namespace bubblesim::advise {
namespace {

constexpr std::array<std::string_view, 5> kColumns{"policy", "device", "figure", "error_percent",
                                                   "table"};

}  // namespace

CheckedResult<std::vector<KnownError>> known_errors(const std::string& config_folder,
                                                    const std::string& policy) {
  const auto table = CsvTable::read(config_folder + "/validation/errors.csv");
  if (!table) return tl::make_unexpected(table.error());
  BUBBLESIM_RETURN_IF_ERROR(table->expect(kColumns));
  std::vector<KnownError> errors;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    if (table->text(row, "policy") != policy) continue;
    const auto percent = table->figure(row, "error_percent");
    if (!percent) {
      return tl::make_unexpected(table->fault(row, "error_percent", "a number").value());
    }
    errors.push_back({policy, std::string(table->text(row, "device")),
                      std::string(table->text(row, "figure")), *percent,
                      std::string(table->text(row, "table"))});
  }
  return errors;
}

}  // namespace bubblesim::advise
