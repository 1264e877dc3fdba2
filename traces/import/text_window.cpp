#include "traces/import/text_window.hpp"

#include <cstring>
#include <utility>

namespace bubblesim::traces {
namespace {

/// Larger blocks are up to 5 % faster, and are what the peak of memory of small traces consists of.
constexpr std::size_t kReadBytes = std::size_t{32} << 10;

}  // namespace

TextWindow::TextWindow(ByteStream& source, std::size_t limit, std::function<void()> on_block)
    : source_(source), on_block_(std::move(on_block)), buffer_(2 * kReadBytes), limit_(limit) {}

bool TextWindow::more() {
  const std::size_t held = end_ - begin_;
  if (ended_ || held >= limit_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
  }
  if (buffer_.size() - end_ < kReadBytes) buffer_.resize(2 * buffer_.size());
  const std::size_t count = source_.read(buffer_.data() + end_, kReadBytes);
  end_ += count;
  if (count == 0) ended_ = true;
  if (on_block_) on_block_();
  return count > 0;
}

void TextWindow::advance(std::size_t count) {
  begin_ += count;
  offset_ += count;
}

}  // namespace bubblesim::traces
