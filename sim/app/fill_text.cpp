#include "sim/app/fill_text.hpp"

#include <fmt/format.h>

#include "sim/base/json.hpp"
#include "sim/base/units.hpp"
#include "sim/text/text_table.hpp"

namespace bubblesim::app {
namespace {

using capture::FillReport;
using capture::LiveJobReport;
using capture::SpanSummary;

Duration mean_of(Duration total, std::uint64_t count) {
  return count == 0 ? Duration{} : total / static_cast<Duration::rep>(count);
}

/// Launches that were asked for and not held.
std::uint64_t passed(const LiveJobReport& job) { return job.launches() - job.held; }

std::string end_text(const LiveJobReport& job) {
  if (!job.end) return "not started";
  if (job.end->signal != 0) return fmt::format("killed by signal {}", job.end->signal);
  return fmt::format("exited with {}", job.end->exit_code);
}

void add_row(TextTable& table, const std::string& name, const LiveJobReport& job) {
  table.row({name, end_text(job), fmt::format("{:.1f} s", to_seconds(job.ran)),
             fmt::to_string(job.kernels), fmt::to_string(job.collectives),
             fmt::to_string(job.copies), fmt::to_string(job.held),
             format_duration(mean_of(job.held_time, job.held)), format_duration(job.held_time),
             fmt::to_string(job.undecided), format_duration(mean_of(job.passing_time,
                                                                    passed(job)))});
}

std::string span_text(const char* name, const SpanSummary& span) {
  return fmt::format("{}: {} times, mean {}, p50 {}, p95 {}, p99 {}, longest {}\n", name,
                     span.count, format_duration(span.mean), format_duration(span.p50),
                     format_duration(span.p95), format_duration(span.p99),
                     format_duration(span.max));
}

std::string notes_of_job(const char* name, const LiveJobReport& job) {
  std::string text;
  if (job.end && job.processes == 0) {
    text += fmt::format("  the {} launched nothing that the gate saw: it used no GPU, or reached "
                        "the driver by a way that the gate does not see "
                        "(capture/live/README.md)\n",
                        name);
  }
  if (job.ungated_processes > 0) {
    text += fmt::format("  {} processes of the {} went ungated: one at a time is gated\n",
                        job.ungated_processes, name);
  }
  if (job.completions_guessed > 0) {
    text += fmt::format("  {} completions of the {} were guessed: the driver gave no event\n",
                        job.completions_guessed, name);
  }
  return text;
}

std::string notes_text(const FillReport& report, const capture::LivePlan& plan) {
  std::string text;
  for (const std::string& note : plan.notes) text += "  " + note + "\n";
  text += notes_of_job("training", report.training) + notes_of_job("filler", report.filler);
  for (const std::string& note : report.notes) text += "  " + note + "\n";
  if (report.filler_killed) text += "  the filler did not end when told to, and was killed\n";
  for (const auto& [name, entry] : report.counters) {
    if (entry.count == 0) continue;
    text += fmt::format("  {} = {}: {}\n", name, entry.count, entry.help);
  }
  return text.empty() ? text : "notes:\n" + text;
}

Json span_json(const SpanSummary& span) {
  return {{"count", span.count},          {"mean_ns", to_ns(span.mean)},
          {"p50_ns", to_ns(span.p50)},    {"p95_ns", to_ns(span.p95)},
          {"p99_ns", to_ns(span.p99)},    {"longest_ns", to_ns(span.max)}};
}

Json job_json(const LiveJobReport& job) {
  return {{"exit_code", job.end ? Json(job.end->exit_code) : Json()},
          {"signal", job.end ? Json(job.end->signal) : Json()},
          {"ran_ns", to_ns(job.ran)},
          {"gated_processes", job.processes},
          {"ungated_processes", job.ungated_processes},
          {"kernels", job.kernels},
          {"collectives", job.collectives},
          {"copies", job.copies},
          {"blocks", job.blocks},
          {"undecided", job.undecided},
          {"held", job.held},
          {"held_ns", to_ns(job.held_time)},
          {"mean_hold_ns", to_ns(mean_of(job.held_time, job.held))},
          {"gate_overhead_ns", to_ns(job.passing_time)},
          {"mean_gate_overhead_ns", to_ns(mean_of(job.passing_time, passed(job)))},
          {"window_waits", job.window_waits},
          {"window_ns", to_ns(job.window_time)},
          {"completions", job.completions},
          {"completions_guessed", job.completions_guessed},
          {"iterations", job.iterations}};
}

}  // namespace

std::string fill_text(const FillReport& report, const std::string& policy,
                      const capture::LivePlan& plan) {
  TextTable table({"job", "end", "ran", "kernels", "collectives", "copies", "held",
                           "mean hold", "all holds", "undecided", "gate"},
                          {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                           Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                           Align::kRight, Align::kRight});
  add_row(table, "training", report.training);
  add_row(table, "filler", report.filler);
  std::string text =
      fmt::format("policy {}, {}\n", policy, capture::live_sharing_name(plan.sharing));
  text += table.text();
  text += "gate: mean of launches that were not held\n";
  text += report.host.decision_latency.count == 0
              ? "no launch asked for a verdict\n"
              : span_text("decision latency", report.host.decision_latency);
  text += span_text("policy's own code", report.host.policy_call);
  return text + notes_text(report, plan);
}

std::string fill_json(const FillReport& report, const std::string& policy,
                      const capture::LivePlan& plan) {
  Json notes = plan.notes;
  for (const std::string& note : report.notes) notes.push_back(note);
  Json counters = Json::object();
  for (const auto& [name, entry] : report.counters) counters[name] = entry.count;
  const Json json{{"policy", policy},
                  {"sharing", capture::live_sharing_name(plan.sharing)},
                  {"training", job_json(report.training)},
                  {"filler", job_json(report.filler)},
                  {"interrupted", report.interrupted},
                  {"filler_stopped", report.filler_stopped},
                  {"filler_killed", report.filler_killed},
                  {"policy_calls", report.host.session.calls},
                  {"holds", report.host.session.holds},
                  {"releases", report.host.session.released},
                  {"decision_latency", span_json(report.host.decision_latency)},
                  {"policy_call", span_json(report.host.policy_call)},
                  {"messages_dropped", report.host.messages_dropped},
                  {"clients_died", report.host.clients_died},
                  {"counters", counters},
                  {"fault", report.fault ? Json(report.fault->text()) : Json()},
                  {"notes", notes}};
  return compact_text(json) + "\n";
}

}  // namespace bubblesim::app
