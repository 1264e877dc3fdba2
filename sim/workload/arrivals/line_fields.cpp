#include "sim/workload/arrivals/line_fields.hpp"

#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/number_text.hpp"

namespace bubblesim::workload {
namespace {

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

}  // namespace

ParsedDecimal<LineFields> json_fields(std::string_view line, const FieldNames& names) {
  FieldFinder finder(names);
  Json::sax_parse(line.begin(), line.end(), &finder);
  return std::move(finder).result();
}

ParsedDecimal<std::uint32_t> parse_tokens(std::string_view text, std::string_view field) {
  constexpr std::uint32_t kMost = (std::uint32_t{1} << 31U) - 1;
  std::string_view whole = text;
  if (whole.ends_with(".0")) whole.remove_suffix(2);
  const auto value = parse_number<std::uint32_t>(whole);
  if (value && *value <= kMost) return *value;
  return tl::make_unexpected("found " + quote_found(text) + " for \"" + std::string(field) +
                             "\"; expected a number of tokens");
}

}  // namespace bubblesim::workload
