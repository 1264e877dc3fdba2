// Collects the records of whole chunks into a job, whatever chunks are missing between them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/counters.hpp"
#include "traces/format/columns.hpp"
#include "traces/format/layout.hpp"
#include "traces/format/references.hpp"
#include "traces/trace.hpp"

namespace bubblesim::traces::format {

class RecordStore {
 public:
  /// Foretells a chunk, so that memory for its records is asked for once. Believes no more
  /// records than its payload has room for.
  void foretell(const ChunkHeader& header);
  /// Takes a payload in. What breaks the format is counted and leaves the store as it was.
  void load(const ChunkHeader& header, ByteView payload);
  /// Notes a chunk that was seen and cannot be read, so that its records count as lost.
  void note_lost(const ChunkHeader& header);
  /// Hands over what was collected, ordered by rank, every id pointing at a record.
  [[nodiscard]] JobTrace finish();
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

  [[nodiscard]] bool load_kind(const ChunkHeader& header, std::span<const ByteView> columns);
  template <class Record>
  [[nodiscard]] std::optional<std::vector<Record>> decode_new(const ChunkHeader& header,
                                                              std::span<const ByteView> columns);
  template <class Record, class Keep>
  [[nodiscard]] bool load_new(const ChunkHeader& header, std::span<const ByteView> columns,
                              Keep keep);
  template <class Record>
  [[nodiscard]] bool append(const ChunkHeader& header, std::span<const ByteView> columns,
                            std::vector<Record> RankTrace::*member,
                            TableExtents ReferredTables::*table = nullptr);
  [[nodiscard]] bool load_names(const ChunkHeader& header, std::span<const ByteView> columns);
  [[nodiscard]] bool load_shapes(const ChunkHeader& header, std::span<const ByteView> columns);
  [[nodiscard]] bool load_description(const ChunkHeader& header,
                                      std::span<const ByteView> columns);
  [[nodiscard]] bool load_counters(const ChunkHeader& header, std::span<const ByteView> columns);
  [[nodiscard]] bool load_totals(const ChunkHeader& header, std::span<const ByteView> columns);
  template <class Record>
  [[nodiscard]] bool decode(std::span<const ByteView> columns, std::size_t count,
                            std::vector<Record>& records, UsedIds& used);
  void expect(std::uint32_t rank, std::uint16_t kind, std::uint64_t records);
  void count_lost_records();

  std::map<std::uint32_t, RankState> ranks_;
  using Counts = std::map<std::pair<std::uint32_t, std::uint16_t>, std::uint64_t>;
  Counts foretold_;  ///< records that chunk headers announce, by rank and kind
  Counts expected_;  ///< records that are known to have been written
  CounterSet counters_;
  bool old_shapes_ = false;
};

}  // namespace bubblesim::traces::format
