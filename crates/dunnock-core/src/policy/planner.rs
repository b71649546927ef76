//! What a planner is denied beyond everything else: nobody watches it, so that only the person's own settings lift this.

use super::lists::flag;
use super::words::{Line, Simple};
use super::wrap::{base, unwrapped};

/// Disks and what is on them as a whole.
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
/// Accounts, and more rights than one has.
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
];
/// Programs that talk to whomever they are told to.
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
    "Invoke-WebRequest",
    "Invoke-RestMethod",
    "iwr",
    "irm",
];
/// Programs that print the environment.
const PRINTERS: &[&str] = &["printenv", "compgen"];

/// Why a planner may not run a line, if it may not. A program that the person allows is not looked at.
pub(super) fn denied(line: &Line, allow: &[String]) -> Option<String> {
    let all = unwrapped(line);
    let hidden = |c: &Simple| c.words.first().is_some_and(|word| !word.plain);
    if all.commands.iter().any(hidden) {
        return Some("a planner runs only programs that it names".into());
    }
    all.commands.iter().find_map(|command| {
        let name = base(command.texts().next()?);
        let why = reason(name, command)?;
        let lifted = allow.iter().any(|allowed| allowed == name);
        (!lifted).then(|| {
            format!("a planner may not use {name}: {why}. If it must, allow it in your own configuration: planner_allow = [\"{name}\"]")
        })
    })
}

fn reason(name: &str, command: &Simple) -> Option<&'static str> {
    let environment = command.words.iter().chain(command.files.iter().map(|(_, file)| file));
    if environment.clone().any(|word| word.text.contains("/proc/") && word.text.contains("environ")) {
        return Some("it reads the environment");
    }
    match name {
        "rm" if flag(command, &['r', 'R'], "recursive") && flag(command, &['f'], "force") => {
            Some("it deletes folders without asking")
        }
        "Remove-Item" | "rd" | "rmdir" if command.texts().any(|w| matches!(w, "/s" | "/S" | "-Recurse")) => {
            Some("it deletes folders without asking")
        }
        "find" | "fd" | "fdfind" if command.texts().any(|w| w == "-delete") => Some("it deletes without asking"),
        _ if DISKS.contains(&name) || name.starts_with("mkfs") || name.starts_with("fsck") => Some("it works on disks"),
        _ if RIGHTS.contains(&name) => Some("it changes accounts or rights"),
        _ if CLIENTS.contains(&name) => Some("it talks to other machines"),
        _ if PRINTERS.contains(&name) => Some("it reads the environment"),
        // With a program behind it, it only sets something for that.
        "env" if command.texts().skip(1).all(|w| w.starts_with('-') || w.contains('=')) => {
            Some("it reads the environment")
        }
        "set" if command.words.len() == 1 => Some("it reads the environment"),
        "export" | "declare" | "typeset" if command.texts().skip(1).all(|w| w.starts_with('-')) => {
            Some("it reads the environment")
        }
        _ => None,
    }
}
