// In the place of mirror_test.cpp where there are no headers of CUDA.
#include <gtest/gtest.h>

TEST(Mirror, AgreesWithNvidiasHeader) { GTEST_SKIP() << "cudaTypedefs.h: not found"; }
