// The shared objects that jobs load, as a loader sees them.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gnu/libc-version.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace bubblesim::capture {
namespace {

using testing::AnyOf, testing::Each, testing::StartsWith;

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

const std::vector<std::string> kLibraries{GATE_LIBRARY, CAPTURE_LIBRARY};

TEST(LibrariesOfJobs, NeedTheCLibraryOnly) {
  for (const std::string& library : kLibraries) {
    const auto needed = last_words("readelf -d '" + library + "' | grep NEEDED");
    if (needed.empty()) GTEST_SKIP() << "readelf: not found";
    EXPECT_THAT(needed,
                Each(AnyOf("[libc.so.6]", "[libm.so.6]", "[libdl.so.2]", "[libpthread.so.0]",
                           "[librt.so.1]", StartsWith("[ld-linux"))))
        << library;
  }
}

// Containers are older than the machine of the build (scripts/cmake/old_glibc.cmake).
TEST(LibrariesOfJobs, NeedNothingOfGlibcAfter2_28) {
  if (std::atoi(std::strchr(::gnu_get_libc_version(), '.') + 1) > 36) {
    GTEST_SKIP() << "what a glibc later than 2.36 adds to programs was not looked at";
  }
  for (const std::string& library : kLibraries) {
    const auto versions = last_words("readelf -V '" + library + "' | grep -o 'GLIBC_2[.0-9]*'");
    if (versions.empty()) GTEST_SKIP() << "readelf: not found";
    for (const std::string& version : versions) {
      EXPECT_LE(std::atoi(version.c_str() + std::strlen("GLIBC_2.")), 28) << library << version;
    }
  }
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
