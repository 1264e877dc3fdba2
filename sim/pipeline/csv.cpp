#include "sim/pipeline/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/nearest.hpp"
#include "sim/pipeline/check.hpp"
#include "sim/pipeline/registry.hpp"

namespace bubblesim::pipeline {
namespace {

// ---- One cell of a schedule's CSV.

struct Word {
  std::string_view name;
  std::optional<ActionKind> kind;  ///< nothing: accepted and counted
  bool has_micro_batch;
};

constexpr std::array<Word, 12> kWords = {{{"F", ActionKind::kForward, true},
                                          {"I", ActionKind::kInputGrad, true},
                                          {"W", ActionKind::kWeightGrad, true},
                                          {"B", ActionKind::kBackward, true},
                                          {"BW", ActionKind::kBackward, true},
                                          {"SEND_F", {}, true},
                                          {"RECV_F", {}, true},
                                          {"SEND_B", {}, true},
                                          {"RECV_B", {}, true},
                                          {"UNSHARD", {}, false},
                                          {"RESHARD", {}, false},
                                          {"REDUCE_GRAD", {}, false}}};

/// What a cell says, before the file's spelling of B is known: B is taken as the whole backward.
struct CsvCell {
  Action action;
  const Word* word = nullptr;  ///< null: a pair
};

constexpr std::string_view kOverlap = "OVERLAP_F_B";

Error no_action(std::string_view text, const std::string& why) {
  return {{}, {}, "found " + quote_found(text) + "; " + why +
                      "; expected an action such as 0F0, 2B3, 1I0, 1W0 or "
                      "(0F7;7B3)OVERLAP_F_B"};
}

// Takes the digits at the front of `rest`.
Result<std::uint32_t> take_number(std::string_view text, std::string_view& rest,
                                  const char* what, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, fault] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (fault == std::errc::invalid_argument) {
    return tl::make_unexpected(no_action(text, std::string("no ") + what + " number"));
  }
  if (fault != std::errc() || value > most) {
    return tl::make_unexpected(
        no_action(text, std::string(what) + " numbers go to " + std::to_string(most)));
  }
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return value;
}

std::string_view take_word(std::string_view& rest) {
  std::size_t size = 0;
  while (size < rest.size() && (rest[size] < '0' || rest[size] > '9')) ++size;
  const std::string_view word = rest.substr(0, size);
  rest.remove_prefix(size);
  return word;
}

Result<CsvCell> parse_simple(std::string_view text) {
  CsvCell cell;
  std::string_view rest = text;
  BUBBLESIM_ASSIGN_OR_RETURN(cell.action.stage, take_number(text, rest, "stage", kMaxCsvStage));
  const std::string_view name = take_word(rest);
  const auto word = std::ranges::find(kWords, name, &Word::name);
  if (word == kWords.end()) {
    std::array<std::string_view, kWords.size()> names;
    std::ranges::transform(kWords, names.begin(), &Word::name);
    return tl::make_unexpected(no_action(text, unknown_name_message("kind", name, names)));
  }
  cell.word = &*word;
  if (word->kind) cell.action.kind = *word->kind;
  if (word->has_micro_batch) {
    BUBBLESIM_ASSIGN_OR_RETURN(cell.action.micro_batch,
                               take_number(text, rest, "micro-batch", kMaxCsvMicroBatch));
  }
  if (!rest.empty()) {
    return tl::make_unexpected(no_action(text, "nothing may follow the action"));
  }
  return cell;
}

// "(0F7;7B3)OVERLAP_F_B"; the backward part may be spelt BW.
Result<CsvCell> parse_pair(std::string_view text) {
  const std::size_t middle = text.find(';');
  const std::size_t end = text.find(')');
  if (middle == std::string_view::npos || end == std::string_view::npos || end < middle ||
      text.substr(end + 1) != kOverlap) {
    return tl::make_unexpected(no_action(text, "no pair of actions that overlap"));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvCell first, parse_simple(text.substr(1, middle - 1)));
  BUBBLESIM_ASSIGN_OR_RETURN(const CsvCell second,
                             parse_simple(text.substr(middle + 1, end - middle - 1)));
  if (first.word->kind != ActionKind::kForward || second.word->kind != ActionKind::kBackward) {
    return tl::make_unexpected(
        no_action(text, "a pair is one forward and one whole backward, in this order"));
  }
  return CsvCell{overlapped(first.action.stage, first.action.micro_batch, second.action.stage,
                            second.action.micro_batch)};
}

// `text` is not empty and has no space at its ends. The error has a message only.
Result<CsvCell> parse_csv_cell(std::string_view text) {
  return text.front() == '(' ? parse_pair(text) : parse_simple(text);
}

// `separator`-separated parts; a last line without an end counts.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  CheckedResult<CsvSchedule> read(std::string_view text) {
    std::vector<std::string_view> rows = split(text, '\n');
    while (!rows.empty() && trimmed(rows.back()).empty()) rows.pop_back();
    if (rows.empty()) {
      return tl::make_unexpected(
          Errors{{file_, {}, "found no row; expected one a rank, such as 0F0,0F1,0B0,0B1"}});
    }
    cells_.resize(rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row) read_row(row, rows[row]);
    if (actions_ > kMaxActions) {
      return tl::make_unexpected(Errors{{file_, {}, "found " + std::to_string(actions_) +
                                                        " actions; a table holds at most " +
                                                        std::to_string(kMaxActions)}});
    }
    if (faults_.empty()) build();
    if (faults_.empty()) return std::move(result_);
    return tl::make_unexpected(std::move(faults_));
  }

 private:
  void add(std::size_t row, std::size_t column, std::string message) {
    if (faults_.size() >= kMaxFaults) return;
    faults_.push_back({file_, "row " + std::to_string(row + 1) + ", cell " +
                                  std::to_string(column + 1),
                       std::move(message)});
  }

  void read_row(std::size_t row, std::string_view text) {
    const std::vector<std::string_view> parts = split(text, ',');
    for (std::size_t column = 0; column < parts.size(); ++column) {
      const std::string_view part = trimmed(parts[column]);
      if (part.empty()) continue;
      auto cell = parse_csv_cell(part);
      if (!cell) {
        add(row, column, std::move(cell.error().message));
      } else if (cell->word != nullptr && !cell->word->kind) {
        ++result_.ignored[std::string(cell->word->name)];
      } else {
        if (cell->word != nullptr) words_.insert(cell->word->name);
        cells_[row].push_back(*cell);
        ++actions_;
      }
    }
  }

  void build() {
    const bool old = words_.contains("BW") ||
                     (words_.contains("W") && words_.contains("B") && !words_.contains("I"));
    result_.spelling = old ? CsvSpelling::kOld : CsvSpelling::kCurrent;
    Schedule& schedule = result_.schedule;
    schedule.name = file_;
    schedule.ranks = static_cast<std::uint32_t>(cells_.size());
    schedule.actions.resize(cells_.size());
    for (std::size_t row = 0; row < cells_.size(); ++row) {
      for (auto& [action, word] : cells_[row]) {
        if (old && word != nullptr && word->name == "B") action.kind = ActionKind::kInputGrad;
        schedule.actions[row].push_back(action);
        schedule.stages =
            std::max({schedule.stages, action.stage + 1, action.backward_stage() + 1});
        schedule.micro_batches = std::max(
            {schedule.micro_batches, action.micro_batch + 1, action.other_micro_batch + 1});
      }
    }
    place_stages();
  }

  void place_stages() {
    Schedule& schedule = result_.schedule;
    schedule.rank_of_stage.assign(schedule.stages, schedule.ranks);
    for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
      for (const Action& action : schedule.actions[rank]) {
        if (action.has_forward()) schedule.rank_of_stage[action.stage] = rank;
      }
    }
    std::size_t missing = 0;
    for (std::uint32_t stage = 0; stage < schedule.stages; ++stage) {
      if (schedule.rank_of_stage[stage] < schedule.ranks || ++missing > kMaxFaults) continue;
      faults_.push_back({file_, {}, "stage " + std::to_string(stage) +
                                        " has no forward; stages go to " +
                                        std::to_string(schedule.stages - 1)});
    }
    if (schedule.stages == 0) {
      faults_.push_back({file_, {}, "found no action; expected some, such as 0F0"});
    }
  }

  const std::string& file_;
  CsvSchedule result_;
  std::vector<std::vector<CsvCell>> cells_;  // by row
  std::uint64_t actions_ = 0;
  std::set<std::string_view> words_;  // of actions outside of pairs
  Errors faults_;
};

}  // namespace

CheckedResult<CsvSchedule> parse_csv(std::string_view text, const std::string& file) {
  return Reader(file).read(text);
}

std::string write_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& list : schedule.actions) {
    std::vector<std::string> row;
    for (const Action& action : list) row.push_back(action_text(action));
    text += fmt::format("{}\n", fmt::join(row, ","));
  }
  return text;
}

std::string write_csv_steps(const Schedule& schedule, const StageGraph& graph) {
  UnitTimes steps;
  steps.backward = 1;
  steps.overlapped = 1;
  const Execution execution = execute(schedule, graph, steps);
  std::string text;
  for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    std::vector<std::string> row;
    for (std::size_t i = 0; i < schedule.actions[rank].size(); ++i) {
      row.resize(static_cast<std::size_t>(execution.spans[rank][i].start));
      row.push_back(action_text(schedule.actions[rank][i]));
    }
    text += fmt::format("{}\n", fmt::join(row, ","));
  }
  return text;
}

}  // namespace bubblesim::pipeline
