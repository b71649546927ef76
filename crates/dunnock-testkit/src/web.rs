//! A client for the server, of plain sockets: what a program, a browser or an attacker would send,
//! byte by byte.

use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// An answer.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Its status; 0 if the connection ended without one.
    pub status: u16,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Heard {
    /// A header, if it came.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
    /// The body as JSON; null if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// Sends these bytes on a connection of their own and hears what comes.
pub fn raw(at: SocketAddr, bytes: &[u8]) -> Heard {
    let heard = || -> io::Result<Heard> {
        let mut stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(Duration::from_secs(70)))?;
        let _ = stream.write_all(bytes); // a server that has heard enough may answer before all is said
        hear(&mut BufReader::new(stream))
    };
    heard().unwrap_or_default()
}

fn hear(from: &mut BufReader<TcpStream>) -> io::Result<Heard> {
    let mut heard = Heard::default();
    let mut line = String::new();
    from.read_line(&mut line)?;
    heard.status = line.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim().split_once(':') {
            heard.headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
    }
    let length = heard.header("content-length").and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    heard.body = String::from_utf8_lossy(&body).into_owned();
    Ok(heard)
}

/// A program that has the token. One connection, opened again when it ends.
pub struct Api {
    /// Where.
    pub at: SocketAddr,
    /// What it shows.
    pub token: String,
    line: Option<BufReader<TcpStream>>,
}

impl Clone for Api {
    fn clone(&self) -> Self {
        Self::new(self.at, &self.token)
    }
}

impl Api {
    /// One for this server.
    #[must_use]
    pub fn new(at: SocketAddr, token: &str) -> Self {
        Self { at, token: token.into(), line: None }
    }

    fn once(&mut self, bytes: &[u8]) -> io::Result<Heard> {
        let line = match &mut self.line {
            Some(line) => line,
            None => {
                let stream = TcpStream::connect(self.at)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(70)))?;
                self.line.insert(BufReader::new(stream))
            }
        };
        line.get_mut().write_all(bytes)?;
        let heard = hear(line)?;
        if heard.status == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(heard) }
    }

    /// Asks once; an error if nobody answered.
    ///
    /// # Errors
    /// When nobody did.
    pub fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Heard> {
        let body = body.map(Value::to_string);
        let kind = body.as_ref().map_or(String::new(), |b| {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", b.len())
        });
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{kind}\r\n",
            self.at, self.token
        );
        let words = format!("{head}{}", body.unwrap_or_default());
        // A connection that was left alone may have been closed meanwhile: like every client, this
        // one tries a new one.
        let used = self.line.is_some();
        let mut heard = self.once(words.as_bytes());
        if heard.is_err() && used {
            self.line = None;
            heard = self.once(words.as_bytes());
        }
        if heard.is_err() {
            self.line = None;
        }
        heard
    }

    /// Gets something; it must be there.
    ///
    /// # Panics
    /// When it is not.
    pub fn get(&mut self, path: &str) -> Value {
        let heard = self.ask("GET", path, None).unwrap();
        assert_eq!(heard.status, 200, "{path}: {}", heard.body);
        heard.json()
    }

    /// Sends something, and hears the status and what is said.
    ///
    /// # Panics
    /// When nobody answers.
    pub fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let heard = self.ask("POST", path, Some(body)).unwrap();
        (heard.status, heard.json())
    }

    /// Makes a session; its id.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn make(&mut self, body: &Value) -> String {
        let (status, made) = self.post("/api/sessions", body);
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a session is in one of these states; it then.
    ///
    /// # Panics
    /// When it never is.
    pub fn until(&mut self, session: &str, states: &[&str]) -> Value {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let view = self.get(&format!("/api/sessions/{session}?from=0"));
            if states.contains(&view["state"].as_str().unwrap()) {
                return view;
            }
            assert!(Instant::now() < end, "it stays {}: {view:#}", view["state"]);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A live channel from an event on.
    ///
    /// # Errors
    /// When there is none to be had; with the answer, if there was one.
    pub fn live(&self, session: &str, from: u64) -> Result<Live, Heard> {
        let bearer = format!("authorization: Bearer {}\r\n", self.token);
        Live::open(self.at, &format!("/api/sessions/{session}/live?from={from}"), &bearer)
    }
}

/// A live channel.
pub struct Live {
    line: BufReader<TcpStream>,
    /// The code with which the other side closed, if it did.
    pub closed: Option<u16>,
}

impl Live {
    /// Opens one; these headers go along.
    ///
    /// # Errors
    /// When there is none to be had; with the answer, if there was one.
    pub fn open(at: SocketAddr, path: &str, headers: &str) -> Result<Self, Heard> {
        let open = || -> io::Result<(Heard, BufReader<TcpStream>)> {
            let mut stream = TcpStream::connect(at)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(70)))?;
            let words = format!(
                "GET {path} HTTP/1.1\r\nhost: {at}\r\nconnection: Upgrade\r\nupgrade: \
                 websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: \
                 dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
            );
            stream.write_all(words.as_bytes())?;
            let mut line = BufReader::new(stream);
            Ok((hear(&mut line)?, line))
        };
        match open() {
            Ok((heard, line)) if heard.status == 101 => Ok(Self { line, closed: None }),
            Ok((heard, _)) => Err(heard),
            Err(_) => Err(Heard::default()),
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.line.get_mut().write_all(bytes)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn say(&mut self, message: &Value) -> io::Result<()> {
        self.bytes(&frame(0x81, message.to_string().as_bytes()))
    }

    /// Sends a command with an id.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn submit(&mut self, id: &str, command: &Value) -> io::Result<()> {
        self.say(&json!({ "command": { "id": id, "command": command } }))
    }

    /// The next message; none if none came in time, or the channel ended.
    pub fn next(&mut self, within: Duration) -> Option<Value> {
        loop {
            if self.line.buffer().is_empty() {
                self.line
                    .get_ref()
                    .set_read_timeout(Some(within.max(Duration::from_millis(1))))
                    .ok()?;
                match self.line.fill_buf() {
                    Ok([]) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
            self.line.get_ref().set_read_timeout(Some(Duration::from_secs(20))).ok()?;
            let mut head = [0; 2];
            self.line.read_exact(&mut head).ok()?;
            let length = match head[1] & 127 {
                126 => {
                    let mut more = [0; 2];
                    self.line.read_exact(&mut more).ok()?;
                    usize::from(u16::from_be_bytes(more))
                }
                127 => {
                    let mut more = [0; 8];
                    self.line.read_exact(&mut more).ok()?;
                    usize::try_from(u64::from_be_bytes(more)).ok()?
                }
                n => usize::from(n),
            };
            let mut body = vec![0; length];
            self.line.read_exact(&mut body).ok()?;
            match head[0] & 15 {
                1 => return serde_json::from_slice(&body).ok(),
                8 => {
                    self.closed = body.first_chunk().map(|code| u16::from_be_bytes(*code));
                    return None;
                }
                9 => self.bytes(&frame(0x8a, &body)).ok()?,
                _ => {}
            }
        }
    }

    /// Reads on until a message of this kind comes; all up to it.
    pub fn until(&mut self, done: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(message) = self.next(Duration::from_secs(30)) {
            let end = done(&message);
            all.push(message);
            if end {
                break;
            }
        }
        all
    }
}

/// A frame as a client sends it: masked.
#[must_use]
pub fn frame(first: u8, body: &[u8]) -> Vec<u8> {
    let mask = [0x12, 0x34, 0x56, 0x78];
    let mut out = vec![first];
    match body.len() {
        n @ ..126 => out.push(0x80 | n as u8),
        n @ 126..65_536 => {
            out.push(0x80 | 126);
            out.extend((n as u16).to_be_bytes());
        }
        n => {
            out.push(0x80 | 127);
            out.extend((n as u64).to_be_bytes());
        }
    }
    out.extend(mask);
    out.extend(body.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m));
    out
}
