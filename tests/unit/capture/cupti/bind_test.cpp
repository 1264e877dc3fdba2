// Binding a library, and the real libcupti where it is installed.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "capture/record/cupti/session.hpp"
#include "tests/fault.hpp"
#include "tests/unit/capture/cupti/cupti_double.hpp"

namespace bubblesim::capture {
namespace {

using testing::HasSubstr;

TEST(CuptiBinding, ALibraryThatIsNoCuptiIsNamedWithWhatItLacks) {
  void* const self = ::dlopen(nullptr, RTLD_NOW);
  EXPECT_EQ(error_of(bind_cupti(self, "libnone.so")).text(),
            "libnone.so: has no cuptiGetVersion; expected a libcupti of CUDA 11.2 or later");
}

TEST(CuptiBinding, AWrongPathIsToldWithTheLoadersReason) {
  const auto api = error_of(find_cupti("/nowhere/libcupti.so.13"));
  EXPECT_THAT(api.text(), HasSubstr("/nowhere/libcupti.so.13: cannot load this libcupti"));
  EXPECT_THAT(api.text(), HasSubstr("No such file"));
}

TEST(CuptiBinding, TheRealLibraryIsFoundWithItsPathAndVersion) {
  const auto api = find_cupti("");
  if (!api) {
    EXPECT_THAT(api.error().text(), HasSubstr("found no libcupti; looked"));
    GTEST_SKIP() << api.error().text();
  }
  EXPECT_THAT(api->path, HasSubstr("libcupti.so"));
  EXPECT_GE(api->version, 15U);
  const auto again = must(find_cupti(""));
  EXPECT_EQ(again.get_next_record, api->get_next_record) << "the copy that is mapped already";
}

TEST(CuptiBinding, TheRealLibraryWithoutADriverSaysSoAndIsLeftAlone) {
  const auto api = find_cupti("");
  if (!api) GTEST_SKIP() << api.error().text();
  if (::dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "there is a driver here";
  OwnerDouble owner;
  const auto session = error_of(CuptiSession::start(*api, {}, owner));
  EXPECT_THAT(session.text(), HasSubstr("cuptiSubscribe"));
  EXPECT_THAT(session.text(), HasSubstr("CUPTI_ERROR_UNKNOWN (999)"));
  EXPECT_THAT(session.text(), HasSubstr("is there a driver"));
  EXPECT_EQ(owner.wanted, 0);
}

}  // namespace
}  // namespace bubblesim::capture
