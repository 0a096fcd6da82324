// Runs a neutral workload (format: workloads.py) in htsim and prints one line of JSON.
//
//     htsim_peer BASE SECONDS [SSTHRESH_PACKETS]
//
// BASE is the workload's files without .topo and .flows. SSTHRESH_PACKETS is the initial slow-start threshold; without
// it, or with 0, there is none.
//
// A packet-hop is the arrival of one packet, data or acknowledgment, at the end of one link. Each direction of a link is
// a drop-tail queue and a pipe. TCP is htsim's NewReno with an initial window of 4 and one acknowledgment per packet.
// Differences from sparelane's benchmark:
//
// - TCP has no SACK.
// - The timeout is 3 s initially and at least 250 ms, and a scan every 10 ms looks for expired timers.
// - Headers have no size: a packet of 1500 bytes carries 1500 bytes, and a SYN has 1 byte. Each flow still has as many
//   packets as with segments of 1460 bytes. All of them are full; an acknowledgment has 40 bytes, as in sparelane.
// - Another hash selects among equal paths, so other flows share the links of leafspine.

#include "usage.h"
#include "workload.h"

#include "eventlist.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <chrono>
#include <cinttypes>
#include <deque>

namespace {

constexpr int FULL_PACKET_BYTES = 1500;
constexpr uint64_t SEGMENT_BYTES = 1460;  // of sparelane and ns-3
constexpr uint32_t INITIAL_WINDOW = 4;
constexpr uint64_t NO_THRESHOLD = UINT32_MAX;  // the largest value that htsim can store
constexpr simtime_picosec PS_PER_NS = 1000;

uint64_t packetHops = 0;

// Adds one to `packetHops` for each packet, which htsim does not count itself.
class CountingPipe final : public Pipe {
  public:
    using Pipe::Pipe;

    void doNextEvent() override {
        packetHops++;
        Pipe::doNextEvent();
    }
};

// One direction of a link.
struct Direction {
    Queue queue;
    CountingPipe pipe;

    Direction(const workload::Cable& c, EventList& events)
        : queue(c.rateBps, mem_b(c.queuePackets) * FULL_PACKET_BYTES, events, nullptr),
          pipe(c.delayNs * PS_PER_NS, events) {}
};

struct Flow {
    TcpSrc source;
    TcpSink sink;
    Route out;
    Route back;
    uint64_t packets;  // 0 is unlimited

    Flow(const workload::Order& order, EventList& events)
        : source(nullptr, nullptr, events), packets((order.sizeBytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES) {}

    uint64_t DeliveredPackets() const { return sink._cumulative_ack / FULL_PACKET_BYTES; }
};

// The network and the flows; htsim holds addresses of both.
class Simulation {
  public:
    Simulation(const workload::Workload& w, EventList& events, uint64_t ssthreshPackets)
        : m_workload(w), m_neighbours(workload::NeighboursOf(w)), m_hops(workload::ShortestPaths(w)),
          m_timers(timeFromMs(10), events) {
        for (const auto& c : w.cables) {
            m_directions.emplace_back(c, events);  // from a to b
            m_directions.emplace_back(c, events);  // from b to a
        }
        for (const auto& order : w.orders) {
            AddFlow(order, events, ssthreshPackets);
        }
    }

    uint64_t Drops() const {
        uint64_t drops = 0;
        for (const auto& direction : m_directions) {
            drops += direction.queue.num_drops();
        }
        return drops;
    }

    const std::deque<Flow>& Flows() const { return m_flows; }

  private:
    void AddFlow(const workload::Order& order, EventList& events, uint64_t ssthreshPackets) {
        Flow& flow = m_flows.emplace_back(order, events);
        if (flow.packets > 0) {
            // TcpSrc sends another packet while the bytes sent are at most `_flow_size`.
            flow.source._flow_size = (flow.packets - 1) * FULL_PACKET_BYTES;
        }
        flow.source.set_cwnd(INITIAL_WINDOW * FULL_PACKET_BYTES);
        flow.source.set_ssthresh(ssthreshPackets > 0 ? ssthreshPackets * FULL_PACKET_BYTES : NO_THRESHOLD);
        AddPath(flow.out, order.src, order.dst);
        AddPath(flow.back, order.dst, order.src);
        flow.out.push_back(&flow.sink);
        flow.back.push_back(&flow.source);
        m_timers.registerTcp(flow.source);
        flow.source.connect(flow.out, flow.back, flow.sink, order.startNs * PS_PER_NS);
    }

    // Adds the links of a shortest path. Among equal paths, a hash of the flow and the node selects one.
    void AddPath(Route& route, uint32_t from, uint32_t to) {
        for (uint32_t node = from; node != to;) {
            const auto& choices = m_hops[node][to];
            if (choices.empty()) {
                workload::Fail("there is no path from " + std::to_string(from) + " to " + std::to_string(to));
            }
            uint64_t hash = (m_flows.size() * 0x9E3779B97F4A7C15 + node) * 0xBF58476D1CE4E5B9;
            const auto& next = m_neighbours[node][choices[(hash >> 32) % choices.size()]];
            Direction& direction = m_directions[2 * next.cable + (m_workload.cables[next.cable].a == node ? 0 : 1)];
            route.push_back(&direction.queue);
            route.push_back(&direction.pipe);
            node = next.node;
        }
    }

    const workload::Workload& m_workload;
    workload::Neighbours m_neighbours;
    workload::NextHops m_hops;
    TcpRtxTimerScanner m_timers;
    std::deque<Direction> m_directions;
    std::deque<Flow> m_flows;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        workload::Fail("usage: htsim_peer BASE SECONDS [SSTHRESH_PACKETS]");
    }
    const double durationS = std::strtod(argv[2], nullptr);
    if (!(durationS > 0)) {
        workload::Fail(std::string("the duration must be a positive number of seconds, but is ") + argv[2]);
    }
    // TcpSrc prints a line per timeout and per finished flow; a failed stream discards them at no cost.
    std::cout.setstate(std::ios::failbit);

    const workload::Workload w = workload::ReadWorkload(argv[1]);
    Packet::set_packet_size(FULL_PACKET_BYTES);
    EventList& events = EventList::getTheEventList();
    EventList::setEndtime(timeFromSec(durationS));
    Simulation simulation(w, events, argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0);

    uint64_t handled = 0;
    const auto wallStart = std::chrono::steady_clock::now();
    const double cpuStart = usage::CpuSeconds();
    while (EventList::doNextEvent()) {
        handled++;
    }
    const double cpuS = usage::CpuSeconds() - cpuStart;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wallStart;

    uint64_t delivered = 0;
    size_t finished = 0;
    for (const auto& flow : simulation.Flows()) {
        delivered += flow.DeliveredPackets();
        finished += flow.packets > 0 && flow.DeliveredPackets() >= flow.packets;
    }
    std::printf("{\"simulator\": \"htsim\", \"simulated_s\": %g, \"events\": %" PRIu64 ", \"packet_hops\": %" PRIu64
                ", \"drops\": %" PRIu64 ", \"delivered_packets\": %" PRIu64
                ", \"cpu_s\": %.6f, \"wall_s\": %.6f, \"peak_rss_mb\": %.1f, \"flows\": %zu, \"finished_flows\": %zu}\n",
                durationS, handled, packetHops, simulation.Drops(), delivered, cpuS, wall.count(),
                usage::PeakRssMb(), simulation.Flows().size(), finished);
    std::fflush(stdout);
    std::_Exit(0);  // skip the destruction of the network
}
