#include "sim/report/advice/fleet_page.hpp"

#include <bubblesim_fleet_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake

#include "sim/advise/fleet/fleet_text.hpp"
#include "sim/base/json.hpp"
#include "sim/report/page_text.hpp"

namespace bubblesim::report {

std::string fleet_page(const advise::FleetPlan& plan) {
  Json data = advise::fleet_json(plan);
  data["summary"] = advise::fleet_summary(plan);
  return filled_page(fleet_page_files::kHtml, {{"style_hash", fleet_page_files::kStyleHash},
                                               {"style", fleet_page_files::kStyle},
                                               {"script_hash", fleet_page_files::kScriptHash},
                                               {"script", fleet_page_files::kScript},
                                               {"data", script_json(data)}});
}

}  // namespace bubblesim::report
