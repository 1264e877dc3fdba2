#include "traces/format/trace_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/output_file.hpp"
#include "traces/format/payload.hpp"

namespace bubblesim::traces::format {
namespace {

/// Text and list bytes of a record, beyond its numbers; what chunk_bytes bounds.
std::size_t weight(const auto&) { return 0; }
std::size_t weight(const NameRecord& record) { return record.text.size(); }
std::size_t weight(const HostThread& thread) { return thread.name.size(); }
std::size_t weight(const Collective& item) { return item.peers.size() * sizeof(std::uint32_t); }

/// Tables are written before the events that may refer to them.
template <class Record>
constexpr bool kIsTable =
    std::is_same_v<Record, NameRecord> || std::is_same_v<Record, LaunchShape> ||
    std::is_same_v<Record, HostThread> || std::is_same_v<Record, Stream>;

std::vector<NameRecord> names_of(const RankTrace& trace) {
  std::vector<NameRecord> names;
  for (std::uint32_t i = 0; i < trace.names.size(); ++i) names.push_back({trace.names[NameId{i}]});
  return names;
}

std::vector<LaunchShape> shapes_of(const RankTrace& trace) {
  std::vector<LaunchShape> shapes;
  for (std::uint32_t i = 0; i < trace.shapes.size(); ++i) {
    shapes.push_back(trace.shapes[ShapeId{i}]);
  }
  return shapes;
}

}  // namespace

class TraceWriter::State {
  /// Records of one kind and rank that wait for their chunk to fill.
  template <class Record>
  struct Pending {
    std::vector<Record> records;
    std::size_t bytes = 0;
    std::uint64_t written = 0;
  };

  struct RankPending {
    std::tuple<Pending<NameRecord>, Pending<LaunchShape>, Pending<HostThread>, Pending<Stream>,
               Pending<HostCall>, Pending<DeviceOp>, Pending<Edge>, Pending<Collective>,
               Pending<Marker>, Pending<MemorySample>, Pending<HostStall>, Pending<ClockPair>,
               Pending<SyncRecord>, Pending<CollectiveNote>>
        kinds;
    std::uint64_t descriptions = 0;  ///< written; both kinds are never pending
    std::uint64_t counters = 0;

    template <class Record>
    Pending<Record>& pending_of() {
      return std::get<Pending<Record>>(kinds);
    }
    /// Calls `visit` for what each kind has pending, tables first.
    void visit_kinds(auto visit) {
      std::apply([&](auto&... pending) { (visit(pending), ...); }, kinds);
    }
  };

 public:
  State(std::string path, int descriptor, const WriterOptions& options)
      : path_(std::move(path)), descriptor_(descriptor), options_(options),
        packer_(options.compression_level) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  template <class Record>
  Result<void> append(RankId rank, std::span<const Record> records) {
    auto& pending = ranks_[rank.value].pending_of<Record>();
    while (!records.empty()) {
      std::size_t bytes = 0;
      const std::size_t taken = room(pending, records, bytes);
      if (pending.records.empty() && taken < records.size()) {
        BUBBLESIM_RETURN_IF_ERROR(write_records(rank, records.first(taken)));
      } else if (taken > 0) {
        pending.records.insert(pending.records.end(), records.begin(),
                               records.begin() + static_cast<std::ptrdiff_t>(taken));
        pending.bytes += bytes;
      }
      if (taken < records.size()) BUBBLESIM_RETURN_IF_ERROR(flush_pending(rank, pending));
      records = records.subspan(taken);
    }
    return write_bytes({});
  }

  Result<void> describe(RankId rank, const RankDescription& description) {
    return write_chunk(rank.value, std::span(&description, 1),
                       ranks_[rank.value].descriptions);
  }

  Result<void> set_counters(RankId rank, const CounterSet& counters) {
    std::vector<CounterRecord> records;
    for (const auto& [name, entry] : counters) {
      records.push_back({name, entry.severity, entry.help, entry.count});
    }
    return write_chunk<CounterRecord>(rank.value, records, ranks_[rank.value].counters);
  }

  Result<void> flush() {
    for (auto& [rank, waiting] : ranks_) {
      BUBBLESIM_RETURN_IF_ERROR(flush_rank(RankId{rank}, waiting));
    }
    return {};
  }

  Result<void> finish() {
    BUBBLESIM_RETURN_IF_ERROR(flush());
    std::vector<TotalRecord> totals;
    for (auto& [rank, waiting] : ranks_) {
      const auto total = [&totals, number = rank](ChunkKind kind, std::uint64_t written) {
        if (written > 0) totals.push_back({number, static_cast<std::uint16_t>(kind), written});
      };
      waiting.visit_kinds([&total]<class Record>(const Pending<Record>& pending) {
        total(Schema<Record>::kKind, pending.written);
      });
      total(ChunkKind::kRank, waiting.descriptions);
      total(ChunkKind::kCounters, waiting.counters);
    }
    std::uint64_t ends = 0;
    BUBBLESIM_RETURN_IF_ERROR(write_chunk<TotalRecord>(kNoRank, totals, ends));
    return close();
  }

  Result<void> write_bytes(ByteView bytes) {
    while (!bytes.empty() && !fault_) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) {
        fault_ = Error{path_, {}, std::string("cannot write: ") + std::strerror(errno)};
      } else {
        bytes = bytes.subspan(static_cast<std::size_t>(done));
        bytes_written_ += static_cast<std::uint64_t>(done);
      }
    }
    if (fault_) return tl::unexpected<Error>(*fault_);
    return {};
  }

  [[nodiscard]] std::uint64_t bytes_written() const { return bytes_written_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  /// How many of `records` the pending chunk still takes (`bytes`: their weight); an empty chunk
  /// takes one of any size.
  template <class Record>
  std::size_t room(const Pending<Record>& pending, std::span<const Record> records,
                   std::size_t& bytes) const {
    std::size_t taken = 0;
    while (taken < records.size()) {
      const std::size_t held = pending.records.size() + taken;
      const std::size_t next = weight(records[taken]);
      if (held >= options_.chunk_records) break;
      if (held > 0 && pending.bytes + bytes + next > options_.chunk_bytes) break;
      bytes += next;
      ++taken;
    }
    return taken;
  }

  /// Writes what is pending of one kind, if anything is.
  template <class Record>
  Result<void> flush_pending(RankId rank, Pending<Record>& pending) {
    if (pending.records.empty()) return {};
    const std::vector<Record> records = std::exchange(pending.records, {});
    pending.bytes = 0;
    return write_records(rank, std::span<const Record>(records));
  }

  Result<void> flush_rank(RankId rank, RankPending& waiting) {
    Result<void> result;
    waiting.visit_kinds([&](auto& pending) {
      if (result) result = flush_pending(rank, pending);
    });
    return result;
  }

  Result<void> flush_tables(RankId rank, RankPending& waiting) {
    Result<void> result;
    waiting.visit_kinds([&]<class Record>(Pending<Record>& pending) {
      if constexpr (kIsTable<Record>) {
        if (result) result = flush_pending(rank, pending);
      }
    });
    return result;
  }

  template <class Record>
  Result<void> write_records(RankId rank, std::span<const Record> records) {
    RankPending& waiting = ranks_[rank.value];
    if constexpr (!kIsTable<Record>) BUBBLESIM_RETURN_IF_ERROR(flush_tables(rank, waiting));
    return write_chunk(rank.value, records, waiting.pending_of<Record>().written);
  }

  template <class Record>
  Result<void> write_chunk(std::uint32_t rank, std::span<const Record> records,
                           std::uint64_t& written) {
    columns_.clear();
    ColumnEncoder<Record> encoder(records, columns_);
    Schema<Record>::columns(encoder);
    ChunkHeader header{.kind = static_cast<std::uint16_t>(Schema<Record>::kKind),
                       .rank = rank,
                       .records = static_cast<std::uint32_t>(records.size()),
                       .index = next_index_,
                       .first_record = written};
    const auto payload = packer_.pack(columns_, header);
    if (!payload) return fail(path_, {}, too_large(header));
    const auto head = encode_chunk_header(header);
    chunk_.assign(head.begin(), head.end());
    chunk_.insert(chunk_.end(), payload->begin(), payload->end());
    written += records.size();
    ++next_index_;
    return write_bytes(chunk_);
  }

  static std::string too_large(const ChunkHeader& header) {
    return fmt::format("found {} {} of rank {} that exceed the format's {} bytes a chunk",
                       header.records, chunk_kind_name(header.kind), header.rank,
                       kMaxPayloadBytes);
  }

  Result<void> close() {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) == 0) return {};
    return fail(path_, {}, std::string("cannot close: ") + std::strerror(errno));
  }

  std::string path_;
  int descriptor_;
  WriterOptions options_;
  PayloadPacker packer_;
  ColumnBytes columns_;
  std::vector<std::uint8_t> chunk_;
  std::map<std::uint32_t, RankPending> ranks_;
  std::uint32_t next_index_ = 0;
  std::uint64_t bytes_written_ = 0;
  std::optional<Error> fault_;
};

TraceWriter::TraceWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::create(const std::string& path, const WriterOptions& options) {
  if (options.chunk_records == 0) {
    return fail(path, {}, "found chunk_records 0, expected 1 or more");
  }
  const int descriptor =
      options.anew ? open_new_file(path, options.rights)
                   : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, options.rights);
  if (descriptor < 0) return fail(path, {}, std::string("cannot create: ") + std::strerror(errno));
  TraceWriter writer(std::make_unique<State>(path, descriptor, options));
  BUBBLESIM_RETURN_IF_ERROR(writer.state_->write_bytes(encode_file_header()));
  return writer;
}

Result<void> TraceWriter::describe(RankId rank, const RankDescription& description) {
  return state_->describe(rank, description);
}
Result<void> TraceWriter::set_counters(RankId rank, const CounterSet& counters) {
  return state_->set_counters(rank, counters);
}
template <class Record>
Result<void> TraceWriter::append(RankId rank, std::span<const Record> records) {
  return state_->append(rank, records);
}
template Result<void> TraceWriter::append(RankId, std::span<const NameRecord>);
template Result<void> TraceWriter::append(RankId, std::span<const LaunchShape>);
template Result<void> TraceWriter::append(RankId, std::span<const HostThread>);
template Result<void> TraceWriter::append(RankId, std::span<const Stream>);
template Result<void> TraceWriter::append(RankId, std::span<const HostCall>);
template Result<void> TraceWriter::append(RankId, std::span<const DeviceOp>);
template Result<void> TraceWriter::append(RankId, std::span<const Edge>);
template Result<void> TraceWriter::append(RankId, std::span<const Collective>);
template Result<void> TraceWriter::append(RankId, std::span<const Marker>);
template Result<void> TraceWriter::append(RankId, std::span<const MemorySample>);
template Result<void> TraceWriter::append(RankId, std::span<const HostStall>);
template Result<void> TraceWriter::append(RankId, std::span<const ClockPair>);
template Result<void> TraceWriter::append(RankId, std::span<const SyncRecord>);
template Result<void> TraceWriter::append(RankId, std::span<const CollectiveNote>);
Result<void> TraceWriter::flush() { return state_->flush(); }
Result<void> TraceWriter::finish() { return state_->finish(); }
std::uint64_t TraceWriter::bytes_written() const { return state_->bytes_written(); }
int TraceWriter::descriptor() const { return state_->descriptor(); }

namespace {

/// One list after the other, up to the first fault.
template <class... Record>
Result<void> append_all(TraceWriter& writer, RankId rank, const std::vector<Record>&... lists) {
  Result<void> result;
  ((result = result ? writer.append<Record>(rank, lists) : result), ...);
  return result;
}

Result<void> write_rank(TraceWriter& writer, const RankTrace& trace) {
  const RankId rank{trace.rank};
  BUBBLESIM_RETURN_IF_ERROR(
      writer.describe(rank, {trace.world_size, trace.device, trace.provenance, trace.process}));
  BUBBLESIM_RETURN_IF_ERROR(writer.append<NameRecord>(rank, names_of(trace)));
  BUBBLESIM_RETURN_IF_ERROR(writer.append<LaunchShape>(rank, shapes_of(trace)));
  BUBBLESIM_RETURN_IF_ERROR(append_all(
      writer, rank, trace.threads, trace.streams, trace.host_calls, trace.device_ops, trace.edges,
      trace.collectives, trace.markers, trace.memory, trace.stalls, trace.clocks, trace.syncs,
      trace.notes));
  BUBBLESIM_RETURN_IF_ERROR(writer.flush());
  return writer.set_counters(rank, trace.counters);
}

Result<void> write_ranks(const std::string& path, const JobTrace& job,
                         const WriterOptions& options) {
  BUBBLESIM_ASSIGN_OR_RETURN(TraceWriter writer, TraceWriter::create(path, options));
  for (const RankTrace& trace : job.ranks) BUBBLESIM_RETURN_IF_ERROR(write_rank(writer, trace));
  return writer.finish();
}

}  // namespace

Result<void> write_job(const std::string& path, const JobTrace& job,
                       const WriterOptions& options) {
  for (std::size_t i = 1; i < job.ranks.size(); ++i) {
    if (job.ranks[i - 1].rank < job.ranks[i].rank) continue;
    return fail(path, fmt::format("/ranks/{}", i),
                fmt::format("found rank {} after rank {}, expected rising ranks",
                            job.ranks[i].rank, job.ranks[i - 1].rank));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const OutputTarget target, output_target(path));
  if (target.partial.empty()) return write_ranks(target.path, job, options);
  WriterOptions beside = options;
  beside.anew = true;
  const Result<void> written = write_ranks(target.partial, job, beside);
  if (!written || std::rename(target.partial.c_str(), target.path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::remove(target.partial.c_str());
    if (!written) return written;
    return fail(path, {}, "cannot rename " + target.partial + " to it: " + reason);
  }
  return {};
}

}  // namespace bubblesim::traces::format
