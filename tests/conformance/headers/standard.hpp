// The standard headers that are parsed once for the test that compiles each project header alone. A
// project header that lacks one of these includes passes that test. conformance_layers finds it
// instead, and checks this list against the names that it knows
// (tests/conformance/layers/rules.hpp).
#pragma once

#include <any>
#include <cmath>
#include <exception>
