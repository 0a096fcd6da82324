//! A connection of the kernel's TCP, for comparison. Like the others, it is measured from the connection to the last
//! byte read.

use crate::Failure;
use crate::place::Setup;
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The number of bytes per write and read.
const CHUNK_BYTES: usize = 1 << 16;

/// The time without data after which an end gives up.
const SILENCE: Duration = Duration::from_secs(60);

/// Returns the seconds that `bytes` take under a congestion control of the kernel.
///
/// # Errors
/// The kernel does not have this congestion control, or the connection breaks.
pub fn seconds(setup: &Setup, controller: &str, bytes: usize) -> Result<f64, Failure> {
    let (send_address, address) = mpsc::channel();
    let place = setup.receiver.clone();
    let receiving = thread::spawn(move || -> Result<(usize, Instant), String> {
        let fail = |error: std::io::Error| error.to_string();
        place.enter()?;
        let listener = TcpListener::bind(place.address).map_err(fail)?;
        send_address.send(listener.local_addr().map_err(fail)?).map_err(|error| error.to_string())?;
        let (mut flow, _) = listener.accept().map_err(fail)?;
        flow.set_read_timeout(Some(SILENCE)).map_err(fail)?;
        let (mut got, mut chunk) = (0, vec![0; CHUNK_BYTES]);
        loop {
            match flow.read(&mut chunk).map_err(fail)? {
                0 => return Ok((got, Instant::now())),
                more => got += more,
            }
            // The last byte counts, not the close, which may be late.
            if got >= bytes {
                return Ok((got, Instant::now()));
            }
        }
    });
    setup.sender.enter()?;
    // If the receiver did not start, joining it gives the reason.
    let opened = match address.recv() {
        Err(_) => None,
        Ok(to) => {
            let mut flow = TcpStream::connect(to)?;
            let opened = Instant::now();
            setsockopt(&flow, TcpCongestion, &OsString::from(controller))
                .map_err(|error| format!("congestion control \"{controller}\": {error}"))?;
            flow.set_write_timeout(Some(SILENCE))?;
            let chunk = vec![7; CHUNK_BYTES];
            let mut left = bytes;
            while left > 0 {
                left -= flow.write(&chunk[..left.min(CHUNK_BYTES)])?;
            }
            flow.shutdown(Shutdown::Write)?;
            Some(opened)
        }
    };
    let (got, ended) = receiving.join().map_err(|_| "the receiver panicked")??;
    let opened = opened.ok_or("the receiver did not begin")?;
    if got != bytes {
        return Err(format!("{got} of {bytes} bytes arrived").into());
    }
    Ok(ended.duration_since(opened).as_secs_f64())
}
