//! RAPID: estimates agree exactly except for at most 2 of 400 p-streams, gaps to 20 parts per million, and the rate
//! over a path to 1 %.
//!
//! The program rounds times to a microsecond (those of TCP's time stamps), averages of gaps to a nanosecond, and shares
//! and multiples to 2^-16.

use super::{Conversation, Twin, constants};
use sparelane_cc::algos::rapid::{Bass, Estimator, Excursion, Pair, Sample};
use sparelane_cc::contract::{Ack, Congestion, CongestionControl, Cx, Departure, Received};
use sparelane_cc::param::{Value, Values};
use sparelane_cc::registry::{Blueprint, build};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use std::collections::VecDeque;

const MSS: u64 = 1448;
const LINE: Rate = Rate::from_gbps(1);
const RTT: Dur = Dur::from_ms(30);

/// The defaults of the controller's settings.
const BASS: Bass = Bass { passes: 3, factor: 0.5, floor: Dur::from_us(5) };
const EXCURSION: Excursion = Excursion { share: 0.03, persistence: 0.45, samples: 8 };

fn twin(settings: &[(&str, &str)]) -> Conversation {
    let mut twin = Conversation::new(&Twin::compiled("rapid"), &constants("rapid", settings, LINE));
    twin.ask(&format!("open {MSS}"));
    twin
}

/// Returns the gaps of a p-stream over a random path: send gap and receive gap in microseconds, and the rate in bit/s.
///
/// The path has noise, interrupt coalescing, and a queue that builds up above some rate.
fn random_stream(random: &mut Stream) -> Vec<(u64, u64, u64)> {
    let (packets, base_us) = (2 + random.below(63), 20 + random.below(200));
    let queue_from = random.below(6);
    let (batch, noise) = (1 + random.below(6), 1 + random.below(4));
    let mut waiting_us = 0;
    let sample = |at: u64| {
        let level = 4 * at / packets;
        let sent_us = base_us - base_us * level / 6;
        let queued_us = if level >= queue_from { sent_us / 8 } else { 0 };
        let arrival_us = sent_us + queued_us + random.below(noise);
        // The receiver hands over packets in batches, as with interrupt coalescing.
        waiting_us += arrival_us;
        let is_handed_over = at.is_multiple_of(batch);
        let received_us = if is_handed_over { std::mem::take(&mut waiting_us) } else { 1.min(waiting_us) };
        waiting_us -= if is_handed_over { 0 } else { received_us };
        (sent_us, received_us, 8_000_000 * MSS / sent_us)
    };
    (0..packets).map(sample).collect()
}

/// The number of p-streams, of 400, whose estimate may differ.
///
/// If the share of waiting packets is exactly at the limit for an excursion, the rounding decides.
const MAX_DIFFERENCES: usize = 2;

#[test]
fn estimates_of_random_p_streams_are_the_same_with_and_without_bass() {
    let twin = Twin::compiled("rapid");
    for passes in [0, 1, 3] {
        let mut estimator = Estimator::new(Bass { passes, ..BASS }, EXCURSION, 64);
        let mut random = Stream::new(u64::from(passes), Domain::Test, 3);
        let (mut script, mut rows, mut estimates) = (format!("open {MSS}\n"), 1, Vec::new());
        let mut excursions = 0;
        for _ in 0..400 {
            let stream = random_stream(&mut random);
            for (sent, received, rate) in &stream {
                script += &format!("sample {sent} {received} {rate}\n");
            }
            script += "estimate\n";
            let sample = |&(sent, received, rate): &(u64, u64, u64)| Sample {
                gap: Pair { send: Dur::from_us(sent), receive: Dur::from_us(received) },
                rate: Rate::from_bps(rate),
            };
            let samples: Vec<Sample> = stream.iter().map(sample).collect();
            let estimate = estimator.estimate(&samples).expect("two samples or more").as_bps();
            rows += stream.len() + 1;
            estimates.push((rows - 1, estimate));
            excursions += u64::from(stream.iter().any(|&(_, _, rate)| rate > estimate));
            // Now and then both drop the carried samples, as after a loss.
            if random.below(10) == 0 {
                (script, rows) = (script + "forget\n", rows + 1);
                estimator.forget();
            }
        }
        let answers = twin.answers(&constants("rapid", &[("bass_passes", &passes.to_string())], LINE), &script);
        let different: Vec<_> = estimates.iter().filter(|&&(row, estimate)| answers[row][0] != estimate).collect();
        assert!(different.len() <= MAX_DIFFERENCES, "with {passes} passes: {different:?}");
        assert!((50..350).contains(&excursions), "{excursions} of 400 p-streams met a queue");
    }
}

/// The common interface of both senders over a path.
trait Sender {
    /// Returns the time at which the next packet may leave.
    fn due(&mut self) -> Time;
    /// A segment leaves.
    fn depart(&mut self, now: Time, segment: u64);
    /// The acknowledgment of a segment arrives, which left at `sent` and was received at `received`.
    fn acknowledged(&mut self, now: Time, segment: u64, sent: Time, received: Time);
    /// Returns R_avg in bits per second.
    fn rate_bps(&mut self) -> u64;
}

struct Kernel {
    twin: Conversation,
    due_ns: u64,
    next: u64,
    rate_bps: u64,
}

impl Kernel {
    fn new(settings: &[(&str, &str)]) -> Kernel {
        Kernel { twin: twin(settings), due_ns: 0, next: 0, rate_bps: 0 }
    }
}

impl Sender for Kernel {
    fn due(&mut self) -> Time {
        Time::ZERO + Dur::from_ns(self.due_ns)
    }

    fn depart(&mut self, now: Time, segment: u64) {
        let now_ns = (now - Time::ZERO).as_ps() / 1000;
        let answer = self.twin.ask(&format!("depart {now_ns} {} {}", self.due_ns, segment * MSS));
        self.due_ns = now_ns + MSS * 1_000_000_000 / answer[5];
        self.next = (segment + 1) * MSS;
    }

    fn acknowledged(&mut self, _: Time, segment: u64, sent: Time, received: Time) {
        let us = |at: Time| (at - Time::ZERO).as_ps() / 1_000_000;
        let (una, next) = ((segment + 1) * MSS, self.next);
        self.rate_bps = self.twin.ask(&format!("ack {una} {} {} 0 {next}", us(sent), us(received)))[0];
    }

    fn rate_bps(&mut self) -> u64 {
        self.rate_bps
    }
}

struct Simulator {
    rapid: Box<dyn CongestionControl>,
    random: Stream,
}

impl Simulator {
    fn new(initial: Rate) -> Simulator {
        let (mut values, inner) = (Values::default(), Values::default());
        values.set("initial_rate", Value::Rate(Some(initial)));
        let plan = Blueprint { line_rate: LINE, ..Blueprint::of_any(MSS, &inner) };
        let rapid = build("rapid", &values, &plan).expect("a controller");
        let mut simulator = Simulator { rapid, random: Stream::new(1, Domain::Test, 0) };
        simulator.with(Time::ZERO, |rapid, cx| rapid.on_established(None, cx));
        simulator
    }

    fn with<T>(&mut self, now: Time, call: impl FnOnce(&mut dyn CongestionControl, &mut Cx<'_>) -> T) -> T {
        let (srtt, min_rtt) = (Some(RTT), Some(RTT));
        call(&mut *self.rapid, &mut Cx { now, mss_bytes: MSS, srtt, min_rtt, rng: &mut self.random })
    }

    fn traced(&self, wanted: &str) -> u64 {
        let mut found = 0;
        self.rapid.trace(&mut |name, value| {
            if name == wanted {
                found = value as u64;
            }
        });
        found
    }
}

impl Sender for Simulator {
    fn due(&mut self) -> Time {
        self.with(Time::ZERO, |rapid, cx| rapid.next_departure(cx))
    }

    fn depart(&mut self, now: Time, segment: u64) {
        let departure = Departure { segment, is_retransmission: false, waiting: 1 };
        self.with(now, |rapid, cx| rapid.on_departure(&departure, cx));
    }

    fn acknowledged(&mut self, now: Time, segment: u64, _: Time, received: Time) {
        let received = Some(Received { segment, at: received });
        self.with(now, |rapid, cx| rapid.on_ack(&Ack { received, ..Ack::in_sequence(MSS) }, cx));
    }

    fn rate_bps(&mut self) -> u64 {
        self.traced("rate_bps")
    }
}

/// Returns a sender's rate every 20 ms over an ideal path with a queue. The bandwidth halves after half the time.
fn over_a_path(sender: &mut dyn Sender, available: Rate, until: Time) -> Vec<u64> {
    let (mut now, mut sent, mut free_at) = (Time::ZERO, 0, Time::ZERO);
    let mut acks: VecDeque<(u64, Time, Time)> = VecDeque::new();
    let (mut rates, mut sample_at) = (Vec::new(), Time::ZERO);
    let half = Time::ZERO + (until - Time::ZERO) / 2;
    while now < until {
        let due = sender.due().max(now);
        let ack_at = acks.front().map_or(Time::NEVER, |&(_, _, received)| received + RTT);
        now = due.min(ack_at);
        while sample_at <= now {
            rates.push(sender.rate_bps());
            sample_at += Dur::from_ms(20);
        }
        // Acknowledgments come first if both events are due.
        if ack_at <= due
            && let Some((segment, departed, received)) = acks.pop_front()
        {
            sender.acknowledged(now, segment, departed, received);
            continue;
        }
        sender.depart(now, sent);
        let bandwidth = if now < half { available } else { available.scaled(0.5) };
        free_at = free_at.max(now) + bandwidth.time_for(MSS + 40);
        acks.push_back((sent, now, free_at));
        sent += 1;
    }
    rates
}

#[test]
fn rates_over_a_path_agree() {
    let until = Time::ZERO + Dur::from_ms(1600);
    let mut kernel = Kernel::new(&[("initial_rate", "10Mbps")]);
    let kernel = over_a_path(&mut kernel, Rate::from_mbps(40), until);
    let simulator = over_a_path(&mut Simulator::new(Rate::from_mbps(10)), Rate::from_mbps(40), until);
    assert_eq!(kernel.len(), simulator.len());
    // The first five samples precede the first estimate.
    let far = |at: &usize| kernel[*at].abs_diff(simulator[*at]) * 100 > simulator[*at];
    let different: Vec<usize> = (5..kernel.len()).filter(far).collect();
    assert!(different.is_empty(), "at {different:?}:\nkernel    {kernel:?}\nsimulator {simulator:?}");
    let mbps = |at: usize| kernel[at] / 1_000_000;
    assert!((33..=47).contains(&mbps(39)) && (15..35).contains(&mbps(79)), "{} and {} Mb/s", mbps(39), mbps(79));
}

/// Section II of the paper: the rates of a p-stream around their mean, and the pacing rate with which the kernel keeps
/// each gap.
#[test]
fn gaps_agree_to_20_parts_per_million_and_the_pacing_rate_to_2() {
    let mut kernel = twin(&[("initial_rate", "10Mbps")]);
    let mut simulator = Simulator::new(Rate::from_mbps(10));
    let (mut now_ns, mut now) = (0, Time::ZERO);
    for segment in 0..200 {
        let answer = kernel.ask(&format!("depart {now_ns} {now_ns} {}", segment * MSS));
        simulator.depart(now, segment);
        let due = simulator.due();
        let gap_ns = (due - now).as_ps() as f64 / 1e3;
        assert!((answer[4] as f64 / gap_ns - 1.0).abs() < 2e-5, "{} and {gap_ns} ns after packet {segment}", answer[4]);
        let paced_ns = MSS as f64 * 1e9 / answer[5] as f64;
        assert!((paced_ns / answer[4] as f64 - 1.0).abs() < 2e-6, "{paced_ns} for {} ns", answer[4]);
        (now_ns, now) = (now_ns + answer[4], due);
    }
}

#[test]
fn a_timeout_restarts_and_a_spurious_one_is_undone() {
    let mut kernel = Kernel::new(&[("initial_rate", "10Mbps")]);
    over_a_path(&mut kernel, Rate::from_mbps(40), Time::ZERO + Dur::from_ms(400));
    let before = kernel.rate_bps();
    assert!(before > 30_000_000, "{before}");
    assert_eq!(kernel.twin.ask("state 3")[0], before, "a loss is left to TCP");
    assert_eq!(kernel.twin.ask("state 4")[0], 10_000_000);
    let mut simulator = Simulator::new(Rate::from_mbps(10));
    over_a_path(&mut simulator, Rate::from_mbps(40), Time::ZERO + Dur::from_ms(400));
    let timeout = Congestion::Timeout { flight_bytes: MSS, first: true };
    simulator.with(Time::ZERO, |rapid, cx| rapid.on_congestion(timeout, cx));
    assert_eq!(simulator.rate_bps(), 10_000_000);
    assert_eq!(kernel.twin.ask("undo")[0], before);
    assert_eq!(kernel.twin.ask("undo")[6], 16_000, "the window is fixed");
}

#[test]
fn p_streams_with_a_loss_or_a_pause_are_skipped() {
    let mut kernel = twin(&[("initial_rate", "10Mbps")]);
    let mut now_ns = 0;
    let mut departed = Vec::new();
    for segment in 0..256 {
        // The third p-stream pauses for 5 ms in its middle.
        now_ns += if segment == 150 { 5_000_000 } else { 0 };
        let due_ns = now_ns - if segment == 150 { 5_000_000 } else { 0 };
        let answer = kernel.ask(&format!("depart {now_ns} {due_ns} {}", segment * MSS));
        departed.push(now_ns / 1000);
        now_ns += answer[4];
    }
    let mut last = Vec::new();
    for segment in 0..256u64 {
        // The acknowledgment of the second p-stream's tenth packet reports a hole, so all packets sent until then are
        // suspect.
        let sacked = u64::from(segment == 74);
        let next = if segment <= 74 { 100 * MSS } else { 256 * MSS };
        let sent = departed[segment as usize];
        last = kernel.ask(&format!("ack {} {sent} {} {sacked} {next}", (segment + 1) * MSS, sent + 15_000));
    }
    // Judged are the first p-stream and the one after the pause. Skipped are the second and the one before the pause.
    assert_eq!(last[2..4], [2, 2], "judged and skipped");
}
