// The choice of a library; BUBBLESIM_HAS_ISAL comes from the CMakeLists.txt beside this file.
#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <zlib.h>

#include "sim/base/gzip_inflater.hpp"

namespace bubblesim {

std::span<const GzipLibrary> gzip_libraries() {
  static constexpr std::array kLibraries{
#ifdef BUBBLESIM_HAS_ISAL
      GzipLibrary{"ISA-L", make_isal_inflater},
#endif
      GzipLibrary{"zlib", make_zlib_inflater},
  };
  return kLibraries;
}

namespace {

uInt zlib_size(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

class ZlibInflater final : public GzipInflater {
 public:
  ZlibInflater() {
    // 15: the largest window; +16: gzip framing only.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~ZlibInflater() override { inflateEnd(&stream_); }

  void start_member() override { inflateReset(&stream_); }

  Step step(std::string_view input, std::span<char> output) override {
    const uInt given = zlib_size(input.size());
    const uInt room = zlib_size(output.size());
    // zlib's interface is not const; it writes to the output only.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = room;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    return {given - stream_.avail_in, room - stream_.avail_out, status_of(code)};
  }

 private:
  static Status status_of(int code) {
    if (code == Z_STREAM_END) return Status::kMemberEnd;
    // Z_BUF_ERROR: nothing to be done with this input and room.
    return code == Z_OK || code == Z_BUF_ERROR ? Status::kOpen : Status::kDamaged;
  }

  z_stream stream_{};
};

}  // namespace

std::unique_ptr<GzipInflater> make_zlib_inflater() { return std::make_unique<ZlibInflater>(); }

}  // namespace bubblesim
