#include "sim/model/model_file.hpp"

#include <utility>

#include "sim/base/data_file.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/model/model_reader.hpp"

namespace bubblesim::model {

CheckedResult<ModelFile> read_model_file(const std::string& path) {
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_whole_file(path, read_model));
  file.id = data_file_id(path);
  file.path = path;
  return file;
}

CheckedResult<ModelFile> parse_model(std::string_view text, std::string label) {
  BUBBLESIM_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(text, label));
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_whole(document, read_model));
  file.id = std::move(label);
  return file;
}

CheckedResult<std::vector<ModelFile>> read_model_folder(const std::string& folder) {
  return read_data_folder(folder, "model", read_model_file);
}

CheckedResult<ModelSpec> find_model(std::string_view name, const std::string& folder) {
  BUBBLESIM_ASSIGN_OR_RETURN(const std::string path, find_data_file(name, folder, "model"));
  BUBBLESIM_ASSIGN_OR_RETURN(ModelFile file, read_model_file(path));
  return std::move(file.spec);
}

}  // namespace bubblesim::model
