#include "sim/model/model_file.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/base/json_reader.hpp"
#include "sim/base/nearest.hpp"
#include "sim/model/model_reader.hpp"

namespace bubblesim::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".json";

tl::unexpected<Errors> fault(std::string file, std::string message) {
  return tl::make_unexpected(Errors{Error{std::move(file), {}, std::move(message)}});
}

// Paths of the folder's model files, in the order of their names.
CheckedResult<std::vector<fs::path>> list_files(const std::string& folder) {
  std::error_code code;
  fs::directory_iterator entries(folder, code);
  const auto unreadable = [&] {
    return fault(folder, "the folder of model files cannot be read: " + code.message());
  };
  if (code) return unreadable();
  std::vector<fs::path> out;
  for (; entries != fs::directory_iterator(); entries.increment(code)) {
    if (entries->path().extension() == kSuffix) out.push_back(entries->path());
    if (code) return unreadable();
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(kSuffix);
}

CheckedResult<ModelFile> read_document(const JsonDocument& document) {
  Errors errors;
  ObjectReader root = document.root(errors);
  ModelFile file = read_model(root);
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return file;
}

}  // namespace

CheckedResult<ModelFile> read_model_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load_file(path));
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_document(document));
  file.id = fs::path(path).stem().string();
  file.path = path;
  return file;
}

CheckedResult<ModelFile> parse_model(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_document(document));
  file.id = std::move(label);
  return file;
}

CheckedResult<std::vector<ModelFile>> read_model_folder(const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_files(folder));
  std::vector<ModelFile> models;
  Errors errors;
  for (const fs::path& file : files) {
    auto model = read_model_file(file.string());
    if (model) {
      models.push_back(std::move(*model));
    } else {
      errors.insert(errors.end(), model.error().begin(), model.error().end());
    }
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return models;
}

CheckedResult<ModelSpec> find_model(std::string_view name, const std::string& folder) {
  std::string path(name);
  if (!is_path(name)) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_files(folder));
    std::vector<std::string> ids;
    for (const fs::path& file : files) ids.push_back(file.stem().string());
    const auto at = std::find(ids.begin(), ids.end(), name);
    if (at == ids.end()) return fault(folder, unknown_name_message("model", name, ids));
    path = files[static_cast<std::size_t>(at - ids.begin())].string();
  }
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  return std::move(file.spec);
}

}  // namespace bubblesim::model
