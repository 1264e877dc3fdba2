#include "sim/sweep/run_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/data_file.hpp"
#include "sim/base/json.hpp"
#include "sim/sweep/config_edit.hpp"
#include "sim/sweep/named_files.hpp"
#include "sim/synth/inference_names.hpp"
#include "sim/synth/plan_spec.hpp"

namespace bubblesim::sweep {
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

}  // namespace bubblesim::sweep
