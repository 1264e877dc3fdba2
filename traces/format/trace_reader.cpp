#include "traces/format/trace_reader.hpp"

#include "traces/format/chunk_scanner.hpp"
#include "traces/format/counters.hpp"
#include "traces/format/payload.hpp"
#include "traces/format/record_store.hpp"

namespace bubblesim::traces::format {
namespace {

bool codec_is_known(std::uint8_t codec) {
  return codec <= static_cast<std::uint8_t>(Codec::kZstd);
}

void load_chunk(const ScannedChunk& chunk, PayloadUnpacker& unpacker, RecordStore& store) {
  if (chunk_kind_name(chunk.header.kind).empty()) {
    store.count(kChunksUnknown);
    return;
  }
  if (chunk.state != ChunkState::kWhole) {
    if (chunk.state != ChunkState::kMisplaced) store.note_lost(chunk.header);
    return;
  }
  const auto payload = unpacker.unpack(chunk.header, chunk.stored);
  if (payload) {
    store.load(chunk.header, *payload);
    return;
  }
  store.count(codec_is_known(chunk.header.codec) ? kChunksMalformed : kChunksUnknown);
  store.note_lost(chunk.header);
}

/// Walks the chunk headers up to the first that is damaged.
void foretell_chunks(ByteSource& source, RecordStore& store) {
  std::uint64_t offset = kFileHeaderBytes;
  for (;;) {
    const ByteView bytes = source.view(offset, kChunkHeaderBytes);
    if (bytes.size() < kChunkHeaderBytes) return;
    const auto header = decode_chunk_header(bytes);
    if (!header) return;
    offset += kChunkHeaderBytes + std::uint64_t{header->stored_bytes};
    if (offset > source.size()) return;
    store.foretell(*header);
  }
}

Result<ReadOutcome> read(ByteSource& source, const std::string& name) {
  BUBBLESIM_ASSIGN_OR_RETURN(const FileHeader header, read_file_header(source, name));
  ChunkScanner scanner(source);
  PayloadUnpacker unpacker;
  RecordStore store;
  if (header.checksum_right && header.minor < 2) store.use_old_shapes();
  foretell_chunks(source, store);
  while (const auto chunk = scanner.next()) load_chunk(*chunk, unpacker, store);
  if (const auto fault = source.fault()) return tl::unexpected<Error>(*fault);

  ReadOutcome outcome;
  outcome.job = store.finish();
  outcome.counters = store.counters();
  outcome.counters.add(kHeaderDamaged, header.checksum_right ? 0 : 1);
  scanner.count(outcome.counters);
  return outcome;
}

}  // namespace

Result<ReadOutcome> read_job(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto source, FileSource::open(path));
  return read(*source, path);
}

Result<ReadOutcome> read_job_bytes(std::span<const std::uint8_t> bytes, const std::string& name) {
  MemorySource source(bytes);
  return read(source, name);
}

}  // namespace bubblesim::traces::format
