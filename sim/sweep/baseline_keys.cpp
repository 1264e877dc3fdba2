#include "sim/sweep/baseline_keys.hpp"

#include <functional>
#include <string>
#include <utility>

#include "sim/base/json.hpp"
#include "sim/sweep/config_edit.hpp"
#include "sim/sweep/named_files.hpp"
#include "sim/sweep/run_key.hpp"

namespace bubblesim::sweep {
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
