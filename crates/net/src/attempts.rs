//! The attempts of a sender to reach its peer: which address comes next, how long each is waited
//! for, and when to give up.
//!
//! Before the first connection, the addresses of the peer share the connect timeout. An address that
//! refuses or is unreachable is given up at once; a closed port is tried again for a moment, since
//! the peer may be starting. After a connection is lost, the address that has answered is tried
//! again until the retry time is over. A peer that refuses has most likely stopped, so refusals are
//! tried again during the connect timeout only.
//!
//! There is neither clock nor socket: the caller passes the time and carries out the requests.

use crate::carrier::{CloseReason, Obstacle};
use crate::quic::CODE_SILENT;
use crate::transfer::CODE_STOPPED;
use sparelane_core::{Dur, Time};
use std::fmt;
use std::net::SocketAddr;
use thiserror::Error;

/// The time for which closed ports are tried again before the first connection.
const STARTING_TIME: Dur = Dur::from_secs(1);

/// The pause before the first repeated attempt, and the longest pause; each is twice the previous.
const FIRST_PAUSE: Dur = Dur::from_ms(200);
const LONGEST_PAUSE: Dur = Dur::from_secs(2);

/// The limits of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time to wait for an answer, of all addresses together.
    pub connect_timeout: Dur,
    /// The time in which a lost connection is restored; zero gives up at once.
    pub retry: Dur,
}

/// The failure of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There was no answer.
    Silent {
        /// The address.
        to: SocketAddr,
        /// The time that this host waited.
        after: Dur,
    },
    /// The handshake ended.
    Ended(CloseReason),
    /// The system refused to begin, for example because there is no route.
    Refused {
        /// The address.
        to: SocketAddr,
        /// The reason.
        error: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Silent { to, after } => write!(f, "{to} does not answer; gave up after {}", seconds(*after)),
            Failure::Ended(reason) => reason.fmt(f),
            Failure::Refused { to, error } => write!(f, "{to}: {error}"),
        }
    }
}

/// The end of all attempts.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConnectError {
    /// No address could be reached.
    #[error("{}", listed(.0))]
    Failed(Vec<Failure>),
    /// A connection was lost and could not be restored.
    #[error("the connection was lost: {reason}; it was not restored in {}: {}", seconds(*.after), listed(.failures))]
    Lost {
        /// The reason for which it was lost.
        reason: CloseReason,
        /// The time without a connection.
        after: Dur,
        /// The failures of the last attempts.
        failures: Vec<Failure>,
    },
    /// An association ended for a reason that no attempt would change.
    #[error(transparent)]
    Ended(CloseReason),
}

fn seconds(span: Dur) -> String {
    format!("{} s", (span.as_secs_f64() * 10.0).round() / 10.0)
}

fn listed(failures: &[Failure]) -> String {
    failures.iter().map(Failure::to_string).collect::<Vec<_>>().join("; ")
}

/// A request to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Begin an association with this address.
    Connect(SocketAddr),
    /// Close the association that was begun last: it has no answer in time.
    Abandon,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// The next attempt begins at this time.
    Waiting(Time),
    /// An attempt began at the first time, and is given up at the second.
    Trying(Time, Time),
    /// The association is open.
    Open,
    /// There are no more attempts.
    Over(ConnectError),
}

/// The attempts to reach one peer.
#[derive(Debug)]
pub struct Attempts {
    addresses: Vec<SocketAddr>,
    /// The address of the current attempt.
    at: usize,
    limits: Limits,
    state: State,
    /// The time since which there is no connection, or none with progress.
    since: Time,
    /// The reason for which the latest association was lost.
    lost: Option<CloseReason>,
    /// The failures of the current round through all addresses.
    failures: Vec<Failure>,
    pause: Dur,
}

impl Attempts {
    /// Creates the attempts for a peer with these addresses, of which there is at least one.
    pub fn new(addresses: Vec<SocketAddr>, limits: Limits, now: Time) -> Attempts {
        let (state, pause) = (State::Waiting(now), FIRST_PAUSE);
        Attempts { addresses, at: 0, limits, state, since: now, lost: None, failures: vec![], pause }
    }

    /// The address of the current association or attempt.
    pub fn address(&self) -> Option<SocketAddr> {
        self.addresses.get(self.at).copied()
    }

    /// The reason for which the latest association was lost, while it is not restored.
    pub fn lost(&self) -> Option<&CloseReason> {
        self.lost.as_ref().filter(|_| self.state != State::Open)
    }

    /// The time at which [`poll`](Self::poll) should be called next.
    pub fn next_timer(&self) -> Time {
        match self.state {
            State::Waiting(next) => next,
            State::Trying(_, until) => until,
            State::Open => Time::NEVER,
            State::Over(_) => Time::ZERO,
        }
    }

    /// Returns true if the loss of the open association is followed by another attempt.
    pub fn may_retry(&self) -> bool {
        self.state == State::Open && !self.limits.retry.is_zero()
    }

    /// Returns what the caller has to do now, if anything.
    ///
    /// # Errors
    /// There are no more attempts.
    pub fn poll(&mut self, now: Time) -> Result<Option<Request>, ConnectError> {
        match &self.state {
            State::Waiting(next) if *next <= now => match self.address() {
                Some(to) => {
                    self.state = State::Trying(now, now + self.time_to_answer(now));
                    Ok(Some(Request::Connect(to)))
                }
                None => Err(ConnectError::Failed(vec![])),
            },
            State::Trying(began, until) if *until <= now => {
                if let Some(to) = self.address() {
                    let after = if self.addresses.len() > 1 { now - *began } else { now - self.since };
                    self.fail(now, Failure::Silent { to, after });
                }
                Ok(Some(Request::Abandon))
            }
            State::Over(error) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    /// The time for which the next attempt waits for an answer.
    fn time_to_answer(&self, now: Time) -> Dur {
        let share = self.limits.connect_timeout / self.addresses.len().max(1) as u64;
        match self.lost {
            Some(_) => share.min((self.since + self.limits.retry).saturating_since(now)),
            None => share,
        }
    }

    /// Handles the end of an attempt, or the loss of the open association.
    pub fn handle_closed(&mut self, now: Time, reason: CloseReason) {
        match self.state {
            State::Open if is_lasting(&reason) => self.state = State::Over(ConnectError::Ended(reason)),
            State::Open => {
                // Without progress since the last loss, its time continues.
                let is_new = self.lost.is_none();
                if is_new {
                    (self.since, self.pause) = (now, FIRST_PAUSE);
                }
                // A peer that has restarted can be reached at once.
                let at_once = is_new && reason == CloseReason::Restarted;
                // Only the address that has answered is tried again.
                self.addresses = self.address().into_iter().collect();
                (self.at, self.failures, self.lost) = (0, vec![], Some(reason));
                match at_once && !self.limits.retry.is_zero() {
                    true => self.state = State::Waiting(now),
                    false => self.wait(now, self.limits.retry),
                }
            }
            // A handshake may fail for a reason that another one does not have, such as a change of address.
            State::Waiting(_) | State::Trying(..)
                if is_lasting(&reason) && !(self.lost.is_some() && matches!(reason, CloseReason::Failed(_))) =>
            {
                self.state = State::Over(ConnectError::Ended(reason));
            }
            State::Waiting(_) | State::Trying(..) => self.fail(now, Failure::Ended(reason)),
            State::Over(_) => {}
        }
    }

    /// Handles an attempt that the system has refused.
    pub fn handle_refused(&mut self, now: Time, error: String) {
        if let Some(to) = self.address() {
            self.fail(now, Failure::Refused { to, error });
        }
    }

    /// Handles an association that this host has left to begin another one at once.
    pub fn handle_left(&mut self, now: Time) {
        self.addresses = self.address().into_iter().collect();
        (self.at, self.failures, self.lost) = (0, vec![], None);
        (self.since, self.state) = (now, State::Waiting(now));
    }

    /// Handles the opening of the association.
    pub fn handle_opened(&mut self) {
        self.state = State::Open;
    }

    /// Notes progress over the open association, which restores all of the retry time.
    pub fn handle_progress(&mut self) {
        if self.state == State::Open {
            self.lost = None;
        }
    }

    /// Records a failure, and schedules the next attempt if there is one.
    fn fail(&mut self, now: Time, failure: Failure) {
        let has_refused = is_refusal(&failure);
        self.failures.push(failure);
        if self.at + 1 < self.addresses.len() {
            (self.at, self.state) = (self.at + 1, State::Waiting(now));
            return;
        }
        let most = match (&self.lost, self.failures.iter().any(is_refusal)) {
            (None, true) => STARTING_TIME.min(self.limits.connect_timeout),
            (None, false) => Dur::ZERO,
            (Some(_), _) if has_refused => self.limits.connect_timeout.min(self.limits.retry),
            (Some(_), _) => self.limits.retry,
        };
        self.wait(now, most);
    }

    /// Schedules another round after a pause, unless `most` is nearly over since the last connection. The last round
    /// begins shortly before that, however long the pause would be.
    fn wait(&mut self, now: Time, most: Dur) {
        let last = self.since + most.saturating_sub(FIRST_PAUSE);
        let next = (now + self.pause).min(last);
        if next <= now {
            let failures = std::mem::take(&mut self.failures);
            self.state = State::Over(match self.lost.clone() {
                // Without any attempt, the reason is all there is to say.
                Some(reason) if failures.is_empty() => ConnectError::Ended(reason),
                Some(reason) => ConnectError::Lost { reason, after: now - self.since, failures },
                None => ConnectError::Failed(failures),
            });
            return;
        }
        (self.at, self.state) = (0, State::Waiting(next));
        self.failures.clear();
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns true if the peer's host has answered that the service is not available now.
fn is_refusal(failure: &Failure) -> bool {
    match failure {
        Failure::Ended(CloseReason::Unreachable(report)) => report.obstacle == Obstacle::PortClosed,
        Failure::Ended(CloseReason::Peer { code, .. }) => *code == u64::from(CODE_STOPPED),
        Failure::Ended(CloseReason::HandshakeGivenUp) => true,
        _ => false,
    }
}

/// Returns true for an end that another attempt would not change: a decision of either side.
fn is_lasting(reason: &CloseReason) -> bool {
    match reason {
        CloseReason::IdleTimeout
        | CloseReason::Restarted
        | CloseReason::Stuck
        | CloseReason::HandshakeGivenUp
        | CloseReason::Unreachable(_) => false,
        CloseReason::Peer { code, .. } => ![CODE_STOPPED, CODE_SILENT].map(u64::from).contains(code),
        CloseReason::Here
        | CloseReason::Untrusted(_)
        | CloseReason::NotTrusted(_)
        | CloseReason::Revoked(_)
        | CloseReason::Failed(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Unreachable;
    use crate::virt::address_of;

    const LIMITS: Limits = Limits { connect_timeout: Dur::from_secs(10), retry: Dur::from_secs(60) };

    fn obstacle(obstacle: Obstacle) -> CloseReason {
        let to = address_of(1);
        CloseReason::Unreachable(Unreachable { to, obstacle, reporter: Some(to.ip()) })
    }

    /// Runs attempts that all end with `answer`, or have no answer. Returns the number of attempts, the
    /// time until the end, and the error.
    fn run(attempts: &mut Attempts, mut now: Time, answer: Option<&CloseReason>) -> (usize, Dur, ConnectError) {
        let (began, mut count) = (now, 0);
        loop {
            match attempts.poll(now) {
                Ok(Some(Request::Connect(_))) => {
                    count += 1;
                    if let Some(reason) = answer {
                        now += Dur::from_ms(10);
                        attempts.handle_closed(now, reason.clone());
                    }
                }
                Ok(_) => now = now.max(attempts.next_timer()),
                Err(error) => return (count, now - began, error),
            }
        }
    }

    fn first(addresses: &[SocketAddr]) -> Attempts {
        Attempts::new(addresses.to_vec(), LIMITS, Time::ZERO)
    }

    /// Attempts whose association has been open until `now`, with progress.
    fn lost(limits: Limits, now: Time, reason: CloseReason) -> Attempts {
        let mut attempts = Attempts::new(vec![address_of(1)], limits, Time::ZERO);
        assert_eq!(attempts.poll(Time::ZERO), Ok(Some(Request::Connect(address_of(1)))));
        attempts.handle_opened();
        attempts.handle_progress();
        attempts.handle_closed(now, reason);
        attempts
    }

    #[test]
    fn refused_unreachable_without_route_and_silent_are_four_messages_at_different_times() {
        let at = address_of(1);
        let refused = obstacle(Obstacle::PortClosed);
        let (count, took, error) = run(&mut first(&[at]), Time::ZERO, Some(&refused));
        assert!(count > 1 && took <= STARTING_TIME, "{count} attempts in {took}");
        assert_eq!(error.to_string(), "10.0.0.2:7777 refused the connection: no program receives at this port");
        let (count, took, error) = run(&mut first(&[at]), Time::ZERO, Some(&obstacle(Obstacle::Host)));
        assert_eq!((count, took), (1, Dur::from_ms(10)));
        let expected = "10.0.0.2:7777 is unreachable: the network reports that the host does not answer";
        assert_eq!(error.to_string(), expected);
        let (count, _, error) = run(&mut first(&[at]), Time::ZERO, Some(&obstacle(Obstacle::NoRoute)));
        assert_eq!((count, error.to_string().as_str()), (1, "10.0.0.2:7777: this host has no route to it"));
        let (count, took, error) = run(&mut first(&[at]), Time::ZERO, None);
        assert_eq!((count, took), (1, LIMITS.connect_timeout));
        assert_eq!(error.to_string(), "10.0.0.2:7777 does not answer; gave up after 10 s");
    }

    #[test]
    fn all_addresses_are_tried_before_the_first_connection_and_named_in_the_error() {
        let (count, took, error) = run(&mut first(&[address_of(0), address_of(1)]), Time::ZERO, None);
        assert_eq!((count, took), (2, LIMITS.connect_timeout));
        assert_eq!(
            error.to_string(),
            "10.0.0.1:1000 does not answer; gave up after 5 s; 10.0.0.2:7777 does not answer; gave up after 5 s"
        );
        let mut attempts = first(&[address_of(0), address_of(1)]);
        assert_eq!(attempts.poll(Time::ZERO), Ok(Some(Request::Connect(address_of(0)))));
        attempts.handle_closed(Time::ZERO, obstacle(Obstacle::PortClosed));
        assert_eq!(attempts.poll(Time::ZERO), Ok(Some(Request::Connect(address_of(1)))), "the next one at once");
    }

    #[test]
    fn a_lost_connection_is_restored_within_the_retry_time() {
        let now = Time::ZERO + Dur::from_secs(100);
        // The path has failed.
        let (count, took, error) = run(&mut lost(LIMITS, now, CloseReason::IdleTimeout), now, None);
        assert!(count >= 6 && took <= LIMITS.retry && took > Dur::from_secs(55), "{count}, {took}");
        assert!(
            error
                .to_string()
                .starts_with("the connection was lost: the peer was silent for too long; it was not restored"),
            "{error}"
        );
        // The peer has stopped.
        let refused = obstacle(Obstacle::PortClosed);
        let (count, took, _) = run(&mut lost(LIMITS, now, CloseReason::Restarted), now, Some(&refused));
        assert!(count > 5 && took <= LIMITS.connect_timeout && took > Dur::from_secs(7), "{count}, {took}");
        // A peer that has restarted is tried at once.
        assert_eq!(lost(LIMITS, now, CloseReason::Restarted).poll(now), Ok(Some(Request::Connect(address_of(1)))));
    }

    #[test]
    fn without_retry_the_reason_of_the_loss_is_the_error() {
        let now = Time::ZERO + Dur::from_secs(100);
        let limits = Limits { retry: Dur::ZERO, ..LIMITS };
        for reason in [CloseReason::IdleTimeout, CloseReason::Restarted] {
            assert_eq!(lost(limits, now, reason.clone()).poll(now), Err(ConnectError::Ended(reason)));
        }
    }

    #[test]
    fn a_peer_that_ends_each_association_without_progress_is_given_up() {
        let mut now = Time::ZERO + Dur::from_secs(100);
        let mut attempts = lost(LIMITS, now, CloseReason::Restarted);
        let began = now;
        let mut count = 0;
        loop {
            match attempts.poll(now) {
                Ok(Some(_)) => {
                    count += 1;
                    attempts.handle_opened();
                    now += Dur::from_ms(100);
                    attempts.handle_closed(now, CloseReason::Restarted);
                }
                Ok(None) => now = now.max(attempts.next_timer()),
                Err(_) => break,
            }
        }
        assert!(now - began <= LIMITS.retry && (20..60).contains(&count), "{count} in {}", now - began);
    }

    /// The client has finished its handshake, but its last message is lost, so the peer gives up.
    #[test]
    fn a_handshake_that_the_peer_gives_up_is_tried_again() {
        let now = Time::ZERO + Dur::from_secs(100);
        for reason in [CloseReason::HandshakeGivenUp, CloseReason::Stuck] {
            assert!(lost(LIMITS, now, reason.clone()).poll(now).is_ok());
            let once = Limits { retry: Dur::ZERO, ..LIMITS };
            assert_eq!(lost(once, now, reason.clone()).poll(now), Err(ConnectError::Ended(reason)));
        }
        let (count, took, error) = run(&mut first(&[address_of(1)]), Time::ZERO, Some(&CloseReason::HandshakeGivenUp));
        assert!(count > 1 && took <= STARTING_TIME, "{count} attempts in {took}");
        assert!(error.to_string().starts_with("the peer gave up the handshake"), "{error}");
    }

    #[test]
    fn decisions_of_either_side_are_not_tried_again() {
        let now = Time::ZERO + Dur::from_secs(100);
        let peer = |code| CloseReason::Peer { code: u64::from(code), reason: "no".into() };
        for reason in [CloseReason::Failed("x".into()), peer(crate::transfer::CODE_RULES), CloseReason::Here] {
            assert_eq!(lost(LIMITS, now, reason.clone()).poll(now), Err(ConnectError::Ended(reason.clone())));
            let (count, took, error) = run(&mut first(&[address_of(1)]), Time::ZERO, Some(&reason));
            assert_eq!((count, took, error), (1, Dur::from_ms(10), ConnectError::Ended(reason)));
        }
        for reason in [peer(CODE_STOPPED), peer(CODE_SILENT)] {
            assert!(lost(LIMITS, now, reason).poll(now).is_ok());
        }
    }
}
