#include "traces/import/kineto_import.hpp"

#include <algorithm>
#include <utility>

#include "traces/import/kineto_counters.hpp"
#include "traces/import/kineto_join.hpp"
#include "traces/import/kineto_reader.hpp"
#include "traces/import/kineto_refusal.hpp"

namespace bubblesim::traces {
namespace {

void set_rank(const ImportOptions& options, const KinetoMetadata& metadata, RankTrace& trace) {
  if (!metadata.rank && !options.rank) trace.counters.add(kineto::kRankUnknown);
  trace.rank = options.rank.value_or(metadata.rank.value_or(0));
  trace.world_size = std::max(metadata.world_size.value_or(1), trace.rank + 1);
}

/// "1234 bytes of text, 56 events read".
std::string read_so_far(const TextWindow& window, const KinetoReader& reader) {
  return std::to_string(window.offset() + window.text().size()) + " bytes of text, " +
         std::to_string(reader.shape().events) + " events read";
}

/// Counts a file that ends early, and says how far it was read.
void count_cut(const CounterSpec& spec, const std::string& file, const TextWindow& window,
               const KinetoReader& reader, CounterSet& counters) {
  const std::string name = std::filesystem::path(file).filename().string();
  counters.add(spec.name, {spec.severity,
                           name + " is truncated after " + read_so_far(window, reader) + "; " +
                               std::string(spec.help),
                           1});
}

using Ranks = std::vector<RankTrace>;

/// Where the job has other processes, the rank that the file names is that of its main GPU.
void name_ranks(const ImportOptions& options, const KinetoMetadata& metadata,
                const std::string& file, Ranks& ranks) {
  if (metadata.world_size.value_or(1) > 1) {
    const auto operations = [](const RankTrace& rank) { return rank.device_ops.size(); };
    std::iter_swap(ranks.begin(), std::ranges::max_element(ranks, {}, operations));
  }
  for (RankTrace& rank : ranks) {
    set_rank(options, metadata, rank);
    rank.provenance.source = std::filesystem::path(file).filename().string();
    rank.provenance.format = "kineto";
    rank.provenance.tool = metadata.tool;
  }
}

Result<RankTrace> first_of(Result<Ranks> ranks) {
  if (!ranks) return tl::unexpected<Error>(ranks.error());
  return std::move(ranks->front());
}

Result<Ranks> import_from(ByteStream& source, const std::string& file,
                              const ImportOptions& options, std::function<void()> on_block) {
  TextWindow window(source, options.max_event_bytes, std::move(on_block));
  KinetoReader reader(window);
  reader.run();
  KinetoRecords records = reader.take_records();
  for (const auto& [name, entry] : reader.counts()) {
    if (name != kineto::kTruncated.name) records.trace.counters.add(name, entry);
  }
  const bool damaged = source.damaged();
  const bool cut = damaged || reader.counts().count(kineto::kTruncated.name) > 0;
  if (damaged) count_cut(kineto::kGzipDamaged, file, window, reader, records.trace.counters);
  if (reader.counts().count(kineto::kTruncated.name) > 0) {
    count_cut(kineto::kTruncated, file, window, reader, records.trace.counters);
  }
  const KinetoMetadata metadata = reader.metadata().finish(records.trace.counters);
  const std::string reason = refusal(reader.shape(), metadata, records);
  if (!reason.empty()) {
    if (!cut || !records.ops.empty()) return fail(file, "", reason);
    const std::string rest =
        reader.shape().events > 0 ? ", none of them a device operation" : ": " + reason;
    return fail(file, "", "truncated after " + read_so_far(window, reader) + rest);
  }
  Ranks ranks = join_records(std::move(records), metadata);
  name_ranks(options, metadata, file, ranks);
  return ranks;
}

}  // namespace

Result<Ranks> import_kineto_process(const std::filesystem::path& path,
                                    const ImportOptions& options,
                                    const ProgressCallback& progress) {
  BUBBLESIM_ASSIGN_OR_RETURN(ByteStream source, ByteStream::open(path));
  const std::string file = path.string();
  std::function<void()> on_block;
  if (progress) {
    on_block = [&] { progress({file, source.consumed(), source.total()}); };
  }
  return import_from(source, file, options, std::move(on_block));
}

Result<RankTrace> import_kineto_file(const std::filesystem::path& path,
                                     const ImportOptions& options,
                                     const ProgressCallback& progress) {
  return first_of(import_kineto_process(path, options, progress));
}

Result<RankTrace> import_kineto_text(std::string_view text, std::string_view source,
                                     const ImportOptions& options) {
  ByteStream bytes = ByteStream::from_memory(text);
  return first_of(import_from(bytes, std::string(source), options, {}));
}

}  // namespace bubblesim::traces
