// A report as one self-contained HTML page: no network, no other file, no clock. The page contains
// its style, script and data; its content security policy allows only these.
#pragma once

#include <string>

#include "sim/report/report_data.hpp"

namespace bubblesim::report {

/// The page. Texts of the store are embedded as data only: none can end a script or be markup.
[[nodiscard]] std::string report_page(const ReportData& data);

/// The data as the page's script reads them: compact JSON without "<", ">" and "&"; numbers with
/// six digits. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string report_json(const ReportData& data);

}  // namespace bubblesim::report
