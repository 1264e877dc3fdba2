// Which measurements constants were fitted to: these are never judged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/csv_table.hpp"
#include "sim/base/result.hpp"
#include "sim/validate/match_reports.hpp"

namespace bubblesim::validate {

/// What a measured row is for. Rows that judge take no part in any fit.
enum class RowRole : std::uint8_t { kFit, kJudge };

/// "fit", "judge".
[[nodiscard]] std::string_view role_name(RowRole role);

/// What the job, or a filler, does alone is the policy of this name.
inline constexpr const char* kAlone = "alone";

/// Everything is judged unless a rule says otherwise; the last rule that applies counts.
class MeasuredRoles {
 public:
  /// A table with the columns config, policy and role; an empty policy or "*" means all of the
  /// config, what it does alone included. Faults: a column is missing, another role than "fit" and
  /// "judge", a config that neither side has.
  [[nodiscard]] static Result<MeasuredRoles> read(const std::string& path,
                                                  const std::vector<MatchedReports>& matched);
  [[nodiscard]] static Result<MeasuredRoles> parse(std::string_view text, const std::string& file,
                                                   const std::vector<MatchedReports>& matched);

  /// "CONFIG" or "CONFIG:POLICY" takes part in the fit. Fault: a config that neither side has.
  [[nodiscard]] Result<void> add_fit(const std::string& name,
                                     const std::vector<MatchedReports>& matched);

  [[nodiscard]] RowRole role(const MatchedReports& config, const std::string& policy) const;

 private:
  struct Rule {
    std::string config;  ///< its label or its name
    std::string policy;  ///< empty: all
    RowRole role = RowRole::kJudge;
  };
  [[nodiscard]] static Result<MeasuredRoles> from(const CsvTable& table,
                                                  const std::vector<MatchedReports>& matched);
  std::vector<Rule> rules_;
};

}  // namespace bubblesim::validate
