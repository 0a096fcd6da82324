// A neutral workload (format: workloads.py) and its routes, for the programs that run other simulators.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <queue>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace workload {

// ---- The workload ---------------------------------------------------------------------------------------------------

struct Cable {
    uint32_t a;
    uint32_t b;
    uint64_t rateBps;
    int64_t delayNs;
    uint32_t queuePackets;
};

struct Order {
    int64_t startNs;
    uint32_t src;
    uint32_t dst;
    uint64_t sizeBytes;  // 0 is unlimited
};

struct Workload {
    uint32_t hosts = 0;
    uint32_t nodes = 0;  // hosts first
    std::vector<Cable> cables;
    std::vector<Order> orders;
};

[[noreturn]] inline void Fail(const std::string& message) {
    std::cerr << message << "\n";
    std::exit(2);
}

// Calls `parse` for every line of a file, and exits if it rejects a line.
template <typename Parse>
void ForEachLine(const std::string& path, Parse parse) {
    std::ifstream file(path);
    if (!file) {
        Fail("cannot read " + path);
    }
    std::string line;
    for (int number = 1; std::getline(file, line); number++) {
        std::istringstream fields(line);
        if (!parse(fields)) {
            Fail(path + ":" + std::to_string(number) + ": cannot understand \"" + line + "\"");
        }
    }
}

inline Workload ReadWorkload(const std::string& base) {
    Workload w;
    ForEachLine(base + ".topo", [&w](std::istream& fields) {
        std::string kind;
        fields >> kind;
        if (kind == "host") {
            w.hosts++;
            w.nodes++;
            return w.hosts == w.nodes;
        }
        if (kind == "router") {
            w.nodes++;
            return true;
        }
        Cable c;
        fields >> c.a >> c.b >> c.rateBps >> c.delayNs >> c.queuePackets;
        w.cables.push_back(c);
        return kind == "link" && fields && c.a < w.nodes && c.b < w.nodes && c.delayNs > 0;
    });
    ForEachLine(base + ".flows", [&w](std::istream& fields) {
        Order o;
        fields >> o.startNs >> o.src >> o.dst >> o.sizeBytes;
        w.orders.push_back(o);
        return fields && o.src < w.hosts && o.dst < w.hosts && o.src != o.dst;
    });
    return w;
}

// ---- Routes ---------------------------------------------------------------------------------------------------------

// A link as one of its two nodes sees it.
struct Neighbour {
    uint32_t node;   // at the other end
    uint32_t cable;  // the position in `Workload::cables`
    int64_t delayNs;
};

// The links of each node, in order of the file.
using Neighbours = std::vector<std::vector<Neighbour>>;

// [node][host]: the links of `node` on a path of minimum delay to `host`, as positions in the node's `Neighbours`.
using NextHops = std::vector<std::vector<std::vector<uint32_t>>>;

inline Neighbours NeighboursOf(const Workload& w) {
    Neighbours neighbours(w.nodes);
    for (uint32_t cable = 0; cable < w.cables.size(); cable++) {
        const auto& c = w.cables[cable];
        neighbours[c.a].push_back({c.b, cable, c.delayNs});
        neighbours[c.b].push_back({c.a, cable, c.delayNs});
    }
    return neighbours;
}

inline std::vector<int64_t> DelaysFrom(uint32_t source, const Neighbours& neighbours) {
    using Reached = std::pair<int64_t, uint32_t>;
    std::vector<int64_t> delays(neighbours.size(), INT64_MAX);
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> frontier;
    frontier.push({0, source});
    while (!frontier.empty()) {
        auto [delayNs, node] = frontier.top();
        frontier.pop();
        if (delayNs >= delays[node]) {
            continue;
        }
        delays[node] = delayNs;
        for (const auto& next : neighbours[node]) {
            frontier.push({delayNs + next.delayNs, next.node});
        }
    }
    return delays;
}

inline NextHops ShortestPaths(const Workload& w) {
    const Neighbours neighbours = NeighboursOf(w);
    NextHops hops(w.nodes, std::vector<std::vector<uint32_t>>(w.hosts));
    for (uint32_t host = 0; host < w.hosts; host++) {
        auto delays = DelaysFrom(host, neighbours);
        for (uint32_t node = 0; node < w.nodes; node++) {
            for (uint32_t link = 0; link < neighbours[node].size(); link++) {
                const auto& next = neighbours[node][link];
                if (delays[next.node] != INT64_MAX && delays[next.node] + next.delayNs == delays[node]) {
                    hops[node][host].push_back(link);
                }
            }
        }
    }
    return hops;
}

}  // namespace workload
