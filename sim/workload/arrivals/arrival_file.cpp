#include "sim/workload/arrivals/arrival_file.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/packed_file.hpp"
#include "sim/workload/arrivals/arrival_documents.hpp"
#include "sim/workload/arrivals/arrival_lines.hpp"

namespace bubblesim::workload {
namespace {

// Requests that arrive at once stay in the file's order, with what they ask.
void sort_by_time(RecordedArrivals& arrivals) {
  std::vector<std::size_t> order(arrivals.offsets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return arrivals.offsets[i]; });
  RecordedArrivals sorted;
  for (const std::size_t i : order) sorted.offsets.push_back(arrivals.offsets[i]);
  arrivals.offsets = std::move(sorted.offsets);
  if (arrivals.lengths.empty()) return;
  for (const std::size_t i : order) sorted.lengths.push_back(std::move(arrivals.lengths[i]));
  arrivals.lengths = std::move(sorted.lengths);
}

bool is_document(ArrivalFormat format) {
  return format == ArrivalFormat::kGaps || format == ArrivalFormat::kQueries;
}

Result<RecordedArrivals> parse_document(std::string_view text, ArrivalFormat format,
                                        const std::string& label, Lengths lengths) {
  if (lengths == Lengths::kRead) {
    return fail(label, {}, "a format of arrival times alone; expected one with prompt and output "
                           "lengths: azure, splitwise, servegen, mooncake or bundle");
  }
  return format == ArrivalFormat::kGaps ? parse_gaps(text, label) : parse_queries(text, label);
}

/// Cuts a stream of bytes into lines.
class LineCutter {
 public:
  LineCutter(ArrivalFormat format, const std::string& label, Lengths lengths)
      : lines_(format, label, lengths), label_(label) {}

  [[nodiscard]] Result<void> add(std::string_view bytes) {
    for (std::size_t end = bytes.find('\n'); end != std::string_view::npos;
         end = bytes.find('\n')) {
      rest_ += bytes.substr(0, end);
      BUBBLESIM_RETURN_IF_ERROR(lines_.add(rest_, LineEnd::kPresent));
      rest_.clear();
      bytes.remove_prefix(end + 1);
    }
    rest_ += bytes;
    if (rest_.size() > kMaxArrivalLineBytes) return fail(label_, {}, "a line of more than 4 MiB");
    return {};
  }
  [[nodiscard]] Result<RecordedArrivals> finish() && {
    if (!rest_.empty()) BUBBLESIM_RETURN_IF_ERROR(lines_.add(rest_, LineEnd::kMissing));
    return std::move(lines_).finish();
  }

 private:
  ArrivalLines lines_;
  const std::string& label_;
  std::string rest_;
};

}  // namespace

void count_from_first(RecordedArrivals& arrivals) {
  std::vector<Duration>& offsets = arrivals.offsets;
  std::size_t reordered = 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) ++reordered;
  }
  if (reordered > 0) {
    arrivals.counters.add(kArrivalsReordered, reordered);
    sort_by_time(arrivals);
  }
  const Duration first = offsets.front();
  for (Duration& offset : offsets) offset -= first;
}

Result<RecordedArrivals> parse_arrivals(std::string_view text, ArrivalFormat format,
                                        const std::string& label, Lengths lengths) {
  if (is_document(format)) return parse_document(text, format, label, lengths);
  LineCutter cutter(format, label, lengths);
  BUBBLESIM_RETURN_IF_ERROR(cutter.add(text));
  return std::move(cutter).finish();
}

Result<RecordedArrivals> read_arrivals(const std::string& path, ArrivalFormat format,
                                       Lengths lengths) {
  if (is_document(format)) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const std::string text,
        read_packed_text(path, kMaxArrivalDocumentMiB, "a smaller document"));
    return parse_document(text, format, path, lengths);
  }
  LineCutter cutter(format, path, lengths);
  BUBBLESIM_RETURN_IF_ERROR(
      read_packed_file(path, [&](std::string_view bytes) { return cutter.add(bytes); }));
  return std::move(cutter).finish();
}

}  // namespace bubblesim::workload
