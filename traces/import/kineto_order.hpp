// One order of a file's records, and one numbering of what they name, whatever order the events
// stood in: profilers write them as their buffers come, tools that rewrite a file as they like.
#pragma once

#include "traces/import/kineto_records.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Sorts all records by time, and records of one time: operations by launch, then by graph node;
/// calls and markers the enclosing one first; then by what they say. Counts device operations that
/// stood before one that started earlier.
void sort_records(KinetoRecords& records);

/// Numbers names, shapes, threads and streams in the order in which the sorted records use them;
/// what none uses is left out. Name 0 stays the empty one.
void number_by_use(RankTrace& trace);

}  // namespace bubblesim::traces
