#include "sim/workload/arrivals/arrival_file.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/packed_file.hpp"
#include "sim/workload/arrivals/arrival_lines.hpp"
#include "sim/workload/arrivals/decimal.hpp"

namespace bubblesim::workload {
namespace {

// ---- Arrivals in formats that are one JSON document: a list of gaps, a list of queries.

/// Walks a document and hands on numbers with their place; times are taken as they were written,
/// never through a double. What is not wanted is passed over.
class NumberWalk : public nlohmann::json_sax<Json> {
 public:
  explicit NumberWalk(const std::string& label) : label_(label) {}

  /// All times, or the fault that ended the walk.
  Result<std::vector<Duration>> run(std::string_view text) {
    Json::sax_parse(text.begin(), text.end(), this);
    if (error_) return tl::make_unexpected(*std::move(error_));
    if (times_.empty()) return fail(label_, {}, "no arrivals");
    return std::move(times_);
  }

  bool null() override { return value("null"); }
  bool boolean(bool flag) override { return value(flag ? "true" : "false"); }
  bool number_integer(number_integer_t number) override { return value(std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) override { return value(std::to_string(number)); }
  bool number_float(number_float_t, const string_t& text) override { return value(text); }
  bool string(string_t& text) override { return value('"' + text + '"'); }
  bool binary(binary_t&) override { return value("binary"); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse("byte " + std::to_string(position), "not JSON");
  }

 protected:
  virtual bool value(std::string_view text) = 0;
  virtual bool leave() = 0;

  bool take(std::string_view text, std::string place) {
    const auto time = parse_decimal(text, kSecondDigits);
    if (!time) return refuse(std::move(place), time.error());
    if (times_.size() >= kMaxArrivals) return refuse(std::move(place), "too many arrivals");
    times_.push_back(*time);
    return true;
  }
  bool refuse(std::string place, std::string message) {
    if (!error_) error_ = Error{label_, std::move(place), std::move(message)};
    return false;
  }
  [[nodiscard]] std::size_t count() const { return times_.size(); }

 private:
  const std::string& label_;
  std::vector<Duration> times_;
  std::optional<Error> error_;
};

class GapsWalk final : public NumberWalk {
 public:
  using NumberWalk::NumberWalk;
  bool start_array(std::size_t) override { return depth_++ == 0 ? true : refuse_kind("a list"); }
  bool start_object(std::size_t) override { return refuse_kind("an object"); }
  bool key(string_t&) override { return true; }

 protected:
  bool value(std::string_view text) override {
    return depth_ == 1 ? take(text, "/" + std::to_string(count())) : refuse_kind("a lone value");
  }
  bool leave() override {
    --depth_;
    return true;
  }

 private:
  bool refuse_kind(const char* found) {
    return refuse("/" + std::to_string(count()),
                  std::string("found ") + found + "; expected one list of gaps in seconds");
  }
  int depth_ = 0;
};

/// Depths: 1 the document, 2 its "queries", 3 a query.
class QueriesWalk final : public NumberWalk {
 public:
  using NumberWalk::NumberWalk;
  bool start_array(std::size_t) override { return enter(); }
  bool start_object(std::size_t) override {
    query_has_time_ = query_has_time_ && depth_ != 2;
    return enter();
  }
  bool key(string_t& name) override {
    if (depth_ == 1) in_queries_ = name == "queries";
    wanted_ = in_queries_ && depth_ == 3 && name == "timestamp";
    return true;
  }

 protected:
  bool value(std::string_view text) override {
    if (!std::exchange(wanted_, false)) return true;
    query_has_time_ = true;
    return take(text, "/queries/" + std::to_string(index_) + "/timestamp");
  }
  bool leave() override {
    --depth_;
    if (!in_queries_ || depth_ != 2) return true;
    if (!query_has_time_) {
      return refuse("/queries/" + std::to_string(index_), "a query without \"timestamp\"");
    }
    ++index_;
    return true;
  }

 private:
  bool enter() {
    wanted_ = false;
    ++depth_;
    return true;
  }
  int depth_ = 0;
  bool in_queries_ = false;
  bool wanted_ = false;
  bool query_has_time_ = false;
  std::size_t index_ = 0;
};

// [0.031, 0.012, ...]: seconds from each arrival to the next; the first counts from zero.
Result<RecordedArrivals> parse_gaps(std::string_view text, const std::string& label) {
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Duration> offsets, GapsWalk(label).run(text));
  Duration at{};
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] > Duration::max() - at) {
      return fail(label, "/" + std::to_string(i), "the gaps add up to more than 292 years");
    }
    at += offsets[i];
    offsets[i] = at;
  }
  return RecordedArrivals{std::move(offsets), {}, {}};
}

// {"queries": [{"timestamp": 0.023, ...}, ...]}: seconds.
Result<RecordedArrivals> parse_queries(std::string_view text, const std::string& label) {
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Duration> offsets, QueriesWalk(label).run(text));
  RecordedArrivals arrivals{std::move(offsets), {}, {}};
  count_from_first(arrivals);
  return arrivals;
}

// Requests that arrive at once stay in the file's order, with what they ask.
void sort_by_time(RecordedArrivals& arrivals) {
  std::vector<std::size_t> order(arrivals.offsets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return arrivals.offsets[i]; });
  RecordedArrivals sorted;
  for (const std::size_t i : order) sorted.offsets.push_back(arrivals.offsets[i]);
  arrivals.offsets = std::move(sorted.offsets);
  if (arrivals.lengths.empty()) return;
  for (const std::size_t i : order) sorted.lengths.push_back(std::move(arrivals.lengths[i]));
  arrivals.lengths = std::move(sorted.lengths);
}

bool is_document(ArrivalFormat format) {
  return format == ArrivalFormat::kGaps || format == ArrivalFormat::kQueries;
}

Result<RecordedArrivals> parse_document(std::string_view text, ArrivalFormat format,
                                        const std::string& label, Lengths lengths) {
  if (lengths == Lengths::kRead) {
    return fail(label, {}, "a format of arrival times alone; expected one with prompt and output "
                           "lengths: azure, splitwise, servegen, mooncake or bundle");
  }
  return format == ArrivalFormat::kGaps ? parse_gaps(text, label) : parse_queries(text, label);
}

/// Cuts a stream of bytes into lines.
class LineCutter {
 public:
  LineCutter(ArrivalFormat format, const std::string& label, Lengths lengths)
      : lines_(format, label, lengths), label_(label) {}

  [[nodiscard]] Result<void> add(std::string_view bytes) {
    for (std::size_t end = bytes.find('\n'); end != std::string_view::npos;
         end = bytes.find('\n')) {
      rest_ += bytes.substr(0, end);
      BUBBLESIM_RETURN_IF_ERROR(lines_.add(rest_, LineEnd::kPresent));
      rest_.clear();
      bytes.remove_prefix(end + 1);
    }
    rest_ += bytes;
    if (rest_.size() > kMaxArrivalLineBytes) return fail(label_, {}, "a line of more than 4 MiB");
    return {};
  }
  [[nodiscard]] Result<RecordedArrivals> finish() && {
    if (!rest_.empty()) BUBBLESIM_RETURN_IF_ERROR(lines_.add(rest_, LineEnd::kMissing));
    return std::move(lines_).finish();
  }

 private:
  ArrivalLines lines_;
  const std::string& label_;
  std::string rest_;
};

}  // namespace

void count_from_first(RecordedArrivals& arrivals) {
  std::vector<Duration>& offsets = arrivals.offsets;
  std::size_t reordered = 0;
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) ++reordered;
  }
  if (reordered > 0) {
    arrivals.counters.add(kArrivalsReordered, reordered);
    sort_by_time(arrivals);
  }
  const Duration first = offsets.front();
  for (Duration& offset : offsets) offset -= first;
}

Result<RecordedArrivals> parse_arrivals(std::string_view text, ArrivalFormat format,
                                        const std::string& label, Lengths lengths) {
  if (is_document(format)) return parse_document(text, format, label, lengths);
  LineCutter cutter(format, label, lengths);
  BUBBLESIM_RETURN_IF_ERROR(cutter.add(text));
  return std::move(cutter).finish();
}

Result<RecordedArrivals> read_arrivals(const std::string& path, ArrivalFormat format,
                                       Lengths lengths) {
  if (is_document(format)) {
    BUBBLESIM_ASSIGN_OR_RETURN(
        const std::string text,
        read_packed_text(path, kMaxArrivalDocumentMiB, "a smaller document"));
    return parse_document(text, format, path, lengths);
  }
  LineCutter cutter(format, path, lengths);
  BUBBLESIM_RETURN_IF_ERROR(
      read_packed_file(path, [&](std::string_view bytes) { return cutter.add(bytes); }));
  return std::move(cutter).finish();
}

}  // namespace bubblesim::workload
