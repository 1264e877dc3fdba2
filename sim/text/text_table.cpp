#include "sim/text/text_table.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/base/utf8.hpp"

namespace bubblesim {
namespace {

bool stands_right(Align align, const std::string& cell) {
  if (align != Align::kNumbersRight) return align == Align::kRight;
  return cell.find_first_not_of("0123456789.+-e>") == std::string::npos;
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings, std::vector<Align> aligns,
                     std::string indent)
    : aligns_(std::move(aligns)), indent_(std::move(indent)) {
  aligns_.resize(headings.size(), Align::kRight);
  row(std::move(headings));
}

void TextTable::row(std::vector<std::string> cells) {
  cells.resize(aligns_.size());
  for (std::string& cell : cells) cell = escape_controls(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  const std::vector<std::size_t> columns = widths();
  std::string text;
  for (const auto& cells : rows_) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(columns[i] - letter_count(cells[i]), ' ');
      line += i == 0 ? indent_ : "  ";
      line += stands_right(aligns_[i], cells[i]) ? padding + cells[i] : cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths(aligns_.size(), 0);
  for (const auto& cells : rows_) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], letter_count(cells[i]));
    }
  }
  return widths;
}

std::string counter_line(std::string_view name, const CounterSet::Entry& entry) {
  return fmt::format("  {:<8} {:<40} {:>10}  {}\n", severity_name(entry.severity), name,
                     entry.count, entry.help);
}

std::string counter_lines(const CounterSet& counters) {
  std::string lines;
  for (const auto& [name, entry] : counters) lines += counter_line(name, entry);
  return lines;
}

std::string loss_lines(const CounterSet& counters) {
  std::string lines;
  for (const auto& [name, entry] : counters) {
    if (entry.severity < Severity::kLoss) continue;
    lines += fmt::format("{}: {} {}: {}\n", entry.severity == Severity::kLoss ? "Lost" : "Error",
                         entry.count, name, entry.help);
  }
  return lines;
}

Json counter_list(const CounterSet& counters) {
  return list_json(counters, [](const auto& counter) -> Json {
    const auto& [name, entry] = counter;
    return {{"name", name},
            {"severity", severity_name(entry.severity)},
            {"count", entry.count},
            {"help", entry.help}};
  });
}

Json counters_object(const CounterSet& counters) {
  Json object = Json::object();
  for (const auto& [name, entry] : counters) {
    object[name] = {{"count", entry.count},
                    {"severity", severity_name(entry.severity)},
                    {"help", entry.help}};
  }
  return object;
}

Json counts_object(const CounterSet& counters) {
  Json object = Json::object();
  for (const auto& [name, entry] : counters) {
    object[name] = {{"severity", severity_name(entry.severity)}, {"count", entry.count}};
  }
  return object;
}

}  // namespace bubblesim
