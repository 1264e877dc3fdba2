#include "sim/synth/named_file.hpp"

#include <vector>

#include "sim/base/data_file.hpp"

namespace bubblesim::synth {

CheckedResult<std::string> resolve_name(std::string_view name, const std::string& folder,
                                        std::string_view what) {
  if (is_file_path(name)) return std::string(name);
  const auto files = list_data_files(folder, what).value_or(std::vector<std::string>{});
  return pick_data_file(name, files, folder, what);
}

}  // namespace bubblesim::synth
