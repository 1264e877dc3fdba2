// "Did you mean ...": the valid name nearest to a user's word, and the message about it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bubblesim {

/// The candidate with the fewest edits from `word` (insert, delete, replace, swap neighbours;
/// upper and lower case count as equal), if at most a third of the longer of the two is edited.
/// Ties: the first candidate. Time: O(|word| * |candidate|) each, only if lengths are close.
[[nodiscard]] std::optional<std::string_view> nearest_name(
    std::string_view word, std::span<const std::string_view> candidates);

/// `unknown policy "mpss"; did you mean "mps"? Known: exclusive, mps, timeslice.`
[[nodiscard]] std::string unknown_name_message(std::string_view kind, std::string_view word,
                                               std::span<const std::string_view> candidates);
[[nodiscard]] std::string unknown_name_message(std::string_view kind, std::string_view word,
                                               std::span<const std::string> candidates);

/// "a, b, c", at most 24 names, then "and 7 more"; "none" for an empty list.
[[nodiscard]] std::string list_names(std::span<const std::string_view> names);

/// `text` as messages show input: between double quotes, control characters as \xNN, cut after 60
/// bytes.
[[nodiscard]] std::string quote_found(std::string_view text);

}  // namespace bubblesim
