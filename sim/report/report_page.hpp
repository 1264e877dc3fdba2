// A report as one HTML page that needs nothing else: no network, no other file, no clock. Style,
// script and data lie in it; its content security policy allows just these.
#pragma once

#include <string>

#include "sim/report/report_data.hpp"

namespace bubblesim::report {

/// The page. Texts of the store stand in it as data only: none can end a script or be markup.
[[nodiscard]] std::string report_page(const ReportData& data);

/// The data as the page's script reads them: compact JSON without "<", ">" and "&"; numbers with
/// six digits. Text that is no UTF-8 is replaced.
[[nodiscard]] std::string report_json(const ReportData& data);

}  // namespace bubblesim::report
