#include "sim/model/model_file.hpp"

#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/model/model_reader.hpp"

namespace bubblesim::model {
namespace {

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
  file.id = data_file_id(path);
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
  BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_data_files(folder, "model"));
  std::vector<ModelFile> models;
  Errors errors;
  for (const std::string& file : files) {
    auto model = read_model_file(file);
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
  if (!is_file_path(name)) {
    BUBBLESIM_ASSIGN_OR_RETURN(const auto files, list_data_files(folder, "model"));
    BUBBLESIM_ASSIGN_OR_RETURN(path, pick_data_file(name, files, folder, "model"));
  }
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  return std::move(file.spec);
}

}  // namespace bubblesim::model
