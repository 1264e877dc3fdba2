#include "traces/format/trace_reader.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "traces/format/chunk_scanner.hpp"
#include "traces/format/columns.hpp"
#include "traces/format/counters.hpp"
#include "traces/format/layout.hpp"
#include "traces/format/payload.hpp"
#include "traces/format/references.hpp"
#include "traces/format/schema.hpp"
#include "traces/launch_shapes.hpp"

namespace bubblesim::traces::format {
namespace {

// ---- Asks the system for large pages under memory that is about to be filled: fewer faults, which
// otherwise take a third of reading a trace.

/// The size of a large page on x86-64 and most AArch64 systems.
constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20U;

// Advice only, for the whole large pages inside the range; does nothing where there are none.
void prefer_large_pages(void* start, std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  const auto from = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t first = (from + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t last = (from + bytes) / kLargePage * kLargePage;
  // A refusal changes nothing but speed.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
  static_cast<void>(start);
  static_cast<void>(bytes);
#endif
}

/// May `columns` hold `count` records? Asked before anything is allocated for them.
template <class Record>
bool columns_fit(std::span<const ByteView> columns, std::uint32_t count) {
  ColumnChecker checker(columns, count);
  Schema<Record>::columns(checker);
  return checker.right();
}

/// Records decoded at a time: operations of 56 bytes then fill a third of a first-level cache.
constexpr std::size_t kBlockRecords = 256;

/// Fewest payload bytes of a record of a kind worth foretelling: a byte in each of 8 columns.
constexpr std::uint32_t kForetoldBytes = 8;

/// The most room that is reserved at once for records that headers of unread chunks announce.
constexpr std::size_t kMostForetold = std::size_t{1} << 24U;

/// Makes room for what is foretold, else as push_back would, so that chunk after chunk stays
/// linear.
template <class Record>
void make_room(std::vector<Record>& records, std::size_t size, std::size_t foretold) {
  if (size <= records.capacity()) return;
  records.reserve(std::max({size, std::min(foretold, kMostForetold), records.capacity() * 2}));
  prefer_large_pages(records.data(), records.capacity() * sizeof(Record));
}

// Collects the records of whole chunks into a job, whatever chunks are missing between them.

class RecordStore {
 public:
  /// Foretells a chunk, so that memory for its records is asked for once. Believes no more
  /// records than its payload has room for.
  void foretell(const ChunkHeader& header) {
    const auto kind = static_cast<ChunkKind>(header.kind);
    if (kind != ChunkKind::kHostCalls && kind != ChunkKind::kDeviceOps) return;
    foretold_[{header.rank, header.kind}] +=
        std::min(header.records, header.raw_bytes / kForetoldBytes);
  }
  /// Takes a payload in. What breaks the format is counted and leaves the store as it was.
  void load(const ChunkHeader& header, ByteView payload) {
    const auto found = ranks_.find(header.rank);
    const bool goes_back =
        found != ranks_.end() && header.first_record < found->second.next[header.kind];
    const auto columns = split_columns(payload);
    if (goes_back || !columns || !load_kind(header, *columns)) {
      counters_.add(kChunksMalformed);
      note_lost(header);
      return;
    }
    if (header.kind == static_cast<std::uint16_t>(ChunkKind::kEnd)) return;
    RankState& state = ranks_[header.rank];
    state.next[header.kind] = header.first_record + header.records;
    state.loaded[header.kind] += header.records;
    expect(header.rank, header.kind, state.next[header.kind]);
  }
  /// Notes a chunk that was seen and cannot be read, so that its records count as lost.
  void note_lost(const ChunkHeader& header) {
    if (header.kind == static_cast<std::uint16_t>(ChunkKind::kEnd)) return;
    expect(header.rank, header.kind, header.first_record + header.records);
  }
  /// Hands over what was collected, ordered by rank, every id pointing at a record.
  [[nodiscard]] JobTrace finish() {
    count_lost_records();
    JobTrace job;
    job.ranks.reserve(ranks_.size());
    for (auto& [rank, state] : ranks_) {
      counters_.add(kDescriptionsLost, state.described ? 0 : 1);
      state.trace.rank = rank;
      resolve_references(state.trace, state.tables, counters_);
      job.ranks.push_back(std::move(state.trace));
    }
    ranks_.clear();
    return job;
  }
  [[nodiscard]] const CounterSet& counters() const { return counters_; }
  void count(const CounterSpec& spec) { counters_.add(spec); }
  /// Up to 1.1, one block of one thread without registers stood for a shape that is not known.
  void use_old_shapes() { old_shapes_ = true; }

 private:
  static constexpr std::size_t kKinds = 18;
  struct RankState {
    RankTrace trace;
    ReferredTables tables;
    std::array<std::uint64_t, kKinds> next{};    ///< position after the last record read
    std::array<std::uint64_t, kKinds> loaded{};  ///< records read
    bool described = false;
  };

  [[nodiscard]] bool load_kind(const ChunkHeader& header, std::span<const ByteView> columns) {
    switch (static_cast<ChunkKind>(header.kind)) {
      case ChunkKind::kEnd: return load_totals(header, columns);
      case ChunkKind::kRank: return load_description(header, columns);
      case ChunkKind::kNames: return load_names(header, columns);
      case ChunkKind::kShapes: return load_shapes(header, columns);
      case ChunkKind::kCounters: return load_counters(header, columns);
      case ChunkKind::kThreads:
        return append(header, columns, &RankTrace::threads, &ReferredTables::threads);
      case ChunkKind::kStreams:
        return append(header, columns, &RankTrace::streams, &ReferredTables::streams);
      case ChunkKind::kHostCalls:
        return append(header, columns, &RankTrace::host_calls, &ReferredTables::host_calls);
      case ChunkKind::kDeviceOps:
        return append(header, columns, &RankTrace::device_ops, &ReferredTables::device_ops);
      case ChunkKind::kCollectives:
        return append(header, columns, &RankTrace::collectives, &ReferredTables::collectives);
      case ChunkKind::kEdges: return append(header, columns, &RankTrace::edges);
      case ChunkKind::kMarkers: return append(header, columns, &RankTrace::markers);
      case ChunkKind::kMemory: return append(header, columns, &RankTrace::memory);
      case ChunkKind::kStalls: return append(header, columns, &RankTrace::stalls);
      case ChunkKind::kClocks: return append(header, columns, &RankTrace::clocks);
      case ChunkKind::kSyncs: return append(header, columns, &RankTrace::syncs);
      case ChunkKind::kNotes: return append(header, columns, &RankTrace::notes);
    }
    return false;
  }
  /// The chunk's records by themselves, which refer to nothing; nothing if they are not right.
  template <class Record>
  [[nodiscard]] std::optional<std::vector<Record>> decode_new(const ChunkHeader& header,
                                                              std::span<const ByteView> columns) {
    if (!columns_fit<Record>(columns, header.records)) return std::nullopt;
    std::vector<Record> records;
    records.reserve(header.records);
    UsedIds none;
    if (!decode(columns, header.records, records, none)) return std::nullopt;
    return records;
  }
  /// Decodes into fresh records and hands them to keep(state, records).
  template <class Record, class Keep>
  [[nodiscard]] bool load_new(const ChunkHeader& header, std::span<const ByteView> columns,
                              Keep keep) {
    auto records = decode_new<Record>(header, columns);
    if (!records) return false;
    keep(ranks_[header.rank], *records);
    return true;
  }
  /// Decodes to the end of a table of the rank.
  template <class Record>
  [[nodiscard]] bool append(const ChunkHeader& header, std::span<const ByteView> columns,
                            std::vector<Record> RankTrace::*member,
                            TableExtents ReferredTables::*table = nullptr) {
    if (!columns_fit<Record>(columns, header.records)) return false;
    RankState& state = ranks_[header.rank];
    std::vector<Record>& records = state.trace.*member;
    make_room(records, records.size() + header.records, foretold_[{header.rank, header.kind}]);
    if (!decode(columns, header.records, records, state.tables.used)) return false;
    if (table != nullptr) (state.tables.*table).add(header.first_record, header.records);
    return true;
  }
  [[nodiscard]] bool load_names(const ChunkHeader& header, std::span<const ByteView> columns) {
    return load_new<NameRecord>(header, columns, [&header](RankState& state, const auto& records) {
      state.tables.names.add(header.first_record, header.records);
      for (const NameRecord& record : records) {
        state.tables.name_ids.push_back(state.trace.names.intern(record.text));
      }
    });
  }
  [[nodiscard]] bool load_shapes(const ChunkHeader& header, std::span<const ByteView> columns) {
    return load_new<LaunchShape>(header, columns, [&](RankState& state, const auto& records) {
      state.tables.shapes.add(header.first_record, header.records);
      for (const LaunchShape& shape : records) {
        const bool stands_for_none = old_shapes_ && shape == LaunchShape{};
        state.tables.shape_ids.push_back(
            state.trace.shapes.intern(stands_for_none ? kUnknownShape : shape));
      }
    });
  }
  [[nodiscard]] bool load_description(const ChunkHeader& header,
                                      std::span<const ByteView> columns) {
    return load_new<RankDescription>(header, columns, [](RankState& state, auto& records) {
      if (records.empty()) return;
      state.described = true;
      state.trace.world_size = records.back().world_size;
      state.trace.process = records.back().process;
      state.trace.device = std::move(records.back().device);
      state.trace.provenance = std::move(records.back().provenance);
    });
  }
  [[nodiscard]] bool load_counters(const ChunkHeader& header, std::span<const ByteView> columns) {
    return load_new<CounterRecord>(header, columns, [](RankState& state, const auto& records) {
      state.trace.counters = CounterSet{};
      for (const CounterRecord& record : records) {
        state.trace.counters.add(record.name, {record.severity, record.help, record.count});
      }
    });
  }
  [[nodiscard]] bool load_totals(const ChunkHeader& header, std::span<const ByteView> columns) {
    const auto totals = decode_new<TotalRecord>(header, columns);
    if (!totals) return false;
    for (const TotalRecord& total : *totals) expect(total.rank, total.kind, total.records);
    return true;
  }
  /// Adds `count` records to `into`, or none: a block at a time, while it is in the cache.
  template <class Record>
  [[nodiscard]] bool decode(std::span<const ByteView> columns, std::size_t count,
                            std::vector<Record>& records, UsedIds& used) {
    const std::size_t before = records.size();
    const std::size_t size = before + count;
    ColumnDecoder<Record> decoder(columns, count);
    UsedIds used_here;
    do {
      const std::size_t done = records.size();
      records.resize(std::min(size, done + kBlockRecords));
      const std::span<Record> block = std::span(records).subspan(done);
      decoder.fill(block);
      for (const Record& record : block) used_here.add(record);
    } while (records.size() < size);
    if (!decoder.right()) {
      records.resize(before);
      return false;
    }
    used.merge(used_here);
    counters_.add(kEnumsUnknown, decoder.unknown_enums());
    return true;
  }
  void expect(std::uint32_t rank, std::uint16_t kind, std::uint64_t records) {
    std::uint64_t& expected = expected_[{rank, kind}];
    expected = std::max(expected, std::min(records, kMaxRecordPosition));
  }
  void count_lost_records() {
    for (const auto& [key, expected] : expected_) {
      const auto& [rank, kind] = key;
      if (kind >= kKinds) continue;
      const auto state = ranks_.find(rank);
      const std::uint64_t loaded = state == ranks_.end() ? 0 : state->second.loaded[kind];
      counters_.add(kRecordsLost, expected - std::min(expected, loaded));
    }
  }

  std::map<std::uint32_t, RankState> ranks_;
  using Counts = std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint64_t>;
  Counts foretold_;  ///< records that chunk headers announce, by rank and kind
  Counts expected_;  ///< records that are known to have been written
  CounterSet counters_;
  bool old_shapes_ = false;
};

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
