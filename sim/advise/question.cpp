#include "sim/advise/question.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"
#include "sim/run/lone_rank.hpp"
#include "sim/run/run_config.hpp"
#include "sim/sweep/run_key.hpp"
#include "sim/sweep/sweep_axes.hpp"

namespace bubblesim::advise {
namespace {

constexpr Range<double> kKeep{0.01, 1};
constexpr Range<Duration> kLatency{std::chrono::microseconds(1), std::chrono::hours(1)};
constexpr Range<Duration> kBudget{std::chrono::milliseconds(10), std::chrono::hours(24)};
constexpr std::array<Choice<Load>, 2> kLoads{
    {{"searched", Load::kSearched}, {"as_given", Load::kAsGiven}}};

void read_system(ObjectReader& root, Question& question) {
  const auto features = [&root, &question](const char* key) {
    std::vector<policy::SystemFeature> found;
    Errors faults;
    found = read_features(root.texts(key), {question.file, root.pointer(key), {}}, faults);
    for (const Error& fault : faults) root.fault(key, fault.message);
    return found;
  };
  if (root.has("can")) question.system.can = features("can");
  if (root.has("cannot")) question.system.cannot = features("cannot");
  if (root.has("policies")) question.system.policies = root.texts("policies");
}

TokenLatency read_slo_object(ObjectReader slo) {
  TokenLatency limits;
  if (slo.has("ttft")) limits.ttft = slo.duration("ttft", kLatency);
  if (slo.has("tpot")) limits.tpot = slo.duration("tpot", kLatency);
  return limits;
}

Question read_root(ObjectReader& root, const std::string& file) {
  Question question;
  question.file = file;
  question.name = sweep::read_title(root);
  question.base = sweep::read_base(root, file);
  question.limits.keep = root.number("keep", kKeep, Limits{}.keep);
  if (root.has("p95")) question.limits.p95 = root.duration("p95", kLatency);
  question.limits.slo = read_slo_object(root.child("slo", Presence::kOptional));
  read_system(root, question);
  question.load = root.choice("load", kLoads, Load::kSearched);
  for (ObjectReader& axis : root.children("axes", Presence::kOptional)) {
    question.axes.push_back(sweep::read_axis(axis));
  }
  question.budget = root.duration("budget", kBudget, kDefaultBudget);
  return question;
}

/// A run config where a question is expected: its job and its policies stand at the root.
bool is_run_config(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() && !json.contains("base") && json.contains("training");
}

// What a search chooses or varies by itself.
Errors check_places(const Question& question) {
  Errors faults;
  for (const sweep::SweepAxis& axis : question.axes) {
    for (const char* own : {"/policies", "/duration", "/iterations", "/warmup", "/seed", "/name",
                            "/training/stragglers"}) {
      if (!axis.pointer.starts_with(own)) continue;
      faults.push_back({question.file, "/axes",
                        "found an axis of " + axis.pointer +
                            ", which is chosen without one; expected another place of the base"});
    }
  }
  return faults;
}

bool has_online(const Json& base) {
  const Json* fillers = sweep::find_value(base, "/fillers");
  if (fillers == nullptr || !fillers->is_array()) return false;
  return std::ranges::any_of(*fillers, [](const Json& filler) {
    return sweep::text_at(filler, "/mode") == "\"online\"";
  });
}

}  // namespace

bool SystemChoice::has(policy::SystemFeature feature) const {
  if (std::ranges::find(cannot, feature) != cannot.end()) return false;
  return !can || std::ranges::find(*can, feature) != can->end();
}

std::vector<policy::SystemFeature> read_features(const std::vector<std::string>& words,
                                                 const Error& place, Errors& faults) {
  std::vector<policy::SystemFeature> features;
  for (const std::string& word : words) {
    if (const auto feature = policy::find_feature(word)) {
      features.push_back(*feature);
    } else {
      faults.push_back({place.file, place.place, feature.error().message});
    }
  }
  return features;
}

Limits with_latencies_scaled(Limits limits, double part) {
  for (std::optional<Duration>* latency : {&limits.p95, &limits.slo.ttft, &limits.slo.tpot}) {
    if (*latency) *latency = scale(**latency, part);
  }
  return limits;
}

namespace {

/// What the policy always demands and the system is said to lack.
std::string always_lacking(const policy::PolicySpec& spec, const SystemChoice& system) {
  std::string lacking;
  for (const policy::SystemDemand& demand : spec.demands) {
    if (!demand.parameter.empty() || system.has(demand.feature)) continue;
    lacking += (lacking.empty() ? "" : ", ") + std::string(policy::feature_word(demand.feature));
  }
  return lacking;
}

}  // namespace

Errors check_question(const Question& question, const policy::Registry& registry) {
  Errors faults = check_places(question);
  const SystemChoice& system = question.system;
  if (question.load_share > 1) {
    faults.push_back({question.file, "/load",
                      fmt::format("found {:g}, and 1 is all that the service serves with its GPUs "
                                  "to itself; expected at most 1", *question.load_share)});
  }
  for (const policy::SystemFeature feature : system.can.value_or(system.cannot)) {
    if (!system.can || system.has(feature)) continue;
    faults.push_back({question.file, "/cannot",
                      "found \"" + std::string(policy::feature_word(feature)) +
                          "\", which \"can\" has too; expected it in one of them"});
  }
  std::vector<run::PolicyChoice> tried;  // parameters are searched
  for (const std::string& name : system.policies) {
    tried.push_back({name, {}});
    const auto spec = registry.find(name);
    if (!spec) {
      faults.push_back({question.file, "/policies", spec.error().message});
    } else if ((*spec)->oracle) {
      faults.push_back({question.file, "/policies",
                        "found \"" + name + "\", an oracle, which no system can have; it is "
                        "simulated as a bound anyway"});
    } else if (const std::string lacking = always_lacking(**spec, system); !lacking.empty()) {
      faults.push_back({question.file, "/policies",
                        "found \"" + name + "\", which demands " + lacking +
                            ", and the system is said not to have that; expected it among \"can\" "
                            "(and not among \"cannot\"), or no such policy"});
    }
  }
  faults.add(run::repeated_policies(tried, question.file, "/policies"));
  return faults;
}

CheckedResult<Question> parse_question(const JsonDocument& document,
                                       const policy::Registry& registry) {
  Errors errors;
  ObjectReader root = document.root(errors);
  Question question = read_root(root, document.file());
  root.finish();
  if (errors.empty()) errors.add(check_question(question, registry));
  if (!errors.empty()) return tl::unexpected<Errors>(std::move(errors));
  return question;
}

namespace {

CheckedResult<Question> read_document(const JsonDocument& document,
                                      const policy::Registry& registry) {
  const std::string& path = document.file();
  BUBBLESIM_ASSIGN_OR_RETURN(Question question, parse_question(document, registry));
  BUBBLESIM_ASSIGN_OR_RETURN(Json base, sweep::load_base(question.base, path));
  sweep::make_paths_absolute(base,
                             std::filesystem::path(question.base.file).parent_path().string());
  if (question.limits.p95 && !has_online(base)) {
    return fail(path, "/p95", "no filler of the base is online, and latencies are of online "
                              "fillers; expected no \"p95\", or a filler of mode \"online\"");
  }
  question.base.text = compact_text(base);
  return question;
}

CheckedResult<void> refuse_run_config(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text || !is_run_config(*text)) return {};
  return fail(path, "", "found a run config, not a question; expected a file with it as the base: "
                        "{\"name\": \"advice\", \"base\": \"" +
                            std::filesystem::path(path).filename().string() + "\"}");
}

}  // namespace

CheckedResult<Question> read_question(const std::string& path, const policy::Registry& registry) {
  BUBBLESIM_RETURN_IF_ERROR(refuse_run_config(path));
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  return read_document(document, registry);
}

CheckedResult<Question> read_question_text(const std::string& text, const std::string& path,
                                           const policy::Registry& registry) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, path));
  return read_document(document, registry);
}

namespace {

std::string gigabytes(Bytes bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes.value) * 1e-9);
}

Bytes most_free(const run::LoadedRun& loaded, const run::FillerConfig& filler) {
  Bytes most{};
  for (std::uint32_t gpu = 0; gpu < loaded.training->ranks.size(); ++gpu) {
    if (filler.gpus && std::ranges::find(*filler.gpus, gpu) == filler.gpus->end()) continue;
    const Bytes used = loaded.memory_of(gpu).value_or(Bytes{});
    most = std::max(most, Bytes{loaded.device.memory.value -
                                std::min(used, loaded.device.memory).value});
  }
  return most;
}

/// Paging takes what does not fit, if the system is said to have it.
bool may_page(const Question& question) {
  return question.system.can && question.system.has(policy::SystemFeature::kUnifiedMemory);
}

std::optional<Error> memory_fault(const Question& question, const run::LoadedRun& loaded,
                                  std::size_t filler) {
  const run::FillerConfig& config = loaded.config.fillers[filler];
  const Bytes memory = config.memory.value_or(Bytes{});
  const Bytes free = most_free(loaded, config);
  if (loaded.device.memory == Bytes{} || memory <= free || may_page(question)) return std::nullopt;
  return Error{question.base.file, "/fillers/" + std::to_string(filler) + "/memory",
               "filler " + config.name + " needs " + gigabytes(memory) +
                   ", and no GPU has more than " + gigabytes(free) +
                   " free beside training; expected at most that, or a system that pages (--can "
                   "unified_memory,...)"};
}

std::optional<Error> latency_fault(const Question& question, const run::LoadedRun& loaded,
                                   std::size_t filler) {
  const run::FillerConfig& config = loaded.config.fillers[filler];
  if (!question.limits.p95 || config.mode != observe::FillerMode::kOnline ||
      loaded.server(filler) != nullptr) {
    return std::nullopt;
  }
  const Duration pass = run::measure_pass(loaded.fillers[filler]->program, loaded.device);
  if (pass <= *question.limits.p95) return std::nullopt;
  return Error{question.file, "/p95",
               "found " + format_duration(*question.limits.p95) + ", but filler " + config.name +
                   " takes " + format_duration(pass) +
                   " for a pass with a GPU of its own; expected at least that"};
}

std::optional<Error> token_fault(const Question& question, const run::LoadedRun& loaded) {
  const TokenLatency& slo = question.limits.slo;
  if (!slo.ttft && !slo.tpot) return std::nullopt;
  for (std::size_t i = 0; i < loaded.config.fillers.size(); ++i) {
    if (loaded.server(i) != nullptr) return std::nullopt;
  }
  return Error{question.file, "/slo",
               "found limits on tokens, but no filler is a language-model server; expected a "
               "program with \"engine\", or p95, the latency of whole requests"};
}

}  // namespace

Errors check_job(const Question& question, const run::LoadedRun& loaded) {
  Errors faults;
  if (loaded.config.fillers.empty()) {
    faults.push_back({question.base.file, "/fillers", "found none; expected what may fill the "
                                                      "bubbles: at least one filler"});
  }
  if (const auto fault = token_fault(question, loaded)) faults.push_back(*fault);
  for (std::size_t i = 0; i < loaded.config.fillers.size(); ++i) {
    for (const auto& fault : {memory_fault(question, loaded, i),
                              latency_fault(question, loaded, i)}) {
      if (fault) faults.push_back(*fault);
    }
  }
  return faults;
}

}  // namespace bubblesim::advise
