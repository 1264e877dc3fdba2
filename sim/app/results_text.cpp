#include "sim/app/results_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ranges>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/store/store_export.hpp"
#include "sim/text/csv_text.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

Result<store::RowFilter> filter_of(const ResultsArguments& arguments) {
  store::RowFilter filter{arguments.sweeps, arguments.policies, arguments.fillers, {}, {}};
  for (const std::string& text : arguments.settings) {
    const std::size_t equal = text.find('=');
    if (!text.starts_with('/') || equal == std::string::npos) {
      return fail("--set: found " + quote_found(text) +
                  ", expected a JSON pointer and a value, such as /fillers/0/load=0.5");
    }
    const std::string value = text.substr(equal + 1);
    const bool json = Json::accept(value);
    filter.settings.push_back({text.substr(0, equal), json ? value : compact_text(Json(value))});
  }
  return filter;
}

}  // namespace

Result<FilteredStore> open_filtered(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(store::RowFilter filter, filter_of(arguments));
  BUBBLESIM_ASSIGN_OR_RETURN(auto store,
                             store::open_store(arguments.store, store::StoreAccess::kRead));
  BUBBLESIM_RETURN_IF_ERROR(store->check_names(filter));
  return FilteredStore{std::move(store), std::move(filter)};
}

std::string short_number(double value) { return fmt::format("{:.5g}", value); }

std::string csv_table(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) {
    for (const std::string& cell : line) {
      if (&cell != &line[0]) text += ',';
      append_csv_cell(text, cell);
    }
    text += '\n';
  }
  return text;
}

std::string json_table(const std::vector<Line>& lines) {
  Json all = Json::array();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    Json& object = all.emplace_back(Json::object());
    for (std::size_t j = 0; j < lines[i].size(); ++j) {
      const std::string& text = lines[i][j];
      const Json value = Json::parse(text, nullptr, false);
      object[lines[0][j]] = text.empty() ? Json() : value.is_number() ? value : Json(text);
    }
  }
  return indented_text(all, 1);
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void tell_of_no_rows(const ResultsArguments& arguments) {
  fmt::print(stderr, "bubblesim: {}: found no such rows\n", arguments.store);
}

std::string assignments_text(const std::vector<store::Setting>& settings) {
  std::string text;
  for (const store::Setting& setting : settings) {
    text += (text.empty() ? "" : " ") + setting.pointer + "=" + store::setting_text(setting.value);
  }
  return text;
}

std::string aligned(const std::vector<Line>& lines) {
  if (lines.empty()) return {};
  TextTable table(lines.front(), std::vector(lines.front().size(), Align::kNumbersRight), "");
  for (const Line& line : lines | std::views::drop(1)) table.row(line);
  return table.text();
}

}  // namespace bubblesim::app
