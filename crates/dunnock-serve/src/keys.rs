//! Authentication: a token for programs, a one-time code and a cookie for browsers, a password for
//! other machines.
//!
//! Invariant: secrets are compared in constant time, and wrong ones never lock out another sender.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq as _;

/// How long a one-time code is valid.
const CODE_TIME: Duration = Duration::from_secs(30);
/// At most this many unused codes.
const CODES: usize = 16;
/// Wrong secrets within [`WINDOW`], from all senders, before the response asks to wait.
const PATIENCE: u32 = 50;
const WINDOW: Duration = Duration::from_secs(10);
/// Wrong passwords before the client has to wait; when they are forgotten; and how many addresses
/// are remembered.
const GUESSES: u32 = 5;
const FORGOTTEN: Duration = Duration::from_secs(600);
const GUESSERS: usize = 1024;

/// A password from a file or an environment variable, never from a flag.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// Accepts a password that is long enough.
    ///
    /// # Errors
    /// If it is too short.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches(['\r', '\n']);
        match text.chars().count() {
            12.. => Ok(Self(text.to_owned())),
            n => Err(format!("the password has {n} characters; it must have at least 12")),
        }
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// The secrets of one run of the server.
pub struct Keys {
    token: String,
    cookie: String,
    header: String,
    password: Option<Password>,
    codes: Mutex<Vec<(String, Instant)>>,
    wrong: Mutex<FailedLogins>,
}

#[derive(Default)]
struct FailedLogins {
    /// Times of recent wrong secrets.
    recent: VecDeque<Instant>,
    /// Per address: wrong passwords in a row, and until when it must wait.
    guessers: HashMap<IpAddr, (u32, Instant)>,
}

/// 256 random bits.
fn secret() -> String {
    let mut bytes = [0; 32];
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort(); // without random numbers there is no authentication
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn same(ours: &str, theirs: &str) -> bool {
    ours.as_bytes().ct_eq(theirs.as_bytes()).into()
}

/// An IPv6 client usually has a whole network, so its network counts as one address.
fn neighbourhood(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 64 << 64).into()),
        old => old,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keys {
    /// Generates new secrets.
    #[must_use]
    pub fn new(password: Option<Password>) -> Self {
        let (codes, wrong) = (Mutex::default(), Mutex::default());
        Self { token: secret(), cookie: secret(), header: secret(), password, codes, wrong }
    }

    /// The bearer token for programs.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A code that logs in one browser, once, within 30 seconds.
    #[must_use]
    pub fn code(&self) -> String {
        let mut codes = lock(&self.codes);
        codes.retain(|(_, made)| made.elapsed() < CODE_TIME);
        if codes.len() >= CODES {
            codes.remove(0);
        }
        let code = secret();
        codes.push((code.clone(), Instant::now()));
        code
    }

    /// Redeems a code, which is invalid from then on.
    pub(crate) fn redeem(&self, code: &str) -> bool {
        let mut codes = lock(&self.codes);
        codes.retain(|(_, made)| made.elapsed() < CODE_TIME);
        let before = codes.len();
        codes.retain(|(known, _)| !same(known, code));
        codes.len() < before
    }

    pub(crate) fn is_token(&self, word: &str) -> bool {
        same(&self.token, word)
    }
    pub(crate) fn is_cookie(&self, word: &str) -> bool {
        same(&self.cookie, word)
    }
    pub(crate) fn is_header(&self, word: &str) -> bool {
        same(&self.header, word)
    }
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }
    pub(crate) fn header(&self) -> &str {
        &self.header
    }
    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether the password is right. While a client must wait, no password from it is checked, not
    /// even the right one.
    pub(crate) fn is_password(&self, from: IpAddr, word: &str) -> Result<bool, Duration> {
        let (mut wrong, now, from) = (lock(&self.wrong), Instant::now(), neighbourhood(from));
        wrong.guessers.retain(|_, (_, until)| now.saturating_duration_since(*until) < FORGOTTEN);
        let known = wrong.guessers.get(&from).copied();
        if let Some(left) = known
            .map(|(_, until)| until.saturating_duration_since(now))
            .filter(|left| !left.is_zero())
        {
            return Err(left);
        }
        // Compare hashes, so that timing does not reveal the length.
        let digest = |text: &str| dunnock_proto::Hash::of(text.as_bytes()).0;
        let right =
            self.password.as_ref().is_some_and(|p| digest(&p.0).ct_eq(&digest(word)).into());
        if right {
            wrong.guessers.remove(&from);
            return Ok(true);
        }
        if wrong.guessers.len() >= GUESSERS
            && let Some(oldest) =
                wrong.guessers.iter().min_by_key(|(_, (_, until))| *until).map(|(ip, _)| *ip)
        {
            wrong.guessers.remove(&oldest);
        }
        let guesses = known.map_or(1, |(n, _)| n + 1);
        let pause = guesses.checked_sub(GUESSES).map_or(0, |more| 1 << more.min(8));
        wrong.guessers.insert(from, (guesses, now + Duration::from_secs(pause)));
        Ok(false)
    }

    /// Records a wrong secret; true if there were too many recently.
    pub(crate) fn wrong(&self) -> bool {
        let mut wrong = lock(&self.wrong);
        let now = Instant::now();
        while wrong.recent.front().is_some_and(|then| now.duration_since(*then) > WINDOW) {
            wrong.recent.pop_front();
        }
        if wrong.recent.len() as u32 > PATIENCE {
            return true;
        }
        wrong.recent.push_back(now);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_opens_once() {
        let keys = Keys::new(None);
        let code = keys.code();
        assert!(!keys.redeem("00"));
        assert!(keys.redeem(&code));
        assert!(!keys.redeem(&code));
    }

    #[test]
    fn a_code_grows_old() {
        let keys = Keys::new(None);
        let code = keys.code();
        lock(&keys.codes)[0].1 = Instant::now().checked_sub(CODE_TIME).unwrap();
        assert!(!keys.redeem(&code));
    }

    #[test]
    fn after_wrong_passwords_not_even_the_right_one_is_looked_at_and_others_are_not_held_up() {
        let keys = Keys::new(Some(Password::new("correct horse battery").unwrap()));
        let (one, other): (IpAddr, IpAddr) =
            ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        assert_eq!(keys.is_password(one, "correct horse battery"), Ok(true));
        for _ in 0..GUESSES {
            assert_eq!(keys.is_password(one, "wrong"), Ok(false));
        }
        assert!(keys.is_password(one, "correct horse battery").is_err());
        assert_eq!(keys.is_password(other, "correct horse battery"), Ok(true));
        lock(&keys.wrong).guessers.get_mut(&one).unwrap().1 = Instant::now();
        assert_eq!(keys.is_password(one, "correct horse battery"), Ok(true));
    }

    #[test]
    fn guesses_from_everywhere_are_each_counted() {
        let keys = Keys::new(Some(Password::new("correct horse battery").unwrap()));
        for n in 0..2 * GUESSERS as u32 {
            assert_eq!(keys.is_password(std::net::Ipv4Addr::from(n).into(), "wrong"), Ok(false));
        }
        assert_eq!(lock(&keys.wrong).guessers.len(), GUESSERS);
        let one = |n: u16| IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, n));
        (0..5).for_each(|n| assert_eq!(keys.is_password(one(n), "wrong"), Ok(false)));
        assert!(
            keys.is_password(one(99), "correct horse battery").is_err(),
            "one network is one guesser"
        );
    }

    #[test]
    fn a_short_password_is_none() {
        assert!(Password::new("12345678901\n").is_err());
        assert!(Password::new("123456789012\n").is_ok());
        let none = Keys::new(None);
        assert_eq!(none.is_password("::1".parse().unwrap(), ""), Ok(false));
    }
}
