#include "traces/format/file_summary.hpp"

#include <map>

#include "traces/format/counters.hpp"

namespace bubblesim::traces::format {
namespace {

std::string kind_text(std::uint16_t kind) {
  const std::string_view name = chunk_kind_name(kind);
  return name.empty() ? "unknown " + std::to_string(kind) : std::string(name);
}

ChunkSummary summary_of(const ScannedChunk& chunk) {
  const ChunkHeader& header = chunk.header;
  return {chunk.offset,        header.index,        kind_text(header.kind),
          header.rank,         header.records,      header.first_record,
          header.stored_bytes, header.raw_bytes,    chunk.state};
}

void add(KindSummary& sum, const ChunkHeader& header) {
  sum.kind = kind_text(header.kind);
  sum.chunks += 1;
  sum.records += header.records;
  sum.stored_bytes += kChunkHeaderBytes + header.stored_bytes;
  sum.raw_bytes += header.raw_bytes;
}

}  // namespace

Result<FileSummary> summarise_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto source, FileSource::open(path));
  BUBBLESIM_ASSIGN_OR_RETURN(const FileHeader header, read_file_header(*source, path));
  FileSummary summary;
  summary.major_version = header.major;
  summary.minor_version = header.minor;
  summary.file_bytes = source->size();
  std::map<std::uint16_t, KindSummary> kinds;
  ChunkScanner scanner(*source);
  while (const auto chunk = scanner.next()) {
    summary.chunks.push_back(summary_of(*chunk));
    if (chunk->state == ChunkState::kWhole) add(kinds[chunk->header.kind], chunk->header);
  }
  if (const auto fault = source->fault()) return tl::unexpected<Error>(*fault);
  for (auto& [kind, sum] : kinds) summary.kinds.push_back(std::move(sum));
  summary.counters.add(kHeaderDamaged, header.checksum_right ? 0 : 1);
  scanner.count(summary.counters);
  return summary;
}

}  // namespace bubblesim::traces::format
