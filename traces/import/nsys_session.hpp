// What holds for all ranks of one export while it is read: its names, its clock, its counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sim/base/counters.hpp"
#include "sim/base/time.hpp"
#include "traces/import/kineto_import.hpp"
#include "traces/import/nsys_database.hpp"

namespace bubblesim::traces::nsys {

/// Times and durations beyond this (36 years) are no times.
inline constexpr std::int64_t kMaxTime = std::int64_t{1} << 60U;

/// Nsight Systems packs machine, virtual machine, process and thread into one number, the lowest
/// 24 bits the thread; of a process's number they are zero.
[[nodiscard]] constexpr std::int64_t process_of(std::int64_t global_id) {
  return global_id & ~std::int64_t{0xFFFFFF};
}
[[nodiscard]] constexpr std::int64_t thread_of(std::int64_t global_id) {
  return global_id & 0xFFFFFF;
}
/// The operating system's number of a process.
[[nodiscard]] constexpr std::int64_t system_process(std::int64_t global_id) {
  return global_id >> 24U & 0xFFFFFF;
}

struct RowSpan {
  TraceTime start{};
  Duration duration{};
};

/// The table StringIds.
class Strings {
 public:
  explicit Strings(const Database& database);
  [[nodiscard]] std::optional<std::string> find(std::int64_t id);

 private:
  bool keyed_;   ///< found in the file one by one; else all are held
  Rows lookup_;
  std::unordered_map<std::int64_t, std::string> all_;
};

class NsysSession {
 public:
  NsysSession(const Database& opened, const ProgressCallback& progress);

  const Database& database;
  CounterSet counters;
  Strings strings;
  std::string product;  ///< what wrote the export, with version; empty: not recorded

  /// The span of a row's times; nothing if they are none. Counts durations below zero.
  [[nodiscard]] std::optional<RowSpan> span(std::optional<std::int64_t> start,
                                            std::optional<std::int64_t> end);
  /// The text as UTF-8; counts what is not.
  [[nodiscard]] std::string clean(std::string_view text);
  /// "unnamed" and a count where StringIds lacks it.
  [[nodiscard]] std::string name(std::optional<std::int64_t> id);

  void count(const CounterSpec& spec, std::uint64_t n = 1) {
    counters.add(spec, n);
  }
  /// Every table's end comes here; a table read halfway is counted.
  void finish(const Rows& rows);
  /// A row was read.
  void tick() {
    if (++rows_ % 65536 == 0) report();
  }

 private:
  void report();
  void read_base();
  void read_product();

  const ProgressCallback& progress_;
  std::uint64_t rows_ = 0;
  std::uint64_t rows_total_ = 0;
  std::int64_t base_ns_ = 0;
};

}  // namespace bubblesim::traces::nsys
