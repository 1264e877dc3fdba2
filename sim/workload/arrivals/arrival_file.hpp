// Recorded request arrivals from files, plain or gzip-compressed. README.md shows each format.
//
// Unreadable lines are dropped and counted; if they are more than one, and more than one in a
// hundred, that is a fault, which names the first. A damaged last line without a line end is taken
// as cut off: it is dropped and counted, however short the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/counters.hpp"
#include "sim/base/result.hpp"
#include "sim/base/time.hpp"
#include "sim/workload/arrivals/arrival_process.hpp"

namespace bubblesim::workload {

inline constexpr CounterSpec kArrivalLinesDamaged{
    "arrival_lines_damaged", Severity::kLoss,
    "lines of an arrivals file that could not be read; their requests are missing from the load"};
inline constexpr CounterSpec kArrivalLinesTruncated{
    "arrival_lines_truncated", Severity::kLoss,
    "last lines of arrivals files that were cut off; their requests are missing from the load"};
inline constexpr CounterSpec kLengthsRaised{
    "request_lengths_raised", Severity::kNotice,
    "recorded requests with a prompt or an output of 0 tokens, which were taken as 1"};
inline constexpr CounterSpec kArrivalsReordered{
    "arrivals_reordered", Severity::kNotice,
    "recorded arrivals that lay before their predecessor in the file and were sorted into place"};

inline constexpr std::size_t kMaxArrivals = 100'000'000;
inline constexpr std::size_t kMaxArrivalLineBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxArrivalDocumentMiB = 256;

/// A recorded request to a language model.
struct RecordedLength {
  std::uint32_t prompt_tokens = 1;  ///< at least 1
  std::uint32_t output_tokens = 1;  ///< at least 1
  std::vector<std::uint64_t> hashes;  ///< of the prompt (kHashTokens each); empty: not recorded
  /// Requests of one conversation are its turns: a prompt begins with the previous turn's prompt
  /// and output.
  std::optional<std::uint64_t> conversation{};
};

/// Tokens for each of Mooncake's hashes (Qin et al., FAST 2025; its traces' README).
inline constexpr std::uint32_t kHashTokens = 512;

/// Whether the lengths of prompts and outputs are read, too.
enum class Lengths : std::uint8_t {
  kSkipped,
  kRead,  ///< a line without them is damaged; formats without them are a fault
};

/// Arrivals as recorded, ascending. Absolute times are counted from the first arrival; gaps are
/// added up from zero.
struct RecordedArrivals {
  std::vector<Duration> offsets;        ///< at least one
  std::vector<RecordedLength> lengths;  ///< one for each arrival, if requested
  CounterSet counters;
};

/// Absolute times become offsets from the earliest; times out of order are sorted and counted.
/// Precondition: not empty. Used by the readers of this folder.
void count_from_first(RecordedArrivals& arrivals);

[[nodiscard]] Result<RecordedArrivals> read_arrivals(const std::string& path, ArrivalFormat format,
                                                     Lengths lengths = Lengths::kSkipped);

/// Reads arrivals as read_arrivals does, from a text; `label` names it in faults.
[[nodiscard]] Result<RecordedArrivals> parse_arrivals(std::string_view text, ArrivalFormat format,
                                                      const std::string& label,
                                                      Lengths lengths = Lengths::kSkipped);

}  // namespace bubblesim::workload
