// Imports Chakra execution traces (MLCommons): one file for each rank, protobuf (.et) or JSON,
// plain or gzip. A Chakra trace is a graph of nodes with durations; if their starts are not
// recorded, nodes are laid out by dependencies, each stream and thread one node at a time.
//
// Device nodes become operations, host nodes become calls; guesses and dropped nodes are counted
// (chakra_node.hpp). chakra_layout.hpp lays out nodes without starts.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "sim/base/result.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Reads one file for each rank. The rank is that in a file of bubblesim's own, else in the file's
/// name ("job.3.et"), else the position in `paths`. The result is sorted by rank; its ranks agree
/// on the world size. Faults: unreadable file, not a Chakra trace, no device node, no device node
/// with a duration, durations that add up to more than 73 years, two files of one rank.
/// `options.max_event_bytes` bounds a node.
[[nodiscard]] Result<JobTrace> import_chakra(std::span<const std::filesystem::path> paths,
                                             const ImportOptions& options = {},
                                             const ProgressCallback& progress = {});

/// One rank's file from memory; `source` is its name in messages.
[[nodiscard]] Result<RankTrace> import_chakra_bytes(std::string_view bytes,
                                                    std::string_view source,
                                                    const ImportOptions& options = {});

/// Whether the file begins like a Chakra trace of either form. Reads at most 64 KiB of it; false if
/// it cannot be read. PyTorch's own execution traces ("nodes", "schema") are another format.
[[nodiscard]] bool looks_like_chakra(const std::filesystem::path& path);
[[nodiscard]] bool looks_like_chakra_bytes(std::string_view head);

}  // namespace bubblesim::traces
