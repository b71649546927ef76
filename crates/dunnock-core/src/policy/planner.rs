//! What a planner is denied in addition: nobody watches it, so only the user's own settings can
//! lift this.

use super::lists::flag;
use super::words::{CommandLine, Simple};
use super::wrap::{base, unwrapped};

/// Programs that act on whole disks.
const DISKS: &[&str] = &[
    "dd",
    "fdisk",
    "sfdisk",
    "cfdisk",
    "gdisk",
    "sgdisk",
    "parted",
    "wipefs",
    "blkdiscard",
    "shred",
    "mkswap",
    "swapon",
    "swapoff",
    "mount",
    "umount",
    "losetup",
    "cryptsetup",
    "hdparm",
    "mdadm",
    "lvcreate",
    "lvremove",
    "vgremove",
    "pvremove",
    "diskutil",
    "format",
    "fstrim",
    "badblocks",
    "debugfs",
    "tune2fs",
    "resize2fs",
    "zpool",
    "btrfs",
];
/// Programs that manage accounts or raise privileges.
const RIGHTS: &[&str] = &[
    "sudo",
    "su",
    "doas",
    "pkexec",
    "run0",
    "runuser",
    "sudoedit",
    "passwd",
    "chpasswd",
    "useradd",
    "userdel",
    "usermod",
    "adduser",
    "deluser",
    "groupadd",
    "groupdel",
    "groupmod",
    "gpasswd",
    "newgrp",
    "visudo",
    "vipw",
    "chsh",
    "chfn",
    "login",
    "setcap",
    "chown",
    "chgrp",
    "setfacl",
    "newuidmap",
    "newgidmap",
    "nsenter",
    "unshare",
    "chroot",
    "setpriv",
];
/// Programs that contact arbitrary hosts.
const CLIENTS: &[&str] = &[
    "curl",
    "wget",
    "wget2",
    "aria2c",
    "axel",
    "http",
    "https",
    "xh",
    "httpie",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ssh",
    "scp",
    "sftp",
    "ssh-copy-id",
    "rsync",
    "ftp",
    "lftp",
    "tftp",
    "rclone",
    "lynx",
    "links",
    "w3m",
    "dig",
    "nslookup",
    "host",
    "drill",
    "ping",
    "ping6",
    "traceroute",
    "tracepath",
    "nmap",
    "whois",
    "smbclient",
    "mosh",
    "websocat",
    "grpcurl",
    "invoke-webrequest",
    "invoke-restmethod",
    "iwr",
    "irm",
];
/// Programs that print the environment.
const PRINTERS: &[&str] = &["printenv", "compgen"];

/// Why a planner may not run a line, if so. Programs that the user allows are not checked.
///
/// This is not a security boundary: a program can be made to do in other ways what is denied here.
/// The sandbox is the boundary.
pub(super) fn denied(line: &CommandLine, allow: &[String]) -> Option<String> {
    if line.commands.is_empty() && line.obscure {
        return Some("a planner may run only command lines that can be parsed".into());
    }
    // Asking where a program is does not run it.
    let asks = |c: &Simple| {
        base(c.texts().next().unwrap_or_default()) == "command"
            && c.texts().any(|w| matches!(w, "-v" | "-V"))
    };
    let shown = CommandLine {
        commands: line.commands.iter().filter(|c| !asks(c)).cloned().collect(),
        obscure: line.obscure,
    };
    let all = unwrapped(&shown);
    // A test in brackets and a `case` pattern are not programs.
    let hidden = |c: &Simple| {
        c.words.first().is_some_and(|word| {
            (!word.plain && !matches!(word.text.as_str(), "[" | "[[" | "*"))
                || word.text.starts_with('-')
        })
    };
    if all.commands.iter().any(hidden) {
        return Some(
            "a planner must name each program directly, without variables or patterns".into(),
        );
    }
    all.commands.iter().find_map(|command| {
        let name = base(command.texts().next().unwrap_or_default()).to_ascii_lowercase();
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        let why = reason(name, command)?;
        let lifted = allow.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
        (!lifted).then(|| {
            let lift = if name.is_empty() {
                String::new()
            } else {
                format!(
                    ". The user can allow it in their own configuration: planner_allow = \
                     [\"{name}\"]"
                )
            };
            format!(
                "a planner may not use {}: {why}{lift}",
                if name.is_empty() { "this" } else { name }
            )
        })
    })
}

/// Whether `env` is called without a program, so that it prints the environment.
fn prints(command: &Simple) -> bool {
    let mut words = command.texts().skip(1);
    while let Some(word) = words.next() {
        match word {
            "-u" | "--unset" | "-C" | "--chdir" => drop(words.next()),
            word if word.starts_with('-') || word.contains('=') => {}
            _ => return false,
        }
    }
    true
}

fn reason(name: &str, command: &Simple) -> Option<&'static str> {
    let named = || {
        command
            .words
            .iter()
            .chain(command.files.iter().map(|(_, file)| file))
            .map(|word| word.text.as_str())
    };
    if named().any(|word| word.contains("/proc/") && word.contains("env")) {
        return Some("it reads environment variables");
    }
    if named().any(|word| word.contains("/dev/tcp/") || word.contains("/dev/udp/")) {
        return Some("it contacts other machines");
    }
    if let Some((sub, rest)) = super::lists::git(command) {
        return match sub {
            "clone" | "fetch" | "pull" | "push" | "ls-remote" | "archive" => {
                Some("it contacts other machines")
            }
            "remote" if rest.contains(&"update") => Some("it contacts other machines"),
            "submodule" if rest.contains(&"update") => Some("it contacts other machines"),
            "clean" if rest.iter().any(|w| w.starts_with('-') && w.contains('f')) => {
                Some("it deletes files without asking")
            }
            _ => None,
        };
    }
    match name {
        "rm" if flag(command, &['r', 'R'], "recursive") && flag(command, &['f'], "force") => {
            Some("it deletes folders without asking")
        }
        "remove-item" | "rd" | "rmdir"
            if command.texts().any(|w| matches!(w, "/s" | "/S" | "-Recurse")) =>
        {
            Some("it deletes folders without asking")
        }
        "find" | "fd" | "fdfind" if command.texts().any(|w| w == "-delete") => {
            Some("it deletes files without asking")
        }
        _ if DISKS.contains(&name) || name.starts_with("mkfs") || name.starts_with("fsck") => {
            Some("it operates on disks or mounts")
        }
        _ if RIGHTS.contains(&name) => Some("it changes accounts, ownership or privileges"),
        _ if CLIENTS.contains(&name) => Some("it contacts other machines"),
        _ if PRINTERS.contains(&name) => Some("it reads environment variables"),
        "env" if prints(command) => Some("it reads environment variables"),
        "set" if command.words.len() == 1 => Some("it reads environment variables"),
        "export" | "declare" | "typeset" | "readonly"
            if command.texts().any(|w| w == "-p")
                || command.texts().skip(1).all(|w| w.starts_with('-')) =>
        {
            Some("it reads environment variables")
        }
        // The commands it would run come from elsewhere, and nobody has reviewed them.
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "fish" | "ash"
            if command.texts().skip(1).all(|w| w.starts_with('-')) =>
        {
            Some("it runs commands from its standard input")
        }
        "openssl" if command.texts().any(|w| w == "s_client") => Some("it contacts other machines"),
        _ => None,
    }
}
