// The standard headers that are parsed once for all headers which are compiled alone. A header that
// forgets one of these still compiles here; conformance_layers finds it instead, and holds this
// list to the names that it knows (tests/conformance/layers/rules.hpp).
#pragma once

#include <any>
#include <cmath>
#include <exception>
