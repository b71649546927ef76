//! Enums that are words in settings, profiles and logs: one table for each.

/// Gives an enum its words: `NAMES`, `Display` and `FromStr`.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal,)* }) => {
        impl $type {
            /// Every one, as it is configured.
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
