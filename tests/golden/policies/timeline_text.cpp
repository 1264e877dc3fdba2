#include "tests/golden/policies/timeline_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace bubblesim::golden {
namespace {

using observe::Slice, observe::SliceKind;

/// Time that a column spent on each character.
using Column = std::array<Duration, 128>;

char character(const observe::TimelineRecorder& timeline, const Slice& slice) {
  const char first = timeline.text(slice.name).front();
  switch (slice.kind) {
    case SliceKind::kKernel:
    case SliceKind::kCopy:
    case SliceKind::kMemset: return first;
    case SliceKind::kCollective: return static_cast<char>(std::tolower(first));
    case SliceKind::kPaused: return '=';
    case SliceKind::kHold: return 'h';
    default: return '\0';
  }
}

void spread(const Slice& slice, char what, const TimelineView& view, std::vector<Column>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const SimTime begin = view.from + view.column * static_cast<std::int64_t>(i);
    const Duration inside = std::min(slice.end, begin + view.column) - std::max(slice.start, begin);
    if (inside > Duration{}) columns[i][static_cast<unsigned char>(what)] += inside;
  }
}

// What runs comes before what stands still, and that before what is held.
char picture(const Column& column) {
  char best = '.';
  Duration most{};
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    const Duration time = column[static_cast<unsigned char>(letter)];
    if (letter != 'h' && time > most) {
      most = time;
      best = letter;
    }
  }
  if (best != '.') return best;
  if (column['='] > Duration{}) return '=';
  return column['h'] > Duration{} ? 'h' : '.';
}

}  // namespace

std::string timeline_row(const observe::TimelineRecorder& timeline, ClientId client,
                         const TimelineView& view) {
  std::vector<Column> columns(view.columns);
  for (const Slice& slice : timeline.slices()) {
    if (slice.gpu != view.gpu || slice.client != client) continue;
    const char what = character(timeline, slice);
    if (what != '\0') spread(slice, what, view, columns);
  }
  std::string row;
  for (const Column& column : columns) row += picture(column);
  return row;
}

std::string timeline_ruler(const TimelineView& view, Duration column) {
  std::string row(view.columns, ' ');
  const auto step = static_cast<std::size_t>(column / view.column);
  for (std::size_t at = 0; at < view.columns; at += step) {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(
        view.column * static_cast<std::int64_t>(at));
    const std::string text = "|" + std::to_string(milliseconds.count());
    for (std::size_t i = 0; i < text.size() && at + i < row.size(); ++i) row[at + i] = text[i];
  }
  row.erase(row.find_last_not_of(' ') + 1);
  return row;
}

}  // namespace bubblesim::golden
