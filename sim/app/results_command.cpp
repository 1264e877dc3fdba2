// bubblesim results: what a store holds; the parts that print tables are in results_*.cpp.
#include "sim/app/results_command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>
#include <iostream>
#include <ranges>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/output_file.hpp"
#include "sim/store/merge_stores.hpp"
#include "sim/store/store_export.hpp"
#include "sim/text/escaped_text.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

Result<store::RowFilter> filter_of(const ResultsArguments& arguments) {
  store::RowFilter filter = arguments.compare.filter;
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

void add_row_filters(CLI::App& command, ResultsArguments& arguments) {
  command.add_option("--policy", arguments.compare.filter.policies, "Only rows of these policies")
      ->delimiter(',')->allow_extra_args(false);
  command.add_option("--sweep", arguments.compare.filter.sweeps, "Only runs of these sweeps")
      ->delimiter(',')->allow_extra_args(false);
  command.add_option("--filler", arguments.compare.filter.fillers, "Only rows of these fillers")
      ->delimiter(',')->allow_extra_args(false);
  command.add_option("--set", arguments.settings,
                     "Only runs in which the sweep set this, as /fillers/0/load=0.5 (JSON or "
                     "text); all that are given must hold")->allow_extra_args(false);
}

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
  for (const Line& line : lines) append_csv_line(text, line);
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

namespace {

Result<std::size_t> export_to(std::ostream& out, store::ResultsStore& store,
                              const store::RowFilter& filter, store::ExportFormat format) {
  return store::export_rows(store, filter, format, [&](std::string_view text) -> Result<void> {
    if (out << text) return {};
    return fail("the rows could not be written");  // why is said by who owns the stream
  });
}

Result<std::size_t> export_to_file(const std::string& path, store::ResultsStore& store,
                                   const store::RowFilter& filter, store::ExportFormat format) {
  BUBBLESIM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(path));
  auto written = export_to(file.stream(), store, filter, format);
  if (!written && file.stream()) return written;
  BUBBLESIM_RETURN_IF_ERROR(file.finish());
  return written;
}

ExitCode export_results(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto opened, open_filtered(arguments));
  const bool json = arguments.json || arguments.format == "json" ||
                    (arguments.format.empty() && arguments.output.ends_with(".json"));
  BUBBLESIM_RETURN_IF_ERROR(make_folder_of(arguments.output));
  const auto format = json ? store::ExportFormat::kJson : store::ExportFormat::kCsv;
  BUBBLESIM_ASSIGN_OR_RETURN(
      const auto written,
      arguments.output.empty()
          ? export_to(std::cout, *opened.store, opened.filter, format)
          : export_to_file(arguments.output, *opened.store, opened.filter, format));
  if (written == 0) tell_of_no_rows(arguments);
  return kExitOk;
}

ExitCode check_results(const ResultsArguments& arguments) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto store,
                             store::open_store(arguments.store, store::StoreAccess::kRead));
  BUBBLESIM_RETURN_IF_ERROR(store->check());
  BUBBLESIM_ASSIGN_OR_RETURN(const auto done, store->done());
  BUBBLESIM_ASSIGN_OR_RETURN(const auto failed, store->failed());
  const std::size_t runs = done.size() + failed.size();
  if (arguments.json) {
    fmt::print("{}\n", compact_text(Json{{"runs", runs}, {"damaged", false}}));
  } else {
    fmt::print("{}: {} runs, no damage found\n", arguments.store, runs);
  }
  return kExitOk;
}

ExitCode merge_results(const ResultsArguments& arguments) {
  ProgressLine progress;
  const auto merged = store::merge_stores(
      arguments.inputs, arguments.output, [&](std::uint64_t done, std::uint64_t all) {
        progress.show(fmt::format("{} of {} runs merged", done, all));
      });
  progress.clear();
  if (!merged) return tl::make_unexpected(merged.error());
  if (arguments.json) {
    fmt::print("{}\n", compact_text(Json{{"stores", arguments.inputs.size()},
                                         {"runs", merged->runs},
                                         {"stored", merged->stored}}));
  } else {
    fmt::print("{} stores, {} runs; {} new in {}\n", arguments.inputs.size(), merged->runs,
               merged->stored, arguments.output);
  }
  return kExitOk;
}

using Arguments = std::shared_ptr<ResultsArguments>;

constexpr const char* kNoStore = "found no STORE, expected bubblesim results STORE ...";

/// A command of `results` that works on one store.
CLI::App* add_part(CLI::App& command, AppContext& context, const Arguments& arguments,
                   const std::string& name, const std::string& help,
                   ExitCode (*run)(const ResultsArguments&)) {
  CLI::App* part = command.add_subcommand(name, help);
  part->fallthrough();
  part->callback([arguments, run, &context] {
    const bool named = !arguments->store.empty() || !arguments->inputs.empty();
    context.exit_code = reported(named ? run(*arguments) : fail(kNoStore));
  });
  return part;
}

void add_filters(CLI::App& command, const Arguments& arguments) {
  add_row_filters(command, *arguments);
  command.add_option("--metric", arguments->compare.metrics,
                     "Columns of OUTPUTS.md for list and compare (default: "
                     "training_normalised_fraction, filler_normalised_fraction, latency_p95_ms)")
      ->delimiter(',')->allow_extra_args(false);
  CLI::Option* json = command.add_flag("--json", arguments->json, "JSON on standard output");
  command.add_flag("--csv", arguments->csv, "CSV on standard output")->excludes(json);
}

void add_parts(CLI::App& command, AppContext& context, const Arguments& arguments) {
  CLI::App* list = add_part(command, context, arguments, "list",
                            "A line a policy and filler of every run (the default)", list_results);
  list->add_flag("--failed", arguments->failed, "Runs that failed, with their reasons");
  list->add_option("--limit", arguments->limit,
                   "Lines of the list for people; 0: all (default 1000)");
  CLI::App* show = add_part(command, context, arguments, "show",
                            "Everything of one run", show_result);
  show->add_option("KEY", arguments->key, "Key of the run, or how it begins")->required();
  CLI::App* compare = add_part(
      command, context, arguments, "compare",
      "Policies against one of them, paired by point and seed, with confidence intervals.\n"
      "(Student's t of the paired differences; Law, Simulation Modeling and Analysis, 10.2.1)",
      compare_results);
  compare->add_option("--baseline", arguments->compare.baseline,
                      "The policy to compare with (default: the first of the first run)");
  compare->add_flag("--by-point", arguments->by_point,
                    "An interval for every point of the sweep, over its seeds");
  compare->add_option("--confidence", arguments->compare.confidence,
                      "Of each interval, between 0 and 1 (default 0.95)");
  CLI::App* rows = add_part(command, context, arguments, "export",
                            "All rows as CSV or JSON: the columns of OUTPUTS.md, the run's key, "
                            "and a column for every swept pointer", export_results);
  rows->add_option("--format", arguments->format,
                   "csv or json (default: by the end of the output's name, else csv)")
      ->check(CLI::IsMember({"csv", "json"}));
  rows->add_option("-o,--output", arguments->output, "File (default: standard output)");
  context.outputs.writes(*rows, "--output");
  add_part(command, context, arguments, "check",
           "Reads everything and compares check sums; exit code 2 if the store is damaged",
           check_results);
}

void add_merge(CLI::App& command, AppContext& context, const Arguments& arguments) {
  CLI::App* merge = add_part(
      command, context, arguments, "merge",
      "Several stores into one: every key once, done before failed. In any order the same "
      "content;\ndoing it again changes nothing", merge_results);
  merge->add_option("STORES", arguments->inputs, "Stores to read")->required();
  merge->add_option("-o,--output", arguments->output, "Store to write; made if it is not there")
      ->required();
}

constexpr const char* kResultsHelp =
    "What a results store holds: lists, comparisons, exports, merges.\n"
    "STORE is a file that 'bubblesim sweep' wrote, or postgresql://user@host/database.\n\n"
    "Examples:\n"
    "  bubblesim results out/load.db\n"
    "  bubblesim results out/load.db list --policy tgs --set /fillers/0/load=0.5\n"
    "  bubblesim results out/load.db list --failed\n"
    "  bubblesim results out/load.db show 3f9a\n"
    "  bubblesim results out/load.db compare --baseline exclusive --metric latency_p95_ms\n"
    "  bubblesim results out/load.db export -o load.csv\n"
    "  bubblesim results merge shard-*.db -o all.db\n\n"
    "Units are in the names of the columns: _ms, _s, _fraction (0 to 1), _bytes; OUTPUTS.md "
    "defines each.\n"
    "Exit codes: 0 done; 2 a fault of the command line or of the store.";

}  // namespace

void add_results_command(CLI::App& parser, AppContext& context) {
  auto arguments = std::make_shared<ResultsArguments>();
  CLI::App* command = parser.add_subcommand("results", kResultsHelp);
  command->add_option("STORE", arguments->store, "Results store: a file or postgresql://...");
  add_filters(*command, arguments);
  add_parts(*command, context, arguments);
  add_merge(*command, context, arguments);
  command->require_subcommand(0, 1);
  command->callback([arguments, command, &context] {
    if (!command->get_subcommands().empty()) return;
    context.exit_code =
        reported(arguments->store.empty() ? fail(kNoStore) : list_results(*arguments));
  });
}

}  // namespace bubblesim::app
