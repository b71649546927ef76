//! String names for enums that appear in settings, profiles and logs: one table each.

/// Implements `NAMES`, `Display` and `FromStr` for an enum from its table of names.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal,)* }) => {
        impl $type {
            /// All names, as used in the configuration.
            pub const NAMES: &'static [&'static str] = &[$($word),*];
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)* })
            }
        }
        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("{text:?} is not one of {}", Self::NAMES.join(", "))),
                }
            }
        }
    };
}
pub(crate) use words;
