#include "sim/workload/arrivals/arrival_lines.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"

namespace bubblesim::workload {
namespace {

/// A number of exactly `width` digits at `at`.
std::optional<int> number_at(std::string_view text, std::size_t at, std::size_t width) {
  if (at + width > text.size()) return std::nullopt;
  int value = 0;
  for (const char letter : text.substr(at, width)) {
    if (letter < '0' || letter > '9') return std::nullopt;
    value = value * 10 + (letter - '0');
  }
  return value;
}

/// "", "Z", "+05:30", "-08:00" as what must be taken off local time.
std::optional<Duration> zone_offset(std::string_view zone) {
  if (zone.empty() || zone == "Z") return Duration::zero();
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return std::nullopt;
  const auto hours = number_at(zone, 1, 2);
  const auto minutes = number_at(zone, 4, 2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  const Duration offset = std::chrono::hours{*hours} + std::chrono::minutes{*minutes};
  return zone[0] == '-' ? -offset : offset;
}

/// "2023-11-16" as days since 1970.
std::optional<Duration> date_part(std::string_view text) {
  const auto year = number_at(text, 0, 4);
  const auto month = number_at(text, 5, 2);
  const auto day = number_at(text, 8, 2);
  if (!year || !month || !day || text[4] != '-' || text[7] != '-') return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok() || *year < 1970 || *year > 2069) return std::nullopt;
  return Duration{std::chrono::sys_days{date}.time_since_epoch()};
}

/// "18:15:46", then "." and digits or nothing.
std::optional<Duration> time_part(std::string_view text) {
  const auto hours = number_at(text, 0, 2);
  const auto minutes = number_at(text, 3, 2);
  const auto seconds = number_at(text, 6, 2);
  if (!hours || !minutes || !seconds || text[2] != ':' || text[5] != ':') return std::nullopt;
  if (*hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  Duration fraction{};
  if (text.size() > 8) {
    if (text[8] != '.' || text.size() == 9) return std::nullopt;
    const auto parsed = parse_decimal("0" + std::string(text.substr(8)), kSecondDigits);
    if (!parsed || text.find_first_of("eE") != std::string_view::npos) return std::nullopt;
    fraction = *parsed;
  }
  return std::chrono::hours{*hours} + std::chrono::minutes{*minutes} +
         std::chrono::seconds{*seconds} + fraction;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

/// Finds the number of "timestamp" in the outermost object, as it was written.
class TimestampFinder : public nlohmann::json_sax<Json> {
 public:
  ParsedDecimal<Duration> result() const {
    if (!error_.empty()) return tl::make_unexpected(error_);
    if (token_.empty()) return tl::make_unexpected(std::string("no number \"timestamp\""));
    return parse_decimal(token_, kMillisecondDigits);
  }

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool start_object(std::size_t) override { return enter(); }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == "timestamp";
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    error_ = "not a JSON object";
    return false;
  }

 private:
  bool other() {
    wanted_ = false;
    return true;
  }
  bool number(std::string text) {
    if (std::exchange(wanted_, false)) token_ = std::move(text);
    return true;
  }
  bool enter() {
    wanted_ = false;
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  bool wanted_ = false;
  std::string token_;
  std::string error_;
};

ParsedDecimal<Duration> parse_mooncake(std::string_view line) {
  TimestampFinder finder;
  Json::sax_parse(line.begin(), line.end(), &finder);
  return finder.result();
}

bool has_header(ArrivalFormat format) { return format != ArrivalFormat::kMooncake; }

std::string_view time_column(ArrivalFormat format) {
  return format == ArrivalFormat::kAzure ? "TIMESTAMP" : "arrived_at";
}

}  // namespace

ParsedDecimal<Duration> parse_date_time(std::string_view text) {
  const auto refuse = [text] {
    return tl::make_unexpected("found " + quote_found(text) +
                               "; expected a time like 2023-11-16 18:15:46.6805900");
  };
  const auto date = date_part(text);
  if (!date || text.size() < 19 || (text[10] != ' ' && text[10] != 'T')) return refuse();
  const std::string_view rest = text.substr(11);
  const std::size_t zone = std::min(rest.find_first_of("Z+-"), rest.size());
  const auto time = time_part(rest.substr(0, zone));
  const auto offset = zone_offset(rest.substr(zone));
  if (!time || !offset) return refuse();
  return *date + *time - *offset;
}

tl::unexpected<Error> ArrivalLines::fail_at(std::size_t line, std::string message) const {
  return fail(label_, "line " + std::to_string(line), std::move(message));
}

Result<void> ArrivalLines::add_header(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  const std::vector<std::string_view> names = split(line);
  const std::string_view wanted = time_column(format_);
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    return fail_at(line_, "found the columns " + quote_found(line) + "; expected a column " +
                              std::string(wanted));
  }
  time_column_ = static_cast<std::size_t>(found - names.begin());
  columns_ = names.size();
  return {};
}

ParsedDecimal<Duration> ArrivalLines::parse(std::string_view line) const {
  if (format_ == ArrivalFormat::kMooncake) return parse_mooncake(line);
  const std::vector<std::string_view> cells = split(line);
  if (cells.size() != columns_) {
    return tl::make_unexpected("found " + std::to_string(cells.size()) + " cells; expected " +
                               std::to_string(columns_));
  }
  if (format_ == ArrivalFormat::kAzure) return parse_date_time(cells[time_column_]);
  return parse_decimal(cells[time_column_], kSecondDigits);
}

Result<void> ArrivalLines::add(std::string_view line, LineEnd end) {
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_not_of(" \t") == std::string_view::npos) return {};
  if (columns_ == 0 && has_header(format_)) return add_header(line);
  const auto time = parse(line);
  if (time) {
    if (arrivals_.offsets.size() >= kMaxArrivals) {
      return fail_at(line_, "more than " + std::to_string(kMaxArrivals) + " arrivals");
    }
    arrivals_.offsets.push_back(*time);
  } else if (end == LineEnd::kMissing) {
    arrivals_.counters.add(kArrivalLinesTruncated);
  } else {
    ++damaged_;
    arrivals_.counters.add(kArrivalLinesDamaged);
  }
  if (!time && !first_damage_) {
    first_damage_ = Error{label_, "line " + std::to_string(line_), time.error()};
  }
  return {};
}

Result<RecordedArrivals> ArrivalLines::finish() && {
  std::vector<Duration>& offsets = arrivals_.offsets;
  const std::size_t tolerated = std::max<std::size_t>(1, offsets.size() / 100);
  if (first_damage_ && (offsets.empty() || damaged_ > tolerated)) {
    first_damage_->message +=
        " (" + std::to_string(damaged_) + " damaged lines of " + std::to_string(line_) + ")";
    return tl::make_unexpected(*std::move(first_damage_));
  }
  if (offsets.empty()) return fail(label_, {}, "no arrivals");
  count_from_first(arrivals_);
  return std::move(arrivals_);
}

}  // namespace bubblesim::workload
