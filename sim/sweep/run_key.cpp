#include "sim/sweep/run_key.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "sim/base/input_file.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/sweep_config.hpp"
#include "sim/synth/plan_spec.hpp"
#include "sim/synth/server_plan.hpp"

namespace bubblesim::sweep {
namespace {

// What a run config names: traces, tables, and files of configs by path or by id. The readers of
// sim/run/run_config*.cpp have the same keys.

enum class NamedKind : std::uint8_t {
  kFile,        ///< always a path, relative to what holds it; may be a folder of traces
  kModel,       ///< these are paths, or ids of files of a folder of configs
  kPlan,
  kCluster,
  kDevice,
  kSoftware,
  kEfficiency,
};

/// Visits one text of a config, and may change it.
using NameVisitor = std::function<void(Json& text, NamedKind kind, const std::string& pointer)>;

/// Where an object names something, "/" between keys: a text, or a list of texts.
struct NamedPlace {
  std::string_view place;
  NamedKind kind;
};

constexpr NamedPlace kOfPlan[] = {{"software", NamedKind::kSoftware},
                                  {"schedule_csv", NamedKind::kFile},
                                  {"routing/shares", NamedKind::kFile}};
constexpr NamedPlace kOfCluster[] = {{"device/value", NamedKind::kDevice}};
constexpr NamedPlace kOfJob[] = {{"model", NamedKind::kModel},
                                 {"plan", NamedKind::kPlan},
                                 {"cluster", NamedKind::kCluster},
                                 {"software", NamedKind::kSoftware}};
constexpr NamedPlace kOfRun[] = {{"device", NamedKind::kDevice},
                                 {"training/trace", NamedKind::kFile},
                                 {"training/cluster", NamedKind::kCluster}};
constexpr NamedPlace kOfFiller[] = {{"program/trace", NamedKind::kFile},
                                    {"program/kernel_table", NamedKind::kFile},
                                    {"program/model", NamedKind::kModel},
                                    {"program/software", NamedKind::kSoftware},
                                    {"program/efficiency", NamedKind::kEfficiency},
                                    {"program/speculation/draft", NamedKind::kModel},
                                    {"program/engine/layers", NamedKind::kFile},
                                    {"program/engine/steps", NamedKind::kFile},
                                    {"program/engine/speculation/draft", NamedKind::kModel},
                                    {"program/engine/speculation/accepted_file", NamedKind::kFile},
                                    {"program/requests/path", NamedKind::kFile}};
constexpr NamedPlace kOfArrivals[] = {{"arrivals/path", NamedKind::kFile}};

Json* value_at(Json& object, std::string_view place) {
  const std::size_t end = place.find('/');
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(place.substr(0, end)));
  if (found == object.end()) return nullptr;
  return end == std::string_view::npos ? &*found : value_at(*found, place.substr(end + 1));
}

void visit_places(Json& object, const std::string& pointer, std::span<const NamedPlace> places,
                  const NameVisitor& visit) {
  for (const auto& [place, kind] : places) {
    Json* value = value_at(object, place);
    if (value == nullptr) continue;
    const std::string at = pointer + "/" + std::string(place);
    if (value->is_string()) visit(*value, kind, at);
    for (std::size_t i = 0; value->is_array() && i < value->size(); ++i) {
      if ((*value)[i].is_string()) visit((*value)[i], kind, at + "/" + std::to_string(i));
    }
  }
}

void visit_job(Json& object, std::string_view place, const std::string& pointer,
               const NameVisitor& visit) {
  Json* job = value_at(object, place);
  if (job == nullptr) return;
  const std::string at = pointer + "/" + std::string(place);
  visit_places(*job, at, kOfJob, visit);
  if (Json* plan = value_at(*job, "plan")) visit_places(*plan, at + "/plan", kOfPlan, visit);
}

/// All that a run config names, in its order.
void each_name(Json& run_config, const NameVisitor& visit) {
  visit_places(run_config, "", kOfRun, visit);
  visit_job(run_config, "training/synth", "", visit);
  Json* fillers = value_at(run_config, "fillers");
  for (std::size_t i = 0; fillers != nullptr && fillers->is_array() && i < fillers->size(); ++i) {
    const std::string at = "/fillers/" + std::to_string(i);
    visit_places((*fillers)[i], at, kOfFiller, visit);
    visit_job((*fillers)[i], "program/train", at, visit);
    visit_places((*fillers)[i], at, kOfArrivals, visit);
  }
}

}  // namespace

void make_paths_absolute(Json& run_config, const std::string& folder) {
  namespace fs = std::filesystem;
  each_name(run_config, [&folder](Json& text, NamedKind kind, const std::string&) {
    const auto name = text.get<std::string>();
    if (name.empty() || (kind != NamedKind::kFile && !is_file_path(name))) return;
    const fs::path from = kind == NamedKind::kDevice ? fs::path() : fs::path(folder);
    std::error_code fault;
    const fs::path full = fs::absolute(from / name, fault);
    if (!fault) text = full.lexically_normal().string();
  });
}

namespace {

namespace fs = std::filesystem;

// The form of keys and of what they are made of: a change makes all keys new.
constexpr const char* kForm = "bubblesim run 1";
/// Gathers what one config depends on.
class Content {
 public:
  Content(const std::string& configs, FileHashes& files) : configs_(configs), files_(files) {}

  CheckedResult<std::string> text(Json config) {
    config.erase("seed");
    add_defaults(config);
    each_name(config, [this](Json& text, NamedKind kind, const std::string& pointer) {
      place_ = pointer;
      follow(text, kind);
    });
    if (!faults_.empty()) return tl::unexpected<Errors>(std::move(faults_));
    std::string out = canonical_text(config);
    for (const auto& [name, hash] : parts_) out += '\n' + name + '=' + hash;
    return out;
  }

 private:
  // What is used without being named.
  void add_defaults(const Json& config) {
    const Json* training = find_value(config, "/training");
    const Json* fillers = find_value(config, "/fillers");
    bool trace = training != nullptr && training->is_object() && training->contains("trace");
    bool model = false;
    for (const Json& filler : fillers != nullptr && fillers->is_array() ? *fillers : Json()) {
      const Json* program = find_value(filler, "/program");
      if (program == nullptr || !program->is_object()) continue;
      trace = trace || program->contains("trace");
      model = model || program->contains("model") || program->contains("train");
    }
    place_ = "/training";
    // Recorded names of GPUs are looked for in all device files.
    if (trace) add_part("devices", configs_ + "/devices");
    if (trace && model) add_part("efficiency", configs_ + "/efficiency");
    if (model || (training != nullptr && training->contains("synth"))) {
      add_id("software", synth::PlanSpec{}.software);
      add_id("software", synth::InferenceNames{}.software);
    }
  }

  void follow(Json& text, NamedKind kind) {
    const auto name = text.get<std::string>();
    switch (kind) {
      case NamedKind::kFile:
        if (const auto hash = hash_at(name)) text = "content " + *hash;
        return;
      case NamedKind::kModel: add_named(text, "model", "models"); return;
      case NamedKind::kSoftware: add_named(text, "software", "software"); return;
      case NamedKind::kEfficiency: add_named(text, "efficiency", "efficiency"); return;
      case NamedKind::kPlan:
      case NamedKind::kCluster: return add_tree(text, kind);
      case NamedKind::kDevice: {
        add_named(text, "device", "devices");
        const std::string fits = configs_ + "/efficiency/" + data_file_id(name) + ".json";
        std::error_code fault;
        if (fs::exists(fits, fault)) add_part("efficiency/" + data_file_id(name), fits);
        return;
      }
    }
  }

  // A file that names others.
  void add_tree(Json& text, NamedKind kind) {
    const bool plan = kind == NamedKind::kPlan;
    const std::string path = add_named(text, plan ? "plan" : "cluster",
                                       plan ? "plans" : "clusters");
    if (path.empty() || !followed_.insert(path).second) return;
    std::ifstream stream(path, std::ios::binary);
    Json file = Json::parse(stream, nullptr, false);
    const auto visit = [this, &path](Json& inner, NamedKind named, const std::string&) {
      if (named == NamedKind::kFile) {
        inner = (fs::path(path).parent_path() / inner.get<std::string>()).string();
      }
      Json copy = inner;
      follow(copy, named);
      if (named == NamedKind::kFile) parts_["file " + path] += copy.get<std::string>();
    };
    visit_places(file, {}, plan ? std::span<const NamedPlace>(kOfPlan) : kOfCluster, visit);
  }

  // The file of a name; a path in the config gives way to its content. Empty: there is none.
  std::string add_named(Json& text, const char* what, const char* folder) {
    const auto name = text.get<std::string>();
    if (is_file_path(name)) {
      const auto hash = hash_at(name);
      if (hash) text = "content " + *hash;
      return hash ? name : std::string();
    }
    const std::string path = configs_ + "/" + folder + "/" + name + ".json";
    std::error_code fault;
    if (fs::exists(path, fault)) {
      add_part(std::string(folder) + "/" + name, path);
      return path;
    }
    const auto found = find_data_file(name, configs_ + "/" + folder, what);
    return found ? std::string() : keep({{}, place_, found.error().message});
  }

  void add_id(const std::string& folder, const std::string& id) {
    add_part(folder + "/" + id, configs_ + "/" + folder + "/" + id + ".json");
  }

  void add_part(const std::string& name, const std::string& path) {
    if (const auto hash = hash_at(path)) parts_[name] = *hash;
  }

  std::optional<std::string> hash_at(const std::string& path) {
    std::error_code fault;
    if (!fs::exists(path, fault)) {
      keep({{}, place_, "there is no file or folder " + path});
      return std::nullopt;
    }
    auto hash = files_.hash(path);
    if (hash) return *std::move(hash);
    keep(hash.error());
    return std::nullopt;
  }

  std::string keep(Error fault) {
    if (fault.place.empty()) fault.place = place_;
    faults_.push_back(std::move(fault));
    return {};
  }

  const std::string& configs_;
  FileHashes& files_;
  std::string place_;                        // pointer of what is followed
  std::map<std::string, std::string> parts_;  // by name: hashes of configs
  std::set<std::string> followed_;
  Errors faults_;
};

}  // namespace

CheckedResult<std::string> run_content(const Json& config, const std::string& configs,
                                       FileHashes& files) {
  return Content(configs, files).text(config);
}

std::string run_key(std::string_view content, std::uint64_t seed,
                    std::string_view program_version) {
  return hash_text(
      fmt::format("{}\nversion {}\nseed {}\n{}", kForm, program_version, seed, content));
}

std::string point_key(std::string_view content) {
  return hash_text(fmt::format("{}\npoint\n{}", kForm, content)).substr(0, 16);
}

namespace {

using TextOf = std::function<CheckedResult<std::string>(const Json& config)>;

CheckedResult<run::BaselineKeys> keys_of(Json config, const TextOf& text_of) {
  Json fillers = Json::array();
  if (const Json* found = find_value(config, "/fillers")) fillers = *found;
  for (const char* other : {"name", "policies", "fillers", "gate"}) config.erase(other);
  run::BaselineKeys keys;
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string training, text_of(config));
  keys.training = hash_text(training);
  for (const Json& filler : fillers) {
    config["fillers"] = Json::array({filler});
    BUBBLESIM_ASSIGN_OR_RETURN(const std::string text, text_of(config));
    keys.fillers.push_back(
        hash_text("filler " + std::to_string(keys.fillers.size()) + '\n' + text));
  }
  return keys;
}

}  // namespace

std::string job_text(const Json& config) {
  std::string text = text_at(config, "/device");
  for (const std::string_view key : kJobKeys) {
    text += '\n' + text_at(config, "/training/" + std::string(key));
  }
  return text;
}

run::BaselineKeys baseline_keys(const Json& config) {
  run::BaselineKeys keys = *keys_of(config, [](const Json& part) { return canonical_text(part); });
  // A locked clock (`power`) changes bubbles.
  keys.bubbles = hash_text(job_text(config) + '\n' + text_at(config, "/power"));
  return keys;
}

CheckedResult<run::BaselineKeys> baseline_keys_now(std::string_view config,
                                                   const std::string& folder,
                                                   const std::string& configs) {
  Json json = Json::parse(config, nullptr, false);
  if (!json.is_object()) return fail("is no JSON object");
  make_paths_absolute(json, folder);
  FileHashes files;
  BUBBLESIM_ASSIGN_OR_RETURN(
      run::BaselineKeys keys,
      keys_of(json, [&](const Json& part) -> CheckedResult<std::string> {
        BUBBLESIM_ASSIGN_OR_RETURN(std::string content,
                                   run_content(part, configs, files));
        return std::move(content) + "\nseed " + text_at(part, "/seed");
      }));
  keys.bubbles = keys.training;
  return keys;
}

}  // namespace bubblesim::sweep
