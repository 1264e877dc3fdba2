// Imports Nsight Systems profiles, as written by `nsys export --type sqlite`, plain or gzip.
//
// Tables and columns are found by name; any may be absent, since they differ between versions.
// Guesses and dropped rows are counted (nsys_session.hpp). Memory is a small multiple of the
// result; a gzip file is unpacked in memory.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "sim/base/result.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces {

/// Whether the file begins like an SQLite database, plain or inside gzip. False if unreadable.
[[nodiscard]] bool looks_like_sqlite(const std::filesystem::path& path);

/// Whether the file's name is that of a report of Nsight Systems instead of an export. Only Nsight
/// Systems reads reports; the import's fault gives the command that exports one.
[[nodiscard]] bool is_nsys_report(const std::filesystem::path& path);

/// Reads one export: one rank for each process and GPU that ran kernels, joined, sorted by rank.
/// Ranks come from MPI, NCCL or the environment if recorded, else from the order of processes and
/// GPUs; counters say which. Faults: unreadable, not an export, or no device activity in it.
[[nodiscard]] Result<JobTrace> import_nsys_file(const std::filesystem::path& path,
                                                const ProgressCallback& progress = {});

/// Imports as above from a database in memory; `source` is its name in messages.
[[nodiscard]] Result<JobTrace> import_nsys_bytes(std::string_view bytes, std::string_view source);

/// Reads several exports of one job. If not all of them name their ranks, or two name the same,
/// ranks come from file names ("...rank3...") if each has one and holds one rank, else from the
/// order of `paths`.
[[nodiscard]] Result<JobTrace> import_nsys_job(std::span<const std::filesystem::path> paths,
                                               const ProgressCallback& progress = {});

}  // namespace bubblesim::traces
