// The shared object as a loader sees it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace bubblesim::capture {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::StartsWith;

/// The lines that a tool of binutils prints, cut to their last word.
std::vector<std::string> last_words(const std::string& command) {
  std::vector<std::string> words;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  char line[1024];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    std::string text = line;
    text.erase(text.find_last_not_of(" \n") + 1);
    words.push_back(text.substr(text.find_last_of(" ") + 1));
  }
  return words;
}

TEST(GateLibrary, NeedsTheCLibraryOnly) {
  const auto needed = last_words("readelf -d '" GATE_LIBRARY "' | grep NEEDED");
  if (needed.empty()) GTEST_SKIP() << "readelf: not found";
  EXPECT_THAT(needed, Each(AnyOf("[libc.so.6]", "[libm.so.6]", "[libdl.so.2]", "[libpthread.so.0]",
                                 "[librt.so.1]", StartsWith("[ld-linux"))));
}

TEST(GateLibrary, ShowsTheDriversFunctionsDlsymAndTheMarkOnly) {
  const auto shown = last_words("nm -D --defined-only '" GATE_LIBRARY "'");
  if (shown.empty()) GTEST_SKIP() << "nm: not found";
  EXPECT_THAT(shown, Each(AnyOf(StartsWith("cu"), "dlsym", "bubblesim_iteration")));
  EXPECT_THAT(shown, testing::IsSupersetOf({"dlsym", "cuGetProcAddress", "cuGetProcAddress_v2",
                                            "cuLaunchKernel", "cuLaunchKernel_ptsz",
                                            "cuLaunchKernelEx", "cuGraphLaunch"}));
}

TEST(GateLibrary, StaysLoaded) {
  void* const library = ::dlopen(GATE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  ::dlclose(library);
  EXPECT_NE(::dlopen(GATE_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace bubblesim::capture
