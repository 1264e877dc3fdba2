// The protobuf form of Chakra traces: one message's bytes to what it says.
#pragma once

#include <memory>
#include <string_view>

#include "traces/import/chakra_node.hpp"

namespace bubblesim::chakra_et {
class Node;
}

namespace bubblesim::traces::chakra {

/// Reads Node messages, one after another, into the same memory.
class NodeMessageReader {
 public:
  NodeMessageReader();
  ~NodeMessageReader();
  NodeMessageReader(const NodeMessageReader&) = delete;
  NodeMessageReader& operator=(const NodeMessageReader&) = delete;

  /// Adds a message to `file`. False: the bytes are not one.
  [[nodiscard]] bool read(std::string_view bytes, File& file);

 private:
  std::unique_ptr<chakra_et::Node> message_;
};

/// Takes a GlobalMetadata message. False: the bytes are not one.
[[nodiscard]] bool read_metadata_message(std::string_view bytes, File& file);

}  // namespace bubblesim::traces::chakra
