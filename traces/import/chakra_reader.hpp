// Reads a Chakra file of either form: a stream of protobuf messages, each behind its length, or
// JSON text.
#pragma once

#include <cstddef>
#include <string_view>

#include "traces/import/chakra_node.hpp"
#include "traces/import/text_window.hpp"

namespace bubblesim::traces::chakra {

/// The protobuf stream from the window's anchor on; a longer message than `limit` ends it.
void read_stream(TextWindow& window, std::size_t limit, File& file);

/// JSON: the feeder's form, an object with "workload_graph", or the jsonizer's, one object a
/// message.
void read_json(TextWindow& window, File& file);

/// Does a JSON text begin as Chakra's do?
[[nodiscard]] bool is_chakra_json(std::string_view head);
/// Do bytes begin as a stream of GlobalMetadata and Nodes does?
[[nodiscard]] bool is_chakra_stream(std::string_view head);

}  // namespace bubblesim::traces::chakra
