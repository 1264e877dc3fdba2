#include "traces/iterations/choice.hpp"

#include <optional>

#include "sim/base/number_text.hpp"

namespace bubblesim::traces {
namespace {

std::optional<std::int64_t> number(std::string_view text) {
  const auto value = parse_number<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

Result<IterationChoice> parse_iteration_choice(std::string_view text) {
  using Kind = IterationChoice::Kind;
  if (text == "settled") return IterationChoice{};
  if (text == "all") return IterationChoice{Kind::kAll};
  const std::size_t dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (first && last && *first <= *last) return IterationChoice{Kind::kRange, *first, *last};
  return fail({}, {},
              "found iterations \"" + std::string(text) +
                  "\"; expected \"settled\", \"all\", a number as \"7\" or a range as \"5-9\"");
}

std::string iteration_choice_text(const IterationChoice& choice) {
  switch (choice.kind) {
    case IterationChoice::Kind::kSettled: return "settled";
    case IterationChoice::Kind::kAll: return "all";
    case IterationChoice::Kind::kRange: break;
  }
  std::string text = std::to_string(choice.first);
  if (choice.last != choice.first) text += "-" + std::to_string(choice.last);
  return text;
}

}  // namespace bubblesim::traces
