// Finds the form of a kind of file by running its reader on generated documents. Each document adds
// one key and one value that earlier readings declared, until no reading declares a new one.
//
// The first document is {}. Each declared key is tried with every name of a choice, an object, a
// list of one, a value inside the range, or, if the reader only checks for the key, one value of
// each JSON kind. Each trial is made once in every situation of its object: the set of keys that
// the object declares, and the choices on which declared and required keys depend. So conditions on
// one value of one object are found; a condition on two values at once may be missed, which makes
// the form more lenient.
#pragma once

#include <functional>

#include "sim/schema/form.hpp"

namespace bubblesim::schema {

/// Reads a document as files of the kind are read. Faults are expected and ignored.
using ReadFunction = std::function<void(const JsonDocument&)>;

/// Deterministic. Takes one reading for each key, value and set of keys: milliseconds.
[[nodiscard]] Form explore(const ReadFunction& read);

}  // namespace bubblesim::schema
