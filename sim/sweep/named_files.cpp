#include "sim/sweep/named_files.hpp"

#include <filesystem>
#include <initializer_list>
#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json.hpp"

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

}  // namespace bubblesim::sweep
