// Counters for a terminal and for JSON.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/counters.hpp"
#include "sim/base/json_fwd.hpp"

namespace bubblesim {

/// A line in columns, "  loss  records_dropped  12  records that ...", with its line break.
[[nodiscard]] std::string counter_line(std::string_view name, const CounterSet::Entry& entry);
/// Such a line for each counter.
[[nodiscard]] std::string counter_lines(const CounterSet& counters);
/// A line for each loss and error, "Lost: 12 records_dropped: records that ...": what a recording
/// lacks; figures below it are of the rest.
[[nodiscard]] std::string loss_lines(const CounterSet& counters);

/// An object by name; of each its count, severity and help.
[[nodiscard]] Json counters_object(const CounterSet& counters);
/// An object by name; of each its severity and count.
[[nodiscard]] Json counts_object(const CounterSet& counters);

}  // namespace bubblesim
