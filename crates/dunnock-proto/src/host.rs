//! Names of hosts, and which of them may be reached.

use crate::address::is_public;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A host as it is named in a request: in lower case, without a dot at its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A name, for the resolver.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// A text that is not a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidHost(String);

impl fmt::Display for InvalidHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} cannot be used as a host; give a name (example.com, *.example.com), or an address \
             of IPv4 with its port (127.0.0.1:3000)",
            self.0
        )
    }
}
impl std::error::Error for InvalidHost {}

impl Host {
    /// Parses a host. What resolvers and programs read in different ways is refused: other bytes
    /// than letters, digits, hyphens and underscores in a label, and numbers that are not an
    /// address in its usual form (`127.1`, `0x7f.1`, `2130706433`).
    ///
    /// # Errors
    /// If it is not a host.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        let invalid = || InvalidHost(text.chars().take(300).collect());
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or_else(invalid)?;
            let address = inner.parse::<Ipv6Addr>().map_err(|_| invalid())?;
            return Ok(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        if name.len() > 253 || !name.split('.').all(label) {
            return Err(invalid());
        }
        // As in URLs: if the last label begins with a digit, the whole is meant as an address.
        let last = name.rsplit('.').next().unwrap_or_default();
        match last.bytes().next() {
            Some(b'0'..=b'9') if text.ends_with('.') => return Err(invalid()),
            Some(b'0'..=b'9') => {
                return name
                    .parse::<Ipv4Addr>()
                    .map(|a| Self::Address(a.into()))
                    .map_err(|_| invalid());
            }
            Some(b'-') | None => return Err(invalid()),
            Some(_) => {}
        }
        Ok(Self::Name(name))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The ports of a rule that names none.
const WEB: [u16; 2] = [80, 443];

/// Hosts that may be reached: `example.com`, `*.example.com` (not `example.com` itself),
/// `example.com:8443`, `127.0.0.1:3000`. Without a port, 80 and 443 are meant; an address (IPv4) has
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostRule {
    host: Host,
    /// Hosts below this one instead of itself.
    below: bool,
    port: Option<u16>,
}

impl HostRule {
    /// The rule that covers just this host and port; `None` for an address of IPv6.
    #[must_use]
    pub fn of(host: Host, port: u16) -> Option<Self> {
        let port = match &host {
            Host::Address(IpAddr::V6(_)) => return None,
            Host::Address(IpAddr::V4(_)) => Some(port),
            Host::Name(_) => (!WEB.contains(&port)).then_some(port),
        };
        (port != Some(0)).then_some(Self { host, below: false, port })
    }

    /// The host that a URL names, with its port, if the URL is one for `http` or `https` and every
    /// program reads it in the same way.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let usual = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !authority.ends_with(']') => (host, parse_port(port)?),
            Some(_) | None => (authority, usual),
        };
        Self::of(Host::parse(host).ok()?, port)
    }

    /// Whether this host and port may be reached.
    #[must_use]
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.names(host) && self.port.map_or_else(|| WEB.contains(&port), |known| known == port)
    }

    /// Whether it covers everything that the other rule covers.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        let named = match other.below {
            true => self.below && (self.host == other.host || self.names(&other.host)),
            false => self.names(&other.host),
        };
        let port = match (self.port, other.port) {
            (None, Some(port)) => WEB.contains(&port),
            (known, port) => known == port,
        };
        named && port
    }

    /// Whether it names the port, so that what is spoken there is not known.
    #[must_use]
    pub fn names_port(&self) -> bool {
        self.port.is_some()
    }

    /// Whether it is a name of this machine. Such a name never leads anywhere: the address does.
    #[must_use]
    pub fn is_local_name(&self) -> bool {
        matches!(&self.host, Host::Name(name) if name == "localhost" || name.ends_with(".localhost"))
    }

    /// Whether it is an address that is not public.
    #[must_use]
    pub fn is_private(&self) -> bool {
        matches!(&self.host, Host::Address(address) if !is_public(*address))
    }

    /// Whether it is an address of this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        matches!(&self.host, Host::Address(address) if address.is_loopback())
    }

    fn names(&self, host: &Host) -> bool {
        match (&self.host, host) {
            (Host::Name(rule), Host::Name(name)) if self.below => name
                .strip_suffix(rule.as_str())
                .is_some_and(|rest| rest.ends_with('.') && rest.len() > 1),
            (rule, host) => rule == host,
        }
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|port| digits && *port > 0)
}

/// The longest rule, in characters.
const RULE_CHARS: usize = 253;
/// What a rule looks like, for schemas: a name with at least one label below a `*.`, or an address of
/// IPv4 with a port.
#[cfg(any(test, feature = "schema"))]
const RULE_PATTERN: &str = concat!(
    r"^(((\*\.[A-Za-z0-9_-]{1,63}\.)?([A-Za-z0-9_-]{1,63}\.)*[A-Za-z_][A-Za-z0-9_-]{0,62}\.?)",
    r"(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))?",
    r"|((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])",
    r":(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))$",
);

impl FromStr for HostRule {
    type Err = InvalidHost;

    /// Parses a rule. Only names can have a `*.` before them, and an address needs a port.
    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let invalid = || InvalidHost(text.chars().take(300).collect());
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !rest.ends_with(']') => {
                (host, Some(parse_port(port).ok_or_else(invalid)?))
            }
            Some(_) | None => (rest, None),
        };
        let host = Host::parse(host)?;
        match &host {
            _ if text.len() > RULE_CHARS => Err(invalid()),
            Host::Address(IpAddr::V6(_)) => Err(invalid()),
            Host::Address(_) if below || port.is_none() => Err(invalid()),
            // A whole top-level domain is no host.
            Host::Name(name) if below && !name.contains('.') => Err(invalid()),
            Host::Name(_) | Host::Address(_) => Ok(Self { host, below, port }),
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.below { "*." } else { "" };
        match self.port {
            Some(port) => write!(f, "{below}{}:{port}", self.host),
            None => write!(f, "{below}{}", self.host),
        }
    }
}

impl Serialize for HostRule {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for HostRule {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
#[cfg(feature = "schema")]
impl schemars::JsonSchema for HostRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HostRule".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": RULE_PATTERN,
            "maxLength": RULE_CHARS,
            "description": "Hosts that may be reached: example.com, *.example.com, example.com:8443",
        })
    }
}

/// All hosts that something may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct HostSet(
    // One that is named twice is no error.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<HostRule>"))] BTreeSet<HostRule>,
);

impl HostSet {
    /// No host.
    pub const NONE: Self = Self(BTreeSet::new());

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = &HostRule> {
        self.0.iter()
    }

    /// Whether this host and port may be reached.
    #[must_use]
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.0.iter().any(|rule| rule.covers(host, port))
    }

    /// Whether a rule that names the port covers this host.
    #[must_use]
    pub fn names_port(&self, host: &Host, port: u16) -> bool {
        self.0.iter().any(|rule| rule.names_port() && rule.covers(host, port))
    }

    /// Whether it covers everything that the other covers.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        other.0.iter().all(|rule| self.includes_rule(rule))
    }

    fn includes_rule(&self, rule: &HostRule) -> bool {
        self.0.iter().any(|known| known.includes(rule))
    }

    /// The rules of both.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        Self(self.0.union(&more.0).cloned().collect())
    }

    /// The rules that the other does not cover.
    #[must_use]
    pub fn without(&self, known: &Self) -> Self {
        Self(self.0.iter().filter(|rule| !known.includes_rule(rule)).cloned().collect())
    }
}

impl FromIterator<HostRule> for HostSet {
    fn from_iter<T: IntoIterator<Item = HostRule>>(rules: T) -> Self {
        Self(rules.into_iter().collect())
    }
}

impl fmt::Display for HostSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, rule) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{rule}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Host, HostRule, HostSet};

    #[test]
    fn what_is_read_in_different_ways_is_no_host() {
        let invalid = [
            "",
            ".",
            "..",
            "a..b",
            "evil.test\0.allowed.com",
            "a b",
            "a/b",
            "a@b",
            "a%2eb",
            "a:b",
            "127.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "1.2.3",
            "1.2.3.4.5",
            "127.0.0.01",
            "127.0.0.256",
            "a.0x1",
            "a.1",
            "[::1",
            "[::1%lo]",
            "[127.0.0.1]",
            "::1",
            "bücher.example",
            "а.example",
            "a\\b",
            "a#b",
            "a?b",
            "a\nb",
            "a\tb",
            "*.example.com",
        ];
        for text in invalid {
            assert!(Host::parse(text).is_err(), "{text:?}");
        }
        for (text, shown) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("localhost", "localhost"),
            ("8.8.8.8", "8.8.8.8"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            ("a_b-c.example", "a_b-c.example"),
        ] {
            assert_eq!(Host::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_rule_covers_what_it_says() {
        let rules =
            ["allowed.com", "*.allowed.org", "db.example:5432", "127.0.0.1:3000", "8.8.8.8:443"];
        let hosts: HostSet = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let reaches = |host: &str, port| hosts.covers(&Host::parse(host).unwrap(), port);
        for (host, port) in [
            ("allowed.com", 443),
            ("ALLOWED.com.", 80),
            ("a.allowed.org", 443),
            ("a.b.allowed.org", 443),
            ("db.example", 5432),
            ("127.0.0.1", 3000),
            ("8.8.8.8", 443),
        ] {
            assert!(reaches(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("allowed.com", 22),
            ("allowed.com.evil.test", 443), // G261
            ("evilallowed.com", 443),
            ("sub.allowed.com", 443),
            ("evilallowed.org", 443), // G262
            ("allowed.org", 443),
            ("db.example", 443),
            ("127.0.0.1", 80),
            ("127.0.0.2", 3000),
            ("localhost", 3000),
            ("8.8.8.8", 53),
            ("8.8.8.8", 80),
        ] {
            assert!(!reaches(host, port), "{host}:{port}");
        }
        for rule in [
            "127.0.0.1",
            "10.0.0.1",
            "8.8.8.8",
            "[::1]",
            "[::1]:80",
            "a:080",
            "127.0.0.1.:80",
            "a.0b",
            "*.com",
            "*.1.1.1.1",
            "*",
            "a:0",
            "a:+1",
            "a:70000",
            "a:",
        ] {
            assert!(rule.parse::<HostRule>().is_err(), "{rule}");
        }
        for rule in rules {
            assert_eq!(rule.parse::<HostRule>().unwrap().to_string(), rule);
        }
    }

    #[test]
    fn a_rule_includes_narrower_ones() {
        let rule = |text: &str| text.parse::<HostRule>().unwrap();
        for (wide, narrow, includes) in [
            ("a.example", "a.example", true),
            ("a.example", "a.example:443", true),
            ("a.example:443", "a.example", false),
            ("a.example", "a.example:8443", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "*.a.example.org", true),
            ("*.example.org", "*.example.org", true),
            ("*.a.example.org", "*.example.org", false),
            ("*.example.org", "example.org", false),
            ("a.example.org", "*.example.org", false),
            ("127.0.0.1:3000", "127.0.0.1:3000", true),
            ("127.0.0.1:3000", "127.0.0.1:3001", false),
        ] {
            assert_eq!(rule(wide).includes(&rule(narrow)), includes, "{wide} {narrow}");
        }
    }

    #[test]
    fn a_url_names_one_host_or_none() {
        for (url, rule) in [
            ("https://Example.com/a?b#c", Some("example.com")),
            ("http://example.com", Some("example.com")),
            ("https://example.com:8443/x", Some("example.com:8443")),
            ("http://127.0.0.1:3000/", Some("127.0.0.1:3000")),
            ("http://10.0.0.1", Some("10.0.0.1:80")),
            ("http://[::1]:80/", None),
            ("https://8.8.8.8/", Some("8.8.8.8:443")),
            ("https://user@example.com/", None),
            ("https://user:pw@example.com/", None),
            ("https://example.com:/", None),
            ("https://example.com:0/", None),
            ("https://example.com\\@evil.test/", None),
            ("https://2130706433/", None),
            ("https://$HOST/", None),
            ("https://{a,b}.example/", None),
            ("https://", None),
            ("HTTPS://example.com", None),
            ("ftp://example.com", None),
            ("ssh://git@example.com/x", None),
            ("git@example.com:x", None),
            ("example.com", None),
        ] {
            let found = HostRule::of_url(url).map(|rule| rule.to_string());
            assert_eq!(found.as_deref(), rule, "{url}");
            if let Some(rule) = rule {
                assert_eq!(rule.parse::<HostRule>().unwrap().to_string(), rule);
            }
        }
    }
}
