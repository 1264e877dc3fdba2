// The writing half of csv.hpp.
#include "sim/pipeline/csv.hpp"

namespace bubblesim::pipeline {
namespace {

// Commas before the cells: a row starts without one.
class Row {
 public:
  void add(const std::string& cell) {
    if (started_) text_ += ',';
    started_ = true;
    text_ += cell;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool started_ = false;
};

}  // namespace

std::string write_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& list : schedule.actions) {
    Row row;
    for (const Action& action : list) row.add(action_text(action));
    text += row.text() + "\n";
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
    Row row;
    std::int64_t next = 0;
    for (std::size_t i = 0; i < schedule.actions[rank].size(); ++i) {
      const Action& action = schedule.actions[rank][i];
      for (; next < execution.spans[rank][i].start; ++next) row.add("");
      row.add(action_text(action));
      ++next;
    }
    text += row.text() + "\n";
  }
  return text;
}

}  // namespace bubblesim::pipeline
