// Folders that tests read: the configurations that ship, and the data folder, which may be absent.
#pragma once

#include <string>

namespace bubblesim {

inline const std::string kConfigFolder = BUBBLESIM_SOURCE_DIR "/configs";
inline const std::string kDeviceFolder = kConfigFolder + "/devices";
inline const std::string kDataFolder = BUBBLESIM_DATA_DIR;

}  // namespace bubblesim
