// What must be known before trusting tables: counters, overloads, refusals, each on one line
// however many policies, GPUs and reports it concerns.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/utf8.hpp"
#include "sim/observe/report.hpp"

namespace bubblesim::observe {
namespace {

/// The worst first, then by name.
using NoteKey = std::pair<int, std::string>;

struct Note {
  std::string help;
  std::string whom;  ///< whom it concerns, by how much
};

using NotesOfReport = std::map<NoteKey, Note>;

std::string joined(std::string text, const std::string& more, const char* separator = ", ") {
  if (!text.empty()) text += separator;
  return text + more;
}

void add_counters(NotesOfReport& notes, const std::string& whom, const CounterSet& counters) {
  for (const auto& [name, entry] : counters) {
    if (entry.severity == Severity::kInfo) continue;
    Note& note = notes[{-static_cast<int>(entry.severity), name}];
    note.help = entry.help;
    note.whom = joined(std::move(note.whom), fmt::format("{} {}", whom, entry.count));
  }
}

/// What is counted for all policies and belongs neither to the job nor to a filler.
CounterSet rest_of(const RunReport& report) {
  CounterSet parts = report.training_counters;
  for (const CounterSet& filler : report.filler_counters) parts.merge(filler);
  CounterSet rest;
  for (const auto& [name, entry] : report.counters) {
    const std::uint64_t known = parts.count(name);
    if (entry.count > known) rest.add(name, {entry.severity, entry.help, entry.count - known});
  }
  return rest;
}

NotesOfReport counters_of(const RunReport& report) {
  NotesOfReport notes;
  add_counters(notes, "training", report.training_counters);
  for (std::size_t i = 0; i < report.filler_counters.size(); ++i) {
    add_counters(notes, report.baseline.fillers.at(i).name, report.filler_counters[i]);
  }
  add_counters(notes, "all policies", rest_of(report));
  for (const PolicyResult& policy : report.policies) {
    add_counters(notes, policy_label(policy, report.policies), policy.counters);
  }
  return notes;
}

/// A policy, with the filler where there are several.
std::string row_name(const RunReport& report, const PolicyResult& policy,
                     const FillerResult& filler) {
  const std::string label = policy_label(policy, report.policies);
  return policy.fillers.size() > 1 ? label + "/" + filler.name : label;
}

std::string overloads_of(const RunReport& report) {
  std::string text;
  for (const PolicyResult& policy : report.policies) {
    for (const FillerResult& filler : policy.fillers) {
      if (!filler.overloaded) continue;
      text = joined(std::move(text),
                    fmt::format("{} {} to {}", row_name(report, policy, filler),
                                filler.requests_before, filler.requests_unfinished));
    }
  }
  return text;
}

std::string refusals_of(const RunReport& report) {
  std::string text;
  for (const PolicyResult& policy : report.policies) {
    for (const FillerResult& filler : policy.fillers) {
      const auto refused =
          std::find_if(filler.instances.begin(), filler.instances.end(),
                       [](const InstanceResult& instance) { return !instance.admitted; });
      if (refused == filler.instances.end()) continue;
      std::string reason = refused->reason;  // the others' are alike
      if (reason.starts_with(policy.policy + ": ")) reason.erase(0, policy.policy.size() + 2);
      const std::size_t count = filler.instances.size() - filler.admitted_gpus();
      text = joined(std::move(text),
                    fmt::format("{}: {} on {} of {} GPUs ({})",
                                policy_label(policy, report.policies), filler.name, count,
                                filler.instances.size(), reason),
                    "; ");
    }
  }
  return text;
}

std::string standstills_of(const RunReport& report) {
  std::string text;
  for (const PolicyResult& policy : report.policies) {
    if (policy.training.stands_still.empty()) continue;
    text = joined(std::move(text), policy_label(policy, report.policies) + ": " +
                                       policy.training.stands_still, "; ");
  }
  return text;
}

/// What is said of policies, each text once, with the policies.
std::string by_text(const RunReport& report,
                    const std::function<std::vector<std::string>(const PolicyResult&)>& texts_of) {
  std::map<std::string, std::string> whom;
  for (const PolicyResult& policy : report.policies) {
    for (const std::string& said : texts_of(policy)) {
      std::string& labels = whom[said];
      labels = joined(std::move(labels), policy_label(policy, report.policies));
    }
  }
  std::string text;
  for (const auto& [said, labels] : whom) {
    text = joined(std::move(text), fmt::format("{} ({})", said, labels), "; ");
  }
  return text;
}

/// What the config asks for and did not get.
std::string notices_of(const RunReport& report) {
  return by_text(report, [](const PolicyResult& policy) { return policy.notices; });
}

/// By how much launches go on later than they are called.
std::string gates_of(const RunReport& report) {
  return by_text(report, [](const PolicyResult& policy) -> std::vector<std::string> {
    const auto filler = static_cast<double>(policy.counters.count("policy_gate_ns")) / 1000;
    const auto training =
        static_cast<double>(policy.counters.count("policy_gate_training_ns")) / 1000;
    if (filler + training == 0) return {};
    return {fmt::format("fillers' launches {} us later, training's {} us", filler, training)};
  });
}

/// The footnote to the table's "*".
std::string reconstructions_of(const RunReport& report) {
  std::string text;
  std::vector<std::string_view> named;
  for (const PolicyResult& policy : report.policies) {
    const bool is_named = std::find(named.begin(), named.end(), policy.policy) != named.end();
    if (policy.reconstruction.empty() || is_named) continue;
    named.push_back(policy.policy);
    text = joined(std::move(text), fmt::format("{} ({})", policy.policy, policy.reconstruction));
  }
  return text;
}

std::string interrupted_of(const RunReport& report) {
  std::string text;
  for (const std::string& policy : report.interrupted) text = joined(std::move(text), policy);
  return text;
}

/// What each report says of one thing as one text, said once where all say the same.
std::string together(std::span<const RunReport> reports, const std::vector<std::string>& texts) {
  const bool same = std::all_of(texts.begin(), texts.end(),
                                [&](const std::string& text) { return text == texts.front(); });
  if (same) return texts.front();
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    all = joined(std::move(all), reports[i].config + ": " + texts[i], "; ");
  }
  return all;
}

std::string together(std::span<const RunReport> reports,
                     const std::function<std::string(const RunReport&)>& text_of) {
  std::vector<std::string> texts;
  for (const RunReport& report : reports) texts.push_back(text_of(report));
  return together(reports, texts);
}

struct Lines {
  std::vector<std::string> first;  ///< errors and losses
  std::vector<std::string> last;   ///< notices
};

Lines counter_lines(std::span<const RunReport> reports) {
  std::map<NoteKey, std::pair<std::string, std::vector<std::string>>> all;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    for (auto& [key, note] : counters_of(reports[i])) {
      auto& [help, whom] = all[key];
      help = note.help;
      whom.resize(reports.size());
      whom[i] = note.whom;
    }
  }
  Lines lines;
  for (const auto& [key, note] : all) {
    const auto severity = static_cast<Severity>(-key.first);
    const bool loss = severity >= Severity::kLoss;
    (loss ? lines.first : lines.last)
        .push_back(fmt::format("{}{}: {}: {}: {}", loss ? "! " : "", severity_name(severity),
                               key.second, together(reports, note.second), note.first));
  }
  return lines;
}

}  // namespace

std::string policy_label(const PolicyResult& policy, const std::vector<PolicyResult>& all) {
  std::string text = policy.policy;
  for (std::size_t i = 0; i < policy.parameters.size(); ++i) {
    const bool differs = std::any_of(all.begin(), all.end(), [&](const PolicyResult& other) {
      return other.policy == policy.policy && other.parameters.size() > i &&
             other.parameters[i] != policy.parameters[i];
    });
    const auto& [name, value] = policy.parameters[i];
    if (differs) text += fmt::format(" {}={}", name, value);
  }
  return text;
}

std::string report_notes(std::span<const RunReport> reports, Notes notes) {
  if (reports.empty()) return {};
  auto [lines, notices] = counter_lines(reports);
  if (const std::string all = together(reports, standstills_of); !all.empty()) {
    lines.insert(lines.begin(), "! training stands still: " + all);
  }
  if (const std::string all = together(reports, interrupted_of); !all.empty()) {
    lines.insert(lines.begin(), "interrupted: not run to the end: " + all);
  }
  if (const std::string all = together(reports, reconstructions_of); !all.empty()) {
    lines.insert(lines.begin(), "* a reconstruction: " + all);
  }
  if (const std::string all = together(reports, overloads_of); !all.empty()) {
    lines.push_back("overloaded: requests waiting at the start and at the end: " + all +
                    ": latencies would grow with the run");
  }
  if (const std::string all = together(reports, gates_of); !all.empty()) {
    lines.push_back("gate: " + all);
  }
  if (const std::string all = together(reports, refusals_of); !all.empty()) {
    lines.push_back("not admitted: " + all);
  }
  if (const std::string all = together(reports, notices_of); !all.empty()) {
    lines.push_back("not as asked: " + all);
  }
  std::size_t shown = lines.size();
  lines.insert(lines.end(), notices.begin(), notices.end());
  if (notes == Notes::kAll) shown = lines.size();
  // The last of few lines says how many there are beside.
  if (shown < lines.size() || (notes == Notes::kFew && shown > kFewNotes)) {
    shown = std::min(shown, kFewNotes - 1);
  }
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += escape_controls(lines[i]) + '\n';
  const std::size_t hidden = lines.size() - shown;
  if (hidden > 0) text += fmt::format("{} more with --notices\n", hidden);
  return text;
}

}  // namespace bubblesim::observe
