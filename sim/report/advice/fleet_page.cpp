#include "sim/report/advice/fleet_page.hpp"

#include <bubblesim_fleet_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake

#include "sim/base/json.hpp"
#include "sim/report/page_text.hpp"

namespace bubblesim::report {

std::string fleet_page(const Json& plan) {
  return filled_page(fleet_page_files::kHtml, {{"style_hash", fleet_page_files::kStyleHash},
                                               {"style", fleet_page_files::kStyle},
                                               {"script_hash", fleet_page_files::kScriptHash},
                                               {"script", fleet_page_files::kScript},
                                               {"data", script_json(plan)}});
}

}  // namespace bubblesim::report
