// The processor time and the memory of the process, for the programs that run other simulators.

#pragma once

#include <sys/resource.h>

#include <fstream>
#include <sstream>
#include <string>

namespace usage {

// The user and system time since the start of the process.
inline double CpuSeconds() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// The peak resident memory in units of 10^6 bytes; 0 if the system does not tell. `ru_maxrss` would include the memory
// of the process that started this one.
inline double PeakRssMb() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        std::istringstream fields(line);
        std::string key;
        double kib = 0;
        if (fields >> key >> kib && key == "VmHWM:") {
            return kib * 1024 / 1e6;
        }
    }
    return 0;
}

}  // namespace usage
