#include "tests/conformance/meetings/recorders.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <set>

#include "tests/unit/traces/import/nsys_samples.hpp"
#include "traces/format/trace_writer.hpp"
#include "traces/join/join_recording.hpp"

namespace bubblesim::run::testing {
namespace {

using Kernel = Recording::Kernel;
using Ranks = std::vector<std::uint32_t>;
using traces::CollectiveKind;

/// The same for all ranks of a communicator, FNV's.
std::uint64_t hash_of(const Ranks& ranks) {
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const std::uint32_t rank : ranks) hash = (hash ^ (rank + 1)) * 1'099'511'628'211U;
  return hash >> 1U;
}
std::uint32_t place_of(std::uint32_t rank, const Ranks& ranks) {
  return static_cast<std::uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

// ---- Nsight Systems; times in ns

std::string range(std::int64_t start, std::int64_t end, const char* name, const Ranks& ranks,
                  const std::string& more) {
  return fmt::format(
      "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, jsonText) VALUES "
      "({}, {}, 59, '{}', {}, 1, '{{\"NCCL communicator ID\": {}, {}}}');",
      start, end, name, traces::sample::global_tid(100, 101), hash_of(ranks), more);
}

std::string made(std::uint32_t own, const Ranks& ranks) {
  return range(10, 20, "ncclCommInitRank", ranks,
               fmt::format("\"No. of ranks\": {}, \"Rank\": {}, \"CUDA device\": 0", ranks.size(),
                           place_of(own, ranks)));
}

/// Operations of a group come before its launch; the launch of a lone one is within it.
std::string ranges_of(const Kernel& kernel) {
  constexpr const char* kBytes = "\"Message size [bytes]\": 8192";
  const std::int64_t called = 1'000 * kernel.called;
  if (kernel.communicator.empty()) return {};
  if (kernel.ends.empty()) {
    return range(called - 100, called + 3'000, "ncclAllReduce", kernel.communicator, kBytes);
  }
  std::string text;
  const std::int64_t lasts = kernel.ends.size() == 1 ? 3'000 : 100;
  std::int64_t at = called - 1'000;
  for (const Recording::End& end : kernel.ends) {
    text += range(at, at + lasts, end.name[0] == 's' ? "ncclSend" : "ncclRecv", kernel.communicator,
                  fmt::format("{}, \"Peer rank\": {}", kBytes,
                              place_of(end.partner, kernel.communicator)));
    at += 200;
  }
  return text;
}

std::string nsight_export(const Recording& recording, std::uint32_t own, Nvtx nvtx) {
  std::string sql = traces::sample::kStringTable + traces::sample::kKernelTable +
                    traces::sample::kCallTable + traces::sample::kNvtxTable +
                    "INSERT INTO StringIds VALUES (20, 'ncclDevKernel_SendRecv(x)'); BEGIN;";
  Ranks world;
  for (std::uint32_t rank = 0; rank < recording.rank_count(); ++rank) world.push_back(rank);
  std::set<Ranks> communicators{world};
  std::int64_t correlation = 0;
  for (const Kernel& kernel : recording.kernels(own)) {
    const std::int64_t name = kernel.communicator.empty() ? 1 : kernel.ends.empty() ? 3 : 20;
    const std::int64_t called = 1'000 * kernel.called;
    sql += traces::sample::call(called, called + 2'000, ++correlation);
    sql += traces::sample::kernel(1'000 * kernel.start, 1'000 * kernel.end, correlation, 100, 0,
                                  kernel.stream, name);
    if (nvtx == Nvtx::kRanges) sql += ranges_of(kernel);
    if (!kernel.communicator.empty()) communicators.insert(kernel.communicator);
  }
  if (nvtx == Nvtx::kNone) communicators = {world};
  for (const Ranks& ranks : communicators) sql += made(own, ranks);
  return sql + "COMMIT;";
}

// ---- bubblesim's recorder

CollectiveKind kind_of(const Recording::End& end) {
  return end.name[0] == 's' ? CollectiveKind::kSend : CollectiveKind::kRecv;
}

class OwnRecorder {
 public:
  OwnRecorder(std::uint32_t own, std::uint32_t world) {
    trace_.rank = own;
    trace_.world_size = world;
    trace_.device.name = "NVIDIA A100-SXM4-80GB";
    trace_.provenance.format = traces::kRecordingFormat;
    trace_.shapes.intern({});
    trace_.threads.push_back({1, "main"});
  }

  void add(const Kernel& kernel, Announced announced) {
    const auto at = [](std::int64_t us) { return TraceTime{std::chrono::microseconds(us)}; };
    const std::uint64_t correlation = trace_.host_calls.size() + 1;
    traces::HostCall call;
    call.start = at(kernel.called);
    call.duration = std::chrono::microseconds(2);
    call.correlation = correlation;
    call.name = trace_.names.intern("cudaLaunchKernel");
    call.kind = traces::HostCallKind::kLaunchKernel;
    trace_.host_calls.push_back(call);
    traces::DeviceOp op;
    op.start = at(kernel.start);
    op.duration = at(kernel.end) - at(kernel.start);
    op.correlation = correlation;
    op.name = trace_.names.intern(kernel.name);
    op.stream = stream(kernel.stream);
    trace_.device_ops.push_back(op);
    if (kernel.communicator.empty()) return;
    if (announced == Announced::kByProfiler) announce_launch(kernel);
    else announce_calls(kernel);
  }

  traces::RankTrace take() { return std::move(trace_); }

 private:
  StreamId stream(int system_id) {
    const auto number = static_cast<std::uint64_t>(system_id);
    const auto known = std::ranges::find(trace_.streams, number, &traces::Stream::system_id);
    const auto place = static_cast<std::uint32_t>(known - trace_.streams.begin());
    if (known == trace_.streams.end()) trace_.streams.push_back({number, 0});
    return StreamId{place};
  }

  traces::Collective record_of(const Kernel& kernel) {
    traces::Collective record;
    record.kind = CollectiveKind::kAllReduce;
    record.bytes = 8'192;
    record.group = trace_.names.intern(fmt::format("nccl:{:016x}", hash_of(kernel.communicator)));
    record.group_size = static_cast<std::uint32_t>(kernel.communicator.size());
    return record;
  }

  void note(const Kernel& kernel, traces::CollectiveSource source, traces::Collective record) {
    const auto at = TraceTime{std::chrono::microseconds(kernel.called - 1)};
    trace_.notes.push_back({at, {}, ThreadId{0}, source,
                            static_cast<std::uint32_t>(trace_.collectives.size())});
    trace_.collectives.push_back(std::move(record));
  }

  // A launch with sends and receives is one event: NcclCommunicator::emit_exchange.
  void announce_launch(const Kernel& kernel) {
    traces::Collective record = record_of(kernel);
    const bool pair = kernel.communicator.size() == 2;
    const bool lone = kernel.ends.size() == 1;
    std::uint64_t* number = &collectives_[kernel.communicator];
    if (!kernel.ends.empty()) {
      record.kind = pair || !lone ? CollectiveKind::kSendRecv : kind_of(kernel.ends[0]);
      record.place = place_of(trace_.rank, kernel.communicator) + 1;
      std::set<std::uint32_t> peers;
      for (const auto& end : kernel.ends) peers.insert(place_of(end.partner, kernel.communicator));
      record.peers = {peers.begin(), peers.end()};
      number = pair ? &exchanges_[kernel.communicator]
                    : &transfers_[{kernel.communicator, kernel.ends[0].partner,
                                   kernel.ends[0].name[0]}];
    }
    record.sequence_recorded = kernel.ends.empty() || pair || lone;
    record.sequence = record.sequence_recorded ? *number : 0;
    ++*number;
    note(kernel, traces::CollectiveSource::kNcclProfiler, std::move(record));
  }

  // Each call has a range.
  void announce_calls(const Kernel& kernel) {
    const auto announce = [&](traces::Collective record) {
      note(kernel, traces::CollectiveSource::kNvtx, std::move(record));
    };
    if (kernel.ends.empty()) return announce(record_of(kernel));
    for (const Recording::End& end : kernel.ends) {
      traces::Collective record = record_of(kernel);
      record.kind = kind_of(end);
      record.place = place_of(trace_.rank, kernel.communicator) + 1;
      record.peers = {place_of(end.partner, kernel.communicator)};
      announce(std::move(record));
    }
  }

  traces::RankTrace trace_;
  std::map<Ranks, std::uint64_t> collectives_, exchanges_;  // of communicators, so far
  std::map<std::tuple<Ranks, std::uint32_t, char>, std::uint64_t> transfers_;
};

}  // namespace

void write_nsight(const Recording& recording, Nvtx nvtx, const std::filesystem::path& folder) {
  for (std::uint32_t own = 0; own < recording.rank_count(); ++own) {
    sqlite3* file = nullptr;
    const std::string path = folder / fmt::format("rank{}.sqlite", own);
    ASSERT_EQ(sqlite3_open(path.c_str(), &file), SQLITE_OK);
    const std::string sql = "PRAGMA synchronous=OFF; " + nsight_export(recording, own, nvtx);
    ASSERT_EQ(sqlite3_exec(file, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(file);
    sqlite3_close(file);
  }
}

void write_own(const Recording& recording, Announced announced,
               const std::filesystem::path& folder) {
  traces::JobTrace job;
  for (std::uint32_t own = 0; own < recording.rank_count(); ++own) {
    OwnRecorder recorder(own, recording.rank_count());
    for (const Kernel& kernel : recording.kernels(own)) recorder.add(kernel, announced);
    job.ranks.push_back(recorder.take());
  }
  ASSERT_TRUE(traces::format::write_job(folder / "job.btr", job));
}

}  // namespace bubblesim::run::testing
