//! Rewinds a session that is not running.

use crate::{ConnectError, Connection, Ports, Refusal, submit_offline};
use dunnock_core::{Phase, State};
use dunnock_proto::{
    Command, CommandRequest, Decoded, Event, Frame, InputId, Refused, Rewound, SessionId,
};
use std::time::{Duration, Instant};

/// How long a session may take to become idle after it was stopped or opened: a checkpoint is saved
/// first.
const RESTS: Duration = Duration::from_secs(10);

/// Why a rewind failed. Nothing changed in that case.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// A process drives the session, and it is not idle.
    #[error("the session is running; wait for it, or interrupt it first")]
    AtWork,
    /// The rewind was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The rewind was attempted and failed.
    #[error("the rewind failed: {0}")]
    Failed(String),
    /// The session cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// Executes a rewind that was chosen when the session was in the state `seen`. A session that only
/// waits, or was left in the middle of its work, is stopped first instead of continuing. Waits for
/// other writers in the folder.
///
/// # Errors
/// If the session was not rewound.
pub async fn go_back(
    ports: &Ports,
    session: &SessionId,
    seen: &State,
    rewind: Command,
) -> Result<Rewound, RewindError> {
    let mut expect = Some(seen.version);
    if seen.phase != Phase::Rest {
        if ports.ownership.is_driven(session).await.map_err(ConnectError::from)? {
            return Err(RewindError::AtWork);
        }
        let id = InputId::from_random(ports.clock.random());
        // Refused if it was stopped at this very moment.
        let _ = submit_offline(
            ports,
            session,
            CommandRequest { id, expect: None, command: Command::Interrupt },
        )
        .await?;
        expect = None;
    }
    let mut connection = Connection::open(ports.clone(), session.clone(), seen.seq).await?;
    let done = carry_out(&mut connection, expect, rewind).await;
    connection.close().await;
    done
}

async fn carry_out(
    connection: &mut Connection,
    expect: Option<u64>,
    rewind: Command,
) -> Result<Rewound, RewindError> {
    let began = Instant::now();
    let asked = loop {
        match connection.expecting(expect, rewind.clone()).await? {
            Ok(seq) => break seq,
            Err(refusal) if refusal.reason == Refused::Busy && began.elapsed() < RESTS => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(refusal) => return Err(refusal.into()),
        }
    };
    loop {
        let Frame::Event(record) = connection.next().await? else { continue };
        // The command's own events come first; a rewind without files ends in the same append.
        match record.decode() {
            Decoded::Known(Event::Rewound(rewound)) if record.envelope.seq + 2 >= asked => {
                return Ok(rewound);
            }
            Decoded::Known(Event::RewindFailed(failed)) if record.envelope.seq >= asked => {
                return Err(RewindError::Failed(failed.error));
            }
            _ => {}
        }
    }
}
