#include "sim/step_cost/steps_file.hpp"

#include <utility>

#include "sim/base/json_reader.hpp"

namespace bubblesim::step_cost {
namespace {

constexpr std::string_view kStepsFormat = "bubblesim.steps/1";
constexpr Range<double> kStepSum{0, 1e18};
constexpr Range<double> kStepMicroseconds{1e-3, 1e9};

StepSums read_sums(ObjectReader reader) {
  StepSums out;
  out.sequences = reader.number("sequences", kStepSum);
  out.tokens = reader.number("tokens", kStepSum);
  out.keys = reader.number("keys", kStepSum);
  out.squares = reader.number("squares", kStepSum);
  out.products = reader.number("products", kStepSum);
  if (reader.present() && !can_be(out)) {
    reader.fault("", "found sums that no sequences have; expected " + std::string(kSumsThatCanBe));
  }
  return out;
}

CheckedResult<RecordedSteps> read_steps(const JsonDocument& document, const std::string& file) {
  auto read = read_whole(document, [&](ObjectReader& root) {
    RecordedSteps out;
    root.expect("format", kStepsFormat);
    out.gpu = root.text("gpu");
    out.source = root.text("source");
    for (ObjectReader step : root.children("steps")) {
      RecordedStep& made = out.steps.emplace_back();
      made.prompts = read_sums(step.child("prompts"));
      made.singles = read_sums(step.child("singles"));
      made.kernels_us = step.number("kernels_us", kStepMicroseconds);
      if (step.present() && made.prompts.tokens + made.singles.tokens < 1) {
        step.fault("", "has no tokens; expected 1 or more");
      }
    }
    root.finish();
    return out;
  });
  if (read && read->steps.empty()) return fail(file, "/steps", "is empty; expected steps");
  return read;
}

}  // namespace

CheckedResult<RecordedSteps> parse_steps(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  return read_steps(document, label);
}

CheckedResult<RecordedSteps> read_steps_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  return read_steps(document, path);
}

}  // namespace bubblesim::step_cost
