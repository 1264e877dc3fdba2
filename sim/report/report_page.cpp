#include "sim/report/report_page.hpp"

#include <bubblesim_report_page.hpp>  // made by the build: scripts/cmake/embed_page.cmake

#include "sim/report/page_text.hpp"
#include "sim/text/markup_text.hpp"

namespace bubblesim::report {

std::string report_page(const ReportData& data) {
  return filled_page(report_page_files::kHtml, {{"title", markup_text(data.title)},
                                                {"style_hash", report_page_files::kStyleHash},
                                                {"style", report_page_files::kStyle},
                                                {"script_hash", report_page_files::kScriptHash},
                                                {"script", report_page_files::kScript},
                                                {"data", report_json(data)}});
}

}  // namespace bubblesim::report
