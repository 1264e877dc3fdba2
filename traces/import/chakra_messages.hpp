// The protobuf form of Chakra traces: one message's bytes to what it says.
#pragma once

#include <string_view>

#include "traces/import/chakra_node.hpp"

namespace bubblesim::traces::chakra {

/// Adds a Node message to `file`. False: the bytes are not one.
[[nodiscard]] bool read_node_message(std::string_view bytes, File& file);

/// Takes a GlobalMetadata message. False: the bytes are not one.
[[nodiscard]] bool read_metadata_message(std::string_view bytes, File& file);

}  // namespace bubblesim::traces::chakra
