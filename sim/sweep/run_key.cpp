#include "sim/sweep/run_key.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/config_edit.hpp"
#include "sim/synth/find_inference.hpp"
#include "sim/synth/plan_spec.hpp"

namespace bubblesim::sweep {
namespace {

using KeyKind = std::pair<const char*, NamedKind>;

Json* member(Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// The texts at `keys`; a list of texts counts as each of them.
void visit_keys(Json& object, const std::string& pointer, std::initializer_list<KeyKind> keys,
                const NameVisitor& visit) {
  for (const auto& [key, kind] : keys) {
    Json* value = member(object, key);
    if (value == nullptr) continue;
    const std::string place = pointer + "/" + key;
    if (value->is_string()) visit(*value, kind, place);
    if (!value->is_array()) continue;
    for (std::size_t i = 0; i < value->size(); ++i) {
      if ((*value)[i].is_string()) visit((*value)[i], kind, place + "/" + std::to_string(i));
    }
  }
}

void visit_job(Json& job, const std::string& pointer, const NameVisitor& visit) {
  visit_keys(job, pointer,
             {{"model", NamedKind::kModel},
              {"plan", NamedKind::kPlan},
              {"cluster", NamedKind::kCluster},
              {"software", NamedKind::kSoftware}},
             visit);
  Json* plan = member(job, "plan");
  if (plan != nullptr && plan->is_object()) each_name_of_plan(*plan, pointer + "/plan", visit);
}

void visit_filler(Json& filler, const std::string& pointer, const NameVisitor& visit) {
  if (Json* program = member(filler, "program")) {
    const std::string place = pointer + "/program";
    visit_keys(*program, place,
               {{"trace", NamedKind::kFile},
                {"kernel_table", NamedKind::kFile},
                {"model", NamedKind::kModel},
                {"software", NamedKind::kSoftware},
                {"efficiency", NamedKind::kEfficiency}},
               visit);
    if (Json* speculation = member(*program, "speculation")) {
      visit_keys(*speculation, place + "/speculation", {{"draft", NamedKind::kModel}}, visit);
    }
    if (Json* engine = member(*program, "engine")) {
      visit_keys(*engine, place + "/engine",
                 {{"layers", NamedKind::kFile}, {"steps", NamedKind::kFile}}, visit);
      if (Json* drafts = member(*engine, "speculation")) {
        visit_keys(*drafts, place + "/engine/speculation",
                   {{"draft", NamedKind::kModel}, {"accepted_file", NamedKind::kFile}}, visit);
      }
    }
    if (Json* requests = member(*program, "requests")) {
      visit_keys(*requests, place + "/requests", {{"path", NamedKind::kFile}}, visit);
    }
    if (Json* train = member(*program, "train")) visit_job(*train, place + "/train", visit);
  }
  if (Json* arrivals = member(filler, "arrivals")) {
    visit_keys(*arrivals, pointer + "/arrivals", {{"path", NamedKind::kFile}}, visit);
  }
}

}  // namespace

void each_name(Json& run_config, const NameVisitor& visit) {
  visit_keys(run_config, "", {{"device", NamedKind::kDevice}}, visit);
  if (Json* training = member(run_config, "training")) {
    visit_keys(*training, "/training",
               {{"trace", NamedKind::kFile}, {"cluster", NamedKind::kCluster}}, visit);
    if (Json* job = member(*training, "synth")) visit_job(*job, "/training/synth", visit);
  }
  Json* fillers = member(run_config, "fillers");
  if (fillers == nullptr || !fillers->is_array()) return;
  for (std::size_t i = 0; i < fillers->size(); ++i) {
    visit_filler((*fillers)[i], "/fillers/" + std::to_string(i), visit);
  }
}

void each_name_of_plan(Json& plan, const std::string& pointer, const NameVisitor& visit) {
  visit_keys(plan, pointer,
             {{"software", NamedKind::kSoftware}, {"schedule_csv", NamedKind::kFile}}, visit);
  if (Json* routing = member(plan, "routing")) {
    visit_keys(*routing, pointer + "/routing", {{"shares", NamedKind::kFile}}, visit);
  }
}

void each_name_of_cluster(Json& cluster, const NameVisitor& visit) {
  if (Json* device = member(cluster, "device")) {
    visit_keys(*device, "/device", {{"value", NamedKind::kDevice}}, visit);
  }
}

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

// Of the form of keys and of what they are made of: another one makes all keys new.
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
    if (plan) {
      each_name_of_plan(file, {}, visit);
    } else {
      each_name_of_cluster(file, visit);
    }
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
  // Of a locked clock.
  keys.bubbles = hash_text(job_text(config) + '\n' + text_at(config, "/power"));
  return keys;
}

CheckedResult<run::BaselineKeys> baseline_keys_now(std::string_view config,
                                                   const std::string& folder,
                                                   const std::string& configs) {
  Json json = Json::parse(config, nullptr, false);
  if (!json.is_object()) return tl::unexpected<Errors>(Errors{{{}, {}, "is no JSON object"}});
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
