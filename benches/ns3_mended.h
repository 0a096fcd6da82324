// Controllers of ns-3 with small corrections, which verify the causes of differences from sparelane.

#pragma once

#include "ns3/internet-module.h"

#include <type_traits>
#include <utility>

namespace mended {

using namespace ns3;

// ns-3's LEDBAT with the ALLOWED_INCREASE of RFC 6817 section 2.4.2, one segment. ns-3 limits the window to the data in
// flight before the acknowledgment. The window therefore never grows, and above the target it falls by a segment per
// acknowledgment. The limit depends on the highest byte sent, which is raised by a segment during the computation.
class TcpLedbatMended : public TcpLedbat {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("ns3::TcpLedbatMended").SetParent<TcpLedbat>().AddConstructor<TcpLedbatMended>();
        return id;
    }

    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<TcpLedbatMended>(this); }

  protected:
    void CongestionAvoidance(Ptr<TcpSocketState> state, uint32_t segmentsAcked) override {
        const SequenceNumber32 highest = state->m_highTxMark;
        state->m_highTxMark = highest + state->m_segmentSize;
        TcpLedbat::CongestionAvoidance(state, segmentsAcked);
        state->m_highTxMark = highest;
    }
};

NS_OBJECT_ENSURE_REGISTERED(TcpLedbatMended);

// ns-3's H-TCP with alpha in segments per window. ns-3 adds alpha bytes per acknowledgment to NewReno's growth. Before
// the first loss, ns-3's beta is zero, which doubles alpha. Here alpha is halved then, which is equal to a beta of 1/2.
class TcpHtcpMended : public TcpHtcp {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("ns3::TcpHtcpMended").SetParent<TcpHtcp>().AddConstructor<TcpHtcpMended>();
        return id;
    }

    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<TcpHtcpMended>(this); }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t bytesInFlight) override {
        m_lost = true;
        return TcpHtcp::GetSsThresh(state, bytesInFlight);
    }

  protected:
    void CongestionAvoidance(Ptr<TcpSocketState> state, uint32_t segmentsAcked) override {
        const uint32_t before = state->m_cWnd;
        TcpHtcp::CongestionAvoidance(state, segmentsAcked);
        const double newReno = double(state->m_segmentSize) * state->m_segmentSize / before;
        const double alpha = std::max(state->m_cWnd.Get() - before - newReno, 1.0);
        m_owedBytes += newReno * (m_lost ? alpha : std::max(alpha / 2, 1.0));
        state->m_cWnd = before + uint32_t(m_owedBytes);
        m_owedBytes -= uint32_t(m_owedBytes);
    }

  private:
    bool m_lost = false;
    double m_owedBytes = 0;
};

NS_OBJECT_ENSURE_REGISTERED(TcpHtcpMended);

// A controller that gets individual round-trip times instead of the smoothed time, and that keeps the fractions of a
// byte which ns-3 truncates from NewReno's growth per acknowledgment. In addition:
//
// - Hybla gets the minimum time, because it tests for equality with the minimum, which is that of the handshake's small
//   packets.
// - Illinois gets microseconds instead of milliseconds, because it rounds to milliseconds and only uses ratios. Beyond
//   slow start it gets acknowledgments in groups of fifty, because it truncates alpha per acknowledgment.
// - LP gets no acknowledgments during recovery, because they echo the timestamp of a segment before the hole.
// - Vegas halves the window at a loss, as in Linux; ns-3 uses the slow-start threshold, three quarters of the window.
// - Veno gets each time three times, because it resets its count of samples per acknowledgment and needs three.
template <typename Law>
class Mended : public Law {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId(Law::GetTypeId().GetName() + "Mended")
                               .template SetParent<Law>()
                               .template AddConstructor<Mended<Law>>();
        return id;
    }

    TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<Mended<Law>>(this); }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t segmentsAcked, const Time&) override {
        Time rtt = state->m_lastRtt;
        if (std::is_same_v<Law, TcpLp> && state->m_congState != TcpSocketState::CA_OPEN) {
            return;
        }
        if (std::is_same_v<Law, TcpHybla>) {
            rtt = state->m_minRtt;
        } else if (std::is_same_v<Law, TcpIllinois>) {
            rtt = rtt * 1000;
        }
        const int times = std::is_same_v<Law, TcpVeno> ? 3 : 1;
        for (int time = 0; time < times; time++) {
            Law::PktsAcked(state, segmentsAcked, rtt);
        }
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t segmentsAcked) override {
        const uint32_t before = state->m_cWnd;
        const bool isSlowStart = before < state->m_ssThresh;
        if (std::is_same_v<Law, TcpIllinois> && !isSlowStart) {
            m_heldSegments += segmentsAcked;
            segmentsAcked = m_heldSegments < 50 ? 0 : std::exchange(m_heldSegments, 0);
            if (segmentsAcked == 0) {
                return;
            }
        }
        Law::IncreaseWindow(state, segmentsAcked);
        const double newReno = double(state->m_segmentSize) * state->m_segmentSize / before;
        if (!isSlowStart && state->m_cWnd == before + uint32_t(newReno)) {
            m_owedBytes += newReno - uint32_t(newReno);
            state->m_cWnd += uint32_t(m_owedBytes);
            m_owedBytes -= uint32_t(m_owedBytes);
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t bytesInFlight) override {
        // Vegas also calls this function itself, with nothing in flight.
        const bool isLossOfVegas = std::is_same_v<Law, TcpVegas> && bytesInFlight > 0;
        return isLossOfVegas ? TcpNewReno::GetSsThresh(state, bytesInFlight) : Law::GetSsThresh(state, bytesInFlight);
    }

  private:
    double m_owedBytes = 0;
    uint32_t m_heldSegments = 0;
};

// Registers the types by name.
inline const TypeId MENDED[] = {
    Mended<TcpHybla>::GetTypeId(), Mended<TcpIllinois>::GetTypeId(), Mended<TcpLp>::GetTypeId(),
    Mended<TcpVegas>::GetTypeId(), Mended<TcpVeno>::GetTypeId(),     Mended<TcpWestwoodPlus>::GetTypeId(),
    Mended<TcpYeah>::GetTypeId(),
};

}  // namespace mended
