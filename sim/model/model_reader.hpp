// The inside of model_file.hpp: a model from an object of a document.
#pragma once

#include "sim/base/json_reader.hpp"
#include "sim/model/model_file.hpp"

namespace bubblesim::model {

/// Everything of a file but its id and path; faults go to the reader's Errors.
[[nodiscard]] ModelFile read_model(ObjectReader& root);

}  // namespace bubblesim::model
