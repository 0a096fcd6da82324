// Controllers of ns-3 with little changed, to check that it is what makes the difference from ours.

#pragma once

#include "ns3/internet-module.h"

#include <type_traits>
#include <utility>

namespace mended {

using namespace ns3;

// ns-3's LEDBAT with ALLOWED_INCREASE of RFC 6817 section 2.4.2, one segment. ns-3 limits the window to what was in flight
// before the acknowledgment, so that it never grows, and beyond the target falls by a segment with every acknowledgment.
// The limit is of the highest byte sent: it is raised by a segment for as long as the law looks at it.
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

// ns-3's H-TCP with alpha in segments a window. ns-3 adds alpha bytes with every acknowledgment to NewReno's growth.
// Before the first loss, when its beta is zero and alpha for that reason twice what it is later, alpha is halved, as by
// a beta of 1/2.
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

// A controller that is told each round-trip time, where ns-3 tells the smoothed time; and the fractions of a byte that
// ns-3 drops from NewReno's growth with every acknowledgment, saved.
//
// Also, Hybla hears the least time, since it compares by equality, and the least is the handshake's with its small
// packets.
// Illinois hears microseconds for milliseconds, to which it rounds, since its law only knows ratios; and
// acknowledgments beyond slow start fifty at a time, since it counts alpha for each in whole numbers, so none below one.
// LP does not hear of acknowledgments while a loss is repaired: those echo the time of a segment before the hole.
// Vegas halves at a loss, as in Linux; ns-3 goes to the threshold of slow start, which is three quarters of the window.
// Veno hears each time thrice, since it forgets with every acknowledgment how many it had, and wants three.
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
        // Vegas asks itself, too, with nothing in flight.
        const bool isLossOfVegas = std::is_same_v<Law, TcpVegas> && bytesInFlight > 0;
        return isLossOfVegas ? TcpNewReno::GetSsThresh(state, bytesInFlight) : Law::GetSsThresh(state, bytesInFlight);
    }

  private:
    double m_owedBytes = 0;
    uint32_t m_heldSegments = 0;
};

// To be found by name.
inline const TypeId MENDED[] = {
    Mended<TcpHybla>::GetTypeId(), Mended<TcpIllinois>::GetTypeId(), Mended<TcpLp>::GetTypeId(),
    Mended<TcpVegas>::GetTypeId(), Mended<TcpVeno>::GetTypeId(),     Mended<TcpWestwoodPlus>::GetTypeId(),
    Mended<TcpYeah>::GetTypeId(),
};

}  // namespace mended
