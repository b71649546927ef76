//! The seccomp filter: which system calls a sandboxed command cannot make.
//!
//! Everything is allowed except what is listed. Namespaces and Landlock confine files, processes
//! and the network; this list covers what they do not: other ways into the kernel, other socket
//! types, and calls that would undo them. Numbers are found by bisection, so a call costs eight
//! comparisons, not eighty.

use super::Isolation;
use libc::sock_filter;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the sandbox supports only x86_64 and aarch64: it needs their system call numbers");

const fn refuse(errno: i32) -> u32 {
    0x0005_0000 | errno as u32
}

/// Offset of an argument. Only its lower half is checked, since the kernel takes these as 32 bits.
const fn argument(n: u32) -> u32 {
    16 + 8 * n
}

const fn op(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// What the filter does with a listed call.
#[derive(Debug, Clone)]
enum Answer {
    /// Refuse with this error.
    Refuse(i32),
    /// Refuse unless this argument is one of these.
    Unless(u32, Vec<u32>),
    /// Refuse if this argument is one of these.
    If(u32, Vec<u32>),
    /// Refuse if this argument has one of these bits.
    Bits(u32, u32),
    /// Refuse except for connected pairs of Unix sockets: a datagram socket could send to any name.
    Pairs,
}

impl Answer {
    fn code(&self) -> Vec<sock_filter> {
        let no = op(RETURN, refuse(libc::EPERM), 0, 0);
        let yes = op(RETURN, ALLOW, 0, 0);
        match self {
            Self::Refuse(errno) => vec![op(RETURN, refuse(*errno), 0, 0)],
            Self::Unless(n, values) => {
                let mut code = vec![op(LOAD, argument(*n), 0, 0)];
                for (at, value) in values.iter().enumerate() {
                    // Jump to the last instruction, past the other values and the refusal.
                    code.push(op(EQUAL, *value, jump(values.len() - at), 0));
                }
                code.extend([no, yes]);
                code
            }
            Self::If(n, values) => {
                let mut code = vec![op(LOAD, argument(*n), 0, 0)];
                for (at, value) in values.iter().enumerate() {
                    code.push(op(EQUAL, *value, jump(values.len() - at), 0));
                }
                code.extend([yes, no]);
                code
            }
            Self::Pairs => vec![
                op(LOAD, argument(0), 0, 0),
                op(EQUAL, libc::AF_UNIX as u32, 0, 4),
                op(LOAD, argument(1), 0, 0),
                op(AND, 0xf, 0, 0),
                op(EQUAL, libc::SOCK_STREAM as u32, 2, 0),
                op(EQUAL, libc::SOCK_SEQPACKET as u32, 1, 0),
                no,
                yes,
            ],
            Self::Bits(n, bits) => {
                vec![op(LOAD, argument(*n), 0, 0), op(ANY_BIT, *bits, 0, 1), no, yes]
            }
        }
    }
}

fn jump(by: usize) -> u8 {
    u8::try_from(by).unwrap_or(u8::MAX)
}

/// Ways around the sandbox, refused at every level.
const NEVER: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// System V IPC and message queues of the whole machine, where the sandbox has no IPC namespace.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls on sockets other than those from `socketpair`.
const TALK: &[i64] = &[
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendmmsg,
];

const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;
const TIOCSETD: u32 = 0x5423;
const TIOCCONS: u32 = 0x541D;

/// The filter for a level, with or without the machine's network.
pub(crate) fn filter(isolation: Isolation, network: bool, abi: i64) -> Vec<sock_filter> {
    let mut listed: Vec<(i64, Answer)> =
        NEVER.iter().map(|n| (*n, Answer::Refuse(libc::EPERM))).collect();
    // Its flags are behind a pointer, which a filter cannot read; on ENOSYS, callers fall back to
    // clone.
    listed.push((libc::SYS_clone3, Answer::Refuse(libc::ENOSYS)));
    listed.push((libc::SYS_clone, Answer::Bits(0, NAMESPACES)));
    // Injecting input into the user's terminal.
    listed.push((libc::SYS_ioctl, Answer::If(1, vec![TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS])));
    if isolation == Isolation::C {
        // No namespace hides the rest of the machine: protect other processes' memory and limits.
        listed.extend(SHARED.iter().map(|n| (*n, Answer::Refuse(libc::EPERM))));
        let only_me = |n: i64, argument: u32| (n, Answer::Unless(argument, vec![0]));
        listed.extend([
            only_me(libc::SYS_prlimit64, 0),
            only_me(libc::SYS_setpriority, 1),
            only_me(libc::SYS_sched_setaffinity, 0),
            only_me(libc::SYS_sched_setscheduler, 0),
            only_me(libc::SYS_sched_setparam, 0),
            only_me(libc::SYS_sched_setattr, 0),
            only_me(libc::SYS_ioprio_set, 1),
            (libc::SYS_process_madvise, Answer::Refuse(libc::EPERM)),
        ]);
    }
    let families: Vec<u32> = match (isolation, network) {
        (Isolation::A, _) => {
            vec![
                libc::AF_UNIX as u32,
                libc::AF_INET as u32,
                libc::AF_INET6 as u32,
                libc::AF_NETLINK as u32,
            ]
        }
        // No mount hides sockets of other programs: they could be reached by path.
        (Isolation::B, _) | (Isolation::C, true) => {
            vec![libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32]
        }
        (Isolation::C, false) => Vec::new(),
    };
    listed.push((libc::SYS_socket, Answer::Unless(0, families)));
    listed.push((
        libc::SYS_socketpair,
        if isolation == Isolation::A {
            Answer::Unless(0, vec![libc::AF_UNIX as u32])
        } else {
            Answer::Pairs
        },
    ));
    if isolation == Isolation::C && abi < 6 {
        // Landlock cannot restrict signals yet: at least refuse to signal all of the user's
        // processes at once.
        listed.push((libc::SYS_kill, Answer::If(0, vec![u32::MAX])));
    }
    if isolation == Isolation::C && !network {
        listed.extend(TALK.iter().map(|n| (*n, Answer::Refuse(libc::EPERM))));
    }
    assemble(listed)
}

/// Builds a tree of comparisons over the numbers at which the answer changes. Its leaves jump to
/// the answers, each of which exists once.
fn assemble(mut listed: Vec<(i64, Answer)>) -> Vec<sock_filter> {
    listed.sort_by_key(|(number, _)| *number);
    // From which number an answer applies, as an index into the answers; 0 is "allowed".
    let mut answers = vec![vec![op(RETURN, ALLOW, 0, 0)]];
    let mut changes: Vec<(u32, usize)> = vec![(0, 0)];
    for (number, answer) in &listed {
        let (number, code) = (*number as u32, answer.code());
        let known = answers.iter().position(|a| same(a, &code)).unwrap_or_else(|| {
            answers.push(code);
            answers.len() - 1
        });
        for (at, which) in [(number, known), (number + 1, 0)] {
            changes.retain(|(start, _)| *start != at);
            if changes.last().is_none_or(|(_, last)| *last != which) {
                changes.push((at, which));
            }
        }
    }
    // Numbers of another architecture mean other calls: kill the caller.
    let mut code = vec![
        op(LOAD, ARCH, 0, 0),
        op(EQUAL, OURS, 1, 0),
        op(RETURN, KILL, 0, 0),
        op(LOAD, NUMBER, 0, 0),
    ];
    // Refuse the x32 numbers of the same processor.
    #[cfg(target_arch = "x86_64")]
    code.extend([op(AT_LEAST, 0x4000_0000, 0, 1), op(RETURN, refuse(libc::EPERM), 0, 0)]);
    // The answers follow the tree, which has one comparison fewer than there are changes.
    let tree = changes.len() - 1;
    let mut starts = Vec::new();
    let mut at = tree;
    for answer in &answers {
        starts.push(at);
        at += answer.len();
    }
    let mut comparisons = Vec::new();
    branch(&changes, &starts, &mut comparisons);
    code.extend(comparisons);
    code.extend(answers.into_iter().flatten());
    code
}

fn same(a: &[sock_filter], b: &[sock_filter]) -> bool {
    let key = |op: &sock_filter| (op.code, op.jt, op.jf, op.k);
    a.iter().map(key).eq(b.iter().map(key))
}

/// Emits the comparisons for these changes; returns where they start, or where the only answer is.
fn branch(changes: &[(u32, usize)], starts: &[usize], code: &mut Vec<sock_filter>) -> usize {
    let (low, high) = changes.split_at(changes.len() / 2);
    let Some((first, which)) = high.first() else { return 0 };
    if low.is_empty() {
        return starts.get(*which).copied().unwrap_or(0);
    }
    let here = code.len();
    code.push(op(AT_LEAST, *first, 0, 0));
    let below = branch(low, starts, code);
    let above = branch(high, starts, code);
    if let Some(op) = code.get_mut(here) {
        (op.jt, op.jf) = (jump(above - here - 1), jump(below - here - 1));
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers, by its own rules.
    fn ask(code: &[sock_filter], arch: u32, number: u32, args: [u32; 6]) -> u32 {
        let mut at = 0;
        let mut held = 0u32;
        for _ in 0..1_000 {
            let op = &code[at];
            at += 1;
            match op.code {
                LOAD if op.k == ARCH => held = arch,
                LOAD if op.k == NUMBER => held = number,
                AND => held &= op.k,
                LOAD => held = args[(op.k as usize - 16) / 8],
                EQUAL => at += usize::from(if held == op.k { op.jt } else { op.jf }),
                AT_LEAST => at += usize::from(if held >= op.k { op.jt } else { op.jf }),
                ANY_BIT => at += usize::from(if held & op.k != 0 { op.jt } else { op.jf }),
                0x05 => at += op.k as usize,
                RETURN => return op.k,
                other => panic!("instruction {other}"),
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn each_listed_call_is_refused_and_no_other() {
        for (isolation, network) in [
            (Isolation::A, false),
            (Isolation::B, false),
            (Isolation::C, false),
            (Isolation::C, true),
        ] {
            let code = filter(isolation, network, 7);
            println!("{isolation:?}, network {network}: {} instructions", code.len());
            let refused: Vec<i64> = (0..500)
                .filter(|n| ask(&code, OURS, *n as u32, [0; 6]) == refuse(libc::EPERM))
                .collect();
            let mut wanted: Vec<i64> = NEVER.to_vec();
            wanted.push(libc::SYS_socketpair);
            wanted.push(libc::SYS_socket); // of no family
            if isolation == Isolation::C {
                wanted.extend(SHARED);
                wanted.push(libc::SYS_process_madvise);
                if !network {
                    wanted.extend(TALK);
                }
            }
            wanted.sort_unstable();
            assert_eq!(refused, wanted);
            let arg0 = |number: i64, value: i32| {
                ask(&code, OURS, number as u32, [value as u32, 0, 0, 0, 0, 0])
            };
            assert_eq!(arg0(libc::SYS_clone3, 0), refuse(libc::ENOSYS));
            assert_eq!(
                arg0(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD),
                refuse(libc::EPERM)
            );
            assert_eq!(arg0(libc::SYS_clone, libc::SIGCHLD), ALLOW);
            let pair = |kind: i32| {
                ask(
                    &code,
                    OURS,
                    libc::SYS_socketpair as u32,
                    [libc::AF_UNIX as u32, kind as u32, 0, 0, 0, 0],
                )
            };
            assert_eq!(pair(libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOW);
            assert_eq!(pair(libc::SOCK_DGRAM) == ALLOW, isolation == Isolation::A);
            assert_eq!(arg0(libc::SYS_socket, libc::AF_UNIX) == ALLOW, isolation == Isolation::A);
            assert_eq!(
                arg0(libc::SYS_socket, libc::AF_INET) == ALLOW,
                isolation != Isolation::C || network
            );
            assert_eq!(arg0(libc::SYS_socket, libc::AF_VSOCK), refuse(libc::EPERM));
            assert_eq!(arg0(libc::SYS_prlimit64, 7) == ALLOW, isolation != Isolation::C);
            let typed = ask(&code, OURS, libc::SYS_ioctl as u32, [0, TIOCSTI, 0, 0, 0, 0]);
            assert_eq!(typed, refuse(libc::EPERM));
            assert_eq!(ask(&code, 0x4000_0003, 1, [0; 6]), KILL);
            #[cfg(target_arch = "x86_64")]
            assert_eq!(ask(&code, OURS, 0x4000_0000 + 41, [0; 6]), refuse(libc::EPERM));
        }
    }
}
