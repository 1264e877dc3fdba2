// What a sweep says of a run that a store may have under another sweep's name: its own place in
// the plan and its own settings. A run is stored once; the line in `runs` is that of the sweep
// that stored it (its first), every other sweep has a line in `memberships`. A failure has one of
// its first sweep too, so that nothing is lost when another sweep's run takes its place.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/store/sql_database.hpp"

namespace bubblesim::store {

/// Borrows both. It uses the run's key, index, point, repetition and settings.
struct Membership {
  std::string_view sweep;
  const PlannedRun* run = nullptr;
};

/// `[["/pointer","value as JSON text"],...]`, in the order of the axes.
[[nodiscard]] std::string settings_text_of(const std::vector<Setting>& settings);

/// Nothing: the text is no such list.
[[nodiscard]] std::optional<std::vector<Setting>> parse_settings(const std::string& text);

/// Those whose run is stored, under another sweep.
[[nodiscard]] Result<std::vector<Membership>> stored_elsewhere(
    SqlDatabase& database, const std::vector<Membership>& members);

/// Inside a transaction that the caller opened; one that is there already stays.
[[nodiscard]] Result<void> write_memberships(SqlDatabase& database,
                                             std::vector<Membership> members);

/// The lines of failures that a store of version 1 lacks.
[[nodiscard]] Result<void> write_memberships_of_failures(SqlDatabase& database);

}  // namespace bubblesim::store
