#include "sim/run/run_config.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "sim/base/nearest.hpp"
#include "sim/base/units.hpp"
#include "sim/run/run_config_parts.hpp"

namespace bubblesim::run {

using config_detail::FileCheck;
using config_detail::ReadContext;

namespace config_detail {

std::string resolve(const ReadContext& context, ObjectReader& reader, std::string_view place,
                    const std::string& path) {
  const bool unprintable = std::any_of(path.begin(), path.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20;
  });
  if (path.empty() || unprintable) {
    reader.fault(place, "found " + quote_found(path) + "; expected the path of a file");
    return {};
  }
  const std::string full = (context.folder / path).lexically_normal().string();
  std::error_code error;
  if (context.files == FileCheck::kMustExist && !std::filesystem::exists(full, error)) {
    reader.fault(place, "found " + quote_found(path) + "; there is no file or folder " + full);
  }
  return full;
}

std::string read_path(const ReadContext& context, ObjectReader& reader, std::string_view key) {
  if (reader.kind(key) != JsonKind::kText) return reader.text(key);  // reports absence and kind
  return resolve(context, reader, key, reader.text(key));
}

std::string read_name(ObjectReader& reader, std::string_view key) {
  std::string name = reader.text(key);
  if (reader.kind(key) == JsonKind::kText && name.empty()) {
    reader.fault(key, "found an empty text; expected a name");
  }
  return name;
}

}  // namespace config_detail

namespace {

using config_detail::kPositiveBytes;
using config_detail::kPositiveSpan;
using config_detail::kSpan;

constexpr std::uint32_t kMostRanks = 1U << 20;
constexpr Duration kLongestPeriod = std::chrono::seconds{10};
constexpr std::uint64_t kMostIterations = std::uint64_t{1} << 40;

std::vector<std::string> read_traces(const ReadContext& context, ObjectReader& training) {
  if (training.kind("trace") != JsonKind::kList) {
    return {config_detail::read_path(context, training, "trace")};
  }
  std::vector<std::string> paths;
  std::set<std::string> seen;
  for (const std::string& path : training.texts("trace")) {
    paths.push_back(config_detail::resolve(context, training, "trace", path));
    if (!seen.insert(paths.back()).second) {
      training.fault("trace", "found " + quote_found(path) + " twice; expected it once");
    }
  }
  if (training.raw("trace") == "[]") {
    training.fault("trace", "found an empty list; expected at least one trace");
  }
  return paths;
}

constexpr std::array<Choice<LinkFault::Kind>, 4> kLinkKinds{{
    {"port", LinkFault::Kind::kPort}, {"nic", LinkFault::Kind::kNic},
    {"leaf", LinkFault::Kind::kLeaf}, {"region", LinkFault::Kind::kRegion}}};

/// "from" and "until" of what is slow for a while.
template <class Slow>
void read_span(ObjectReader& reader, Slow& slow) {
  slow.from = reader.duration("from", kSpan, Duration::zero());
  if (!reader.has("until")) return;
  slow.until = reader.duration("until", kPositiveSpan);
  if (*slow.until <= slow.from) {
    reader.fault("until", "is not after \"from\"; expected a later instant");
  }
}

std::vector<LinkFault> read_slow_links(ObjectReader& training) {
  std::vector<LinkFault> faults;
  for (ObjectReader& reader : training.children("slow_links", Presence::kOptional)) {
    LinkFault& fault = faults.emplace_back();
    fault.kind = reader.choice("link", kLinkKinds);
    fault.gpu = reader.integer<std::uint32_t>("gpu", {0, kMostRanks - 1});
    fault.slowdown = reader.number("slowdown", {1, 1000});
    read_span(reader, fault);
  }
  if (!faults.empty() && !training.has("synth")) {
    training.fault("slow_links", "found links of a recorded job, of which nothing is known; "
                                 "expected \"synth\"");
  }
  return faults;
}

std::vector<Straggler> read_stragglers(ObjectReader& training) {
  std::vector<Straggler> stragglers;
  std::set<std::uint32_t> seen;
  for (ObjectReader& reader : training.children("stragglers", Presence::kOptional)) {
    Straggler straggler;
    straggler.rank = reader.integer<std::uint32_t>("rank", {0, kMostRanks - 1});
    straggler.slowdown = reader.number("slowdown", {0.01, 1000});
    read_span(reader, straggler);
    if (!seen.insert(straggler.rank).second && reader.kind("rank") == JsonKind::kNumber) {
      reader.fault("rank", "rank " + std::to_string(straggler.rank) +
                               " is a straggler already; expected each rank once");
    }
    stragglers.push_back(straggler);
  }
  return stragglers;
}

std::vector<JobFault> read_faults(ObjectReader& training) {
  std::vector<JobFault> faults;
  for (ObjectReader& reader : training.children("faults", Presence::kOptional)) {
    JobFault fault;
    fault.at = reader.duration("at", kSpan);
    fault.detection = reader.duration("detection", kSpan);
    fault.restart = reader.duration("restart", kSpan);
    if (!faults.empty() && fault.at < faults.back().end()) {
      reader.fault("at", "is before the job goes on after the fault before it; expected " +
                             format_duration(faults.back().end()) + " or later");
    }
    faults.push_back(fault);
  }
  return faults;
}

/// Exactly one of "trace" and "synth".
void read_job(const ReadContext& context, ObjectReader& training, TrainingConfig& config) {
  training.one_of({"trace", "synth"});
  if (training.has("trace")) {
    config.traces = read_traces(context, training);
    config.host_speed = training.number("host_speed", config_detail::kHostSpeed, 1);
    config.cluster = config_detail::read_optional_id(context, training, "cluster");
  }
  if (training.has("synth")) {
    config.synth = config_detail::read_synth(context, training.child("synth"));
  }
}

traces::IterationChoice read_choice(ObjectReader& training) {
  const std::string text = training.text("use_iterations", "settled");
  auto choice = traces::parse_iteration_choice(text);
  if (choice) return *choice;
  training.fault("use_iterations", choice.error().message);
  return {};
}

TrainingConfig read_training(const ReadContext& context, ObjectReader training) {
  TrainingConfig config;
  read_job(context, training, config);
  config.iterations = read_choice(training);
  if (training.has("memory")) config.memory = training.bytes("memory", kPositiveBytes);
  if (training.has("samples_per_iteration")) {
    config.samples_per_iteration = training.number("samples_per_iteration", {1e-6, 1e12});
  }
  config.jitter_cv = training.number("jitter_cv", {0, 10}, 0);
  config.stragglers = read_stragglers(training);
  config.slow_links = read_slow_links(training);
  config.faults = read_faults(training);
  if (training.has("checkpoint_every")) {
    config.checkpoint_every =
        training.integer<std::uint64_t>("checkpoint_every", {1, kMostIterations});
  }
  return config;
}

/// "precision", of a run whose length is "auto".
PrecisionGoal read_precision(ObjectReader reader) {
  constexpr Range<double> kShare{0.0001, 0.5};
  PrecisionGoal goal;
  goal.training = reader.number("training", kShare, goal.training);
  goal.fillers = reader.number("fillers", kShare, goal.fillers);
  goal.latency = reader.number("latency", kShare, goal.latency);
  goal.confidence = reader.number("confidence", {0.5, 0.999}, goal.confidence);
  goal.least = reader.duration("least", kPositiveSpan, goal.least);
  goal.most = reader.duration("most", kPositiveSpan, goal.most);
  if (goal.most < goal.least) {
    reader.fault("most", "the longest window is shorter than the shortest; expected \"least\" (" +
                             format_duration(goal.least) + ") or more");
  }
  return goal;
}

/// A span, or "auto": then the run lasts as long as its precision asks for.
void read_duration(ObjectReader& root, RunConfig& config) {
  const std::string found = root.raw("duration");
  const bool word = root.kind("duration") == JsonKind::kText &&
                    found.find_first_of("0123456789") == std::string::npos;
  if (!word) {
    config.duration = root.duration("duration", kPositiveSpan);
    if (root.has("precision")) {
      root.fault("precision", "the run's length is given; expected \"duration\": \"auto\" with it");
    }
    return;
  }
  (void)root.choice("duration", std::array<std::string_view, 1>{"auto"});
  config.precision = read_precision(root.child("precision", Presence::kOptional));
  config.warmup = root.duration("warmup", kSpan, kAutoWarmup);
  config.duration = config.warmup + config.precision->most;
}

/// Exactly one of "duration" and "iterations".
void read_length(ObjectReader& root, RunConfig& config) {
  root.one_of({"duration", "iterations"});
  if (root.has("duration")) read_duration(root, config);
  if (root.has("iterations")) {
    config.iterations = root.integer<std::uint64_t>("iterations", {1, kMostIterations});
  }
  if (config.precision) return;
  config.warmup = root.duration("warmup", kSpan, Duration::zero());
  if (config.duration && root.kind("duration") == JsonKind::kText &&
      config.warmup >= *config.duration) {
    root.fault("warmup", "the warm-up leaves nothing to measure; expected less than \"duration\"");
  }
}

std::optional<PowerConfig> read_power(ObjectReader& root) {
  ObjectReader reader = root.child("power", Presence::kOptional);
  if (!reader.present()) return std::nullopt;
  // The device says what its clocks and watts may be: load_training.cpp checks them.
  PowerConfig power;
  if (reader.has("clock_mhz")) power.clock_mhz = reader.number("clock_mhz", {});
  if (reader.has("cap_w")) power.cap_w = reader.number("cap_w", {});
  if (reader.has("node_cap_w")) power.node_cap_w = reader.number("node_cap_w", {});
  power.period = reader.duration("period", {std::chrono::microseconds{100}, kLongestPeriod},
                                 std::chrono::milliseconds{10});
  return power;
}

std::optional<policy::GateCosts> read_gate(ObjectReader& root) {
  ObjectReader reader = root.child("gate", Presence::kOptional);
  if (!reader.present()) return std::nullopt;
  constexpr Range<Duration> kCost{Duration::zero(), std::chrono::milliseconds{1}};
  constexpr Range<Duration> kSpin{Duration::zero(), std::chrono::seconds{1}};
  const policy::GateSleep sleep{
      .spin = reader.duration("spin", kSpin, std::chrono::microseconds{50}),
      .wake = reader.duration("wake", kCost, Duration::zero())};
  return policy::GateCosts{.ask = reader.duration("ask", kCost),
                           .tell = reader.duration("tell", kCost),
                           .sleep = sleep,
                           .always = reader.flag("always", false)};
}

std::vector<FillerConfig> read_fillers(const ReadContext& context, ObjectReader& root) {
  std::vector<FillerConfig> fillers;
  std::map<std::string, std::string> pointers;
  for (ObjectReader& reader : root.children("fillers", Presence::kOptional)) {
    fillers.push_back(config_detail::read_filler(context, reader));
    const std::string& name = fillers.back().name;
    if (name.empty()) continue;
    const auto [first, fresh] = pointers.try_emplace(name, reader.pointer());
    if (!fresh) {
      reader.fault("name", "found " + quote_found(name) + ", the name of " + first->second +
                               " too; expected a name of its own");
    }
  }
  return fillers;
}

/// Fill jobs are done once: no figure of theirs settles.
void check_ends(ObjectReader& root, const RunConfig& config) {
  const bool jobs = std::ranges::any_of(config.fillers, [](const FillerConfig& filler) {
    return filler.mode == observe::FillerMode::kJobs;
  });
  if (jobs && config.precision) {
    root.fault("duration", "found \"auto\" with a filler of mode \"jobs\", whose jobs are done "
                           "once; expected a span");
  }
}

/// "0 to 3, 6": numbers, ascending.
std::string runs_of(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < numbers.size() && numbers[i + 1] == numbers[i] + 1) ++i;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[first]);
    if (i > first) text += " to " + std::to_string(numbers[i]);
  }
  return text;
}

CheckedResult<RunConfig> read(const JsonDocument& document, const std::string& path,
                              const policy::Registry& registry, FileCheck files) {
  Errors errors;
  const ReadContext context{std::filesystem::path(path).parent_path(), files};
  ObjectReader root = document.root(errors);
  RunConfig config;
  config.file = path;
  config.name = config_detail::read_name(root, "name");
  config.seed = root.integer<std::uint64_t>("seed", {}, 1);
  if (root.has("device")) config.device = config_detail::read_name(root, "device");
  read_length(root, config);
  config.power = read_power(root);
  config.gate = read_gate(root);
  config.training = read_training(context, root.child("training"));
  config.fillers = read_fillers(context, root);
  check_ends(root, config);
  config.policies = config_detail::read_policies(root, path, registry, errors);
  (void)root.child("outputs", Presence::kOptional);
  root.finish();
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return config;
}

}  // namespace

CheckedResult<RunConfig> read_run_config(const std::string& path,
                                         const policy::Registry& registry) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  return read(document, path, registry, FileCheck::kMustExist);
}

CheckedResult<RunConfig> parse_run_config(const std::string& text, const std::string& path,
                                          const policy::Registry& registry) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, path));
  return parse_run_config(document, path, registry);
}

CheckedResult<RunConfig> parse_run_config(const JsonDocument& document, const std::string& path,
                                          const policy::Registry& registry) {
  return read(document, path, registry, FileCheck::kNone);
}

Errors check_ranks(const RunConfig& config, const std::vector<std::uint32_t>& ranks) {
  Errors errors;
  // In a synthesised job one rank stands for all that behave alike.
  std::string known = config.training.synth ? "simulated are " : "the job has ";
  known += (ranks.size() == 1 ? "rank " : "ranks ") + runs_of(ranks);
  if (const std::size_t last = ranks.size() - 1; ranks.back() != last) {
    known += last == 0 ? ", on GPU 0" : ", on GPUs 0 to " + std::to_string(last);
  }
  const auto report = [&](std::uint32_t found, std::string place, const std::string& what) {
    errors.push_back({config.file, std::move(place),
                      "found " + what + " " + std::to_string(found) + "; " + known});
  };
  const auto& stragglers = config.training.stragglers;
  for (std::size_t i = 0; i < stragglers.size(); ++i) {
    if (std::binary_search(ranks.begin(), ranks.end(), stragglers[i].rank)) continue;
    report(stragglers[i].rank, "/training/stragglers/" + std::to_string(i) + "/rank", "rank");
  }
  for (std::size_t i = 0; i < config.fillers.size(); ++i) {
    const std::string filler = "/fillers/" + std::to_string(i);
    const FillerConfig& found = config.fillers[i];
    const std::size_t gpus = found.gpus ? found.gpus->size() : ranks.size();
    if (found.instances && *found.instances > gpus) {
      errors.push_back({config.file, filler + "/instances",
                        "found " + std::to_string(*found.instances) + " instances for " +
                            std::to_string(gpus) + " GPUs; expected that many or fewer"});
    }
    if (const std::uint32_t server_gpus = gpus_of_server(found); gpus % server_gpus != 0) {
      errors.push_back({config.file, filler + "/program/engine/" + *key_with_links(found),
                        "found servers over " + std::to_string(server_gpus) + " GPUs on " +
                            std::to_string(gpus) + "; expected a divisor of that"});
    }
    if (!found.gpus) continue;
    for (const std::uint32_t gpu : *config.fillers[i].gpus) {
      if (gpu >= ranks.size()) report(gpu, filler + "/gpus", "GPU");
    }
  }
  return errors;
}

}  // namespace bubblesim::run
