#include "sim/serving/acceptance_file.hpp"

#include <cmath>

#include "sim/base/csv_table.hpp"

namespace bubblesim::serving {

Result<std::vector<std::uint32_t>> read_acceptance(const std::string& path,
                                                   std::uint32_t drafted) {
  constexpr std::string_view kColumn = "accepted";
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::read(path));
  if (!table.has(kColumn)) return fail(path, "line 1", "found no column \"accepted\"");
  std::vector<std::uint32_t> accepted;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::optional<double> tokens = table.figure(row, kColumn);
    if (!tokens || *tokens < 0 || *tokens > drafted || *tokens != std::floor(*tokens)) {
      return table.fault(row, kColumn, "a whole number of 0 to " + std::to_string(drafted) +
                                           ", the tokens that a step drafts");
    }
    accepted.push_back(static_cast<std::uint32_t>(*tokens));
  }
  return accepted;
}

}  // namespace bubblesim::serving
