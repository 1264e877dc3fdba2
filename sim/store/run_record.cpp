#include "sim/store/run_record.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/base/hash.hpp"
#include "sim/base/json.hpp"
#include "sim/store/store_export.hpp"

namespace bubblesim::store {
namespace {

// A record as CBOR (RFC 8949): a list of fields in a fixed order, the version of the form first.

constexpr std::int64_t kForm = 1;
/// Deeper than any record: the library's reader calls itself for every level.
constexpr std::size_t kMaxDepth = 8;

/// Refuses, before anything is kept, what is nested deeply or promises more than there is.
class Guard final : public nlohmann::json_sax<Json> {
 public:
  explicit Guard(std::size_t bytes) : bytes_(bytes) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return false; }
  bool key(string_t&) override { return false; }
  bool end_object() override { return false; }
  bool start_array(std::size_t size) override {
    const bool promised = size == std::numeric_limits<std::size_t>::max() || size <= bytes_;
    return ++depth_ <= kMaxDepth && promised;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  std::size_t bytes_;
  std::size_t depth_ = 0;
};

/// Takes the items of a list in order; after the first that is not as expected, nothing.
class Items {
 public:
  Items(const Json& list, bool& right) : list_(list), right_(right) {
    if (!list.is_array()) right_ = false;
  }

  const Json& next() {
    static const Json kNothing;
    if (!right_ || at_ >= list_.size()) {
      right_ = false;
      return kNothing;
    }
    return list_[at_++];
  }
  template <class Integer>
  void take(Integer& value) {
    const Json& item = next();
    if (!right_ || !(right_ = item.is_number_integer())) return;
    if (item.is_number_unsigned()) {
      const auto number = item.get<std::uint64_t>();
      right_ = std::in_range<Integer>(number);
      value = static_cast<Integer>(number);
    } else {
      const auto number = item.get<std::int64_t>();
      right_ = std::in_range<Integer>(number);
      value = static_cast<Integer>(number);
    }
  }
  void take(std::string& value) {
    const Json& item = next();
    if (right_ && (right_ = item.is_string())) value = item.get_ref<const std::string&>();
  }
  template <class... Values>
    requires(sizeof...(Values) > 1)
  void take(Values&... values) {
    (take(values), ...);
  }
  template <class ReadItem>
  void take_list(const ReadItem& read_item) {
    const Json& list = next();
    if (!right_ || !(right_ = list.is_array())) return;
    for (const Json& item : list) {
      Items items(item, right_);
      if (right_) read_item(items);
      if (!right_) return;
      right_ = items.at_ == item.size();
    }
  }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  [[nodiscard]] bool right() const { return right_; }
  void refuse() { right_ = false; }

 private:
  const Json& list_;
  bool& right_;
  std::size_t at_ = 0;
};

void take_cell(Items& items, observe::CellType type, observe::Cell& cell) {
  const Json& item = items.next();
  if (item.is_null()) return;
  if (type == observe::CellType::kText && item.is_string()) {
    cell = item.get<std::string>();
  } else if (type == observe::CellType::kNumber && item.is_number_float()) {
    cell = item.get<double>();
  } else if (type == observe::CellType::kInteger && item.is_number_integer()) {
    if (item.is_number_unsigned() && !std::in_range<std::int64_t>(item.get<std::uint64_t>())) {
      items.refuse();
      return;
    }
    cell = item.get<std::int64_t>();
  } else {
    items.refuse();
  }
}

void take_rows(Items& items, RunRecord& record) {
  const auto columns = observe::result_columns();
  items.take_list([&](Items& row) {
    observe::ResultRow& result = record.rows.emplace_back();
    row.take(result.policy, result.filler);
    if (row.size() != columns.size() + 2) row.refuse();
    if (!row.right()) return;
    result.cells.resize(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      take_cell(row, columns[i].type, result.cells[i]);
    }
  });
}

void take_latencies(Items& items, RunRecord& record) {
  items.take_list([&](Items& latency) {
    RecordedLatency& result = record.latencies.emplace_back();
    latency.take(result.policy, result.filler);
    const Json& bytes = latency.next();
    if (!latency.right() || !bytes.is_binary()) return latency.refuse();
    auto histogram = observe::LatencyHistogram::decode(bytes.get_binary());
    if (!histogram) return latency.refuse();
    result.histogram = std::move(*histogram);
  });
}

void take_counters(Items& items, RunRecord& record) {
  items.take_list([&](Items& counter) {
    std::string name;
    CounterSet::Entry entry;
    int severity = 0;
    counter.take(name, severity, entry.help, entry.count);
    if (severity < 0 || severity > static_cast<int>(Severity::kError)) counter.refuse();
    if (record.counters.count(name) != 0) counter.refuse();
    if (!counter.right()) return;
    entry.severity = static_cast<Severity>(severity);
    record.counters.add(name, entry);
  });
}

Json parts_json(const RunRecord& record) {
  Json rows = Json::array(), latencies = Json::array(), counters = Json::array();
  for (const observe::ResultRow& row : record.rows) {
    Json& cells = rows.emplace_back(Json::array({row.policy, row.filler}));
    for (const observe::Cell& cell : row.cells) cells.push_back(cell_json(cell));
  }
  for (const RecordedLatency& latency : record.latencies) {
    latencies.push_back(Json::array({latency.policy, latency.filler,
                                     Json::binary(latency.histogram.encode())}));
  }
  for (const auto& [name, entry] : record.counters) {
    counters.push_back(
        Json::array({name, static_cast<int>(entry.severity), entry.help, entry.count}));
  }
  return Json::array({std::move(rows), std::move(latencies), std::move(counters)});
}

}  // namespace

std::vector<std::uint8_t> encode(const RunRecord& record) {
  const PlannedRun& run = record.run;
  Json settings = Json::array();
  for (const Setting& setting : run.settings) {
    settings.push_back(Json::array({setting.pointer, setting.value}));
  }
  const Json whole = Json::array(
      {kForm, run.index, run.key, run.point, std::move(settings), run.seed, run.repetition,
       run.config, record.sweep, static_cast<int>(record.status), record.reason, record.host,
       record.version, record.finished_unix_ns, to_ns(record.cpu), parts_json(record)});
  return Json::to_cbor(whole);
}

Result<RunRecord> decode_run_record(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kRefused = "found bytes that are no record of a run";
  Guard guard(bytes.size());
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &guard,
                       nlohmann::detail::input_format_t::cbor)) {
    return fail(std::string(kRefused));
  }
  const Json whole = Json::from_cbor(bytes.begin(), bytes.end(), true, false);
  bool right = !whole.is_discarded();
  if (!right) return fail(std::string(kRefused));
  Items items(whole, right);
  std::int64_t form = 0, cpu = 0;
  int status = 0;
  RunRecord record;
  items.take(form);
  if (right && form != kForm) {
    return fail("found a record of form " + std::to_string(form) + ", this program reads " +
                std::to_string(kForm));
  }
  PlannedRun& run = record.run;
  items.take(run.index, run.key, run.point);
  items.take_list([&](Items& setting) {
    Setting& result = run.settings.emplace_back();
    setting.take(result.pointer, result.value);
  });
  items.take(run.seed, run.repetition, run.config, record.sweep, status, record.reason,
             record.host, record.version, record.finished_unix_ns, cpu);
  Items parts(items.next(), right);
  take_rows(parts, record);
  take_latencies(parts, record);
  take_counters(parts, record);
  if (!right || whole.size() != 16 || parts.size() != 3 || status < 0 || status > 1) {
    return fail(std::string(kRefused));
  }
  record.status = static_cast<RunStatus>(status);
  record.cpu = Duration{cpu};
  return record;
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

EncodedHistograms encode_histograms(const RunRecord& record) {
  EncodedHistograms all;
  for (const RecordedLatency& latency : record.latencies) all.push_back(latency.histogram.encode());
  return all;
}

std::uint64_t membership_digest(std::string_view sweep, const PlannedRun& run) {
  Digest digest;
  digest.all(sweep, run.key, run.point, run.index, std::uint64_t{run.repetition});
  for (const Setting& setting : run.settings) digest.all(setting.pointer, setting.value);
  return digest.value();
}

std::uint64_t record_digest(const RunRecord& record) {
  return record_digest(record, encode_histograms(record));
}

std::uint64_t record_digest(const RunRecord& record, const EncodedHistograms& histograms) {
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
    const auto place = static_cast<std::size_t>(latency - record.latencies.data());
    digest.add(std::span<const std::uint8_t>(histograms[place]));
  }
  for (const auto& [name, entry] : record.counters) {
    digest.all(name, severity_name(entry.severity), entry.count, entry.help);
  }
  return digest.value();
}

}  // namespace bubblesim::store
