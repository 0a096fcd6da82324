// Runs a neutral workload (format: workloads.py) in ns-3, measures its last link, and prints one line of JSON.
//
//     ns3_controllers --base=work/NAME --duration=40 --from=15 [--interval=1000000] [--mark-at=20] [--series=FILE.csv]
//                     [--drop=8000,20000] [--windows-every=500000000]
//                     [--ns3::TcpL4Protocol::SocketType=ns3::TcpCubic ...]
//
// The measured link is the last one of NAME.topo, in the direction from its first node to its second. From `from`
// seconds on, the program measures the bytes sent and the mean queue length, sampled every `interval` nanoseconds.
// `mark-at` is the queue length in packets at which the queue marks. `drop` lists the data segments of the only flow,
// counted from 0, whose first transmission is lost. With `windows-every`, the congestion window of host 0 in bytes is
// printed as well, sampled at this interval in nanoseconds. The command line accepts all attributes of ns-3.

#include "ns3_mended.h"
#include "ns3_network.h"
#include "ns3_windows.h"

#include "ns3/traffic-control-module.h"

#include <optional>

using namespace workload;
using namespace mended;

namespace {

// The measurement of one output queue.
class Watch {
  public:
    Watch(Ptr<PointToPointNetDevice> device, Ptr<QueueDisc> discipline, Time from, Time interval)
        : m_device(device), m_discipline(discipline), m_from(from), m_interval(interval) {
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Watch::Sent, this));
        device->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&Watch::Dropped, this));
        if (discipline) {
            discipline->TraceConnectWithoutContext("Drop", MakeCallback(&Watch::Refused, this));
            discipline->TraceConnectWithoutContext("Mark", MakeCallback(&Watch::Marked, this));
        }
        Simulator::Schedule(from, &Watch::Look, this);
    }

    void Record(const std::string& path) { m_series.open(path); }

    // Prints the beginning of a line of JSON; the measured period ends at `until`.
    void Print(Time until) const {
        const auto rate = GetRate().GetBitRate();
        const double capacityBytes = rate / 8.0 * (until - m_from).GetSeconds();
        std::printf("{\"link_use\": %.6f, \"mean_queue_packets\": %.4f, \"drops\": %u, \"marks\": %u",
                    m_sentBytes / capacityBytes, m_waited / m_looks, m_drops, m_marks);
    }

  private:
    DataRate GetRate() const {
        DataRateValue rate;
        m_device->GetAttribute("DataRate", rate);
        return rate.Get();
    }

    void Sent(Ptr<const Packet> packet) {
        if (Simulator::Now() >= m_from) {
            m_sentBytes += packet->GetSize();
        }
    }

    void Dropped(Ptr<const Packet>) { m_drops += Simulator::Now() >= m_from; }
    void Refused(Ptr<const QueueDiscItem>) { m_drops += Simulator::Now() >= m_from; }
    void Marked(Ptr<const QueueDiscItem>, const char*) { m_marks += Simulator::Now() >= m_from; }

    void Look() {
        const uint32_t waiting =
            m_device->GetQueue()->GetNPackets() + (m_discipline ? m_discipline->GetNPackets() : 0);
        m_waited += waiting;
        m_looks++;
        if (m_series.is_open()) {
            m_series << Simulator::Now().GetSeconds() << ',' << waiting << '\n';
        }
        Simulator::Schedule(m_interval, &Watch::Look, this);
    }

    Ptr<PointToPointNetDevice> m_device;
    Ptr<QueueDisc> m_discipline;
    Time m_from;
    Time m_interval;
    uint64_t m_sentBytes = 0;
    uint32_t m_drops = 0;
    uint32_t m_marks = 0;
    double m_waited = 0;
    double m_looks = 0;
    std::ofstream m_series;
};

// Installs a queue that marks packets which find `markAt` packets queued, and drops packets beyond `limitPackets`. In
// ns-3 this is RED without averaging and with equal thresholds. It precedes the device's own queue, which is limited to
// one packet. That packet counts as queued, so the threshold is smaller by one.
Ptr<QueueDisc> MarkAt(uint32_t markAt, uint32_t limitPackets, Ptr<PointToPointNetDevice> device) {
    device->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, 1));
    Ptr<NetDeviceQueueInterface> queues = CreateObject<NetDeviceQueueInterface>();
    queues->GetTxQueue(0)->ConnectQueueTraces(device->GetQueue());
    device->AggregateObject(queues);
    TrafficControlHelper helper;
    helper.SetRootQueueDisc("ns3::RedQueueDisc", "MinTh", DoubleValue(markAt - 1), "MaxTh", DoubleValue(markAt - 1),
                            "QW", DoubleValue(1), "Gentle", BooleanValue(false), "UseEcn", BooleanValue(true),
                            "UseHardDrop", BooleanValue(false), "MaxSize",
                            QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limitPackets - 1)));
    return helper.Install(device).Get(0);
}

uint32_t SegmentBytes() {
    TypeId::AttributeInformation attribute;
    TcpSocket::GetTypeId().LookupAttributeByName("SegmentSize", &attribute);
    return DynamicCast<const UintegerValue>(attribute.initialValue)->Get();
}

}  // namespace

int main(int argc, char** argv) {
    std::string base;
    std::string seriesPath;
    double durationS = 1;
    double fromS = 0;
    int64_t intervalNs = 1'000'000;
    uint32_t markAt = 0;
    std::string drop;
    int64_t windowsEveryNs = 0;
    SetTcpDefaults(0);
    CommandLine command(__FILE__);
    command.AddValue("base", "the workload's files without .topo and .flows", base);
    command.AddValue("duration", "simulated seconds", durationS);
    command.AddValue("from", "seconds after which the link is watched", fromS);
    command.AddValue("interval", "nanoseconds between looks at the queue", intervalNs);
    command.AddValue("mark-at", "packets waiting from which the link marks; 0 never", markAt);
    command.AddValue("series", "CSV file to write with every look at the queue", seriesPath);
    command.AddValue("drop", "numbers of data segments that the link drops once, with commas between", drop);
    command.AddValue("windows-every", "nanoseconds between looks at the window of host 0; 0 none", windowsEveryNs);
    command.Parse(argc, argv);

    const Workload w = ReadWorkload(base);
    const NextHops hops = ShortestPaths(w);
    const auto devices = Build(w, hops);
    const auto device = devices[devices.size() - 2];
    Ptr<QueueDisc> discipline;
    if (markAt > 0) {
        discipline = MarkAt(markAt, w.cables.back().queuePackets, device);
    }
    Transfers transfers(w);
    Watch watch(device, discipline, Seconds(fromS), NanoSeconds(intervalNs));
    if (!seriesPath.empty()) {
        watch.Record(seriesPath);
    }
    if (!drop.empty()) {
        devices.back()->SetReceiveErrorModel(CreateObject<DropSegments>(drop, SegmentBytes()));
    }
    std::optional<WindowSeries> windows;
    if (windowsEveryNs > 0) {
        windows.emplace(NanoSeconds(w.orders.at(0).startNs), NanoSeconds(windowsEveryNs));
    }
    Simulator::Stop(Seconds(durationS));
    Simulator::Run();
    watch.Print(Seconds(durationS));
    if (windows) {
        const char* separator = ", \"windows\": [";
        for (const uint32_t bytes : windows->Bytes()) {
            std::printf("%s%u", separator, bytes);
            separator = ", ";
        }
        std::printf("]");
    }
    std::printf("}\n");
    std::fflush(stdout);
    std::_Exit(0);  // skip the destruction of the network, which takes long
}
