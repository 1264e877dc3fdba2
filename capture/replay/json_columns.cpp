#include "capture/replay/json_columns.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

#include "sim/base/json.hpp"

namespace bubblesim::capture {
namespace {

template <class T>
void append_number(std::string& text, T value) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append(digits.data(), end);
}

}  // namespace

void JsonWriter::put_signed(std::int64_t value) { append_number(text_, value); }
void JsonWriter::put_whole(std::uint64_t value) { append_number(text_, value); }
void JsonWriter::put_number(double value) { append_number(text_, value); }

void JsonWriter::put_text(std::string_view value) {
  // Names of kernels are the driver's; bytes that are no UTF-8 would make the file unreadable.
  text_ += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void JsonWriter::key(std::string_view key) {
  put_text(key);
  text_ += ": ";
}

void JsonWriter::text(std::string_view name, std::string_view value) {
  key(name);
  put_text(value);
  text_.push_back(',');
}

void JsonWriter::texts(std::string_view name, const std::vector<std::string>& values) {
  open_list(name);
  for (const std::string& value : values) {
    put_text(value);
    text_ += ",\n";
  }
  close_list();
}

void JsonWriter::flag(std::string_view name, bool value) {
  key(name);
  text_ += value ? "true," : "false,";
}

void JsonWriter::integer(std::string_view name, std::int64_t value) {
  key(name);
  put_signed(value);
  text_.push_back(',');
}

void JsonWriter::whole(std::string_view name, std::uint64_t value) {
  key(name);
  put_whole(value);
  text_.push_back(',');
}

void JsonWriter::number(std::string_view name, double value) {
  key(name);
  put_number(value);
  text_.push_back(',');
}

void JsonWriter::open(std::string_view name) {
  text_.push_back('\n');
  if (!name.empty()) key(name);
  text_.push_back('{');
}

void JsonWriter::open_list(std::string_view name) {
  text_.push_back('\n');
  key(name);
  text_.push_back('[');
}

namespace {

// Every value ends in a comma; the last one's goes.
void drop_comma(std::string& text) {
  while (text.back() == '\n') text.pop_back();
  if (text.back() == ',') text.pop_back();
}

}  // namespace

void JsonWriter::close() {
  drop_comma(text_);
  text_ += "},";
}

void JsonWriter::close_list() {
  drop_comma(text_);
  text_ += "],";
}

std::string JsonWriter::take() {
  drop_comma(text_);
  text_ += "}\n";
  return std::move(text_);
}

std::vector<double> ColumnReader::numbers(std::string_view key, Range<double> range,
                                          double fallback) {
  return fitted(key, table_.numbers(key, range, Presence::kOptional), fallback);
}

std::vector<Duration> ColumnReader::spans(std::string_view key) {
  const auto counts = column<std::int64_t>(key, {0, kMostNanoseconds}, 0);
  return {counts.begin(), counts.end()};
}

}  // namespace bubblesim::capture
