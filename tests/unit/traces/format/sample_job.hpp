// A small job in which every field of every record has a value of its own, and helpers to compare
// jobs and to hold .btr files as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/format/chunk_scanner.hpp"
#include "traces/format/layout.hpp"
#include "traces/format/trace_reader.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format::testing {

using Bytes = std::vector<std::uint8_t>;

/// Rank 0 with 12 host calls and 10 device operations, rank 3 with 2 and 1.
[[nodiscard]] JobTrace sample_job();

/// Every field of every record, a line each; equal texts mean equal traces.
[[nodiscard]] std::string text_of(const RankTrace& trace);
[[nodiscard]] std::string text_of(const JobTrace& job);
[[nodiscard]] std::string text_of(const CounterSet& counters);

/// A path in the test's temporary folder, different for each test.
[[nodiscard]] std::string temporary_path();
[[nodiscard]] Bytes bytes_of_file(const std::string& path);
/// The bytes that write_job writes.
[[nodiscard]] Bytes file_of(const JobTrace& job, const WriterOptions& options = {});
void write_file(const std::string& path, const Bytes& bytes);

/// The chunks of an undamaged file; `file` must outlive them.
[[nodiscard]] std::vector<ScannedChunk> chunks_of(const Bytes& file);
[[nodiscard]] std::string_view kind_of(const ScannedChunk& chunk);

/// A chunk with right checksums around any payload; sizes are set unless given.
[[nodiscard]] Bytes chunk_of(ChunkHeader header, const Bytes& payload);
/// A file header and these chunks.
[[nodiscard]] Bytes file_of_chunks(const std::vector<Bytes>& chunks);

}  // namespace bubblesim::traces::format::testing
