#include <algorithm>
#include <numeric>

#include "sim/pipeline/render.hpp"

namespace bubblesim::pipeline {
namespace {

std::int64_t unit_of(const Execution& execution) {
  std::int64_t unit = execution.makespan;
  for (const auto& spans : execution.spans) {
    for (const Span& span : spans) unit = std::gcd(std::gcd(unit, span.start), span.end);
  }
  return std::max<std::int64_t>(unit, 1);
}

bool one_stage_each(const Schedule& schedule) {
  std::vector<std::uint32_t> stages(schedule.ranks);
  for (const std::uint32_t rank : schedule.rank_of_stage) ++stages[rank];
  return std::all_of(stages.begin(), stages.end(), [](auto count) { return count <= 1; });
}

std::string label_of(const Action& action, bool short_form) {
  if (action.kind == ActionKind::kOverlapped) {
    return action_text(forward(action.stage, action.micro_batch)) + "&" +
           action_text(backward(action.other_stage, action.other_micro_batch));
  }
  if (!short_form) return action_text(action);
  return letter(action.kind) + std::to_string(action.micro_batch);
}

class Grid {
 public:
  Grid(const Schedule& schedule, const Execution& execution)
      : schedule_(schedule),
        execution_(execution),
        unit_(unit_of(execution)),
        columns_(std::min<std::size_t>(static_cast<std::size_t>(execution.makespan / unit_),
                                       kMaxGridColumns)),
        short_form_(one_stage_each(schedule)) {
    for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) measure(rank);
  }

  std::string text() const {
    const std::size_t digits = std::to_string(schedule_.ranks - 1).size();
    std::string out;
    for (std::uint32_t rank = 0; rank < schedule_.ranks; ++rank) {
      const std::string number = std::to_string(rank);
      out += "rank " + std::string(digits - number.size(), ' ') + number + "  " + row(rank);
      while (out.back() == ' ') out.pop_back();
      out += '\n';
    }
    if (static_cast<std::int64_t>(columns_) * unit_ < execution_.makespan) {
      out += "shown up to time " + std::to_string(static_cast<std::int64_t>(columns_) * unit_) +
             " of " + std::to_string(execution_.makespan) + "\n";
    }
    return out;
  }

 private:
  // Columns are as wide as the widest label needs, spread over the columns of its action.
  void measure(std::uint32_t rank) {
    for (std::size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
      const Span& span = execution_.spans[rank][i];
      const std::size_t columns = static_cast<std::size_t>((span.end - span.start) / unit_);
      const std::size_t size = label_of(schedule_.actions[rank][i], short_form_).size() + 1;
      if (columns > 0) width_ = std::max(width_, (size + columns - 1) / columns);
    }
  }

  [[nodiscard]] std::string row(std::uint32_t rank) const {
    std::string out;
    for (std::size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
      const Span& span = execution_.spans[rank][i];
      const auto start = static_cast<std::size_t>(span.start / unit_);
      const auto end = static_cast<std::size_t>(span.end / unit_);
      if (end > columns_) break;
      idle_until(out, start * width_);
      if (end == start) continue;
      out += label_of(schedule_.actions[rank][i], short_form_);
      if (out.size() + 1 < end * width_) out.append(end * width_ - 1 - out.size(), '-');
      out.append(end * width_ - out.size(), ' ');
    }
    idle_until(out, columns_ * width_);
    return out;
  }

  void idle_until(std::string& out, std::size_t end) const {
    while (out.size() < end) out += "." + std::string(width_ - 1, ' ');
  }

  const Schedule& schedule_;
  const Execution& execution_;
  std::int64_t unit_;
  std::size_t columns_;
  bool short_form_;
  std::size_t width_ = 1;
};

}  // namespace

std::string render_grid(const Schedule& schedule, const Execution& execution) {
  return Grid(schedule, execution).text();
}

}  // namespace bubblesim::pipeline
