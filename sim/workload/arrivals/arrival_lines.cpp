#include "sim/workload/arrivals/arrival_lines.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"

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

FieldNames names_of(ArrivalFormat format) {
  switch (format) {
    case ArrivalFormat::kAzure: return {"TIMESTAMP", "ContextTokens", "GeneratedTokens", {}};
    case ArrivalFormat::kMooncake:
      return {"timestamp", "input_length", "output_length", "hash_ids"};
    case ArrivalFormat::kServegen: return {"timestamp", "input_tokens", "output_tokens", {}};
    case ArrivalFormat::kBundle: return {"arrival_time", "input_toks", "output_toks", {}};
    default: return {"arrived_at", "num_prefill_tokens", "num_decode_tokens", {}};
  }
}

bool is_json(ArrivalFormat format) {
  return format == ArrivalFormat::kMooncake || format == ArrivalFormat::kBundle;
}

// The numbers of a JSON line's outermost object, kept as their text, never through a double.
class FieldFinder : public nlohmann::json_sax<Json> {
 public:
  explicit FieldFinder(const FieldNames& names) : names_(names) {}

  ParsedDecimal<LineFields> result() && {
    if (damaged_) return tl::make_unexpected(std::string("not a JSON object"));
    return std::move(found_);
  }

  bool null() override { return skip_value(); }
  bool boolean(bool) override { return skip_value(); }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (in_hashes_ && depth_ == 2) found_.hashes.push_back(value);
    return number(std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t&) override { return skip_value(); }
  bool binary(binary_t&) override { return skip_value(); }
  bool start_object(std::size_t) override { return enter(); }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 ? field(name) : nullptr;
    if (depth_ == 1) in_hashes_ = !names_.hashes.empty() && name == names_.hashes;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    damaged_ = true;
    return false;
  }

 private:
  std::string* field(std::string_view name) {
    if (name == names_.time) return &found_.time;
    if (name == names_.prompt) return &found_.prompt;
    return name == names_.output ? &found_.output : nullptr;
  }
  bool skip_value() {
    wanted_ = nullptr;
    return true;
  }
  bool number(std::string text) {
    if (std::string* wanted = std::exchange(wanted_, nullptr)) *wanted = std::move(text);
    return true;
  }
  bool enter() {
    wanted_ = nullptr;
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  const FieldNames& names_;
  LineFields found_;
  int depth_ = 0;
  bool in_hashes_ = false;
  bool damaged_ = false;
  std::string* wanted_ = nullptr;
};

// The fields of a JSON object. Keys of nested objects are ignored.
ParsedDecimal<LineFields> json_fields(std::string_view line, const FieldNames& names) {
  FieldFinder finder(names);
  Json::sax_parse(line.begin(), line.end(), &finder);
  return std::move(finder).result();
}

// A number of tokens: a whole number below 2^31, perhaps written "374.0".
ParsedDecimal<std::uint32_t> parse_tokens(std::string_view text, std::string_view field) {
  constexpr std::uint32_t kMost = (std::uint32_t{1} << 31U) - 1;
  std::string_view whole = text;
  if (whole.ends_with(".0")) whole.remove_suffix(2);
  const auto value = parse_number<std::uint32_t>(whole);
  if (value && *value <= kMost) return *value;
  return tl::make_unexpected("found " + quote_found(text) + " for \"" + std::string(field) +
                             "\"; expected a number of tokens");
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

ArrivalLines::ArrivalLines(ArrivalFormat format, std::string label, Lengths lengths)
    : format_(format), names_(names_of(format)), label_(std::move(label)), lengths_(lengths) {
  if (lengths_ == Lengths::kSkipped) names_.hashes = {};
}

Result<std::size_t> ArrivalLines::find_column(const std::vector<std::string_view>& names,
                                              std::string_view wanted,
                                              std::string_view header) const {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  return fail_at(line_, "found the columns " + quote_found(header) + "; expected a column " +
                            std::string(wanted));
}

Result<void> ArrivalLines::add_header(std::string_view line) {
  line = without_byte_order_mark(line);
  const std::vector<std::string_view> columns = split(line);
  BUBBLESIM_ASSIGN_OR_RETURN(time_column_, find_column(columns, names_.time, line));
  if (lengths_ == Lengths::kRead) {
    BUBBLESIM_ASSIGN_OR_RETURN(prompt_column_, find_column(columns, names_.prompt, line));
    BUBBLESIM_ASSIGN_OR_RETURN(output_column_, find_column(columns, names_.output, line));
  }
  columns_ = columns.size();
  return {};
}

ParsedDecimal<LineFields> ArrivalLines::fields(std::string_view line) const {
  if (is_json(format_)) return json_fields(line, names_);
  const std::vector<std::string_view> cells = split(line);
  if (cells.size() != columns_) {
    return tl::make_unexpected("found " + std::to_string(cells.size()) + " cells; expected " +
                               std::to_string(columns_));
  }
  LineFields found;
  found.time = cells[time_column_];
  if (lengths_ == Lengths::kRead) {
    found.prompt = cells[prompt_column_];
    found.output = cells[output_column_];
  }
  return found;
}

// Appends the request, or says what is wrong with its line.
ParsedDecimal<void> ArrivalLines::parse(std::string_view line) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto found, fields(line));
  if (is_json(format_) && found.time.empty()) {
    return tl::make_unexpected("no number \"" + std::string(names_.time) + "\"");
  }
  const int unit = format_ == ArrivalFormat::kMooncake ? kMillisecondDigits : kSecondDigits;
  BUBBLESIM_ASSIGN_OR_RETURN(const auto time, format_ == ArrivalFormat::kAzure
                                                  ? parse_date_time(found.time)
                                                  : parse_decimal(found.time, unit));
  if (lengths_ == Lengths::kRead) {
    BUBBLESIM_ASSIGN_OR_RETURN(auto length, parse_length(std::move(found)));
    arrivals_.lengths.push_back(std::move(length));
  }
  arrivals_.offsets.push_back(time);
  return {};
}

ParsedDecimal<RecordedLength> ArrivalLines::parse_length(LineFields found) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto prompt, parse_tokens(found.prompt, names_.prompt));
  BUBBLESIM_ASSIGN_OR_RETURN(const auto output, parse_tokens(found.output, names_.output));
  if (prompt == 0 || output == 0) arrivals_.counters.add(kLengthsRaised);
  return RecordedLength{std::max(prompt, 1U), std::max(output, 1U), std::move(found.hashes)};
}

Result<void> ArrivalLines::add(std::string_view line, LineEnd end) {
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_not_of(" \t") == std::string_view::npos) return {};
  if (columns_ == 0 && !is_json(format_)) return add_header(line);
  if (arrivals_.offsets.size() >= kMaxArrivals) {
    return fail_at(line_, "more than " + std::to_string(kMaxArrivals) + " arrivals");
  }
  const auto parsed = parse(line);
  if (parsed) return {};
  if (end == LineEnd::kMissing) {
    arrivals_.counters.add(kArrivalLinesTruncated);
  } else {
    ++damaged_;
    arrivals_.counters.add(kArrivalLinesDamaged);
  }
  if (!first_damage_) {
    first_damage_ = Error{label_, "line " + std::to_string(line_), parsed.error()};
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
