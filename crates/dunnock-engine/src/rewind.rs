//! Going back in a session that nobody works on.

use crate::{ConnectError, Connection, Ports, Refusal, submit_offline};
use dunnock_core::{Phase, State};
use dunnock_proto::{Command, CommandRequest, Decoded, Event, Frame, InputId, Refused, Rewound, SessionId};
use std::time::{Duration, Instant};

/// How long what was stopped, or only just taken up, may need until it rests: files are kept first.
const RESTS: Duration = Duration::from_secs(10);

/// Why a session did not go back. Nothing changed then.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// Somebody drives it, and it does not rest.
    #[error("somebody is working on it; wait for it, or interrupt it first")]
    AtWork,
    /// It was not let.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was tried.
    #[error("it could not go back: {0}")]
    Failed(String),
    /// The session cannot be reached.
    #[error(transparent)]
    Door(#[from] ConnectError),
}

/// Carries out a rewind that was thought of when the session stood as `seen`. What merely waits, or was left in the middle of its
/// work, is stopped first instead of going on. Waits for whoever writes in the folder.
///
/// # Errors
/// When it did not go back.
pub async fn go_back(
    world: &Ports,
    session: &SessionId,
    seen: &State,
    rewind: Command,
) -> Result<Rewound, RewindError> {
    let mut expect = Some(seen.version);
    if seen.phase != Phase::Rest {
        if Connection::join(world.clone(), session.clone(), seen.seq).await?.is_some() {
            return Err(RewindError::AtWork);
        }
        let id = InputId::from_random(world.clock.random());
        // Refused, if somebody stopped it in this moment.
        let _ =
            submit_offline(world, session, CommandRequest { id, expect: None, command: Command::Interrupt }).await?;
        expect = None;
    }
    let mut door = Connection::open(world.clone(), session.clone(), seen.seq).await?;
    let done = carry_out(&mut door, expect, rewind).await;
    door.close().await;
    done
}

async fn carry_out(door: &mut Connection, expect: Option<u64>, rewind: Command) -> Result<Rewound, RewindError> {
    let began = Instant::now();
    let asked = loop {
        match door.expecting(expect, rewind.clone()).await? {
            Ok(seq) => break seq,
            Err(refusal) if refusal.reason == Refused::Busy && began.elapsed() < RESTS => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(refusal) => return Err(refusal.into()),
        }
    };
    loop {
        let Frame::Event(record) = door.next().await? else { continue };
        // The command's own events come first; one that needs no files ends in the same breath.
        match record.decode() {
            Decoded::Known(Event::Rewound(rewound)) if record.envelope.seq + 2 >= asked => return Ok(rewound),
            Decoded::Known(Event::RewindFailed(failed)) if record.envelope.seq >= asked => {
                return Err(RewindError::Failed(failed.error));
            }
            _ => {}
        }
    }
}
