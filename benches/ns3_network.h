// The common part of the programs that run ns-3: a neutral workload (format: workloads.py) as a network and flows.
//
// TCP has the settings of sparelane's benchmark: NewReno with SACK, MSS 1460, initial window 4, one acknowledgment per
// packet, and drop-tail queues.

#pragma once

#include "workload.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <vector>

namespace workload {

using namespace ns3;

constexpr uint32_t MSS_BYTES = 1460;
constexpr uint32_t FULL_PACKET_BYTES = 1502;         // MSS, TCP, IP, and 2 bytes of PPP that ns-3 adds, queued or sent
constexpr uint32_t SOCKET_BUFFER_BYTES = 32u << 20;  // above any window that the workloads allow
constexpr uint32_t WRITE_BYTES = 64u << 10;
constexpr uint32_t FIRST_HOST_ADDRESS = 0x0A000001;  // 10.0.0.1 is host 0
constexpr uint16_t LISTEN_PORT = 5000;
constexpr uint16_t FIRST_SOURCE_PORT = 10000;

// ---- Routes ---------------------------------------------------------------------------------------------------------

// Table routing with per-flow selection among equal paths. ns-3's own global routing selects per packet, which reorders
// TCP, and searches a list of all hosts for every packet.
class FlowHashRouting : public Ipv4RoutingProtocol {
  public:
    explicit FlowHashRouting(const NextHops& hops) : m_hops(hops) {}

    void SetIpv4(Ptr<Ipv4> ipv4) override {
        m_ipv4 = ipv4;
        m_node = ipv4->GetObject<Node>()->GetId();
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>,
                               Socket::SocketErrno& error) override {
        const auto& choices = ChoicesTo(header.GetDestination());
        error = choices.empty() ? Socket::ERROR_NOROUTETOHOST : Socket::ERROR_NOTERROR;
        return choices.empty() ? nullptr : RouteThrough(choices[0]);
    }

    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                    const UnicastForwardCallback& forward, const MulticastForwardCallback&,
                    const LocalDeliverCallback& deliver, const ErrorCallback&) override {
        if (header.GetDestination().Get() == FIRST_HOST_ADDRESS + m_node) {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
            return true;
        }
        const auto& choices = ChoicesTo(header.GetDestination());
        if (choices.empty()) {
            return false;
        }
        size_t choice = choices.size() == 1 ? 0 : FlowHash(packet, header) % choices.size();
        forward(RouteThrough(choices[choice]), packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    const std::vector<uint32_t>& ChoicesTo(Ipv4Address address) const {
        return m_hops[m_node].at(address.Get() - FIRST_HOST_ADDRESS);
    }

    // Routes are created once, so that no allocation per packet is attributed to ns-3.
    Ptr<Ipv4Route> RouteThrough(uint32_t link) {
        const uint32_t interface = link + 1;  // interface 0 of every node is the loopback; links follow in order
        if (m_routes.size() <= interface) {
            m_routes.resize(interface + 1);
        }
        auto& route = m_routes[interface];
        if (!route) {
            route = Create<Ipv4Route>();
            route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
            route->SetSource(Ipv4Address(FIRST_HOST_ADDRESS + m_node));
            route->SetGateway(Ipv4Address::GetZero());
        }
        return route;
    }

    uint64_t FlowHash(Ptr<const Packet> packet, const Ipv4Header& header) const {
        uint32_t ports;  // the first four bytes of a TCP header
        packet->CopyData(reinterpret_cast<uint8_t*>(&ports), sizeof ports);
        const uint32_t key[] = {m_node, header.GetSource().Get(), header.GetDestination().Get(), ports};
        return Hash64(reinterpret_cast<const char*>(key), sizeof key);
    }

    const NextHops& m_hops;
    Ptr<Ipv4> m_ipv4;
    uint32_t m_node = 0;
    std::vector<Ptr<Ipv4Route>> m_routes;  // by interface
};

// ---- Transfers ------------------------------------------------------------------------------------------------------

// The sender and the receiver of one flow.
class Transfer {
  public:
    Transfer(const Order& order, uint16_t sourcePort)
        : m_order(order), m_sourcePort(sourcePort), m_unwrittenBytes(order.sizeBytes ? order.sizeBytes : UINT64_MAX) {}

    void Start() {
        auto socket = Socket::CreateSocket(NodeList::GetNode(m_order.src), TcpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), m_sourcePort));
        socket->SetSendCallback(MakeCallback(&Transfer::Write, this));
        socket->Connect(InetSocketAddress(Ipv4Address(FIRST_HOST_ADDRESS + m_order.dst), LISTEN_PORT));
        socket->ShutdownRecv();
    }

    void Accept(Ptr<Socket> socket) {
        socket->SetRecvCallback(MakeCallback(&Transfer::Read, this));
        auto close = MakeCallback(&Transfer::Close, this);
        socket->SetCloseCallbacks(close, close);
    }

    const Order& Asked() const { return m_order; }

    // The time from the SYN to the arrival of the last byte at the receiver; -1 if the flow did not finish.
    int64_t CompletionNs() const { return m_finishNs < 0 ? -1 : m_finishNs - m_order.startNs; }

  private:
    void Write(Ptr<Socket> socket, uint32_t) {
        while (m_unwrittenBytes > 0) {
            uint64_t bytes = std::min<uint64_t>({socket->GetTxAvailable(), WRITE_BYTES, m_unwrittenBytes});
            if (bytes == 0 || socket->Send(Create<Packet>(bytes)) < 0) {
                return;  // called again when the send buffer has room
            }
            m_unwrittenBytes -= bytes;
        }
        socket->SetSendCallback(MakeNullCallback<void, Ptr<Socket>, uint32_t>());
        socket->Close();
    }

    void Read(Ptr<Socket> socket) {
        for (auto data = socket->Recv(); data && data->GetSize() > 0; data = socket->Recv()) {
            m_receivedBytes += data->GetSize();
        }
        if (m_order.sizeBytes > 0 && m_receivedBytes >= m_order.sizeBytes && m_finishNs < 0) {
            m_finishNs = Simulator::Now().GetNanoSeconds();
        }
    }

    void Close(Ptr<Socket> socket) { socket->Close(); }

    Order m_order;
    uint16_t m_sourcePort;
    uint64_t m_unwrittenBytes;
    uint64_t m_receivedBytes = 0;
    int64_t m_finishNs = -1;
};

// All flows of a workload. A receiver identifies a flow by its sender's address and port.
class Transfers {
  public:
    explicit Transfers(const Workload& w) : m_bySource(w.hosts) {
        for (const auto& order : w.orders) {
            auto& siblings = m_bySource[order.src];
            if (siblings.size() > UINT16_MAX - FIRST_SOURCE_PORT) {
                Fail("host " + std::to_string(order.src) + " starts more flows than it has ports");
            }
            uint16_t port = FIRST_SOURCE_PORT + siblings.size();
            siblings.push_back(&m_all.emplace_back(order, port));
        }
        for (uint32_t host = 0; host < w.hosts; host++) {
            Listen(NodeList::GetNode(host));
        }
        for (auto& transfer : m_all) {
            const auto& order = transfer.Asked();
            Simulator::ScheduleWithContext(order.src, NanoSeconds(order.startNs), &Transfer::Start, &transfer);
        }
    }

    size_t Finished() const {
        return std::count_if(m_all.begin(), m_all.end(), [](const auto& t) { return t.CompletionNs() >= 0; });
    }

    size_t Count() const { return m_all.size(); }

    void WriteCompletionTimes(const std::string& path) const {
        std::ofstream csv(path);
        csv << "flow,start_ns,src,dst,bytes,fct_ns\n";
        size_t flow = 0;
        for (const auto& transfer : m_all) {
            const auto& o = transfer.Asked();
            csv << flow++ << ',' << o.startNs << ',' << o.src << ',' << o.dst << ',' << o.sizeBytes << ','
                << transfer.CompletionNs() << '\n';
        }
        if (!csv.flush()) {
            Fail("cannot write " + path);
        }
    }

  private:
    void Listen(Ptr<Node> host) {
        auto socket = Socket::CreateSocket(host, TcpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), LISTEN_PORT));
        socket->Listen();
        socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                  MakeCallback(&Transfers::Accept, this));
    }

    void Accept(Ptr<Socket> socket, const Address& from) {
        auto source = InetSocketAddress::ConvertFrom(from);
        uint32_t host = source.GetIpv4().Get() - FIRST_HOST_ADDRESS;
        m_bySource.at(host).at(source.GetPort() - FIRST_SOURCE_PORT)->Accept(socket);
    }

    std::deque<Transfer> m_all;  // a deque, because callbacks hold addresses of its elements
    std::vector<std::vector<Transfer*>> m_bySource;
};

// ---- The network -------------------------------------------------------------------------------------------------

inline void SetTcpDefaults(uint32_t ssthreshPackets) {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    // With SACK, classic recovery is RFC 6675; ns-3's default is proportional rate reduction.
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue("ns3::TcpClassicRecovery"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS_BYTES));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(4));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(SOCKET_BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(SOCKET_BUFFER_BYTES));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    // The segment size does not include options. With timestamps every full segment would exceed the MTU of 1500 bytes
    // and be fragmented by IP.
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    if (ssthreshPackets > 0) {
        Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(ssthreshPackets * MSS_BYTES));
    }
}

// Builds the network and returns its devices, in order of the links.
inline std::vector<Ptr<PointToPointNetDevice>> Build(const Workload& w, const NextHops& hops) {
    NodeContainer nodes;
    nodes.Create(w.nodes);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    for (uint32_t node = 0; node < w.nodes; node++) {
        nodes.Get(node)->GetObject<Ipv4>()->SetRoutingProtocol(Create<FlowHashRouting>(hops));
    }

    std::vector<Ptr<PointToPointNetDevice>> devices;
    PointToPointHelper helper;
    helper.DisableFlowControl();  // otherwise a full queue stops the device, and drops above are not counted
    for (const auto& c : w.cables) {
        uint64_t limitBytes = uint64_t(c.queuePackets) * FULL_PACKET_BYTES;
        helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(c.rateBps)));
        helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(c.delayNs)));
        helper.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, limitBytes)));
        auto pair = helper.Install(nodes.Get(c.a), nodes.Get(c.b));
        for (uint32_t end = 0; end < 2; end++) {
            // Set directly, because Ipv4AddressHelper would also install a queue discipline before the device's queue.
            auto device = DynamicCast<PointToPointNetDevice>(pair.Get(end));
            auto node = device->GetNode();
            auto ipv4 = node->GetObject<Ipv4>();
            uint32_t interface = ipv4->AddInterface(device);
            Ipv4Address address(FIRST_HOST_ADDRESS + node->GetId());
            ipv4->AddAddress(interface, Ipv4InterfaceAddress(address, Ipv4Mask::GetOnes()));
            ipv4->SetUp(interface);
            devices.push_back(device);
        }
    }
    return devices;
}

}  // namespace workload
