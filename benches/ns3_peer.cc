// Runs a neutral workload (format: workloads.py) in ns-3 and prints one line of JSON.
//
//     ns3_peer --base=work/abilene30 --duration=0.3 [--ssthresh=PACKETS] [--fct=FILE.csv]
//
// A packet-hop is the start of a transmission of one packet, data or acknowledgment, on one link.

#include "ns3_network.h"
#include "usage.h"

#include <chrono>
#include <cinttypes>

using namespace workload;

int main(int argc, char** argv) {
    std::string base;
    std::string fctPath;
    double durationS = 1;
    uint32_t ssthreshPackets = 0;
    CommandLine command(__FILE__);
    command.AddValue("base", "the workload's files without .topo and .flows", base);
    command.AddValue("duration", "simulated seconds", durationS);
    command.AddValue("ssthresh", "initial slow-start threshold in packets; 0 is none", ssthreshPackets);
    command.AddValue("fct", "CSV file to write with completion times", fctPath);
    command.Parse(argc, argv);

    SetTcpDefaults(ssthreshPackets);
    const Workload w = ReadWorkload(base);
    const NextHops hops = ShortestPaths(w);
    const auto devices = Build(w, hops);
    Transfers transfers(w);
    Simulator::Stop(Seconds(durationS));

    const auto wallStart = std::chrono::steady_clock::now();
    const double cpuStart = usage::CpuSeconds();
    Simulator::Run();
    const double cpuS = usage::CpuSeconds() - cpuStart;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wallStart;

    uint64_t packetHops = 0;
    uint64_t drops = 0;
    for (const auto& device : devices) {
        auto queue = device->GetQueue();
        packetHops += queue->GetTotalReceivedPackets() - queue->GetNPackets();
        drops += queue->GetTotalDroppedPackets();
    }
    if (!fctPath.empty()) {
        transfers.WriteCompletionTimes(fctPath);
    }
    std::printf("{\"simulator\": \"ns-3\", \"simulated_s\": %g, \"events\": %" PRIu64 ", \"packet_hops\": %" PRIu64
                ", \"drops\": %" PRIu64
                ", \"cpu_s\": %.6f, \"wall_s\": %.6f, \"peak_rss_mb\": %.1f, \"flows\": %zu"
                ", \"finished_flows\": %zu}\n",
                durationS, Simulator::GetEventCount(), packetHops, drops, cpuS, wall.count(),
                usage::PeakRssMb(), transfers.Count(), transfers.Finished());
    std::fflush(stdout);
    std::_Exit(0);  // skip the destruction of the network, which takes long
}
