#include <filesystem>
#include <system_error>

#include "sim/base/input_file.hpp"
#include "sim/base/json_object.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_tree.hpp"

namespace bubblesim {
namespace {

Result<std::string> read_bytes(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) return fail(path, {}, "no such file");
  if (!std::filesystem::is_regular_file(status)) {
    return fail(path, {}, "not a regular file; expected a JSON file");
  }
  const auto size = std::filesystem::file_size(path, code);
  if (code) return fail(path, {}, "cannot be read: " + code.message());
  if (size > kMaxJsonFileBytes) {
    return fail(path, {}, "found " + std::to_string(size) + " bytes; expected at most " +
                              std::to_string(kMaxJsonFileBytes));
  }
  return read_text_file(path);
}

// The place of the file's schema, for editors.
void declare_schema_key(json_detail::ObjectState& root) {
  root.declared.emplace(json_detail::kSchemaKey);
  const auto* node = root.object == nullptr ? nullptr : root.object->find(json_detail::kSchemaKey);
  if (node == nullptr || json_detail::kind_of(*node) == JsonKind::kText) return;
  json_detail::add_fault(*root.errors, root.tree->file,
                         json_detail::pointer_part(json_detail::kSchemaKey),
                         "found " + json_detail::describe(*node) + "; expected text");
}

void report_duplicates(const json_detail::Tree& tree, Errors& errors) {
  for (const Error& duplicate : tree.duplicate_keys) {
    json_detail::add_fault(errors, duplicate.file, duplicate.place, duplicate.message);
  }
}

}  // namespace

JsonDocument::JsonDocument(std::unique_ptr<json_detail::Tree> tree) : tree_(std::move(tree)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

CheckedResult<JsonDocument> JsonDocument::load_file(const std::string& path) {
  const Result<std::string> text = read_bytes(path);
  if (!text) return tl::make_unexpected(text.error());
  return parse(*text, path);
}

CheckedResult<JsonDocument> JsonDocument::parse(std::string_view text, std::string file_label) {
  BUBBLESIM_ASSIGN_OR_RETURN(auto tree, json_detail::parse_tree(text, std::move(file_label)));
  return JsonDocument(std::make_unique<json_detail::Tree>(std::move(tree)));
}

const std::string& JsonDocument::file() const { return tree_->file; }

void JsonDocument::record(ReadRecorder& recorder) { tree_->recorder = &recorder; }

ObjectReader JsonDocument::root(Errors& errors) const {
  report_duplicates(*tree_, errors);
  auto state = std::make_shared<json_detail::ObjectState>();
  state->tree = tree_.get();
  state->errors = &errors;
  state->object = std::get_if<json_detail::Object>(&tree_->root.value);
  if (state->object == nullptr) {
    json_detail::add_fault(errors, tree_->file, {},
                           "found " + json_detail::describe(tree_->root) +
                               "; expected an object");
  }
  declare_schema_key(*state);
  return ObjectReader(std::move(state));
}

std::vector<ObjectReader> JsonDocument::roots(Errors& errors) const {
  const auto* list = std::get_if<json_detail::List>(&tree_->root.value);
  if (list == nullptr) return {root(errors)};
  report_duplicates(*tree_, errors);
  std::vector<ObjectReader> out;
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto state = std::make_shared<json_detail::ObjectState>();
    state->tree = tree_.get();
    state->errors = &errors;
    state->pointer = "/" + std::to_string(i);
    state->object = std::get_if<json_detail::Object>(&(*list)[i].value);
    if (state->object != nullptr) {
      out.push_back(ObjectReader(std::move(state)));
      continue;
    }
    json_detail::add_fault(errors, tree_->file, state->pointer,
                           "found " + json_detail::describe((*list)[i]) +
                               "; expected an object");
  }
  return out;
}

}  // namespace bubblesim
