#include "sim/store/run_record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "sim/base/hash.hpp"

namespace bubblesim::store {
namespace {

/// Null: the row has no such column.
const observe::Cell* cell_of(const observe::ResultRow& row, std::string_view column) {
  const auto columns = observe::result_columns();
  const auto found = std::ranges::find(columns, column, &observe::ResultColumn::name);
  const auto place = static_cast<std::size_t>(found - columns.begin());
  return place < row.cells.size() ? &row.cells[place] : nullptr;
}

}  // namespace

std::optional<double> number_of(const observe::Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<double> number_in(const observe::ResultRow& row, std::string_view column) {
  const observe::Cell* cell = cell_of(row, column);
  return cell == nullptr ? std::nullopt : number_of(*cell);
}

std::string text_in(const observe::ResultRow& row, std::string_view column) {
  const auto* text = std::get_if<std::string>(cell_of(row, column));
  return text == nullptr ? std::string() : *text;
}

namespace {

class Digest {
 public:
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (const char c : text) put(static_cast<unsigned char>(c));
  }
  void add(std::span<const std::uint8_t> bytes) {
    add(std::uint64_t{bytes.size()});
    for (const std::uint8_t byte : bytes) put(byte);
  }
  void add(std::uint64_t value) {
    for (unsigned shift = 0; shift < 64; shift += 8) put(value >> shift & 0xFFU);
  }
  void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  /// Absent cells leave no trace, so that a column that is new changes no digest.
  void add(std::string_view column, const observe::Cell& cell) {
    if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
      add(column);
      add(*integer);
    } else if (const auto* number = std::get_if<double>(&cell); number && !std::isnan(*number)) {
      add(column);
      add(std::bit_cast<std::uint64_t>(*number == 0 ? 0.0 : *number));
    } else if (const auto* text = std::get_if<std::string>(&cell)) {
      add(column);
      add(std::string_view(*text));
    }
  }
  template <class... Values>
  void all(const Values&... values) {
    (add(values), ...);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void put(std::uint64_t byte) { value_ = fnv1a(value_, static_cast<unsigned char>(byte)); }

  std::uint64_t value_ = kFnvBasis;
};

/// By policy and filler, as a store gives them back.
template <class Item>
std::vector<const Item*> in_order(const std::vector<Item>& items) {
  std::vector<const Item*> order;
  for (const Item& item : items) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
    return std::pair(a->policy, a->filler) < std::pair(b->policy, b->filler);
  });
  return order;
}

}  // namespace

std::uint64_t membership_digest(std::string_view sweep, const PlannedRun& run) {
  Digest digest;
  digest.all(sweep, run.key, run.point, run.index, std::uint64_t{run.repetition});
  for (const Setting& setting : run.settings) digest.all(setting.pointer, setting.value);
  return digest.value();
}

std::uint64_t record_digest(const RunRecord& record) {
  Digest digest;
  const PlannedRun& run = record.run;
  digest.all(run.key, record.sweep, run.point, run.config, record.reason, record.host,
             record.version, run.index, run.seed, std::uint64_t{run.repetition},
             static_cast<std::uint64_t>(record.status), std::uint64_t{run.settings.size()},
             std::uint64_t{record.rows.size()}, std::uint64_t{record.latencies.size()},
             record.finished_unix_ns, to_ns(record.cpu));
  for (const Setting& setting : run.settings) digest.all(setting.pointer, setting.value);
  const auto columns = observe::result_columns();
  for (const observe::ResultRow* row : in_order(record.rows)) {
    digest.all(std::uint64_t{row->policy}, std::uint64_t{row->filler});
    for (std::size_t i = 0; i < row->cells.size(); ++i) digest.add(columns[i].name, row->cells[i]);
  }
  for (const RecordedLatency* latency : in_order(record.latencies)) {
    digest.all(std::uint64_t{latency->policy}, std::uint64_t{latency->filler});
    const std::vector<std::uint8_t> histogram = latency->histogram.encode();
    digest.add(std::span(histogram));
  }
  for (const auto& [name, entry] : record.counters) {
    digest.all(name, severity_name(entry.severity), entry.count, entry.help);
  }
  return digest.value();
}

}  // namespace bubblesim::store
