#include "sim/workload/arrivals/arrival_documents.hpp"

#include <optional>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/workload/arrivals/decimal.hpp"

namespace bubblesim::workload {
namespace {

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

}  // namespace

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

Result<RecordedArrivals> parse_queries(std::string_view text, const std::string& label) {
  BUBBLESIM_ASSIGN_OR_RETURN(std::vector<Duration> offsets, QueriesWalk(label).run(text));
  RecordedArrivals arrivals{std::move(offsets), {}, {}};
  count_from_first(arrivals);
  return arrivals;
}

}  // namespace bubblesim::workload
