// What the sides of a comparison are.
#include "sim/base/add_once.hpp"
#include "sim/validate/measured_text.hpp"

namespace bubblesim::validate {
namespace {

using Texts = std::vector<std::string>;

std::string joined(const Texts& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out.empty() ? "nothing" : out;
}

}  // namespace

std::string measured_sides_text(const std::vector<MatchedReports>& matched) {
  Texts simulated;
  Texts measured;
  bool run_was_measured = false;
  bool measured_was_run = false;
  bool fake = false;
  for (const MatchedReports& config : matched) {
    for (const ReportFigures* report : config.simulated) {
      add_once(simulated, report->device);
      run_was_measured = run_was_measured || !report->measured.empty();
    }
    for (const ReportFigures* report : config.measured) {
      // Dates differ from round to round: place and device say enough here.
      const std::string place = report->measured.substr(0, report->measured.find(','));
      add_once(measured, place.empty() ? report->device : report->device + " (" + place + ")");
      measured_was_run = measured_was_run || report->measured.empty();
      fake = fake || is_fake(*report);
    }
  }
  std::string out = "simulated: " + joined(simulated) + "\nmeasured:  " + joined(measured) + "\n";
  if (run_was_measured) out += "note: RUN holds reports that were measured, not simulated\n";
  if (measured_was_run) out += "note: MEASURED holds reports that were simulated, not measured\n";
  if (fake) out += "note: MEASURED holds reports of a fake GPU: they measure nothing\n";
  return out;
}

}  // namespace bubblesim::validate
