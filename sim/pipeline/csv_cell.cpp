#include "sim/pipeline/csv_cell.hpp"

#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/pipeline/csv.hpp"

namespace bubblesim::pipeline {
namespace {

using Kind = CsvCell::Kind;

struct Word {
  std::string_view name;
  Kind kind;
  bool has_micro_batch;
};

constexpr std::array<Word, 12> kWords = {{{"F", Kind::kF, true},
                                          {"I", Kind::kI, true},
                                          {"W", Kind::kW, true},
                                          {"B", Kind::kB, true},
                                          {"BW", Kind::kBw, true},
                                          {"SEND_F", Kind::kIgnored, true},
                                          {"RECV_F", Kind::kIgnored, true},
                                          {"SEND_B", Kind::kIgnored, true},
                                          {"RECV_B", Kind::kIgnored, true},
                                          {"UNSHARD", Kind::kIgnored, false},
                                          {"RESHARD", Kind::kIgnored, false},
                                          {"REDUCE_GRAD", Kind::kIgnored, false}}};

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
  BUBBLESIM_ASSIGN_OR_RETURN(cell.stage, take_number(text, rest, "stage", kMaxCsvStage));
  const std::string_view name = take_word(rest);
  const Word* word = nullptr;
  std::array<std::string_view, kWords.size()> names;
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    names[i] = kWords[i].name;
    if (kWords[i].name == name) word = &kWords[i];
  }
  if (word == nullptr) {
    return tl::make_unexpected(no_action(text, unknown_name_message("kind", name, names)));
  }
  cell.kind = word->kind;
  if (word->kind == Kind::kIgnored) cell.word = word->name;
  if (word->has_micro_batch) {
    BUBBLESIM_ASSIGN_OR_RETURN(cell.micro_batch,
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
  if (first.kind != Kind::kF || (second.kind != Kind::kB && second.kind != Kind::kBw)) {
    return tl::make_unexpected(
        no_action(text, "a pair is one forward and one whole backward, in this order"));
  }
  return CsvCell{Kind::kOverlapped, first.stage, first.micro_batch, second.stage,
                 second.micro_batch, {}};
}

}  // namespace

Result<CsvCell> parse_csv_cell(std::string_view text) {
  return text.front() == '(' ? parse_pair(text) : parse_simple(text);
}

}  // namespace bubblesim::pipeline
