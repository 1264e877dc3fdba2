// The one way in which the recorder speaks to the user of the job: a line on stderr.
#pragma once

#include <string>

namespace bubblesim::capture {

/// One write of "bubblesim capture: TEXT\n"; what the system refuses is lost. The text is not
/// buffered, for buffers of the job's streams are the job's.
void say(const std::string& text) noexcept;

}  // namespace bubblesim::capture
