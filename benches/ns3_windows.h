// Scripts in ns-3: drops of given data segments, and samples of the congestion window of one sender.

#pragma once

#include "ns3_network.h"

#include <set>

namespace workload {

// Drops the first transmission of the given data segments, counted from 0, of the only flow on a link.
class DropSegments : public ErrorModel {
  public:
    DropSegments(const std::string& segments, uint32_t segmentBytes) : m_segmentBytes(segmentBytes) {
        std::istringstream numbers(segments);
        for (std::string number; std::getline(numbers, number, ',');) {
            m_segments.insert(std::stoul(number));
        }
    }

  private:
    bool DoCorrupt(Ptr<Packet> packet) override {
        const auto whole = packet->Copy();
        PppHeader ppp;
        Ipv4Header ip;
        TcpHeader tcp;
        whole->RemoveHeader(ppp);
        whole->RemoveHeader(ip);
        whole->RemoveHeader(tcp);
        // The SYN uses sequence number 0.
        return whole->GetSize() > 0 && m_segments.erase((tcp.GetSequenceNumber().GetValue() - 1) / m_segmentBytes) > 0;
    }

    void DoReset() override {}

    uint32_t m_segmentBytes;
    std::set<uint32_t> m_segments;
};

// Samples the congestion window of host 0 at regular intervals.
class WindowSeries {
  public:
    WindowSeries(Time flowStart, Time interval) : m_interval(interval) {
        // The socket exists once the flow has started; the other socket of that host only listens.
        Simulator::Schedule(flowStart + NanoSeconds(1), [this] {
            Config::ConnectWithoutContext("/NodeList/0/$ns3::TcpL4Protocol/SocketList/*/CongestionWindow",
                                          MakeCallback(&WindowSeries::Changed, this));
        });
        Simulator::Schedule(interval, &WindowSeries::Look, this);
    }

    const std::vector<uint32_t>& Bytes() const { return m_series; }

  private:
    void Changed(uint32_t, uint32_t bytes) { m_bytes = bytes; }

    void Look() {
        m_series.push_back(m_bytes);
        Simulator::Schedule(m_interval, &WindowSeries::Look, this);
    }

    Time m_interval;
    uint32_t m_bytes = 0;
    std::vector<uint32_t> m_series;
};

}  // namespace workload
