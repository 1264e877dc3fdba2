#include "traces/import/chakra/chakra_import.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "traces/import/chakra/chakra_layout.hpp"
#include "traces/import/chakra/chakra_node.hpp"
#include "traces/import/chakra/chakra_records.hpp"
#include "traces/import/read_files.hpp"
#include "traces/import/text_window.hpp"
#include "traces/join/missing_ranks.hpp"
#include "traces/meeting_key.hpp"

namespace bubblesim::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = std::size_t{64} << 10U;

constexpr std::string_view kExpected =
    "; expected a Chakra execution trace: protobuf (GlobalMetadata, then Nodes, each behind its "
    "length), or JSON with 'workload_graph' or of the jsonizer";

/// A stream may begin with the byte '{' as well: metadata of 123 bytes.
bool is_json(std::string_view head) {
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' && chakra::is_chakra_json(head);
}

/// What is wrong with a file from which no timeline can be made; empty if nothing is. With `times`,
/// collectives need sizes only.
std::string refusal(const chakra::File& file, const CollectiveTimes& times) {
  std::uint64_t device = 0;
  std::uint64_t timed = 0;
  std::uint64_t sized = 0;
  for (const chakra::ChakraNode& node : file.nodes) {
    if (!node.on_device()) continue;
    ++device;
    if (node.duration_ns > 0) ++timed;
    if (node.is_comm() && node.comm_size > 0) ++sized;
  }
  const std::string nodes = std::to_string(file.nodes.size()) + " nodes";
  if (file.nodes.empty()) return "has no readable node" + std::string(kExpected);
  if (device == 0) {
    return "has " + nodes + ", none of them on a device (computation, communication or memory "
           "with is_cpu_op false): nothing to replay";
  }
  if (timed > 0 || (times && sized > 0)) return {};
  return "has " + nodes + ", " + std::to_string(device) + " on a device, none with a duration: "
         "a workload for a simulator that computes durations itself; expected recorded ones "
         "(duration_micros)" +
         (sized > 0 ? ", or --cluster NAME, which simulates its collectives" : "");
}

/// Own fields where the file is ours; counts what is left out or coarse.
void apply_own_times(chakra::File& file) {
  bool exact = false;
  for (chakra::ChakraNode& node : file.nodes) {
    if (node.type == chakra::kMetadataNode && !(file.native && node.own)) {
      file.trace.counters.add(chakra::kMetadataNodes);
    } else if (node.type != chakra::kMetadataNode && !node.is_known()) {
      file.trace.counters.add(chakra::kUnknownNodes);
    }
    if (!node.own) continue;
    if (node.own->start_ns) node.start_ns = node.own->start_ns;
    if (node.own->duration_ns) {
      node.duration_ns = std::max<std::int64_t>(0, *node.own->duration_ns);
      exact = true;
    }
  }
  if (!exact) file.trace.counters.add(chakra::kMicroseconds);
}

/// A file until the job is laid out, then its records.
struct ReadRank {
  ReadRank() = default;
  ReadRank(ReadRank&&) = default;
  ReadRank& operator=(ReadRank&&) = default;

  chakra::File file;
  RankTrace trace;
  std::uint32_t number = 0;  ///< its rank
  std::uint32_t world_size = 1;
  bool has_rank = false;
  std::optional<std::uint32_t> named_rank;
  bool native = false;
  bool finished = false;  ///< `trace` holds the records
  Provenance provenance;

  [[nodiscard]] std::uint32_t rank() const { return number; }
  void set_rank(std::uint32_t rank) {
    number = rank;
    world_size = std::max(world_size, rank + 1);
  }
  [[nodiscard]] const std::string& source() const { return provenance.source; }
  [[nodiscard]] CounterSet& counters() { return finished ? trace.counters : file.trace.counters; }
};

void finish_rank(ReadRank& rank, const std::vector<std::uint32_t>& order) {
  rank.trace = chakra::make_records(std::move(rank.file), order);
  rank.trace.provenance = rank.provenance;
  rank.finished = true;
}

Result<ReadRank> read_rank(ByteStream& source, const std::string& name,
                           const ImportOptions& options, std::function<void()> on_block) {
  TextWindow window(source, options.max_event_bytes, std::move(on_block));
  while (window.text().size() < kHeadBytes && window.more()) {
  }
  chakra::File file;
  static_cast<void>(file.trace.names.intern(""));
  const std::string_view head = window.text().substr(0, kHeadBytes);
  if (!looks_like_chakra_bytes(head)) {
    const std::string found = head.empty() ? "is empty" : "does not begin as a Chakra trace does";
    return fail(name, {}, found + std::string(kExpected));
  }
  if (is_json(head)) {
    chakra::read_json(window, file);
  } else {
    chakra::read_stream(window, options.max_event_bytes, file);
  }
  if (source.damaged()) file.trace.counters.add(chakra::kGzipDamaged);
  apply_own_times(file);
  chakra::resolve_ids(file);
  if (const std::string reason = refusal(file, options.collective_times); !reason.empty()) {
    return fail(name, {}, reason);
  }
  chakra::assign_lanes(file);
  chakra::find_collectives(file);
  ReadRank out;
  out.has_rank = options.rank.has_value() || file.rank.has_value();
  out.native = file.native;
  out.number = options.rank.value_or(file.rank.value_or(0));
  out.world_size = std::max(file.world_size.value_or(1), out.number + 1);
  out.provenance = {fs::path(name).filename().string(), "chakra", file.version, {}};
  const bool recorded = !chakra::lacks_starts(file);
  out.file = std::move(file);
  if (recorded) {
    // Nothing to lay out: of nodes that start together, the order of ids.
    const chakra::RankFile alone{&out.file, out.number};
    BUBBLESIM_RETURN_IF_ERROR(chakra::time_collectives({&alone, 1}, out.world_size, {}));
    std::vector<std::uint32_t> order(out.file.nodes.size());
    std::iota(order.begin(), order.end(), 0U);
    finish_rank(out, order);
  }
  return out;
}

/// "job.3.et", "job.3.json.gz": the last part of the name that is a number.
std::optional<std::uint32_t> last_number_in_name(const fs::path& path) {
  std::string name = path.filename().string();
  for (const std::string_view ending : {".gz", ".et", ".json"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string digits = name.substr(dot + 1);
  if (digits.empty() || digits.size() > 7) return std::nullopt;
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return static_cast<std::uint32_t>(std::stoul(digits));
}

Result<ReadRank> read_file(const fs::path& path, const ImportOptions& options,
                           const ProgressCallback& progress) {
  BUBBLESIM_ASSIGN_OR_RETURN(ByteStream source, ByteStream::open(path));
  const std::string name = path.string();
  std::function<void()> on_block;
  if (progress) on_block = [&] { progress({name, source.consumed(), source.total()}); };
  auto rank = read_rank(source, name, options, on_block);
  if (rank) rank->named_rank = last_number_in_name(path);
  return rank;
}

std::uint32_t world_of(const std::vector<ReadRank>& files) {
  std::uint32_t world = 1;
  for (const ReadRank& file : files) world = std::max(world, file.world_size);
  return world;
}

/// Lays out the ranks that lack starts, all together, and makes their records.
Result<void> lay_out_rest(std::vector<ReadRank>& files, const ImportOptions& options) {
  std::vector<chakra::RankFile> ranks;
  std::vector<ReadRank*> rest;
  for (ReadRank& file : files) {
    if (file.finished) continue;
    ranks.push_back({&file.file, file.number});
    rest.push_back(&file);
  }
  if (rest.empty()) return {};
  BUBBLESIM_RETURN_IF_ERROR(
      chakra::time_collectives(ranks, world_of(files), options.collective_times));
  const auto orders = chakra::lay_out(ranks);
  if (!orders) return fail(rest.front()->provenance.source, {}, orders.error().message);
  run_tasks(options.runner, rest.size(),
            [&](std::size_t i) { finish_rank(*rest[i], (*orders)[i]); });
  return {};
}

/// What could not be known before the job was: its size, and both ends of sends and receives.
void finish_collectives(const ReadRank& file, std::uint32_t world, RankTrace& trace) {
  if (file.native) return;
  for (Collective& collective : trace.collectives) {
    const bool pair = is_one_end(collective.kind);
    if (pair && collective.peers.size() == 1 && collective.peers.front() != trace.rank) {
      collective.peers.push_back(trace.rank);
      std::sort(collective.peers.begin(), collective.peers.end());
    }
    if (!pair && trace.names[collective.group] == chakra::kWorldGroup) {
      collective.group_size = world;
    }
  }
}

}  // namespace

Result<JobTrace> import_chakra(std::span<const fs::path> paths, const ImportOptions& options,
                               const ProgressCallback& progress) {
  if (paths.empty()) return fail("no trace file given; expected one a rank");
  ImportOptions own = options;
  if (paths.size() > 1) own.rank.reset();
  const auto read_one = [&own](const fs::path& path, const ProgressCallback& tell) {
    return read_file(path, own, tell);
  };
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<ReadRank> files,
                             read_files<ReadRank>(paths, own.runner, progress, read_one));
  BUBBLESIM_RETURN_IF_ERROR(
      order_by_rank(files, chakra::kRankFromName, chakra::kRankFromOrder));
  BUBBLESIM_RETURN_IF_ERROR(lay_out_rest(files, options));
  const std::uint32_t world = world_of(files);
  JobTrace job;
  job.ranks.reserve(files.size());
  for (ReadRank& file : files) {
    file.trace.rank = file.number;
    file.trace.world_size = world;
    finish_collectives(file, world, file.trace);
    job.ranks.push_back(std::move(file.trace));
  }
  count_missing_ranks(job);
  return job;
}

Result<RankTrace> import_chakra_bytes(std::string_view bytes, std::string_view source,
                                      const ImportOptions& options) {
  ByteStream memory = ByteStream::from_memory(bytes);
  std::vector<ReadRank> files;
  BUBBLESIM_ASSIGN_OR_RETURN(ReadRank file, read_rank(memory, std::string(source), options, {}));
  files.push_back(std::move(file));
  BUBBLESIM_RETURN_IF_ERROR(lay_out_rest(files, options));
  RankTrace& trace = files.front().trace;
  trace.rank = files.front().number;
  trace.world_size = files.front().world_size;
  return std::move(trace);
}

bool looks_like_chakra_bytes(std::string_view head) {
  return is_json(head) || chakra::is_chakra_stream(head);
}

bool looks_like_chakra(const fs::path& path) {
  auto source = ByteStream::open(path);
  if (!source) return false;
  std::string head(kHeadBytes, '\0');
  head.resize(source->read(head.data(), head.size()));
  return looks_like_chakra_bytes(head);
}

}  // namespace bubblesim::traces
