//! Which addresses belong to the public network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks of IPv4 that are not public: first address, bits, and what they are.
const NOT_PUBLIC_4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // "this network"
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // shared by providers
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // this machine
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link, and metadata of clouds
    (Ipv4Addr::new(168, 63, 129, 16), 32), // settings of machines in a cloud
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, broadcast
];

/// The only networks of IPv6 that are public, and exceptions in them.
const PUBLIC_6: (u128, u32) = (0x2000 << 112, 3);
const NOT_PUBLIC_6: &[(u128, u32)] = &[
    (0x2001 << 112, 23),                    // protocol assignments, with Teredo
    ((0x2001 << 112) | (0x0db8 << 96), 32), // documentation
    (0x2002 << 112, 16),                    // 6to4: contains an IPv4 address
    (0x3fff << 112, 20),                    // documentation
];

/// Whether an address belongs to the public network. Addresses that contain others (mapped,
/// translated, tunnelled) do not: the address inside can be used instead.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            !NOT_PUBLIC_4.iter().any(|(net, len)| bits >> (32 - len) == net.to_bits() >> (32 - len))
        }
        IpAddr::V6(address) => {
            let within = |(net, len): &(u128, u32)| {
                Ipv6Addr::to_bits(address) >> (128 - len) == net >> (128 - len)
            };
            within(&PUBLIC_6) && !NOT_PUBLIC_6.iter().any(within)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn only_public_addresses_are_public() {
        let private = [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "168.63.129.16",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.2.3",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ];
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.254",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00::1",
            "3ffe::1",
        ];
        for address in public {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        println!("{} private, {} public", private.len(), public.len());
    }
}
