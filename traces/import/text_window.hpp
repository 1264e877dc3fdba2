// A bounded view of a text that is read block by block: the text from an anchor to the end of the
// last block. Moving the anchor drops the text before it; `more()` lengthens the view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sim/base/packed_file.hpp"

namespace bubblesim::traces {

class TextWindow {
 public:
  /// `limit`: the most bytes in the view; `more()` does not exceed it.
  TextWindow(ByteStream& source, std::size_t limit, std::function<void()> on_block = {});

  /// The text from the anchor on. Valid until the next `more()`.
  [[nodiscard]] std::string_view text() const {
    return {buffer_.data() + begin_, end_ - begin_};
  }
  /// Reads another block. False: the input has ended or the view is at its limit.
  [[nodiscard]] bool more();
  /// Moves the anchor forward by `count` <= text().size().
  void advance(std::size_t count);
  /// Offset of the anchor in the unpacked input, in bytes.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  /// Whether the input has ended, so that `text()` is all that is left.
  [[nodiscard]] bool at_end() const { return ended_; }

 private:
  ByteStream& source_;
  std::function<void()> on_block_;
  std::vector<char> buffer_;
  std::size_t limit_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace bubblesim::traces
