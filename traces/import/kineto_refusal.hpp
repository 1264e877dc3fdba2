// Why a text is not a Kineto trace of one process on a GPU: what it looks like instead.
#pragma once

#include <string>

#include "traces/import/kineto_reader.hpp"
#include "traces/import/kineto_records.hpp"

namespace bubblesim::traces {

/// A sentence for the user, or empty: the file is a Kineto trace with device operations, whose
/// launches can be told from one another.
[[nodiscard]] std::string refusal(const KinetoTextShape& shape, const KinetoMetadata& metadata,
                                  const KinetoRecords& records);

}  // namespace bubblesim::traces
